//! The OpenAPI document of the API, put together from the schemas of its types.

use axum::Json;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::files::{FileBody, PlaceBody, ProblemsBody, ReloadBody, SaveBody, TextBody};
use super::graph::GraphBody;
use super::recordings::{RecordingList, RecordingPage, RowBody};
use super::requests::{
    AnswerBody, CONVERSATION_ID, DecisionsBody, ForkBody, MessageBody, RealtimeBody, ResendBody,
};
use super::types::{
    AgentDetailsBody, CheckBody, ConversationBody, ConversationList, ErrorBody, RunInfo, RunList,
    SearchResults, StudioBody, TeamBody, TeamList, TicketBody, TurnList,
};
use super::waiting::WaitingList;
use crate::changes::{ConversationChange, RunChange, TeamChange, WaitingChange};
use crate::recording::Row;
use crate::team_source::Completions;

pub(super) async fn document() -> Json<Value> {
    Json(make())
}

/// Makes the document.
fn make() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut schemas = settings.into_generator();
    let error = reference::<ErrorBody>(&mut schemas);
    let operations = operations(&mut schemas);
    let mut paths = Map::new();
    for operation in operations {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = operation.to_value(&error);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Switchboard",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Conversations with teams of agents.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas.take_definitions(true),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}, {}],
    })
}

fn reference<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Value {
    schemas.subschema_for::<T>().to_value()
}

/// One operation of the API.
struct Operation {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    parameters: Vec<Value>,
    body: Option<Value>,
    /// The status of success with its content: media types and schemas.
    success: (&'static str, Vec<(&'static str, Value)>),
    /// Further statuses beside those that every operation has.
    errors: &'static [&'static str],
}

impl Operation {
    fn to_value(&self, error: &Value) -> Value {
        let (status, content) = &self.success;
        let media = |schema: &Value| json!({"schema": schema});
        let content: Map<String, Value> = content
            .iter()
            .map(|(name, schema)| ((*name).to_owned(), media(schema)))
            .collect();
        let mut success = json!({"description": "Success."});
        if !content.is_empty() {
            success["content"] = Value::Object(content);
        }
        let mut responses = Map::new();
        responses.insert((*status).to_owned(), success);
        let common = ["400", "401", "403", "429", "500", "503"];
        for status in common.iter().chain(self.errors) {
            let content = json!({"application/json": {"schema": error}});
            let response = json!({"description": "An error.", "content": content});
            responses.insert((*status).to_owned(), response);
        }
        let mut operation = json!({
            "operationId": self.operation_id(),
            "summary": self.summary,
            "parameters": self.parameters,
            "responses": responses,
        });
        if let Some(schema) = &self.body {
            operation["requestBody"] = json!({
                "required": true, "content": {"application/json": {"schema": schema}},
            });
        }
        operation
    }

    /// A name for generated clients, such as `post_conversations_messages`.
    fn operation_id(&self) -> String {
        let words = self
            .path
            .split('/')
            .skip(2)
            .filter(|word| !word.starts_with('{'));
        let id = words.fold(self.method.to_owned(), |id, word| format!("{id}_{word}"));
        let id = id.replace('.', "_");
        if self.path.ends_with('}') {
            format!("{id}_one")
        } else {
            id
        }
    }
}

fn path_parameter(name: &str, description: &str) -> Value {
    json!({"name": name, "in": "path", "required": true, "description": description,
           "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": CONVERSATION_ID}})
}

fn query(name: &str, description: &str, is_required: bool, schema: &Value) -> Value {
    json!({"name": name, "in": "query", "required": is_required, "description": description,
           "schema": schema})
}

/// The schema of one event of a run.
fn event_schema() -> Value {
    json!({
        "type": "object",
        "required": ["data"],
        "properties": {
            "id": {"type": "string", "description": "The number of the event in its run."},
            "event": {"type": "string", "description": "The kind of event."},
            "data": {"type": "string", "description": "An object with `type`, `agent` and `turn` as JSON."},
        },
    })
}

/// The schema of a server-sent event of this name, whose data is JSON of a schema.
fn named_event(name: &str, data: &Value) -> Value {
    json!({
        "type": "object",
        "required": ["event", "data"],
        "properties": {
            "event": {"const": name},
            "data": {"type": "string", "contentMediaType": "application/json", "contentSchema": data},
        },
    })
}

