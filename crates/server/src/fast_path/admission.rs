//! The access check and the rate limit of a request on the fast path, and the call of the gateway.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use toolhub_mcp_gateway::{BudgetPermit, Gateway, HttpReply, PrincipalHandle, RequestContext, StepUp};

use super::head::FastPathRequest;
use crate::access::{AccessRefusal, AccessRequest, VerifiedCredentials};
use crate::authenticator::TokenRefusal;
use crate::envelope::is_batch;
use crate::request_record::RequestRecord;
use crate::shared::HttpServerState;

/// The identity that earlier requests of a connection have proven.
#[derive(Debug, Default)]
pub(crate) struct ConnectionIdentity {
    credentials: Option<VerifiedCredentials>,
}

impl ConnectionIdentity {
    /// Returns the principal of the last request.
    pub(crate) fn principal(&self) -> Option<&PrincipalHandle> {
        self.credentials.as_ref().map(|credentials| &credentials.principal)
    }

    /// Returns when the token of the last request must be verified again.
    pub(crate) fn recheck(&self) -> Option<Instant> {
        self.credentials.as_ref().and_then(VerifiedCredentials::recheck)
    }
}

/// A request that passed the access check and the rate limit.
pub(crate) struct AdmittedRequest {
    principal: PrincipalHandle,
    gateway: Arc<Gateway>,
    permit: BudgetPermit,
}

/// The result of a request on the fast path.
pub(crate) enum FastPathResult {
    Reply(HttpReply),
    /// The call was refused because its token lacks scopes. Nothing was executed; hyper handles the message again and
    /// writes the challenge.
    NeedsHyper,
}

impl HttpServerState {
    /// Checks a request on the fast path. Returns `None` if hyper must handle it, for example because it is refused.
    pub(crate) fn admit(
        &self,
        head: &FastPathRequest<'_>,
        client: SocketAddr,
        now: Instant,
        identity: &mut ConnectionIdentity,
    ) -> Option<AdmittedRequest> {
        let profile = profile_of(head)?;
        let plain = |name: &str| !name.is_empty() && !name.contains(['/', '?', '#', '%']);
        let fine = head.body.len() <= self.body_bytes
            && profile.is_none_or(plain)
            && head.valid_headers()
            && !is_batch(&head.body)
            && !self.draining.load(Ordering::Acquire);
        let request = AccessRequest { headers: head, target: None, profile };
        let cached = identity.credentials.as_ref().filter(|credentials| {
            (head.was_admitted() || credentials.covers(&request)) && credentials.is_current(&self.access, now)
        });
        let principal = match cached {
            Some(credentials) => credentials.principal.clone(),
            None => {
                let verified = self.access.admit(&request).ok()?;
                let principal = self.principal(verified.as_ref(), client.ip());
                let recheck = verified.and_then(|verified| verified.recheck);
                let verified = VerifiedCredentials::new(&request, &self.access, recheck, principal.clone());
                identity.credentials = Some(verified);
                principal
            }
        };
        if !fine {
            return None;
        }
        let gateway = self.gateway(profile, &principal)?;
        let permit = principal.start_request().ok()?;
        Some(AdmittedRequest { principal, gateway, permit })
    }

    /// Verifies the token of a request on the fast path with its identity provider. Returns whether it is valid.
    pub(crate) async fn verify(&self, head: &FastPathRequest<'_>) -> bool {
        let Some(profile) = profile_of(head).filter(|_| self.access.authenticator.has_providers()) else {
            return false;
        };
        let request = AccessRequest { headers: head, target: None, profile };
        // A request that needs no token, or whose token is known, is refused for another reason.
        matches!(self.access.admit(&request), Err(AccessRefusal::Token(TokenRefusal::Invalid)))
            && self.access.admit_or_verify(&request).await.is_ok()
    }

    /// Handles a request on the fast path.
    pub(crate) async fn take(
        &self,
        head: &FastPathRequest<'_>,
        admitted: AdmittedRequest,
        began: Instant,
        record: Option<&mut RequestRecord>,
    ) -> FastPathResult {
        let timer = self.metrics.begin(began);
        let AdmittedRequest { principal, gateway, permit } = admitted;
        let trace = record.and_then(|record| {
            record.set_principal(&principal);
            self.trace(record, &head.body, head)
        });
        let step_up = StepUp::of(&principal);
        let context = RequestContext { principal: principal.clone(), trace, step_up: step_up.clone() };
        let reply = context.scope(gateway.post(head, head.body.clone(), &principal)).await;
        if step_up.scopes().is_some() {
            drop(permit);
            return FastPathResult::NeedsHyper;
        }
        // An open stream is not a request in progress; the calls that it runs are counted separately.
        drop(permit);
        timer.end_with(match &reply {
            HttpReply::Body { status, .. } => *status,
            HttpReply::Events(_) => 200,
        });
        FastPathResult::Reply(reply)
    }
}

/// The profile that the path of a request to `/mcp` names. Returns `None` for another path.
pub(crate) fn profile_of<'a>(head: &FastPathRequest<'a>) -> Option<Option<&'a str>> {
    match head.path {
        "/mcp" => Some(None),
        other => other.strip_prefix("/mcp/").map(Some),
    }
}
