//! Holds calls of gateway clients until a person decides. A client that can ask its user shows that the call waits; any other
//! client gets an error with the reference, and repeats the call after the decision.

use std::sync::Arc;
use std::time::Duration;

use toolhub_access::Decision;
use toolhub_core::audit::HeldCallDecision;
use toolhub_core::lang::LocalizedText;
use toolhub_core::{CallId, CallerHandle, Localize as _, Principal, RawJson, RawObject, Source};
use toolhub_mcp_gateway::GatewayCall;
use toolhub_server::Authenticator as _;

use super::answers::{CallRefusal, tool_error};
use super::backend::HubBackend;
use super::ended_scripts::EndedScripts;
use super::public_url::PublicUrl;
use super::view::ToolTarget;
use crate::held_calls::{HeldCall, HeldState, NewHeldCall, SeenDecisions};

/// How long a decision is waited for after the client accepted to wait. A client that shows a form is asked again then; one that has
/// opened the page gets the reference.
const REPROMPT_INTERVAL: Duration = Duration::from_secs(20);

/// A call that a rule holds.
pub(super) struct HoldRequest<'a> {
    pub(super) target: &'a ToolTarget,
    pub(super) call: &'a GatewayCall,
    /// The sources that may serve it after an approval.
    pub(super) sources: &'a [Source],
    pub(super) rule: &'a str,
    /// The call of the script that makes it, if a script does. It waits even if its client cannot ask its user.
    pub(super) script: Option<&'a CallId>,
}

/// Withdraws the held call of a script, unless it was used, when nothing waits for it any more.
struct WithdrawalGuard<'a> {
    ended: &'a EndedScripts,
    call: String,
}

impl Drop for WithdrawalGuard<'_> {
    fn drop(&mut self) {
        self.ended.push(std::mem::take(&mut self.call));
    }
}

/// The answer of the client to the question whether to wait.
enum ClientAnswer {
    /// It waits, or the decision came first.
    Wait,
    Withdraw,
    /// It cannot ask its user.
    Unable,
}

impl HubBackend {
    /// Holds a call until a person decides. Returns the id of the approver; the approval is used up.
    pub(super) async fn hold(
        &self,
        principal: &Principal,
        request: HoldRequest<'_>,
    ) -> Result<Arc<str>, CallRefusal> {
        let approver = self.wait_for_approval(principal, &request).await;
        // The call of a script waits within the call of the script, which did run.
        if approver.is_err() && request.script.is_none() {
            request.call.caller.report_held();
        }
        approver
    }

    async fn wait_for_approval(
        &self,
        principal: &Principal,
        request: &HoldRequest<'_>,
    ) -> Result<Arc<str>, CallRefusal> {
        let unavailable = |error: std::io::Error| {
            let text = LocalizedText::new(
                format!("this call needs approval, and could not be held: {error}"),
                format!("此调用需要批准，但无法登记：{error}"),
            );
            CallRefusal::ToolError(tool_error(&text.localize(self.lang)))
        };
        let HoldRequest { target, call, sources, rule, script } = request;
        let held_calls = self.hub.held_calls();
        let definition = self.identity_of(target, sources);
        let new = NewHeldCall {
            principal,
            profile: self.profile_name(),
            tool: target.tool.as_str(),
            sources: sources.iter().map(ToString::to_string).collect(),
            arguments: &call.arguments,
            rule,
            definition: definition.clone(),
            hold: self.hub.settings().auth.hold(),
            script: *script,
        };
        let mut held = held_calls.hold(&new).await.map_err(unavailable)?;
        // The script may end at any time, which drops this future.
        let _withdrawal = script
            .filter(|_| held.is_new)
            .map(|_| WithdrawalGuard { ended: &self.ended_scripts, call: held.id.clone() });
        if held.is_new {
            let recorded = self.hub.record_held_call(principal.id(), &held, HeldCallDecision::Held).await;
            recorded.map_err(|error| unavailable(std::io::Error::other(error.localize(self.lang))))?;
        }
        loop {
            match std::mem::take(&mut held.state) {
                HeldState::Held => {}
                HeldState::Approved { by } => {
                    // Keys and rules may have changed while the call waited. The approval is not used up then: the next call
                    // with valid credentials of the principal uses it.
                    if !self.has_valid_principal(request) {
                        return Err(CallRefusal::ToolError(self.not_valid(&held)));
                    }
                    if !self.is_still_permitted(request) || self.identity_of(target, sources) != definition {
                        return Err(CallRefusal::ToolError(self.not_permitted(&held)));
                    }
                    // Another call with the same arguments may have used the approval.
                    let consumed = held_calls.consume(&held.id).await.map_err(unavailable)?;
                    let state = HeldState::Used { by: by.clone() };
                    return if consumed {
                        Ok(Arc::from(by))
                    } else {
                        Err(CallRefusal::ToolError(self.not_approved(&held, &state)))
                    };
                }
                state => return Err(CallRefusal::ToolError(self.not_approved(&held, &state))),
            }
            match self.ask_to_wait(&held, principal, &call.caller).await {
                ClientAnswer::Wait => {}
                ClientAnswer::Unable if script.is_some() => {}
                ClientAnswer::Withdraw => {
                    held_calls.withdraw(&held.id).await.map_err(unavailable)?;
                    return Err(CallRefusal::ToolError(self.withdrawn(&held)));
                }
                ClientAnswer::Unable => {
                    return Err(CallRefusal::ToolError(self.not_approved(&held, &HeldState::Held)));
                }
            }
            let decided = tokio::time::timeout(REPROMPT_INTERVAL, self.decided(&held)).await;
            held.state = decided.unwrap_or_default();
            if held.state != HeldState::Held {
                self.end_question(&held, principal, &call.caller);
            }
        }
    }

