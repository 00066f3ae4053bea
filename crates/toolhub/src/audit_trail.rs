//! What the hub appends to the audit log beside calls, which the store appends itself: refusals, held calls, logins and
//! changes.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use sha2::{Digest as _, Sha256};
use tokio_util::task::TaskTracker;
use toolhub_audit::AuditStore;
use toolhub_core::audit::{
    AuditAction, AuditEvent, AuditLog, ChangeEvent, ChangeKind, ChangedObject, HeldCallDecision,
    HeldCallEvent, LoginEvent, RefusalEvent, UseEvent,
};
use toolhub_core::ports::StoreError;
use toolhub_core::principal::LOCAL;
use toolhub_core::text::truncate;

use crate::held_calls::HeldCall;
use crate::hub::Hub;

/// Maximum number of events that wait for [`PendingEvents::drain`].
const MAX_PENDING_EVENTS: usize = 10_000;

/// Maximum number of them of one principal, so that many refusals of one keep out no record of another. Further ones are
/// counted.
const MAX_PENDING_OF_PRINCIPAL: usize = 500;

/// Maximum length of the name or URI in the record of a refusal, in characters: clients choose it.
const MAX_ITEM_CHARS: usize = 512;

/// Maximum number of refused logins that are listed one by one until the next drain.
const MAX_LISTED_LOGINS: usize = 20;

/// The operation in records of refused calls.
pub(crate) const CALL: &str = "call";

/// Number of events that are appended at the same time, so that they share a commit.
const CHUNK: usize = 64;

/// Events of code that cannot wait for the log. They are appended soon after.
#[derive(Debug, Default)]
pub(crate) struct PendingEvents {
    pending: Mutex<Pending>,
    /// Taken by [`PendingEvents::drain`], so that no event is appended twice.
    draining: tokio::sync::Mutex<()>,
    /// The drains that run.
    tasks: TaskTracker,
}

#[derive(Debug, Default)]
struct Pending {
    events: VecDeque<AuditEvent>,
    /// The principals of these events, and of those that are only counted.
    principals: HashMap<Arc<str>, PrincipalEvents>,
    /// Refused logins among the events.
    listed_logins: usize,
    /// Refused logins that are only counted; one record states their number.
    refused_logins: u64,
}

#[derive(Debug, Default)]
struct PrincipalEvents {
    pending: usize,
    /// Events that found no room; one record states their number.
    omitted: u64,
}

impl PendingEvents {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a refused login. Anyone can cause these, so that few are listed and the others counted: they must not displace the
    /// records of principals.
    pub(crate) fn push_refused_login(&self, event: AuditEvent) {
        let mut pending = self.lock();
        if pending.listed_logins < MAX_LISTED_LOGINS {
            pending.listed_logins += 1;
            pending.push(event);
        } else {
            pending.refused_logins += 1;
        }
    }

    /// Adds an event.
    pub(crate) fn push(&self, event: AuditEvent) {
        self.lock().push(event);
    }

    /// Appends the events to the log. Those that cannot be appended stay for the next time: a failing log stops calls, and what was
    /// refused before stays refused.
    ///
    /// The work is done in a task of its own, which a cancellation of this future does not stop: an event whose append has begun
    /// would be appended again by the next drain.
    pub(crate) async fn drain<L: AuditLog + ?Sized + 'static>(self: &Arc<Self>, audit: &Arc<L>) {
        let (events, audit) = (Arc::clone(self), Arc::clone(audit));
        // The task ends early only with the runtime.
        let _ = self.tasks.spawn(async move { events.append_all(&*audit).await }).await;
    }

    async fn append_all(&self, audit: &(impl AuditLog + ?Sized)) {
        let _turn = self.draining.lock().await;
        self.lock().add_summaries();
        let mut failed = 0;
        loop {
            let chunk: Vec<AuditEvent> =
                self.lock().events.iter().skip(failed).take(CHUNK).cloned().collect();
            if chunk.is_empty() {
                return;
            }
            let appended = join_all(chunk.into_iter().map(|event| audit.append(event))).await;
            let mut pending = self.lock();
            let before = failed;
            for result in &appended {
                match result {
                    Ok(()) => pending.remove(failed),
                    Err(_) => failed += 1,
                }
            }
            if failed - before == appended.len() {
                return;
            }
        }
    }
}

impl Pending {
    fn push(&mut self, event: AuditEvent) {
        let pending_of_principal = self.principals.entry(Arc::clone(&event.principal)).or_default().pending;
        let has_room = pending_of_principal < MAX_PENDING_OF_PRINCIPAL
            && (self.events.len() < MAX_PENDING_EVENTS
                || self.drop_newest_of_the_busiest(pending_of_principal + 1));
        let principal = self.principals.entry(Arc::clone(&event.principal)).or_default();
        if has_room {
            principal.pending += 1;
            self.events.push_back(event);
        } else {
            principal.omitted += 1;
        }
    }

