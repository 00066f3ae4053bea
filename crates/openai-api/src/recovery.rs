//! Responses that an earlier process left unfinished. A response goes on if every call of it has ended or only read something;
//! else it fails, since it is not known whether the call had an effect.

use std::sync::Arc;

use serde_json::{Value, json};
use toolhub::Gateways;
use toolhub_core::ports::HubStore;
use toolhub_core::principal::LOCAL;
use toolhub_core::responses::{ResponseStatus, StoredResponse};
use toolhub_core::{Principal, RawJson};

use crate::conversation::Messages;
use crate::endpoint::PreparedResponse;
use crate::models;
use crate::responses::assembler::{PREFIX, ResponseAssembler, ResponseHead};
use crate::responses::background::{Job, Jobs};
use crate::responses::history::History;
use crate::responses::progress::Progress;
use crate::responses::request::ResponseRequest;

/// Continues unfinished responses, or ends them.
pub(crate) async fn recover(gateways: &Arc<Gateways>, jobs: &Jobs) {
    let Some(store) = gateways.hub().store() else { return };
    // A store that fails now is read at the next start.
    for stored in store.unfinished_responses().await.unwrap_or_default() {
        let resumed = resume(gateways, store, &stored).await;
        let why = match resumed {
            Ok(job) => match jobs.add(job) {
                true => continue,
                false => "the hub was stopped, and too many responses wait".to_owned(),
            },
            Err(why) => why,
        };
        let _ = store.update_response(failed(stored, &why)).await;
    }
}

/// The response as a failed one. Calls without a result keep that state in their error.
fn failed(stored: StoredResponse, why: &str) -> StoredResponse {
    let mut body: Value = serde_json::from_str(stored.body.get()).unwrap_or_default();
    for item in body["output"].as_array_mut().into_iter().flatten() {
        if is_open_call(item) {
            item["status"] = json!("failed");
            item["error"] = json!("the hub was stopped: it is not known whether this call had an effect");
        }
    }
    body["status"] = json!(ResponseStatus::Failed.name());
    body["error"] = json!({ "code": "server_error", "message": why });
    StoredResponse { status: ResponseStatus::Failed, body: RawJson::from(body), ..stored }
}

fn is_open_call(item: &Value) -> bool {
    item["type"] == json!("mcp_call") && item["status"] == json!("in_progress")
}

fn is_read_only(item: &Value) -> bool {
    item["toolhub"]["read_only"] == json!(true)
}

async fn resume(
    gateways: &Arc<Gateways>,
    store: &Arc<dyn HubStore>,
    stored: &StoredResponse,
) -> Result<Job, String> {
    let mut body: Value = serde_json::from_str(stored.body.get()).unwrap_or_default();
    let output = body["output"].as_array().cloned().unwrap_or_default();
    if let Some(call) = output.iter().find(|item| is_open_call(item) && !is_read_only(item)) {
        let name = call["name"].as_str().unwrap_or_default();
        return Err(format!(
            "the hub was stopped while `{name}` ran: it is not known whether it had an effect (hub 在 `{name}` 运行时停止，无法确定是否已生效)"
        ));
    }
    let principal = principal(gateways, &stored.principal)
        .ok_or("the hub was stopped, and the caller of this response is not known any more")?;
    // A call that only reads is made again if the model still wants it.
    let output: Vec<Value> = output.into_iter().filter(|item| !is_open_call(item)).collect();
    let request: Value = serde_json::from_str(stored.request.get()).unwrap_or_default();
    let profile = request["profile"].as_str().map(str::to_owned);
    let request = ResponseRequest::parse(request["body"].to_string().as_bytes(), None)
        .map_err(|error| error.message)?;
    let agent = models::agent_of(gateways, &request.model).map_err(|error| error.message)?;
    let history = History { store: Some(&**store), principal: &stored.principal };
    let mut items = history.items(stored.previous.as_deref()).await.map_err(|error| error.message)?;
    let input: Vec<Value> = serde_json::from_str(stored.input.get()).unwrap_or_default();
    items.extend(input);
    items.extend(output.iter().cloned());
    let messages = Messages::of(&items, &[]).map_err(|error| error.message)?;
    let key = stored.id.strip_prefix(PREFIX).unwrap_or(&stored.id).to_owned();
    let created = body["created_at"].take().as_u64().unwrap_or_default();
    let head = ResponseHead { key: key.clone(), created, echo: request.echo.clone(), is_stream: false };
    let assembler = ResponseAssembler::new(head, output);
    let prepared = PreparedResponse {
        gateways,
        principal: &principal,
        profile,
        agent,
        request,
        messages,
        assembler,
        key,
    };
    let progress = Progress { store: Arc::clone(store), stored: stored.clone() };
    let turn = prepared.turn(Vec::new(), Some(progress.clone()));
    Ok(Job { turn, progress, principal: None })
}

/// The principal with this id, if it still exists: the local user or a key. A person must log in again.
fn principal(gateways: &Gateways, id: &str) -> Option<Arc<Principal>> {
    if id == LOCAL {
        return Some(Arc::new(Principal::local()));
    }
    let keys = gateways.access().keys();
    keys.into_iter().map(|key| key.principal).find(|principal| **principal.id() == *id)
}
