//! Tools that the client of a protocol runs itself.
//!
//! To the engine such a tool is one that needs approval: a call of it interrupts the run, which is stored and
//! waits. The client's output approves the call, and the tool then returns that output.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use switchboard_core::Tool;
use switchboard_core::approval::Interruption;
use switchboard_core::tool::{ToolOutput, tool};

use crate::error::ServiceError;

/// The largest number of tools of a request.
const MAX_TOOLS: usize = 256;

/// The description of a tool that the client runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClientTool {
    pub(crate) name: Arc<str>,
    pub(crate) description: Arc<str>,
    pub(crate) parameters: Arc<Value>,
}

impl ClientTool {
    /// Reads a tool of a request. Without a schema of its parameters it has none.
    pub(crate) fn new(
        name: &str,
        description: &str,
        parameters: &Value,
    ) -> Result<Self, ServiceError> {
        let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_valid) {
            let message = format!(
                "{name:?} is no name of a tool: it has 1 to 64 letters, digits, \"-\" or \"_\""
            );
            return Err(ServiceError::invalid(message));
        }
        let parameters = match parameters {
            Value::Null => json!({"type": "object", "properties": {}}),
            parameters @ Value::Object(_) => parameters.clone(),
            _ => {
                return Err(ServiceError::invalid(format!(
                    "the parameters of {name} are no schema"
                )));
            }
        };
        Ok(Self {
            name: name.into(),
            description: description.into(),
            parameters: Arc::new(parameters),
        })
    }
}

/// The tools of a request, and the outputs of calls that waited.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientTools {
    tools: Vec<ClientTool>,
    outputs: Arc<Mutex<HashMap<Arc<str>, ToolOutput>>>,
}

impl ClientTools {
    pub(crate) fn new(tools: Vec<ClientTool>) -> Self {
        Self {
            tools,
            outputs: Arc::default(),
        }
    }

    /// The tools of a request, unless there are too many.
    pub(crate) fn of_request(tools: Vec<ClientTool>) -> Result<Self, ServiceError> {
        if tools.len() > MAX_TOOLS {
            return Err(ServiceError::invalid("there are more than 256 tools"));
        }
        Ok(Self::new(tools))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Returns `true` if the client runs the tool of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| *tool.name == *name)
    }

    /// Adds tools whose calls wait, for a client that does not describe its tools a second time.
    pub(crate) fn add_waiting(
        &mut self,
        waiting: &[Interruption],
        is_client_call: impl Fn(&Interruption) -> bool,
    ) {
        for waiting in waiting {
            if is_client_call(waiting) && !self.has(&waiting.tool) {
                self.tools.push(ClientTool {
                    name: waiting.tool.clone(),
                    description: "".into(),
                    parameters: Arc::new(json!({"type": "object"})),
                });
            }
        }
    }

    /// Sets the output of a call.
    pub(crate) fn set_output(&self, call_id: &str, output: ToolOutput) {
        let mut outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        outputs.insert(call_id.into(), output);
    }

    /// The tools as agents have them.
    pub(crate) fn tools<C: Send + Sync + 'static>(&self) -> Vec<Tool<C>> {
        let tools = self.tools.iter().map(|client_tool| {
            let outputs = self.outputs.clone();
            tool::<C>(client_tool.name.clone())
                .description(client_tool.description.clone())
                .needs_approval()
                .run_raw(&client_tool.parameters, move |ctx| {
                    let outputs = outputs.lock().unwrap_or_else(PoisonError::into_inner);
                    let output = outputs.get(ctx.call_id()).cloned();
                    output
                        .unwrap_or_else(|| ToolOutput::Text("The tool gave no output.".to_owned()))
                })
        });
        tools.collect()
    }
}
