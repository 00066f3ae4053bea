//! Responses that another process left unfinished. A response goes on if every call of it has ended or only read something,
//! and if its principal may still use it; else it fails, since it is not known whether the call had an effect.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use toolhub::Gateways;
use toolhub_core::ports::{HubStore, StoreError};
use toolhub_core::responses::StoredResponse;

use crate::conversation::Messages;
use crate::endpoint::PreparedResponse;
use crate::models;
use crate::responses::assembler::{RESPONSE_ID_PREFIX, ResponseAssembler, ResponseHead};
use crate::responses::background::{Job, Jobs};
use crate::responses::final_state::{as_cancelled, as_failed, is_open_call};
use crate::responses::history::History;
use crate::responses::progress::Progress;
use crate::responses::request::ResponseRequest;
use crate::rights;

/// How often responses of ended processes are looked for.
const RECOVERY_INTERVAL: Duration = Duration::from_secs(5);

/// Continues or ends the responses that other processes left unfinished.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    is_due: Notify,
}

impl Recovery {
    /// Looks for such responses soon.
    pub(crate) fn wake(&self) {
        self.is_due.notify_one();
    }

    /// Looks for such responses at the start, and from time to time while it is polled: the process of another hub with
    /// this store may end at any time.
    pub(crate) async fn work(&self, gateways: &Arc<Gateways>, jobs: &Arc<Jobs>) {
        let Some(store) = gateways.hub().store() else { return };
        loop {
            // A store that fails now is read again later.
            let _ = recover(gateways, store, jobs).await;
            tokio::select! {
                () = self.is_due.notified() => {}
                () = tokio::time::sleep(RECOVERY_INTERVAL) => {}
            }
        }
    }
}

async fn recover(
    gateways: &Arc<Gateways>,
    store: &Arc<dyn HubStore>,
    jobs: &Arc<Jobs>,
) -> Result<(), StoreError> {
    let unfinished = store.unfinished_responses().await?;
    if unfinished.is_empty() {
        return Ok(());
    }
    let owned = store.owned_responses().await?.into_iter().filter(|response| !response.is_cancelled);
    let wanted: HashSet<String> = owned.map(|response| response.id).collect();
    for stored in unfinished.into_iter().filter(|stored| !jobs.has(&stored.id)) {
        if !wanted.contains(&stored.id) {
            store.update_response(as_cancelled(stored)).await?;
            continue;
        }
        match resume(gateways, store, &stored).await {
            // What has no room now stays taken over, and is read again later.
            Ok(job) => {
                let reserved = jobs.reserve(&stored.id, &job.turn.principal, job.turn.profile.as_deref());
                if let Ok(reservation) = reserved {
                    reservation.start(job);
                }
            }
            Err(why) => {
                store.update_response(as_failed(stored, &why)).await?;
            }
        }
    }
    Ok(())
}

/// The item of a call that ended with the process that made it.
fn with_lost_call(mut item: Value) -> Value {
    if is_open_call(&item) {
        item["status"] = json!("failed");
        item["error"] = json!("the hub was stopped while this call ran (hub 在此调用运行时停止)");
    }
    item
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
    if let Some(asked) = output.iter().find(|item| item["type"] == json!("mcp_approval_request")) {
        let name = asked["name"].as_str().unwrap_or_default();
        return Err(format!(
            "the hub was stopped before it had asked for the approval of `{name}`: send the request again (hub 在请求批准 `{name}` 之前停止，请重新发送请求)"
        ));
    }
    // A call that only reads is made again if the model still requests it. Its item keeps its place, so that ids stay unique.
    let output: Vec<Value> = output.into_iter().map(with_lost_call).collect();
    let request: Value = serde_json::from_str(stored.request.get()).unwrap_or_default();
    let profile = request["profile"].as_str().map(str::to_owned);
    let principal = rights::current_principal(gateways, &stored.principal)?;
    rights::check(gateways, &principal, profile.as_deref())?;
    let request = ResponseRequest::parse(request["body"].to_string().as_bytes(), None)
        .map_err(|error| error.message)?;
    let agent = models::agent_of(gateways, &request.model).map_err(|error| error.message)?;
    let history = History { store: Some(&**store), principal: &stored.principal };
    let mut items = history.items(stored.previous.as_deref()).await.map_err(|error| error.message)?;
    let input: Vec<Value> = serde_json::from_str(stored.input.get()).unwrap_or_default();
    items.extend(input);
    items.extend(output.iter().cloned());
    let messages = Messages::of(&items, &[]).map_err(|error| error.message)?;
    let key = stored.id.strip_prefix(RESPONSE_ID_PREFIX).unwrap_or(&stored.id).to_owned();
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
        output: None,
    };
    let progress = Progress { store: Arc::clone(store), stored: stored.clone() };
    let turn = prepared.turn(Vec::new(), Some(progress.clone()));
    Ok(Job { turn, progress, permit: None })
}
