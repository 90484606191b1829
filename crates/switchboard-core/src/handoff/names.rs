//! The names of the tools that stand for handoffs.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Handoff;

const PREFIX: &str = "transfer_to_";

/// The longest name of a tool that providers take.
pub(crate) const LONGEST_NAME: usize = 64;

/// How the tools of handoffs are named where no name is given.
///
/// Under either policy two agents whose names come to the same tool name both stay reachable: the
/// first one declared keeps the plain name, the next get `_2`, `_3`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolNames {
    /// As the reference: every character that is not an ASCII letter or digit becomes `_`.
    #[default]
    Reference,
    /// Readable: other scripts are transliterated, and names are cut to 64 characters.
    Readable,
}

impl ToolNames {
    /// The name of the tool that leads to an agent of this name.
    ///
    /// ```
    /// use switchboard_core::ToolNames;
    ///
    /// assert_eq!(ToolNames::Reference.default_name("账单专家"), "transfer_to_____");
    /// assert_eq!(ToolNames::Readable.default_name("账单专家"), "transfer_to_zhang_dan_zhuan_jia");
    /// ```
    pub fn default_name(self, agent_name: &str) -> String {
        match self {
            Self::Reference => default_tool_name(agent_name),
            Self::Readable => {
                let ascii = deunicode::deunicode_with_tofu(agent_name, "_");
                let mut name = default_tool_name(ascii.trim());
                name.truncate(LONGEST_NAME);
                name
            }
        }
    }

    /// The names of these handoffs, in their order.
    pub(crate) fn names_of<'a, C>(self, handoffs: &'a [Handoff<C>]) -> Vec<Arc<str>> {
        let plain_name = |handoff: &Handoff<C>| -> Arc<str> {
            match self {
                Self::Readable if !handoff.has_given_name() => {
                    self.default_name(handoff.agent_name()).into()
                }
                _ => handoff.spec().tool_name.clone(),
            }
        };
        // A suffix must not make a name that another handoff has without one.
        let mut taken: HashSet<Arc<str>> = handoffs.iter().map(plain_name).collect();
        let mut sharing: HashMap<Arc<str>, Sharing<'_>> = HashMap::new();
        let name = |handoff: &'a Handoff<C>| {
            let plain = plain_name(handoff);
            if handoff.has_given_name() {
                return plain;
            }
            let sharing = sharing.entry(plain.clone()).or_default();
            if let Some(name) = sharing.names.get(handoff.agent_name()) {
                return name.clone();
            }
            sharing.last += 1;
            let mut name = plain.clone();
            while sharing.last > 1 {
                name = self.with_suffix(&plain, sharing.last).into();
                if !taken.contains(&name) {
                    break;
                }
                sharing.last += 1;
            }
            taken.insert(name.clone());
            sharing.names.insert(handoff.agent_name(), name.clone());
            name
        };
        handoffs.iter().map(name).collect()
    }

    fn with_suffix(self, name: &str, n: usize) -> String {
        let suffix = format!("_{n}");
        let room = match self {
            Self::Reference => name.len(),
            Self::Readable => LONGEST_NAME - suffix.len(),
        };
        // Default names are ASCII, so any cut is at a character.
        format!("{}{suffix}", &name[..name.len().min(room)])
    }
}

/// The agents that share a plain name.
#[derive(Default)]
struct Sharing<'a> {
    names: HashMap<&'a str, Arc<str>>,
    /// The last number that was given out.
    last: usize,
}

/// The name a handoff's tool has in the reference, unless it is given another.
///
/// ```
/// assert_eq!(switchboard_core::default_tool_name("L2-Support"), "transfer_to_l2_support");
/// ```
pub fn default_tool_name(agent_name: &str) -> String {
    let suffix = agent_name.chars().map(|c| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' => c.to_ascii_lowercase(),
        _ => '_',
    });
    PREFIX.chars().chain(suffix).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Agent;
    use crate::handoff::handoff;

    fn names(policy: ToolNames, agents: &[&str]) -> Vec<String> {
        let mut start: Agent = Agent::new("Start");
        for name in agents {
            start = start.handoff(Agent::new(*name));
        }
        let names = policy.names_of(start.handoffs());
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn agents_whose_names_come_to_the_same_are_told_apart() {
        assert_eq!(
            names(
                ToolNames::Reference,
                &["账单", "技术", "销售", "FAQ bot", "faq-bot"]
            ),
            [
                "transfer_to___",
                "transfer_to____2",
                "transfer_to____3",
                "transfer_to_faq_bot",
                "transfer_to_faq_bot_2"
            ]
        );
        assert_eq!(
            names(ToolNames::Readable, &["账单", "技术", "张单"]),
            [
                "transfer_to_zhang_dan",
                "transfer_to_ji_shu",
                "transfer_to_zhang_dan_2"
            ]
        );
    }

    #[test]
    fn a_suffix_does_not_take_the_name_of_another_agent() {
        assert_eq!(
            names(ToolNames::Reference, &["FAQ bot", "faq-bot", "FAQ bot 2"]),
            [
                "transfer_to_faq_bot",
                "transfer_to_faq_bot_3",
                "transfer_to_faq_bot_2"
            ]
        );
    }

    #[test]
    fn two_handoffs_to_one_agent_share_its_name() {
        assert_eq!(
            names(ToolNames::Reference, &["账单", "技术", "账单"]),
            ["transfer_to___", "transfer_to____2", "transfer_to___"]
        );
    }

    #[test]
    fn readable_names_are_never_too_long() {
        let (long, longer) = ("x".repeat(100), "x".repeat(101));
        let names = names(
            ToolNames::Readable,
            &[&long, &longer, "短".repeat(80).as_str()],
        );
        assert!(
            names.iter().all(|name| name.len() <= 64 && name.is_ascii()),
            "{names:?}"
        );
        assert!(names[1].ends_with("x_2"), "{names:?}");
    }

    #[test]
    fn given_names_are_left_alone() {
        let b: Agent = Agent::new("B");
        let a = Agent::new("A")
            .handoff(handoff(&b).tool_name("go"))
            .handoff(handoff(&b).tool_name("go"));
        let names = ToolNames::Readable.names_of(a.handoffs());
        assert_eq!(names.iter().map(|n| &**n).collect::<Vec<_>>(), ["go", "go"]);
    }
}