    /// Makes room at the cost of the principal with the most events. `false` if none has more than `pending_of_principal`.
    fn drop_newest_of_the_busiest(&mut self, pending_of_principal: usize) -> bool {
        let busiest = self.principals.iter().max_by_key(|(_, events)| events.pending);
        let Some((busiest, _)) = busiest.filter(|(_, events)| events.pending > pending_of_principal) else {
            return false;
        };
        let busiest = Arc::clone(busiest);
        let Some(newest) = self.events.iter().rposition(|event| event.principal == busiest) else {
            return false;
        };
        self.remove(newest);
        self.principals.entry(busiest).or_default().omitted += 1;
        true
    }

    fn remove(&mut self, position: usize) {
        let Some(event) = self.events.remove(position) else { return };
        if let Some(events) = self.principals.get_mut(&event.principal) {
            events.pending = events.pending.saturating_sub(1);
        }
    }

    /// Turns the numbers of events that are not listed into events.
    fn add_summaries(&mut self) {
        self.listed_logins = 0;
        let refused_logins = std::mem::take(&mut self.refused_logins);
        let mut summaries = Vec::new();
        if refused_logins > 0 {
            let reason = format!("{refused_logins} further refused logins");
            summaries.push(login_event(&Arc::from("unknown"), "token", Some(&reason)));
        }
        for (principal, events) in &mut self.principals {
            let omitted = std::mem::take(&mut events.omitted);
            if omitted > 0 {
                let what = RefusalEvent {
                    operation: "requests".to_owned(),
                    resource: format!("{omitted} further refusals, not listed"),
                    rule: None,
                    reference: String::new(),
                };
                summaries.push(AuditEvent::now(principal, AuditAction::Refusal(what)));
            }
        }
        self.principals.retain(|_, events| events.pending > 0);
        for summary in summaries {
            self.principals.entry(Arc::clone(&summary.principal)).or_default().pending += 1;
            self.events.push_back(summary);
        }
    }
}

