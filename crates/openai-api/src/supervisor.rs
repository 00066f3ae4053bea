//! Decides about the calls of a turn: a call that needs approval waits for the client, and the number of calls is limited.
//! Of the request, the hints of the tool and the hub's rules, the strictest counts; the rules are applied when a call runs.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::json;
use toolhub::{CallDecision, CallSupervisor, Gateways, SupervisedCall};
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::ports::HubStore;
use toolhub_core::responses::PendingApproval;
use toolhub_core::{BoxFuture, Outcome, RawJson, ToolCall};

use crate::approved_tools::ApprovedTools;
use crate::responses::progress::Progress;
use crate::tools::RequestTools;
use crate::turn_event::{HubCall, TurnEvent};
use crate::turn_log::TurnLog;
use crate::unfinished_changes::ChangeMark;

/// How long an approval request can be answered.
const APPROVAL_TIME: Duration = Duration::from_hours(24);

/// A call that the client has approved.
#[derive(Debug, Clone)]
pub(crate) struct ApprovedCall {
    /// The id of the approval request.
    pub(crate) id: String,
    pub(crate) server: String,
    pub(crate) tool: String,
    pub(crate) arguments: String,
    /// What the tool was when the approval was requested: [`Gateways::tool_identity`].
    pub(crate) identity: String,
}

/// Whether the client has approved a call.
enum Approval {
    None,
    /// With the approval request of this id.
    Granted(String),
    /// The tool is another one now.
    Outdated,
}

/// How calls that need approval are handled.
pub(crate) enum ApprovalForm {
    /// The turn ends with approval requests, which are stored here.
    Requests { store: Arc<dyn HubStore>, key: String, principal: Arc<str> },
    /// They are refused: the interface cannot ask.
    Refused,
}

/// Supervises the calls of one turn.
pub(crate) struct TurnSupervisor {
    pub(crate) gateways: Arc<Gateways>,
    pub(crate) log: Arc<TurnLog>,
    pub(crate) tools: RequestTools,
    /// Tools that run without approval although they may destroy something.
    pub(crate) approved_tools: ApprovedTools,
    pub(crate) form: ApprovalForm,
    pub(crate) approved: Mutex<Vec<ApprovedCall>>,
    pub(crate) max_calls: Option<u32>,
    pub(crate) calls: AtomicU32,
    pub(crate) requests: AtomicU32,
    pub(crate) is_deferred: AtomicBool,
    /// Marks the request as one that may have changed something; `None` in the background.
    pub(crate) mark: Option<Arc<ChangeMark>>,
    /// Keeps the progress of a background response durable.
    pub(crate) progress: Option<Progress>,
    pub(crate) lang: Lang,
}

impl TurnSupervisor {
    /// The approval of this call. It allows one call.
    fn take_approval(&self, supervised: SupervisedCall<'_>) -> Approval {
        // An approval names one server: a call that may reach another one is a different call.
        let [_] = supervised.tools else { return Approval::None };
        let (source, call) = (supervised.source(), supervised.call);
        let mut approved = self.approved.lock().unwrap_or_else(PoisonError::into_inner);
        let matches = |one: &ApprovedCall| {
            one.server == source && one.tool == call.tool.as_str() && one.arguments == call.arguments.get()
        };
        let Some(position) = approved.iter().position(matches) else { return Approval::None };
        let approval = approved.remove(position);
        match approval.identity == self.identity(supervised) {
            true => Approval::Granted(approval.id),
            false => Approval::Outdated,
        }
    }

    /// Identifies the tool that an approval of a call is for: that of its source, to which the approved call goes, also if
    /// equivalent servers offer the tool under the same name.
    fn identity(&self, call: SupervisedCall<'_>) -> String {
        call.tools.first().map(|entry| self.gateways.tool_identity(&entry.tool)).unwrap_or_default()
    }

    /// Whether the client must approve a call.
    fn needs_approval(&self, call: SupervisedCall<'_>) -> bool {
        call.tools.iter().any(|entry| {
            let tool = &entry.tool;
            self.tools.requires_approval(tool)
                || (tool.needs_confirmation() && !self.approved_tools.has(tool))
        })
    }

