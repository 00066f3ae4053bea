//! The models: the agents of the configuration.

use serde_json::{Value, json};
use toolhub::Gateways;
use toolhub::settings::DEFAULT_AGENT;
use toolhub_core::suggest::similar_names;

use crate::error::ApiError;

const MODEL_PREFIX: &str = "toolhub/";

/// The names of all models; the default agent is first.
pub(crate) fn names(gateways: &Gateways) -> Vec<String> {
    let agents = gateways.hub().settings().agents.keys().filter(|name| *name != DEFAULT_AGENT);
    std::iter::once(DEFAULT_AGENT)
        .chain(agents.map(String::as_str))
        .map(|name| format!("{MODEL_PREFIX}{name}"))
        .collect()
}

/// The agent of a model; `None` for the default agent.
pub(crate) fn agent_of(gateways: &Gateways, model: &str) -> Result<Option<String>, ApiError> {
    let names = names(gateways);
    if !names.iter().any(|name| name == model) {
        let near = similar_names(model, names.iter().map(String::as_str), 1);
        let hint = match near.first() {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are: {}", names.join(", ")),
        };
        let error = ApiError::invalid("model", format!("there is no model `{model}`; {hint} (没有此模型)"));
        return Err(ApiError { status: http::StatusCode::NOT_FOUND, code: Some("model_not_found"), ..error });
    }
    let agent = model.strip_prefix(MODEL_PREFIX).unwrap_or(model).to_owned();
    // The default agent need not be configured.
    let is_configured = gateways.hub().settings().agents.contains_key(&agent);
    Ok(Some(agent).filter(|_| is_configured))
}

/// A model as the API lists it.
pub(crate) fn model(name: &str) -> Value {
    json!({ "id": name, "object": "model", "created": 0, "owned_by": "toolhub" })
}