/// A login, accepted or refused.
pub(crate) fn login_event(principal: &Arc<str>, method: &str, refused_because: Option<&str>) -> AuditEvent {
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
    /// What this operation concerns is hidden from the principal.
    Hidden(&'static str),
    /// The calls of the day are used up.
    DailyBudget,
}

/// A refused use of a tool, prompt, resource or skill.
pub(crate) fn refusal_event(
    principal: &Arc<str>,
    item: &str,
    reason: &RefusalReason,
    reference: &str,
) -> AuditEvent {
    let (operation, rule) = match reason {
        RefusalReason::Rule(rule) => (CALL, rule.as_deref()),
        RefusalReason::Hidden(operation) => (*operation, None),
        RefusalReason::DailyBudget => ("call beyond per_day", None),
    };
    let refusal = RefusalEvent {
        operation: operation.to_owned(),
        resource: truncate(item, MAX_ITEM_CHARS).unwrap_or_else(|| item.to_owned()),
        rule: rule.map(str::to_owned),
        reference: reference.to_owned(),
    };
    AuditEvent::now(principal, AuditAction::Refusal(refusal))
}

/// An operation that the roles of a principal do not permit.
pub(crate) fn role_refusal(principal: &Arc<str>, operation: &str, resource: &str) -> AuditEvent {
    let refusal = RefusalEvent {
        operation: operation.to_owned(),
        resource: truncate(resource, MAX_ITEM_CHARS).unwrap_or_else(|| resource.to_owned()),
        rule: None,
        reference: String::new(),
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

    /// Records that a principal read a resource, or got a prompt or a skill.
    pub(crate) async fn record_use(&self, principal: &Arc<str>, event: UseEvent) -> Result<(), StoreError> {
        let item = truncate(&event.item, MAX_ITEM_CHARS).unwrap_or_else(|| event.item.clone());
        self.record_audit(AuditEvent::now(principal, AuditAction::Use(UseEvent { item, ..event }))).await
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

    /// Records what a principal did to a server.
    pub async fn record_server_change(
        &self,
        principal: &Arc<str>,
        server: &str,
        change: ChangeKind,
        detail: &str,
    ) -> Result<(), StoreError> {
        let event = ChangeEvent {
            object: ChangedObject::Server,
            name: server.to_owned(),
            change,
            sha256: None,
            detail: Some(detail.to_owned()),
        };
        self.record_audit(AuditEvent::now(principal, AuditAction::Change(event))).await
    }

    /// Records that the local user approved a skill, or revoked its approval.
    pub(crate) async fn record_skill_approval(&self, skill: &str, detail: &str) -> Result<(), StoreError> {
        let event = ChangeEvent {
            object: ChangedObject::Config,
            name: format!("skill {skill}"),
            change: ChangeKind::Updated,
            sha256: None,
            detail: Some(detail.to_owned()),
        };
        self.record_audit(AuditEvent::now(&Arc::from(LOCAL), AuditAction::Change(event))).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use toolhub_core::BoxFuture;

    use super::*;

    /// A log that rejects events of the principal `bad` and the first `failures` events.
    #[derive(Default)]
    struct FakeLog {
        is_slow: bool,
        failures: AtomicUsize,
        appended: Mutex<Vec<Arc<str>>>,
    }

    impl AuditLog for FakeLog {
        fn append(&self, event: AuditEvent) -> BoxFuture<'_, Result<(), StoreError>> {
            Box::pin(async move {
                if self.is_slow {
                    tokio::task::yield_now().await;
                }
                let fails = self
                    .failures
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
                if fails.is_ok() || &*event.principal == "bad" {
                    return Err(StoreError("no space".into()));
                }
                self.appended.lock().unwrap().push(event.principal);
                Ok(())
            })
        }
    }

    #[tokio::test]
    async fn failed_append_keeps_the_event_and_does_not_stop_the_others() {
        let (pending, log) = (Arc::new(PendingEvents::default()), Arc::new(FakeLog::default()));
        for number in 0..200 {
            let principal = if number == 70 { "bad".to_owned() } else { number.to_string() };
            pending.push(login_event(&Arc::from(principal), "key", None));
        }
        pending.drain(&log).await;
        assert_eq!(log.appended.lock().unwrap().len(), 199);
        assert_eq!(pending.lock().events.len(), 1);
        // A log that fails as a whole keeps everything until it works again.
        let log = Arc::new(FakeLog { failures: AtomicUsize::new(1_000), ..FakeLog::default() });
        for number in 0..200 {
            pending.push(login_event(&Arc::from(number.to_string()), "key", None));
        }
        pending.drain(&log).await;
        assert_eq!(pending.lock().events.len(), 201);
        log.failures.store(0, Ordering::Relaxed);
        pending.drain(&log).await;
        let expected: Vec<String> = (0..200).map(|number| number.to_string()).collect();
        let appended: Vec<String> = log.appended.lock().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(appended, expected);
    }

    #[tokio::test]
    async fn flood_of_refusals_hides_no_record_of_another_principal() {
        let (pending, log) = (Arc::new(PendingEvents::default()), Arc::new(FakeLog::default()));
        let refused = |principal: &str| {
            let principal = Arc::from(principal);
            pending.push(refusal_event(&principal, "tool", &RefusalReason::Rule(None), ""));
        };
        for _ in 0..50_000 {
            refused("key:cara");
        }
        for number in 0..40 {
            (0..MAX_PENDING_OF_PRINCIPAL).for_each(|_| refused(&format!("key:{number}")));
        }
        for _ in 0..39 {
            refused("key:eve");
            refused("key:cara");
        }
        pending.drain(&log).await;
        let appended = log.appended.lock().unwrap().clone();
        let count = |name: &str| appended.iter().filter(|principal| &***principal == name).count();
        assert_eq!(count("key:eve"), 39);
        // The summary of a flood names its principal.
        assert!((2..=MAX_PENDING_OF_PRINCIPAL + 1).contains(&count("key:cara")), "{}", count("key:cara"));
        assert!(appended.len() <= MAX_PENDING_EVENTS + 41, "{}", appended.len());
        assert!(pending.lock().events.is_empty());
        pending.drain(&log).await;
        assert!(pending.lock().principals.is_empty());
    }

    #[tokio::test]
    async fn cancelled_drain_appends_no_event_twice() {
        let (pending, log) =
            (Arc::new(PendingEvents::default()), Arc::new(FakeLog { is_slow: true, ..FakeLog::default() }));
        for number in 0..100 {
            pending.push(login_event(&Arc::from(number.to_string()), "key", None));
        }
        for _ in 0..5 {
            // Polled once, then dropped.
            tokio::select! {
                biased;
                () = pending.drain(&log) => {}
                () = tokio::task::yield_now() => {}
            }
        }
        pending.drain(&log).await;
        assert_eq!(log.appended.lock().unwrap().len(), 100);
    }

    #[tokio::test]
    async fn summaries_count_what_found_no_room() {
        let (pending, log) = (Arc::new(PendingEvents::default()), Arc::new(FakeLog::default()));
        for _ in 0..MAX_LISTED_LOGINS + 5 {
            pending.push_refused_login(login_event(&Arc::from("unknown"), "key", Some("unknown key")));
        }
        pending.drain(&log).await;
        assert_eq!(log.appended.lock().unwrap().len(), MAX_LISTED_LOGINS + 1);
    }
}