    /// Announces to a client that opens URLs that the call of the opened page is decided.
    fn end_question(&self, held: &HeldCall, principal: &Principal, caller: &CallerHandle) {
        if self.page_of_held_call(held, principal, caller).is_some() {
            let params = RawObject::default().with("elicitationId", held.id.as_str()).into_raw();
            caller.notify("notifications/elicitation/complete", Some(&params));
        }
    }

    /// Identifies the tools that may serve the call: their servers and definitions.
    fn identity_of(&self, target: &ToolTarget, sources: &[Source]) -> String {
        let catalog = self.hub.catalog();
        let entries = catalog.named(target.tool.as_str());
        let own =
            entries.filter(|entry| target.is_served_by(&entry.tool) && sources.contains(&entry.tool.source));
        let identities: Vec<String> = own.map(|entry| self.hub.tool_identity(&entry.tool)).collect();
        identities.join("\n")
    }

    /// Whether the credentials of the principal are still valid.
    fn has_valid_principal(&self, request: &HoldRequest<'_>) -> bool {
        request.call.caller.principal().is_some_and(|principal| self.access.is_valid(principal))
    }

    /// Whether the rules would still hold or allow the call.
    fn is_still_permitted(&self, request: &HoldRequest<'_>) -> bool {
        let HoldRequest { target, call, sources, .. } = request;
        let access = self.access_of_caller(&call.caller);
        let catalog = self.hub.catalog();
        let is_permitted = |source: &Source| {
            let mut entries = catalog.named(target.tool.as_str());
            let entry =
                entries.find(|entry| target.is_served_by(&entry.tool) && entry.tool.source == *source);
            let decision = entry.map(|entry| access.decide_call(entry, &call.arguments));
            matches!(decision, Some(Decision::Allow { .. } | Decision::Ask { .. }))
        };
        sources.iter().all(is_permitted)
    }

    /// The response to an approved call whose key or token is not valid any more.
    fn not_valid(&self, held: &HeldCall) -> RawJson {
        let id = &held.id;
        let text = LocalizedText::new(
            format!(
                "this call was approved (reference {id}), but its key or token has expired or was replaced meanwhile: repeat \
                 the call with a valid one, which uses the approval"
            ),
            format!(
                "此调用已获批（编号 {id}），但其密钥或令牌已过期或被更换：请用有效的凭据重新调用，即可使用该批准"
            ),
        );
        tool_error(&text.localize(self.lang))
    }

    fn not_permitted(&self, held: &HeldCall) -> RawJson {
        let text = LocalizedText::new(
            format!("this call is not allowed any more (reference {})", held.id),
            format!("已不再允许此调用（编号 {}）", held.id),
        );
        tool_error(&text.localize(self.lang))
    }

    /// Waits until a held call is decided or expires.
    async fn decided(&self, held: &HeldCall) -> HeldState {
        let (held_calls, mut seen) = (self.hub.held_calls(), SeenDecisions::default());
        loop {
            held_calls.wait_for_decision(&mut seen).await;
            let state = match held_calls.get(&held.id).await {
                Ok(Some(call)) => call.state,
                Ok(None) => HeldState::Expired,
                Err(_) => HeldState::Held,
            };
            if state != HeldState::Held {
                return state;
            }
        }
    }

