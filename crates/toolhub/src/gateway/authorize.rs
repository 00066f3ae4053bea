//! Decides about calls of gateway clients: allowed, refused, in need of more scopes, or held until a person approves.

use std::borrow::Cow;
use std::sync::Arc;

use toolhub_access::Decision;
use toolhub_core::call_log::RecordId;
use toolhub_core::lang::LocalizedText;
use toolhub_core::{Authorization, CallerHandle, Coercion, Localize as _, Principal, RawJson, Source};
use toolhub_mcp_gateway::{GatewayCall, RpcError};
use toolhub_server::Authenticator as _;

use super::answers::{CallRefusal, tool_error};
use super::backend::HubBackend;
use super::hold::HoldRequest;
use super::prepared_call::{PreparedCall, ScriptRole};
use super::profile_access::ProfileAccess;
use super::service::CallOutcome;
use super::target_kind::TargetKind;
use super::tool_lookup::{ToolLookup, ToolUse};
use super::view::{ToolTarget, View};
use crate::audit_trail::{RefusalReason, refusal_event};
use crate::daily_budgets::DailyBudgetExceeded;

/// JSON-RPC error code of a call whose token lacks scopes. The HTTP status is 403.
const INSUFFICIENT_SCOPE: i64 = -32003;

/// JSON-RPC error code of a request without a principal.
const REFUSED: i64 = -32000;

/// A call that may run.
pub(super) struct AuthorizedCall {
    /// The sources that may serve it.
    pub(super) sources: Arc<[Source]>,
    pub(super) authorization: Authorization,
}

/// The sources of a target, by the decision about each.
#[derive(Default)]
struct Decisions {
    allowed: Vec<Source>,
    allowed_by: Option<Arc<str>>,
    held: Vec<Source>,
    held_by: Option<Arc<str>>,
    missing_scopes: Vec<String>,
    forbidden_by: Option<Arc<str>>,
}

impl HubBackend {
    /// Coerces the arguments of a call now if rules may restrict them: a decision must be about the arguments that are sent.
    pub(super) fn coerce_before_rules(&self, target: &ToolTarget, prepared: PreparedCall) -> PreparedCall {
        let PreparedCall { mut call, coercion, script } = prepared;
        if coercion == Coercion::Off || self.access_of_caller(&call.caller).permissions().is_none() {
            return PreparedCall { call, coercion, script };
        }
        // The engine reports arguments that cannot be coerced.
        if let Ok(arguments) = self.final_arguments(target, &call.arguments) {
            call.arguments = arguments;
        }
        PreparedCall { call, coercion: Coercion::Off, script }
    }

    /// Decides whether a call may run, and waits for a person if a rule holds it.
    pub(super) async fn authorize(
        &self,
        target: &ToolTarget,
        call: &GatewayCall,
        script: &ScriptRole,
    ) -> Result<AuthorizedCall, CallRefusal> {
        let Some(principal) = call.caller.principal() else {
            return Err(CallRefusal::Rpc(RpcError::new(REFUSED, "no principal")));
        };
        let access = self.access_of_caller(&call.caller);
        let is_of_script = script.parent.is_some();
        // A script or a turn of an agent may take longer than its credential is valid.
        if (is_of_script || script.is_of_turn) && !self.access.is_valid(principal) {
            return Err(CallRefusal::Rpc(RpcError::new(
                REFUSED,
                "the credential of this request is no longer valid",
            )));
        }
        let authorized = |sources: Arc<[Source]>, rule: Option<Arc<str>>, approver: Option<Arc<str>>| {
            let principal = Arc::clone(principal.id());
            AuthorizedCall { sources, authorization: Authorization { principal, rule, approver } }
        };
        // The skill was checked by its own name.
        if access.permissions().is_none() || target.kind == TargetKind::UseSkill {
            self.spend(principal, target).await?;
            return Ok(authorized(Arc::clone(&target.sources), None, None));
        }
        let decisions = self.decide(&access, target, call);
        if !decisions.allowed.is_empty() {
            self.spend(principal, target).await?;
            return Ok(authorized(decisions.allowed.into(), decisions.allowed_by, None));
        }
        if !decisions.missing_scopes.is_empty() {
            return Err(self.refuse_for_scopes(principal, call, decisions.missing_scopes));
        }
        let Some(rule) = decisions.held_by else {
            return Err(CallRefusal::ToolError(
                self.refused(principal, target.tool.as_str(), decisions.forbidden_by).await,
            ));
        };
        let held = HoldRequest {
            target,
            call,
            sources: &decisions.held,
            rule: &rule,
            script: script.parent.as_ref(),
        };
        let approver = self.hold(principal, held).await?;
        self.spend(principal, target).await?;
        Ok(authorized(decisions.held.into(), Some(rule), Some(approver)))
    }

