//! `skills` and `profiles`: what there is, and what clients get.

use axum::body::Body;
use http::{Response, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;

use super::Page;
use super::overview::usable_profiles;
use crate::problem::Problem;
use crate::request::ConsoleContext;
use crate::route::json_response;

/// A rough number of bytes per token of JSON text, by which costs are estimated.
const BYTES_PER_TOKEN: usize = 4;

/// A skill.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Skill {
    pub(crate) name: String,
    pub(crate) description: String,
    /// `project`, `config`, `user` or `server`.
    pub(crate) origin: String,
    /// `used`, `hidden` by another one of the same name, or `waiting` for approval.
    pub(crate) state: String,
    /// The names of its tools.
    pub(crate) tools: Vec<String>,
    /// Its file; of a skill of a server, the server.
    pub(crate) place: String,
}

/// A profile.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Profile {
    pub(crate) name: String,
    /// How many tools the principal can use through it.
    pub(crate) tools: usize,
    /// How many of them a client receives in its list.
    pub(crate) listed: usize,
    /// The size of that list.
    pub(crate) list_bytes: usize,
    /// The estimated number of tokens of that list.
    pub(crate) list_tokens: usize,
}

pub(crate) fn list_skills(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    Ok(json_response(StatusCode::OK, &Page { items: read_skills(context), next: None }))
}

/// All skills.
pub(crate) fn read_skills(context: &ConsoleContext<'_>) -> Vec<Skill> {
    let snapshot = context.hub().skills();
    let own = snapshot.skills.iter().map(|known| {
        let state = match (known.approval.may_be_used(), &known.hidden_by) {
            (true, None) => "used",
            (true, Some(_)) => "hidden",
            (false, _) => "waiting",
        };
        Skill {
            name: known.skill.name.clone(),
            description: known.skill.description.clone(),
            origin: known.skill.origin.name().to_owned(),
            state: state.to_owned(),
            tools: known.tool_names.clone(),
            place: known.skill.file.display().to_string(),
        }
    });
    let remote = snapshot.remote.iter().map(|skill| Skill {
        name: skill.shown(),
        description: skill.description.clone(),
        origin: "server".to_owned(),
        state: "used".to_owned(),
        tools: Vec::new(),
        place: skill.server.to_string(),
    });
    own.chain(remote).collect()
}

pub(crate) fn list_profiles(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    Ok(json_response(StatusCode::OK, &Page { items: read_profiles(context), next: None }))
}

/// The profiles that the principal may use.
pub(crate) fn read_profiles(context: &ConsoleContext<'_>) -> Vec<Profile> {
    let profile = |name: String| {
        let tools = context.gateways.offered_tools(Some(&name), context.principal())?.len();
        let list = context.gateways.listed_tools(Some(&name), context.principal())?;
        let list_bytes = list.get().len();
        let listed =
            list.object().and_then(|all| all.get("tools")?.decode::<Vec<toolhub_core::RawJson>>().ok());
        let listed = listed.map_or(0, |all| all.len());
        Some(Profile { name, tools, listed, list_bytes, list_tokens: list_bytes / BYTES_PER_TOKEN })
    };
    usable_profiles(context).into_iter().filter_map(profile).collect()
}
