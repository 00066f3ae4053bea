//! The caller of the calls that a script makes: the client behind the script, without what belongs to the request of the
//! client itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use toolhub_core::caller::{Caller, ClientResponse};
use toolhub_core::{BoxFuture, CallerHandle, Lang, Principal, RawJson, RawObject, TraceContext};

use super::approved_caller::protocol_members;

/// Shared by all calls of one script.
pub(super) struct ScriptCaller {
    client: CallerHandle,
    /// Notifications of progress that were sent. Several calls run at the same time, and progress must increase.
    progress: AtomicU64,
    /// The script may have been approved: the approver saw its code, and not what else the client sent.
    meta: RawObject,
    none: RawObject,
}

impl ScriptCaller {
    /// The caller of the calls of a script of this client.
    pub(super) fn of(client: CallerHandle) -> CallerHandle {
        let meta = protocol_members(client.meta());
        let caller = Self { client, progress: AtomicU64::new(0), meta, none: RawObject::default() };
        CallerHandle::new(Arc::new(caller))
    }
}

impl Caller for ScriptCaller {
    fn client(&self) -> u64 {
        self.client.client()
    }

    fn capabilities(&self) -> RawJson {
        self.client.capabilities()
    }

    fn meta(&self) -> &RawObject {
        &self.meta
    }

    /// They belong to the call of `run_script`.
    fn extras(&self) -> &RawObject {
        &self.none
    }

    /// A script does not repeat its calls: questions are sent to the client while the call runs.
    fn accepts_input_requests(&self) -> bool {
        false
    }

    fn progress(&self, params: &RawJson) {
        let Some(mut members) = params.object() else { return };
        let count = self.progress.fetch_add(1, Ordering::Relaxed) + 1;
        members.set("progress", RawJson::of(&count));
        members.remove("total");
        self.client.progress(&members.into_raw());
    }

    fn notify(&self, method: &str, params: Option<&RawJson>) {
        self.client.notify(method, params);
    }

    fn log_level(&self) -> Option<RawJson> {
        self.client.log_level()
    }

    fn principal_id(&self) -> Option<&str> {
        self.client.principal_id()
    }

    fn principal(&self) -> Option<&Arc<Principal>> {
        self.client.principal()
    }

    /// The response to the script must not be replaced by a challenge.
    fn require_scopes(&self, _: Vec<String>) {}

    /// The outcome of the request is that of the script.
    fn report_outcome(&self, _: &dyn Fn(Lang) -> RawObject) {}

    fn trace(&self) -> Option<&TraceContext> {
        self.client.trace()
    }

    fn ask(&self, method: String, params: Option<RawJson>) -> BoxFuture<'_, ClientResponse> {
        self.client.ask(method, params)
    }
}