    /// Shows the user of the client that the call waits, unless the decision comes first.
    async fn ask_to_wait(
        &self,
        held: &HeldCall,
        principal: &Principal,
        caller: &CallerHandle,
    ) -> ClientAnswer {
        let Some(question) = self.wait_question(held, principal, caller) else {
            return ClientAnswer::Unable;
        };
        let answer = tokio::select! {
            biased;
            _ = self.decided(held) => return ClientAnswer::Wait,
            answer = caller.ask("elicitation/create".to_owned(), Some(question.into_raw())) => answer,
        };
        let action = |answer: &RawJson| answer.object()?.get("action")?.decode::<String>().ok();
        match answer {
            Ok(answer) if action(&answer).as_deref() == Some("accept") => ClientAnswer::Wait,
            Ok(_) => ClientAnswer::Withdraw,
            Err(_) => ClientAnswer::Unable,
        }
    }

    /// The elicitation that shows that a call waits: the page of the call in the console if the client opens URLs and the principal
    /// can open the page, else a form without fields. `None` if the client supports neither, or the page was opened before.
    fn wait_question(
        &self,
        held: &HeldCall,
        principal: &Principal,
        caller: &CallerHandle,
    ) -> Option<RawObject> {
        let capabilities = caller.capabilities().object()?;
        let elicitation = capabilities.get("elicitation")?.object()?;
        let (tool, id) = (&held.tool, &held.id);
        if let Some(url) = self.page_of_held_call(held, principal, caller) {
            if !self.opened_pages.add(id) {
                return None;
            }
            let message = LocalizedText::new(
                format!(
                    "`{tool}` waits for approval (reference {id}). The page shows the call, and approvers decide there. Accept to go on once it is approved."
                ),
                format!(
                    "`{tool}` 等待审批（编号 {id}）。该页面显示此调用，审批人可在其中决定。批准后点击接受以继续。"
                ),
            );
            let question = RawObject::default()
                .with("mode", "url")
                .with("elicitationId", id.as_str())
                .with("url", url)
                .with("message", message.localize(self.lang));
            return Some(question);
        }
        // Without members the capability means forms (elicitation, 2025-06-18).
        if elicitation.contains("url") && !elicitation.contains("form") {
            return None;
        }
        let message = LocalizedText::new(
            format!(
                "`{tool}` waits for approval (reference {id}). Ask an approver, and accept to go on once it is approved."
            ),
            format!("`{tool}` 等待审批（编号 {id}）。请联系审批人，批准后点击接受以继续。"),
        );
        let schema = RawObject::default().with("type", "object").with("properties", RawObject::default());
        let question = RawObject::default()
            .with("mode", "form")
            .with("message", message.localize(self.lang))
            .with("requestedSchema", schema);
        Some(question)
    }

    /// The URL of the page of a held call in the console, if the client opens URLs, the gateway has a public one, and the
    /// principal can open the page.
    fn page_of_held_call(
        &self,
        held: &HeldCall,
        principal: &Principal,
        caller: &CallerHandle,
    ) -> Option<String> {
        let capabilities = caller.capabilities().object()?;
        capabilities.get("elicitation")?.object()?.get("url")?;
        let public_url = PublicUrl::parse(self.hub.settings().auth.resource.as_deref())?;
        let page = || public_url.page(&format!("/console/waiting/{}", held.id));
        self.access.opens_console(principal).then(page)
    }

    fn withdrawn(&self, held: &HeldCall) -> RawJson {
        let text = LocalizedText::new(
            format!("this call was withdrawn before it was approved (reference {})", held.id),
            format!("此调用在获批前已撤回（编号 {}）", held.id),
        );
        tool_error(&text.localize(self.lang))
    }

    /// The response to a call that was not approved, with its reference.
    fn not_approved(&self, held: &HeldCall, state: &HeldState) -> RawJson {
        let id = &held.id;
        let text = match state {
            HeldState::Held | HeldState::Approved { .. } => LocalizedText::new(
                format!(
                    "this call waits for approval (reference {id}): ask an approver, then repeat the call"
                ),
                format!("此调用等待审批（编号 {id}）：请联系审批人，批准后重新调用"),
            ),
            HeldState::Denied { .. } => LocalizedText::new(
                format!("this call was denied by an approver (reference {id})"),
                format!("此调用被审批人拒绝（编号 {id}）"),
            ),
            HeldState::Expired | HeldState::Withdrawn => LocalizedText::new(
                format!("this call was not approved in time (reference {id}): repeat it to ask again"),
                format!("此调用未在期限内获批（编号 {id}）：请重新调用以再次申请"),
            ),
            HeldState::Used { .. } => LocalizedText::new(
                format!(
                    "the approval of this call was used already (reference {id}): repeat it to ask again"
                ),
                format!("此调用的批准已被使用（编号 {id}）：请重新调用以再次申请"),
            ),
        };
        let meta =
            RawObject::default().with("toolhub/reference", id.as_str()).with("toolhub/state", state.name());
        tool_error(&text.localize(self.lang)).with_last("_meta", &meta.into_raw())
    }
}