/// The content of a stream of such events.
fn stream_of(events: &[(&str, Value)]) -> Vec<(&'static str, Value)> {
    let events = events.iter().map(|(name, data)| named_event(name, data));
    vec![(
        "text/event-stream",
        json!({"oneOf": events.collect::<Vec<_>>()}),
    )]
}

/// The events of `/api/events`.
fn changes(schemas: &mut SchemaGenerator) -> Vec<(&'static str, Value)> {
    stream_of(&[
        ("hello", json!({"type": "object"})),
        ("conversation", reference::<ConversationChange>(schemas)),
        ("run", reference::<RunChange>(schemas)),
        ("waiting", reference::<WaitingChange>(schemas)),
        ("team", reference::<TeamChange>(schemas)),
        ("missed", json!({"type": "object"})),
    ])
}

/// The events of a recording.
fn row_changes(schemas: &mut SchemaGenerator) -> Vec<(&'static str, Value)> {
    stream_of(&[
        ("row", reference::<Row>(schemas)),
        ("end", json!({"type": "object"})),
    ])
}

fn operations(schemas: &mut SchemaGenerator) -> Vec<Operation> {
    let conversation = path_parameter("conversation", "The identifier of the conversation.");
    let team = path_parameter("team", "The name of the team.");
    let run = path_parameter("run", "The identifier of the run.");
    let limit = query(
        "limit",
        "The largest number of entries.",
        false,
        &json!({"type": "integer", "minimum": 1, "maximum": 1000, "default": 50}),
    );
    let idempotency = json!({
        "name": "Idempotency-Key", "in": "header", "required": false,
        "description": "Two messages with the same key are one: the second gets the run of the first.",
        "schema": {"type": "string", "maxLength": 128},
    });
    let last_event = json!({
        "name": "Last-Event-ID", "in": "header", "required": false,
        "description": "The identifier of the last event that was seen.",
        "schema": {"type": "integer", "minimum": 0, "maximum": 9_007_199_254_740_991_u64},
    });
    let json_of = |schema: Value| vec![("application/json", schema)];
    let run_or_events = |schemas: &mut SchemaGenerator| {
        let events = event_schema();
        vec![
            ("application/json", reference::<RunInfo>(schemas)),
            ("text/event-stream", events),
        ]
    };
    let drawing = vec![
        ("text/plain", json!({"type": "string"})),
        ("image/svg+xml", json!({"type": "string"})),
        ("application/json", reference::<GraphBody>(schemas)),
    ];
    let formats = json!({
        "type": "string", "enum": ["mermaid", "dot", "svg", "json"], "default": "mermaid",
    });
    let agent = path_parameter("agent", "The name of the agent.");
    let row = path_parameter("row", "The number of the row.");
    let number = json!({"type": "integer", "minimum": 0, "maximum": 9_007_199_254_740_991_u64});
    let before = query(
        "before",
        "Only entries before this position.",
        false,
        &number,
    );
    let after_turn = query("after", "`next` of the page before.", false, &number);
    let after_row = query(
        "after",
        "Only rows after the one with this number.",
        false,
        &number,
    );
    let changed_after = query(
        "changed_after",
        "Only rows that were changed after this `seq`, in the order of their changes.",
        false,
        &number,
    );
    let row_limit = query(
        "limit",
        "The largest number of rows.",
        false,
        &json!({"type": "integer", "minimum": 1, "maximum": 5000, "default": 500}),
    );
    let export_format = query(
        "format",
        "The form of the file: everything that is stored, a text for people, the recordings as lines of JSON, or a \
         routing test for a file of cases.",
        false,
        &json!({"type": "string", "enum": ["json", "markdown", "trace", "case"], "default": "json"}),
    );
    let exported = vec![
        ("application/json", json!({"type": "object"})),
        ("text/markdown", json!({"type": "string"})),
        ("application/x-ndjson", json!({"type": "string"})),
        ("application/toml", json!({"type": "string"})),
    ];
    let get = |path, summary, parameters: &[&Value], content, errors| Operation {
        method: "get",
        path,
        summary,
        parameters: parameters
            .iter()
            .map(|parameter| (*parameter).clone())
            .collect(),
        body: None,
        success: ("200", content),
        errors,
    };
    let post = |path, summary, parameters: &[&Value], body, success| Operation {
        method: "post",
        path,
        summary,
        parameters: parameters
            .iter()
            .map(|parameter| (*parameter).clone())
            .collect(),
        body: Some(body),
        success,
        errors: &["404", "409", "413", "415", "504"],
    };
    let text = query(
        "q",
        "The text.",
        true,
        &json!({"type": "string", "pattern": "^[^\\x00]+$"}),
    );
    let cursor = query(
        "cursor",
        "`next` of the page before.",
        false,
        &json!({"type": "string", "pattern": "^[0-9]{1,15}~.+$"}),
    );
    let format = query("format", "The language of the drawing.", false, &formats);
    vec![
        get(
            "/api/openapi.json",
            "This document.",
            &[],
            json_of(json!({"type": "object"})),
            &[],
        ),
        get(
            "/api/studio",
            "What a page should know before it begins.",
            &[],
            json_of(reference::<StudioBody>(schemas)),
            &[],
        ),
        get(
            "/api/events",
            "Follows changes of conversations, runs, waits and teams.",
            &[],
            changes(schemas),
            &[],
        ),
        get(
            "/api/waiting",
            "Lists the conversations that wait for a decision or a person, the longest waiting first.",
            &[],
            json_of(reference::<WaitingList>(schemas)),
            &[],
        ),
        get(
            "/api/teams/{team}/agents/{agent}",
            "Shows everything that is known of an agent.",
            &[&team, &agent],
            json_of(reference::<AgentDetailsBody>(schemas)),
            &["404"],
        ),
        get(
            "/api/teams/{team}/file",
            "Shows the text that a team is read from.",
            &[&team],
            json_of(reference::<FileBody>(schemas)),
            &["404", "409"],
        ),
        Operation {
            method: "put",
            ..post(
                "/api/teams/{team}/file",
                "Replaces the text that a team is read from, if it has no errors, and reads the team again.",
                &[&team],
                reference::<SaveBody>(schemas),
                ("200", json_of(reference::<ReloadBody>(schemas))),
            )
        },
        post(
            "/api/teams/{team}/file/check",
            "Looks a text over as if the team were read from it.",
            &[&team],
            reference::<TextBody>(schemas),
            ("200", json_of(reference::<ProblemsBody>(schemas))),
        ),
        post(
            "/api/teams/{team}/file/completions",
            "Completes a text at a place.",
            &[&team],
            reference::<PlaceBody>(schemas),
            ("200", json_of(reference::<Completions>(schemas))),
        ),
        Operation {
            method: "post",
            path: "/api/teams/{team}/reload",
            summary: "Reads a team again. Runs under way go on with the team that they began with.",
            parameters: vec![team.clone()],
            body: None,
            success: ("200", json_of(reference::<ReloadBody>(schemas))),
            errors: &["404", "409"],
        },
        get(
            "/api/teams",
            "Lists the teams.",
            &[],
            json_of(reference::<TeamList>(schemas)),
            &[],
        ),
        get(
            "/api/teams/{team}",
            "Shows a team.",
            &[&team],
            json_of(reference::<TeamBody>(schemas)),
            &["404"],
        ),
        get(
            "/api/teams/{team}/graph",
            "Draws a team.",
            &[&team, &format],
            drawing,
            &["404"],
        ),
        get(
            "/api/teams/{team}/check",
            "Checks a team for mistakes.",
            &[&team],
            json_of(reference::<CheckBody>(schemas)),
            &["404"],
        ),
        post(
            "/api/teams/{team}/realtime/tickets",
            "Makes a ticket for a realtime session, a WebSocket at /api/teams/{team}/realtime.",
            &[&team],
            reference::<RealtimeBody>(schemas),
            ("201", json_of(reference::<TicketBody>(schemas))),
        ),
        get(
            "/api/conversations",
            "Lists conversations, the last changed first.",
            &[&limit, &cursor],
            json_of(reference::<ConversationList>(schemas)),
            &[],
        ),
        get(
            "/api/search",
            "Finds entries of conversations by their text, the latest first.",
            &[&text, &limit],
            json_of(reference::<SearchResults>(schemas)),
            &[],
        ),
        get(
            "/api/conversations/{conversation}",
            "Shows a conversation with its latest entries, or the latest before a position.",
            &[&conversation, &limit, &before],
            json_of(reference::<ConversationBody>(schemas)),
            &["404"],
        ),
        Operation {
            method: "delete",
            path: "/api/conversations/{conversation}",
            summary: "Deletes a conversation, and cancels its runs.",
            parameters: vec![conversation.clone()],
            body: None,
            success: ("204", Vec::new()),
            errors: &["404", "409"],
        },
        post(
            "/api/conversations/{conversation}/fork",
            "Copies a conversation.",
            &[&conversation],
            reference::<ForkBody>(schemas),
            ("201", json_of(reference::<ConversationBody>(schemas))),
        ),
        post(
            "/api/conversations/{conversation}/resend",
            "Sends a message of a conversation again, or another one in its place.",
            &[&conversation],
            reference::<ResendBody>(schemas),
            ("200", run_or_events(schemas)),
        ),
        get(
            "/api/conversations/{conversation}/turns",
            "Shows a conversation as turns, the oldest first.",
            &[&conversation, &limit, &after_turn],
            json_of(reference::<TurnList>(schemas)),
            &["404"],
        ),
        get(
            "/api/conversations/{conversation}/export",
            "Writes a conversation as a file.",
            &[&conversation, &export_format],
            exported,
            &["404", "409"],
        ),
        get(
            "/api/conversations/{conversation}/recordings",
            "Lists the recordings of a conversation's runs, the oldest first.",
            &[&conversation],
            json_of(reference::<RecordingList>(schemas)),
            &[],
        ),
        Operation {
            errors: &["404", "409", "413", "415", "422", "504"],
            ..post(
                "/api/conversations/{conversation}/messages",
                "Sends a message. The conversation is created with its first message.",
                &[&conversation, &idempotency],
                reference::<MessageBody>(schemas),
                ("200", run_or_events(schemas)),
            )
        },
        post(
            "/api/conversations/{conversation}/decisions",
            "Decides calls that wait, and goes on with the run.",
            &[&conversation],
            reference::<DecisionsBody>(schemas),
            ("200", run_or_events(schemas)),
        ),
        post(
            "/api/conversations/{conversation}/answers",
            "Answers for a person that a run waits for, and goes on with the run.",
            &[&conversation],
            reference::<AnswerBody>(schemas),
            ("200", run_or_events(schemas)),
        ),
        get(
            "/api/runs",
            "Lists the runs under way, and those that ended a short time ago.",
            &[],
            json_of(reference::<RunList>(schemas)),
            &[],
        ),
        get(
            "/api/runs/{run}",
            "Shows a run.",
            &[&run],
            json_of(reference::<RunInfo>(schemas)),
            &["404"],
        ),
        get(
            "/api/runs/{run}/events",
            "Follows the events of a run, from the first or after one that was seen.",
            &[&run, &last_event],
            vec![("text/event-stream", event_schema())],
            &["404"],
        ),
        get(
            "/api/runs/{run}/recording",
            "Shows what happened in a run, as rows.",
            &[&run, &after_row, &changed_after, &row_limit],
            json_of(reference::<RecordingPage>(schemas)),
            &["404"],
        ),
        get(
            "/api/runs/{run}/recording/events",
            "Follows the rows of a recording as they change.",
            &[&run],
            row_changes(schemas),
            &["404"],
        ),
        get(
            "/api/runs/{run}/recording/{row}",
            "Shows what was sent and what came back.",
            &[&run, &row],
            json_of(reference::<RowBody>(schemas)),
            &["404"],
        ),
        Operation {
            method: "post",
            path: "/api/runs/{run}/cancel",
            summary: "Cancels a run, and answers once it has ended.",
            parameters: vec![run.clone()],
            body: None,
            success: ("200", json_of(reference::<RunInfo>(schemas))),
            errors: &["404"],
        },
    ]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

    use super::*;

    #[test]
    fn the_document_describes_every_route() {
        let source = include_str!("../api.rs");
        let document = make();
        let described: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
        let routes: Vec<&str> = source
            .split('"')
            .filter(|part| part.starts_with("/api/"))
            .collect();
        for route in &routes {
            assert!(
                described.iter().any(|path| path == route),
                "{route} is not described"
            );
        }
        assert_eq!(described.len(), routes.len());
    }
}
