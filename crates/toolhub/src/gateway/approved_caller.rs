//! The caller of an approved call: its client, without the members of `_meta` that the approver did not see.

use std::sync::Arc;

use toolhub_core::caller::{Caller, ClientResponse};
use toolhub_core::{BoxFuture, CallerHandle, Lang, Principal, RawJson, RawObject, TraceContext};

/// The members of `_meta` that the protocol defines for requests. Any other one is a message of the client to the server.
const PROTOCOL_MEMBERS: [&str; 4] =
    ["progressToken", "traceparent", "tracestate", "io.modelcontextprotocol/logLevel"];

/// The members of `_meta` that the protocol defines.
pub(super) fn protocol_members(meta: &RawObject) -> RawObject {
    let mut meta = meta.clone();
    meta.retain(|name| PROTOCOL_MEMBERS.contains(&name));
    meta
}

/// The client of an approved call.
pub(super) struct ApprovedCaller {
    client: CallerHandle,
    meta: RawObject,
}

impl ApprovedCaller {
    /// The caller of an approved call of this client.
    pub(super) fn of(client: CallerHandle) -> CallerHandle {
        let meta = protocol_members(client.meta());
        CallerHandle::new(Arc::new(Self { client, meta }))
    }
}

impl Caller for ApprovedCaller {
    fn client(&self) -> u64 {
        self.client.client()
    }

    fn capabilities(&self) -> RawJson {
        self.client.capabilities()
    }

    fn meta(&self) -> &RawObject {
        &self.meta
    }

    fn extras(&self) -> &RawObject {
        self.client.extras()
    }

    fn accepts_input_requests(&self) -> bool {
        self.client.accepts_input_requests()
    }

    fn progress(&self, params: &RawJson) {
        self.client.progress(params);
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

    fn require_scopes(&self, scopes: Vec<String>) {
        self.client.require_scopes(scopes);
    }

    fn report_outcome(&self, render: &dyn Fn(Lang) -> RawObject) {
        self.client.report_outcome(render);
    }

    fn report_held(&self) {
        self.client.report_held();
    }

    fn trace(&self) -> Option<&TraceContext> {
        self.client.trace()
    }

    fn ask(&self, method: String, params: Option<RawJson>) -> BoxFuture<'_, ClientResponse> {
        self.client.ask(method, params)
    }
}
