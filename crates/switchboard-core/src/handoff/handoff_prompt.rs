//! Instructions for agents that hand off.

use std::fmt::Write as _;

use crate::model::HandoffSpec;

/// A prompt that explains handoffs, to go before the instructions of an agent that can hand off.
///
/// With it, models hand off more reliably and talk less about it.
pub const HANDOFF_PROMPT: &str = "\
You work in a team of agents that share one conversation with the user. Each agent has its own \
instructions and tools. When a colleague is better suited for what the user needs, pass the \
conversation on by calling that colleague's tool, named transfer_to_<colleague>; the colleague then \
answers in your place and sees the conversation so far. To the user it is one conversation: do not \
announce, explain or mention a transfer. Answer yourself what is yours to answer, and pass a \
conversation on once, not back and forth.";

/// Returns the instructions with [`HANDOFF_PROMPT`] in front.
///
/// ```
/// let instructions = switchboard_core::handoff::with_handoff_prompt("You handle bills.");
/// assert!(instructions.ends_with("\n\nYou handle bills."));
/// ```
pub fn with_handoff_prompt(instructions: &str) -> String {
    if instructions.is_empty() {
        HANDOFF_PROMPT.to_owned()
    } else {
        format!("{HANDOFF_PROMPT}\n\n{instructions}")
    }
}

/// Returns the instructions with [`HANDOFF_PROMPT`] and the list of handoff targets in front.
pub(crate) fn naming_colleagues(handoffs: &[HandoffSpec], instructions: Option<&str>) -> String {
    let mut prompt = HANDOFF_PROMPT.to_owned();
    if !handoffs.is_empty() {
        prompt.push_str("\n\nColleagues you can pass the conversation to:");
        for handoff in handoffs {
            let (name, tool) = (&handoff.to, &handoff.tool_name);
            // Writing to a String cannot fail.
            let _ = write!(prompt, "\n- {name} ({tool})");
        }
    }
    if let Some(instructions) = instructions {
        prompt.push_str("\n\n");
        prompt.push_str(instructions);
    }
    prompt
}
