//! The guardrails of agents and runs that cases describe.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_core::guardrail::{InputGuardrail, InputVerdict, OutputGuardrail, OutputVerdict};
use switchboard_core::{Agent, FinalOutput, Input, RunContext};

use super::{CaseContext, Log as _};
use crate::case::GuardrailCase;
use crate::serialize;

pub(super) fn input(case: &GuardrailCase) -> InputGuardrail<CaseContext> {
    let name = case.name.clone();
    let is_beside = case.beside;
    let case = case.clone();
    let check = move |ctx: RunContext<CaseContext>, agent: Agent<CaseContext>, input: Input| {
        let case = case.clone();
        async move {
            ctx.log(json!({"input_guardrail": case.name, "agent": agent.name()}));
            if let Some(pause) = case.takes_ms {
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
            let input = serialize::input(&input).to_string();
            let trips = trips(&case, &input)?;
            Ok::<_, String>(InputVerdict::trip_if(trips, Value::Null))
        }
    };
    if is_beside {
        InputGuardrail::beside_model(name, check)
    } else {
        InputGuardrail::new(name, check)
    }
}

pub(super) fn output(case: &GuardrailCase) -> OutputGuardrail<CaseContext> {
    let case = case.clone();
    OutputGuardrail::new(
        case.name.clone(),
        move |ctx: RunContext<CaseContext>, agent: Agent<CaseContext>, output: FinalOutput| {
            ctx.log(json!({"output_guardrail": case.name, "agent": agent.name()}));
            let trips = trips(&case, &output.text())?;
            Ok::<_, String>(OutputVerdict::trip_if(trips, Value::Null))
        },
    )
}

fn trips(case: &GuardrailCase, text: &str) -> Result<bool, String> {
    match &case.raises {
        Some(error) => Err(error.clone()),
        None => Ok(text.contains(&case.trips_on)),
    }
}
