//! The names of the tools that represent handoffs.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Handoff;

const PREFIX: &str = "transfer_to_";

/// The maximum length of a tool name that providers accept.
pub(crate) const MAX_NAME_LEN: usize = 64;

/// The policy that names the tools of handoffs without a given name.
///
/// Under either policy, agents whose names result in the same tool name all stay reachable: the
/// first one declared keeps the plain name, the next ones get the suffixes `_2`, `_3`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolNames {
    /// Like the reference: every character that is not an ASCII letter or digit becomes `_`.
    #[default]
    Reference,
    /// Other scripts are transliterated, and names are cut to 64 characters.
    Readable,
}

impl ToolNames {
    /// Returns the name of the tool that hands off to an agent of this name.
    ///
    /// ```
    /// use switchboard_core::handoff::ToolNames;
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
                name.truncate(MAX_NAME_LEN);
                name
            }
        }
    }

    /// Returns the names of these handoffs, in their order.
    pub fn names_of<'a, C>(self, handoffs: &'a [Handoff<C>]) -> Vec<Arc<str>> {
        let plain_name = |handoff: &Handoff<C>| -> Arc<str> {
            match self {
                Self::Readable if !handoff.has_given_name() => {
                    self.default_name(handoff.agent_name()).into()
                }
                _ => handoff.spec().tool_name.clone(),
            }
        };
        // A name with a suffix must not be the plain name of another handoff.
        let mut used: HashSet<Arc<str>> = handoffs.iter().map(plain_name).collect();
        let mut groups: HashMap<Arc<str>, SharedName<'_>> = HashMap::new();
        let name = |handoff: &'a Handoff<C>| {
            let plain = plain_name(handoff);
            if handoff.has_given_name() {
                return plain;
            }
            let group = groups.entry(plain.clone()).or_default();
            if let Some(name) = group.names.get(handoff.agent_name()) {
                return name.clone();
            }
            group.last_suffix += 1;
            let mut name = plain.clone();
            while group.last_suffix > 1 {
                name = self.with_suffix(&plain, group.last_suffix).into();
                if !used.contains(&name) {
                    break;
                }
                group.last_suffix += 1;
            }
            used.insert(name.clone());
            group.names.insert(handoff.agent_name(), name.clone());
            name
        };
        handoffs.iter().map(name).collect()
    }

    fn with_suffix(self, name: &str, n: usize) -> String {
        let suffix = format!("_{n}");
        let max_len = match self {
            Self::Reference => name.len(),
            Self::Readable => MAX_NAME_LEN - suffix.len(),
        };
        // Default names are ASCII, so every index is a character boundary.
        format!("{}{suffix}", &name[..name.len().min(max_len)])
    }
}

/// The agents whose tools share a plain name.
#[derive(Default)]
struct SharedName<'a> {
    /// The tool names by agent.
    names: HashMap<&'a str, Arc<str>>,
    last_suffix: usize,
}

/// Returns the default name that a handoff's tool has in the reference.
///
/// ```
/// assert_eq!(switchboard_core::handoff::default_tool_name("L2-Support"), "transfer_to_l2_support");
/// ```
pub fn default_tool_name(agent_name: &str) -> String {
    format!("{PREFIX}{}", function_name(agent_name))
}

/// An agent's name in the form of a function's name.
pub(crate) fn function_name(agent_name: &str) -> String {
    let letters = agent_name.chars().map(|c| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' => c.to_ascii_lowercase(),
        _ => '_',
    });
    letters.collect()
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
    fn agents_with_the_same_tool_name_get_suffixes() {
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
    fn a_name_with_a_suffix_is_not_the_name_of_another_agent() {
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
    fn given_names_are_not_changed() {
        let b: Agent = Agent::new("B");
        let a = Agent::new("A")
            .handoff(handoff(&b).tool_name("go"))
            .handoff(handoff(&b).tool_name("go"));
        let names = ToolNames::Readable.names_of(a.handoffs());
        assert_eq!(names.iter().map(|n| &**n).collect::<Vec<_>>(), ["go", "go"]);
    }
}
