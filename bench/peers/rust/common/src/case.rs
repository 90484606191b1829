//! A case by its name.

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// How many handoffs a run has.
    pub handoffs: usize,
    /// How many items the conversation begins with.
    pub items: usize,
    /// Whether each run has its own copy of them.
    pub own_history: bool,
    /// Whether the model keeps every request.
    pub keeps_requests: bool,
    /// What the model does before it answers.
    pub wait: Wait,
    /// How many runs there are at once.
    pub at_once: u32,
    /// Where it goes over HTTP.
    pub wire: Option<Wire>,
}

/// What the model does before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Nothing.
    No,
    /// Lets others go first.
    Yields,
    /// Never answers after the handoff.
    Parks,
}

/// How it goes over HTTP.
#[derive(Debug, Clone)]
pub struct Wire {
    /// Where the provider is.
    pub url: String,
    /// What it is asked in.
    pub protocol: Protocol,
    /// Whether answers are streamed.
    pub streamed: bool,
}

/// What a provider is asked in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// OpenAI's newer one.
    Responses,
    /// What everybody speaks.
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
