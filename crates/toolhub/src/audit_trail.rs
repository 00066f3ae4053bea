//! What the hub appends to the audit log beside calls, which the store appends itself: refusals, held calls, logins and
//! changes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};
use toolhub_audit::AuditStore;
use toolhub_core::audit::{
    AuditAction, AuditEvent, ChangeEvent, ChangeKind, ChangedObject, HeldCallDecision, HeldCallEvent,
    LoginEvent, RefusalEvent,
};
use toolhub_core::ports::StoreError;
use toolhub_core::principal::LOCAL;

use crate::held_calls::HeldCall;
use crate::hub::Hub;

/// Maximum number of events that wait for [`PendingEvents::drain`]. Further ones are counted.
const MAX_PENDING: usize = 10_000;

/// Maximum number of refused logins that are listed one by one until the next drain.
const MAX_LISTED_LOGINS: usize = 20;

/// Events of code that cannot wait for the log. They are appended soon after.
#[derive(Debug, Default)]
pub(crate) struct PendingEvents(Mutex<Pending>);

#[derive(Debug, Default)]
struct Pending {
    events: Vec<AuditEvent>,
    /// Events that found no room; one record states their number.
    omitted: u64,
    /// Refused logins among the events.
    listed_logins: usize,
    /// Refused logins that are only counted; one record states their number.
    refused_logins: u64,
}

impl PendingEvents {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a refused login. Anyone can cause these, so that few are listed and the others counted: they must not displace the
    /// records of principals.
    pub(crate) fn push_refused_login(&self, event: AuditEvent) {
        let mut pending = self.lock();
        if pending.listed_logins < MAX_LISTED_LOGINS {
            pending.listed_logins += 1;
            pending.events.push(event);
        } else {
            pending.refused_logins += 1;
        }
    }

    /// Adds an event.
    pub(crate) fn push(&self, event: AuditEvent) {
        let mut pending = self.lock();
        if pending.events.len() < MAX_PENDING {
            pending.events.push(event);
        } else {
            pending.omitted += 1;
        }
    }

    /// Appends the events to the log.
    pub(crate) async fn drain(&self, audit: &dyn AuditStore) {
        let Pending { mut events, omitted, refused_logins, .. } = std::mem::take(&mut *self.lock());
        if refused_logins > 0 {
            let reason = format!("{refused_logins} further refused logins");
            events.push(login(&Arc::from("unknown"), "token", Some(&reason)));
        }
        if omitted > 0 {
            let what = RefusalEvent {
                operation: "requests".to_owned(),
                resource: format!("{omitted} further refusals, not listed"),
                rule: None,
                reference: String::new(),
            };
            events.push(AuditEvent::now(&Arc::from(LOCAL), AuditAction::Refusal(what)));
        }
        for event in events {
            // A failing log stops calls; what was refused before stays refused.
            if audit.append(event).await.is_err() {
                return;
            }
        }
    }
}

/// A login, accepted or refused.
pub(crate) fn login(principal: &Arc<str>, method: &str, refused_because: Option<&str>) -> AuditEvent {
    let login = LoginEvent {
        method: method.to_owned(),
        accepted: refused_because.is_none(),
        reason: refused_because.map(str::to_owned),
        address: None,
    };
    AuditEvent::now(principal, AuditAction::Login(login))
}

/// Why a call was refused.
#[derive(Debug, Clone)]
pub(crate) enum RefusalReason {
    /// By this rule, or because none allows it.
    Rule(Option<Arc<str>>),
    /// The calls of the day are used up.
    DailyBudget,
}

/// A refused call.
pub(crate) fn refusal(
    principal: &Arc<str>,
    tool: &str,
    reason: &RefusalReason,
    reference: &str,
) -> AuditEvent {
    let (operation, rule) = match reason {
        RefusalReason::Rule(rule) => ("call", rule.as_deref()),
        RefusalReason::DailyBudget => ("call beyond per_day", None),
    };
    let refusal = RefusalEvent {
        operation: operation.to_owned(),
        resource: tool.to_owned(),
        rule: rule.map(str::to_owned),
        reference: reference.to_owned(),
    };
    AuditEvent::now(principal, AuditAction::Refusal(refusal))
}

impl Hub {
    /// The audit log, if it is on.
    pub fn audit(&self) -> Option<&Arc<dyn AuditStore>> {
        self.audit.as_ref()
    }

    /// Appends an event to the audit log, if it is on, and waits until it is durable.
    pub async fn record_audit(&self, event: AuditEvent) -> Result<(), StoreError> {
        match &self.audit {
            Some(audit) => audit.append(event).await,
            None => Ok(()),
        }
    }

    /// Records what happened to a held call, and who did it.
    pub async fn record_held_call(
        &self,
        principal: &Arc<str>,
        call: &HeldCall,
        decision: HeldCallDecision,
    ) -> Result<(), StoreError> {
        let event = HeldCallEvent {
            reference: call.id.clone(),
            tool: call.tool.clone(),
            caller: call.principal.clone(),
            decision,
            rule: Some(call.rule.clone()),
            arguments_sha256: Some(Sha256::digest(call.arguments.get().as_bytes()).into()),
        };
        self.record_audit(AuditEvent::now(principal, AuditAction::HeldCall(event))).await
    }

    /// Records a change by the local user.
    pub async fn record_change(
        &self,
        object: ChangedObject,
        name: &str,
        change: ChangeKind,
    ) -> Result<(), StoreError> {
        let event = ChangeEvent { object, name: name.to_owned(), change, sha256: None, detail: None };
        self.record_audit(AuditEvent::now(&Arc::from(LOCAL), AuditAction::Change(event))).await
    }
}
