//! The files that teams are read from: text, checks, completions, changes.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use super::requests::position;
use super::types::TeamBody;
use crate::error::{ServiceError, ServiceErrorKind};
use crate::http::{JsonBody, PathOf};
use crate::service::{Caller, Service};
use crate::team::ServedTeam;
use crate::team_source::{
    Completions, ReloadError, Reloaded, SourceProblem, TeamSource, text_version,
};

/// The text that a team is read from.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FileBody {
    name: String,
    text: String,
    /// The version of the text, for saving a changed one.
    version: String,
    /// `toml` or `json`.
    format: String,
    /// It can be changed here.
    editable: bool,
    /// It is not the text that the team was read from.
    changed_on_disk: bool,
}

/// A text to look over.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TextBody {
    text: String,
}

/// The problems of a text.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ProblemsBody {
    problems: Vec<SourceProblem>,
    /// There is no error among them.
    ok: bool,
}

/// A place in a text.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PlaceBody {
    text: String,
    /// The line, from 1.
    #[serde(deserialize_with = "position")]
    #[schemars(range(max = 9_007_199_254_740_991_u64))]
    line: u64,
    /// The column in characters, from 1.
    #[serde(deserialize_with = "position")]
    #[schemars(range(max = 9_007_199_254_740_991_u64))]
    column: u64,
}

/// A changed text.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SaveBody {
    text: String,
    /// The version of the text that was changed.
    version: String,
}

/// A team that was read again.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ReloadBody {
    /// The version of the text.
    version: String,
    /// Warnings and notes.
    problems: Vec<SourceProblem>,
    team: TeamBody,
}

impl From<Reloaded> for ReloadBody {
    fn from(reloaded: Reloaded) -> Self {
        Self {
            version: reloaded.version,
            problems: reloaded.problems,
            team: TeamBody::from(&reloaded.team),
        }
    }
}

impl IntoResponse for ReloadError {
    fn into_response(self) -> Response {
        match self {
            Self::Service(error) => error.into_response(),
            Self::Problems(problems) => {
                let body = serde_json::json!({
                    "error": {
                        "message": "the team file has errors; nothing was changed",
                        "type": "invalid_request_error",
                        "param": null,
                        "code": ServiceErrorKind::InvalidRequest.as_str(),
                    },
                    "problems": problems,
                });
                (StatusCode::BAD_REQUEST, Json(body)).into_response()
            }
        }
    }
}

/// Runs code that reads or writes files on a thread that may wait.
async fn blocking<T: Send + 'static, E: From<ServiceError> + Send + 'static>(
    code: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    match tokio::task::spawn_blocking(code).await {
        Ok(result) => result,
        Err(_) => {
            let message = "the team file could not be worked on";
            Err(ServiceError::new(ServiceErrorKind::Internal, message).into())
        }
    }
}

fn source(
    service: &Service,
    caller: &Caller,
    name: &str,
) -> Result<(ServedTeam, Arc<dyn TeamSource>), ServiceError> {
    let team = service.team(caller, name)?;
    let source = team.team_source().cloned();
    let source = source.ok_or_else(|| ServiceError::not_found("the team is from no file"))?;
    require_studio(service)?;
    Ok((team, source))
}

/// Refuses what clients of a service need not know of its teams: instructions, rules, comments and addresses.
pub(super) fn require_studio(service: &Service) -> Result<(), ServiceError> {
    if service.inner().studio.is_some() {
        return Ok(());
    }
    let message = "the files and instructions of teams are shown in the studio only";
    Err(ServiceError::new(ServiceErrorKind::Forbidden, message))
}

/// Refuses changes of teams by clients whose key does not allow them.
fn require_editing(caller: &Caller) -> Result<(), ServiceError> {
    if caller.may_edit_teams() {
        return Ok(());
    }
    let message =
        "the key does not allow changes of teams; set edit_teams = true for it in the file of keys";
    Err(ServiceError::new(ServiceErrorKind::Forbidden, message))
}

pub(super) async fn show(
    State(service): State<Service>,
    caller: Caller,
    PathOf(name): PathOf<String>,
) -> Result<Json<FileBody>, ServiceError> {
    let (team, source) = source(&service, &caller, &name)?;
    let may_edit = caller.may_edit_teams();
    let body = blocking(move || {
        let text = source.read()?;
        let version = text_version(&text);
        Ok::<_, ServiceError>(FileBody {
            name: source.name(),
            format: source.format().to_owned(),
            editable: may_edit && source.is_editable(),
            changed_on_disk: team.text_version().is_some_and(|known| known != version),
            version,
            text,
        })
    });
    Ok(Json(body.await?))
}

pub(super) async fn check(
    State(service): State<Service>,
    caller: Caller,
    PathOf(name): PathOf<String>,
    JsonBody(body): JsonBody<TextBody>,
) -> Result<Json<ProblemsBody>, ServiceError> {
    let (_, source) = source(&service, &caller, &name)?;
    let problems = blocking(move || Ok::<_, ServiceError>(source.check(&body.text))).await?;
    Ok(Json(ProblemsBody {
        ok: !problems.iter().any(SourceProblem::is_error),
        problems,
    }))
}

pub(super) async fn complete(
    State(service): State<Service>,
    caller: Caller,
    PathOf(name): PathOf<String>,
    JsonBody(body): JsonBody<PlaceBody>,
) -> Result<Json<Completions>, ServiceError> {
    let (_, source) = source(&service, &caller, &name)?;
    let index = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let (line, column) = (index(body.line), index(body.column));
    let complete = move || Ok::<_, ServiceError>(source.complete(&body.text, line, column));
    Ok(Json(blocking(complete).await?))
}

pub(super) async fn save(
    State(service): State<Service>,
    caller: Caller,
    PathOf(name): PathOf<String>,
    JsonBody(body): JsonBody<SaveBody>,
) -> Result<Json<ReloadBody>, ReloadError> {
    let (team, _) = source(&service, &caller, &name)?;
    require_editing(&caller)?;
    let saved = blocking(move || service.save(&team, &body.text, &body.version)).await?;
    Ok(Json(saved.into()))
}

pub(super) async fn reload(
    State(service): State<Service>,
    caller: Caller,
    PathOf(name): PathOf<String>,
) -> Result<Json<ReloadBody>, ReloadError> {
    let (team, _) = source(&service, &caller, &name)?;
    require_editing(&caller)?;
    let reloaded = blocking(move || service.reload(&team)).await?;
    Ok(Json(reloaded.into()))
}
