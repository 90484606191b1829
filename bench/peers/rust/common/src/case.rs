//! Parses the name of a case.

/// A case to run.
#[derive(Debug, Clone)]
pub struct Case {
    /// The name.
    pub name: String,
    /// The number of handoffs in a run.
    pub handoffs: usize,
    /// The number of items in the input history.
    pub items: usize,
    /// `true` if each run has its own copy of the history.
    pub own_history: bool,
    /// `true` if the model records its requests.
    pub keeps_requests: bool,
    /// The behaviour of the model before it responds.
    pub wait: Wait,
    /// The number of concurrent runs.
    pub at_once: u32,
    /// The provider, if the case runs over HTTP.
    pub wire: Option<Wire>,
}

/// The behaviour of the model before it responds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Responds immediately.
    No,
    /// Yields to other tasks.
    Yields,
    /// Never responds after the handoff.
    Parks,
}

/// The provider of a case over HTTP.
#[derive(Debug, Clone)]
pub struct Wire {
    /// The URL of the provider.
    pub url: String,
    /// The protocol of the requests.
    pub protocol: Protocol,
    /// `true` if responses are streamed.
    pub streamed: bool,
}

/// The protocol of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// The Responses API.
    Responses,
    /// Chat Completions.
    Chat,
}

impl Case {
    pub(crate) fn named(name: &str, url: Option<&String>) -> Option<Self> {
        let mut case = Self {
            name: name.to_owned(),
            handoffs: 1,
            items: 0,
            own_history: false,
            keeps_requests: name.ends_with("_recorded"),
            wait: Wait::No,
            at_once: 1,
            wire: None,
        };
        match name {
            "triage" | "cold" => {}
            "history_1000" | "history_1000_recorded" => case.items = 1000,
            "one_at_a_time" => case.wait = Wait::Yields,
            "parked_shared" | "parked_own" => {
                case.wait = Wait::Parks;
                case.items = 20;
                case.own_history = name == "parked_own";
            }
            _ => {
                if let Some(handoffs) = name.strip_prefix("chain_") {
                    case.handoffs = handoffs.parse().ok()?;
                } else if let Some(runs) = name.strip_prefix("at_once_") {
                    case.wait = Wait::Yields;
                    case.at_once = runs.parse().ok()?;
                } else {
                    let [protocol, form, items, at_once] = name.split('_').collect::<Vec<_>>()[..]
                    else {
                        return None;
                    };
                    case.items = items.parse().ok()?;
                    case.at_once = at_once.strip_prefix('x')?.parse().ok()?;
                    case.wire = Some(Wire {
                        url: url?.clone(),
                        protocol: match protocol {
                            "responses" => Protocol::Responses,
                            "chat" => Protocol::Chat,
                            _ => return None,
                        },
                        streamed: form == "streamed",
                    });
                }
            }
        }
        Some(case)
    }
}