    async fn decide_call(&self, call: SupervisedCall<'_>) -> CallDecision {
        let approval = match self.take_approval(call) {
            Approval::None => None,
            Approval::Granted(id) => Some(id),
            Approval::Outdated => {
                let (tool, source) = (&call.call.tool, call.source());
                return CallDecision::Refuse(LocalizedText::new(
                    format!(
                        "not run: `{tool}` of `{source}` has changed since its approval was requested; call it again to ask anew"
                    ),
                    format!(
                        "没有执行：`{source}` 的 `{tool}` 在请求批准之后已发生变化；请重新调用以再次请求批准"
                    ),
                ));
            }
        };
        let is_read_only = call.is_read_only();
        let hub_call = HubCall {
            id: call.call.id.as_str().to_owned(),
            server: call.source(),
            tool: call.call.tool.as_str().to_owned(),
            arguments: call.call.arguments.get().to_owned(),
            is_read_only,
            approval,
        };
        let is_asked = hub_call.approval.is_none()
            // The order of changes may matter: what follows a call that waits, waits too.
            && (self.needs_approval(call) || (self.has_deferred() && !is_read_only));
        if is_asked {
            return self.defer(hub_call, self.identity(call)).await;
        }
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        if self.max_calls.is_some_and(|max| number >= max) {
            return CallDecision::Refuse(LocalizedText::new(
                "not run: `max_tool_calls` of this request is reached",
                "没有执行：已达到此请求的 `max_tool_calls`",
            ));
        }
        if !is_read_only && let Err(why) = self.may_change().await {
            return CallDecision::Refuse(why);
        }
        self.log.feed(TurnEvent::CallStarted(hub_call));
        match self.save().await {
            Ok(()) => CallDecision::Run,
            Err(why) => CallDecision::Refuse(why),
        }
    }

    async fn defer(&self, mut call: HubCall, identity: String) -> CallDecision {
        let ApprovalForm::Requests { store, key, principal } = &self.form else {
            let HubCall { tool, server, .. } = &call;
            return CallDecision::Refuse(LocalizedText::new(
                format!(
                    "not run: `{tool}` needs approval, which chat completions cannot ask for; use `/v1/responses`, or let the \
                     owner of the hub add `{server}__{tool}` to `approved_tools` in `[openai]`"
                ),
                format!(
                    "没有执行：`{tool}` 需要批准，而 chat completions 无法询问；请使用 `/v1/responses`，或由 hub 的所有者将 `{server}__{tool}` 加入 \
                     `[openai]` 的 `approved_tools`"
                ),
            ));
        };
        let id = format!("mcpr_{key}_{}", self.requests.fetch_add(1, Ordering::Relaxed));
        let stored = json!({
            "server_label": call.server,
            "name": call.tool,
            "arguments": call.arguments,
            "identity": identity,
        });
        let pending = PendingApproval {
            id: id.clone(),
            principal: principal.to_string(),
            call: RawJson::from(stored),
            expires_at: SystemTime::now() + APPROVAL_TIME,
        };
        if let Err(error) = store.put_approval(pending).await {
            return CallDecision::Refuse(LocalizedText::new(
                format!("not run: it needs approval, and the request for it could not be stored: {error}"),
                format!("没有执行：需要批准，但无法保存批准请求：{error}"),
            ));
        }
        call.approval = Some(id);
        self.is_deferred.store(true, Ordering::Release);
        self.log.feed(TurnEvent::ApprovalNeeded(call));
        CallDecision::Defer
    }

    /// A call that may change something begins. It must not run if this cannot be noted.
    async fn may_change(&self) -> Result<(), LocalizedText> {
        let Some(mark) = &self.mark else { return Ok(()) };
        mark.set().await.map_err(|error| {
            LocalizedText::new(
                format!("not run: that it may change something could not be stored, and a repetition of the request would not be recognised: {error}"),
                format!("没有执行：无法记录该调用可能改动数据，之后将无法识别重复的请求：{error}"),
            )
        })
    }

    async fn save(&self) -> Result<(), LocalizedText> {
        match &self.progress {
            Some(progress) => progress.save(&self.log).await,
            None => Ok(()),
        }
    }
}

impl CallSupervisor for TurnSupervisor {
    fn decide<'a>(&'a self, call: SupervisedCall<'a>) -> BoxFuture<'a, CallDecision> {
        Box::pin(self.decide_call(call))
    }

    fn permits_in_script<'a>(&'a self, call: SupervisedCall<'a>) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let number = self.calls.fetch_add(1, Ordering::Relaxed);
            let is_permitted = !self.needs_approval(call) && self.max_calls.is_none_or(|max| number < max);
            is_permitted && (call.is_read_only() || self.may_change().await.is_ok())
        })
    }

    fn finished<'a>(&'a self, call: &'a ToolCall, outcome: &'a Outcome) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let result = match &outcome.result {
                Ok(output) => {
                    let (texts, _) = output.texts();
                    Ok(match texts.is_empty() {
                        false => texts.join("\n"),
                        true => output.structured().map(|data| data.get().to_owned()).unwrap_or_default(),
                    })
                }
                Err(error) => Err(error.localize(self.lang)),
            };
            self.log.feed(TurnEvent::CallFinished(call.id.as_str().to_owned(), result));
            // A result that cannot be stored does not undo the call; the next call is not made then.
            let _ = self.save().await;
        })
    }

    fn has_deferred(&self) -> bool {
        self.is_deferred.load(Ordering::Acquire)
    }
}