    /// Decides about each source of a target.
    fn decide(&self, access: &ProfileAccess, target: &ToolTarget, call: &GatewayCall) -> Decisions {
        let mut decisions = Decisions::default();
        let catalog = self.hub.catalog();
        for entry in catalog.named(target.tool.as_str()).filter(|entry| target.is_served_by(&entry.tool)) {
            let source = entry.tool.source.clone();
            match access.decide_call(entry, &call.arguments) {
                Decision::Allow { rule } => {
                    decisions.allowed.push(source);
                    decisions.allowed_by = decisions.allowed_by.or(rule.map(|rule| rule.name));
                }
                Decision::Ask { rule } => {
                    decisions.held.push(source);
                    decisions.held_by.get_or_insert(rule.name);
                }
                Decision::NeedScope { scopes, .. } => decisions.missing_scopes.extend(scopes),
                // No rule is needed for a script: each of its calls is decided by itself.
                Decision::Forbid { rule: None }
                    if target.kind == TargetKind::RunScript && access.may_use() =>
                {
                    decisions.allowed.push(source);
                }
                Decision::Forbid { rule } => {
                    decisions.forbidden_by = decisions.forbidden_by.or(rule.map(|rule| rule.name));
                }
            }
        }
        decisions
    }

    /// Refuses a call whose token lacks scopes, with a challenge that names them.
    fn refuse_for_scopes(
        &self,
        principal: &Principal,
        call: &GatewayCall,
        missing: Vec<String>,
    ) -> CallRefusal {
        let text = format!("this call needs a token with more scopes: {}", missing.join(" "));
        // A new token replaces the old one, so that the challenge also names the scopes that it has.
        let mut scopes = principal.scopes.clone();
        scopes.extend(missing.into_iter().filter(|scope| !principal.scopes.contains(scope)));
        call.caller.require_scopes(scopes);
        self.counts.by_principal.count(principal.id(), CallOutcome::Refused);
        CallRefusal::Rpc(RpcError::new(INSUFFICIENT_SCOPE, text))
    }

    /// Records the use of an item that exists and is hidden from the principal. The answer is that of an unknown item, so that
    /// the record is written later.
    pub(super) fn note_hidden(&self, access: &ProfileAccess, operation: &'static str, item: &str) {
        let (reference, reason) = (RecordId::generate(), RefusalReason::Hidden(operation));
        self.access.pending_events.push(refusal_event(access.principal(), item, &reason, reference.as_str()));
    }

    /// The tool that a principal names, in its view. Records the use of one that exists and is hidden from it.
    pub(super) fn find_tool<'v>(
        &self,
        view: &'v View,
        caller: &CallerHandle,
        lookup: &ToolLookup<'_>,
    ) -> Option<Cow<'v, ToolTarget>> {
        let target = lookup.find_in(view);
        if target.is_none() {
            self.note_if_hidden(view, &self.access_of_caller(caller), lookup);
        }
        target
    }

    /// Records the use of a tool that is not in the view of a principal if it exists: the rules hide it.
    pub(super) fn note_if_hidden(&self, view: &View, access: &ProfileAccess, lookup: &ToolLookup<'_>) {
        let is_hidden = access.permissions().is_some()
            && !lookup.is_known_to(view)
            && lookup.is_known_to(&self.full_view());
        if !is_hidden {
            return;
        }
        if lookup.tool_use == ToolUse::Call {
            self.counts.by_principal.count(access.principal(), CallOutcome::Refused);
        }
        if self.records_refusals(access) {
            self.note_hidden(access, lookup.tool_use.operation(), lookup.name);
        }
    }

    /// Whether anything can be hidden from the principal, and its use has to be recorded.
    pub(super) fn records_refusals(&self, access: &ProfileAccess) -> bool {
        access.permissions().is_some() && self.hub.audit().is_some()
    }

    /// Counts a call against the daily budget of its principal.
    async fn spend(&self, principal: &Principal, target: &ToolTarget) -> Result<(), CallRefusal> {
        let Err(DailyBudgetExceeded { limit }) = self.access.spend(&self.hub, principal).await else {
            return Ok(());
        };
        let reference =
            self.record_refusal(principal, target.tool.as_str(), &RefusalReason::DailyBudget).await;
        let text = LocalizedText::new(
            format!(
                "the {limit} calls of this day are used up (`per_day`); more are possible after midnight UTC (reference \
                 {reference})"
            ),
            format!("今日的 {limit} 次调用已用完（`per_day`），UTC 零点后恢复（编号 {reference}）"),
        );
        Err(CallRefusal::ToolError(tool_error(&text.localize(self.lang))))
    }

    /// Records a refusal and returns its reference. The call does not run, whether or not that succeeds.
    async fn record_refusal(&self, principal: &Principal, tool: &str, reason: &RefusalReason) -> RecordId {
        self.counts.by_principal.count(principal.id(), CallOutcome::Refused);
        let reference = RecordId::generate();
        let event = refusal_event(principal.id(), tool, reason, reference.as_str());
        let _ = self.hub.record_audit(event).await;
        reference
    }

    /// The response to a forbidden call of a visible tool, with a reference for auditors.
    async fn refused(&self, principal: &Principal, tool: &str, rule: Option<Arc<str>>) -> RawJson {
        let reference = self.record_refusal(principal, tool, &RefusalReason::Rule(rule)).await;
        let text = LocalizedText::new(
            format!("this call is not allowed (reference {reference})"),
            format!("不允许此调用（编号 {reference}）"),
        );
        tool_error(&text.localize(self.lang))
    }
}
