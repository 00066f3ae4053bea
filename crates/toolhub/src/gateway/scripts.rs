//! Scripts of gateway clients: their tools are those that the profile shows to the caller, and each call is decided and
//! recorded like a call of the client itself.

use std::sync::Arc;

use toolhub_core::lang::LocalizedText;
use toolhub_core::{
    BoxFuture, CallerHandle, Coercion, Lang, NestedCall, NestedTools, Outcome, RawJson, ToolError, ToolOutput,
};
use toolhub_engine::{NestedResult, run_with_nested};
use toolhub_mcp_gateway::{Backend as _, GatewayCall, RpcError};

use super::answers::CallRefusal;
use super::backend::HubBackend;
use super::client_errors::error_for_clients;
use super::prepared_call::{PreparedCall, ScriptRole};
use super::script_caller::ScriptCaller;
use super::target_kind::TargetKind;
use super::tool_lookup::{ToolLookup, ToolUse};
use super::view::{ToolTarget, View};

impl HubBackend {
    /// Runs `run_script` or a script of a skill, once the servers have been listed: a script calls tools that it has not
    /// searched for.
    pub(super) fn run_script<'a>(
        &'a self,
        target: &'a ToolTarget,
        prepared: PreparedCall,
    ) -> BoxFuture<'a, Result<RawJson, RpcError>> {
        let (caller, origin) = (prepared.call.caller.clone(), prepared.script.origin());
        Box::pin(async move {
            let script_caller = ScriptCaller::of(caller.clone());
            self.wait_until_listed().await;
            let view = &*self.view(&self.access_of_caller(&caller));
            run_with_nested(
                origin,
                || view.script_tools(target.kind),
                |nested| Box::pin(self.run(view, target, with_tools(prepared, nested))),
                |nested| Box::pin(self.call_from_script(view, target.kind, script_caller.clone(), nested)),
            )
            .await
        })
    }

    /// Runs a script of a skill that a script calls.
    fn run_inner_script<'a>(
        &'a self,
        view: &'a View,
        target: &'a ToolTarget,
        prepared: PreparedCall,
    ) -> BoxFuture<'a, Result<Outcome, CallRefusal>> {
        let (caller, origin) = (prepared.call.caller.clone(), prepared.script.origin());
        Box::pin(async move {
            run_with_nested(
                origin,
                || view.script_tools(target.kind),
                |nested| Box::pin(self.run_for_outcome(view, target, with_tools(prepared, nested))),
                |nested| Box::pin(self.call_from_script(view, target.kind, caller.clone(), nested)),
            )
            .await
        })
    }

    /// Runs a call of a script of this kind.
    async fn call_from_script(
        &self,
        view: &View,
        kind: TargetKind,
        caller: CallerHandle,
        nested: NestedCall,
    ) -> NestedResult {
        let NestedCall { parent, budget, tool, arguments } = nested;
        let Some(target) = view.script_target(kind, &tool) else {
            let lookup = ToolLookup::named(ToolUse::Call, &tool);
            self.note_if_hidden(view, &self.access_of_caller(&caller), &lookup);
            return Err(ToolError::Internal);
        };
        let call = GatewayCall { name: tool, arguments, caller };
        let prepared = match target.kind {
            // The skill that is checked is the one that is used.
            TargetKind::UseSkill => {
                let arguments = self.final_arguments(target, &call.arguments)?;
                self.check_skill(&arguments, &call.caller).map_err(ToolError::failed)?;
                let call = GatewayCall { arguments, ..call };
                PreparedCall { call, coercion: Coercion::Off, script: ScriptRole::default() }
            }
            _ => self.prepared(target, call),
        };
        let script = ScriptRole { parent: Some(parent), budget: Some(budget), ..ScriptRole::default() };
        let prepared = PreparedCall { script, ..prepared };
        let outcome = match target.kind {
            TargetKind::SkillScript => self.run_inner_script(view, target, prepared).await,
            _ => self.run_for_outcome(view, target, prepared).await,
        };
        match outcome {
            Ok(outcome) => outcome.result.map_err(for_scripts),
            Err(refusal) => Err(refused(refusal)),
        }
    }
}

fn with_tools(prepared: PreparedCall, nested: Arc<dyn NestedTools>) -> PreparedCall {
    let script = ScriptRole { nested: Some(nested), ..prepared.script };
    PreparedCall { script, ..prepared }
}

/// The error without commands for the owner. What a tool itself reports stays as it is, and errors about arguments keep their
/// kind, for which scripts get the signature.
fn for_scripts(error: ToolError) -> ToolError {
    let is_plain = matches!(error, ToolError::Failed { .. } | ToolError::InvalidArguments { .. });
    if is_plain || !error.brief(Lang::En).contains("`toolhub ") {
        return error;
    }
    ToolError::failed(LocalizedText::from(error_for_clients(&error, Lang::En)))
}

/// The error of a call that was not run, or that a server refused.
fn refused(refusal: CallRefusal) -> ToolError {
    let text = match refusal {
        CallRefusal::ToolError(answer) => {
            ToolOutput::from_raw(answer).map(|output| output.texts().0.join("\n"))
        }
        CallRefusal::Rpc(error) => Some(error.message),
    };
    ToolError::failed(LocalizedText::from(text.unwrap_or_default()))
}
