//! Earlier items of a conversation: those of previous responses, and items that a request refers to by their ids.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use toolhub_core::ports::HubStore;
use toolhub_core::responses::StoredResponse;

use super::assembler::response_of_item;
use crate::error::ApiError;

/// Maximum number of responses of a conversation.
const MAX_CHAIN_RESPONSES: usize = 200;
/// Maximum size of the items of a conversation, in bytes.
const MAX_CHAIN_BYTES: usize = 16 << 20;
/// Numbers of input items begin here; output items have smaller ones.
const FIRST_INPUT: usize = 100_000;

/// Reads stored responses of one principal.
#[derive(Clone, Copy)]
pub(crate) struct History<'a> {
    pub(crate) store: Option<&'a dyn HubStore>,
    pub(crate) principal: &'a str,
}

impl History<'_> {
    /// A response of the principal.
    pub(crate) async fn response(&self, id: &str) -> Result<StoredResponse, ApiError> {
        let not_found = || ApiError::not_found("response", id);
        // A database may refuse a NUL character in a text.
        let Some(store) = self.store.filter(|_| !id.contains('\0')) else { return Err(not_found()) };
        let found = store.response(id, self.principal).await;
        found.map_err(|error| ApiError::internal(error.to_string()))?.ok_or_else(not_found)
    }

    /// The items of a response and of those before it, oldest first.
    pub(crate) async fn items(&self, previous: Option<&str>) -> Result<Vec<Value>, ApiError> {
        let mut next = previous.map(str::to_owned);
        let (mut newest_first, mut bytes) = (Vec::new(), 0);
        while let Some(id) = next.take() {
            let stored = self.response(&id).await.map_err(|error| ApiError {
                param: Some("previous_response_id".to_owned()),
                code: Some("previous_response_not_found"),
                ..error
            })?;
            if !stored.status.is_final() {
                let message = format!("the response `{id}` is still in progress (尚未完成)");
                return Err(ApiError::invalid("previous_response_id", message));
            }
            bytes += size(&stored);
            if newest_first.len() >= MAX_CHAIN_RESPONSES || bytes > MAX_CHAIN_BYTES {
                return Err(too_long("previous_response_id"));
            }
            next.clone_from(&stored.previous);
            newest_first.push(items_of(&stored));
        }
        Ok(newest_first.into_iter().rev().flatten().collect())
    }

    /// Replaces references by the items that they name. A reference to an earlier item is left out.
    pub(crate) async fn resolve(&self, input: Vec<Value>, earlier: &[Value]) -> Result<Vec<Value>, ApiError> {
        let mut known: HashSet<String> = earlier.iter().filter_map(id_of).collect();
        let mut referenced = HashMap::new();
        let (mut resolved, mut bytes) = (Vec::new(), 0);
        for item in input {
            let id = id_of(&item);
            let is_reference = item["type"] == json!("item_reference")
                || (item["type"].is_null() && item["role"].is_null() && item["id"].is_string());
            let Some(id) = id.filter(|_| is_reference) else {
                known.extend(id_of(&item));
                resolved.push(item);
                continue;
            };
            if !known.insert(id.clone()) {
                continue;
            }
            let not_found =
                || ApiError { param: Some("input".to_owned()), ..ApiError::not_found("item", &id) };
            let response = response_of_item(&id).ok_or_else(not_found)?;
            if !referenced.contains_key(&response) {
                let stored = self.response(&response).await.map_err(|_| not_found())?;
                bytes += size(&stored);
                if referenced.len() >= MAX_CHAIN_RESPONSES || bytes > MAX_CHAIN_BYTES {
                    return Err(too_long("input"));
                }
                let items = items_of(&stored).into_iter();
                let by_id: HashMap<String, Value> =
                    items.filter_map(|item| Some((id_of(&item)?, item))).collect();
                referenced.insert(response.clone(), by_id);
            }
            let found = referenced.get_mut(&response).and_then(|items| items.remove(&id));
            resolved.push(found.ok_or_else(not_found)?);
        }
        Ok(resolved)
    }
}

fn id_of(item: &Value) -> Option<String> {
    item["id"].as_str().map(str::to_owned)
}

fn size(stored: &StoredResponse) -> usize {
    stored.input.get().len() + stored.body.get().len()
}

fn too_long(param: &str) -> ApiError {
    let message = format!(
        "the conversation has more than {MAX_CHAIN_RESPONSES} responses or {MAX_CHAIN_BYTES} bytes: begin a new one (对话过长)"
    );
    ApiError::invalid(param, message)
}

/// The input and the output of a response.
pub(crate) fn items_of(stored: &StoredResponse) -> Vec<Value> {
    let input: Vec<Value> = serde_json::from_str(stored.input.get()).unwrap_or_default();
    let mut body: Value = serde_json::from_str(stored.body.get()).unwrap_or_default();
    let output = match body["output"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    input.into_iter().chain(output).collect()
}

/// Gives input items an id, by which they are listed and referred to.
pub(crate) fn with_ids(input: Vec<Value>, key: &str) -> Vec<Value> {
    let numbered = input.into_iter().enumerate();
    numbered
        .map(|(index, mut item)| {
            if item.is_object() && !item["id"].is_string() {
                let prefix = match item["type"].as_str() {
                    None | Some("message") => "msg",
                    Some("function_call_output") => "fco",
                    _ => "item",
                };
                item["id"] = json!(format!("{prefix}_{key}_{}", FIRST_INPUT + index));
            }
            if item["type"].is_null() && item["role"].is_string() {
                item["type"] = json!("message");
            }
            if item["type"] == json!("message")
                && let Value::String(text) = &item["content"]
            {
                let kind = if item["role"] == json!("assistant") { "output_text" } else { "input_text" };
                item["content"] = json!([{ "type": kind, "text": text }]);
            }
            item
        })
        .collect()
}
