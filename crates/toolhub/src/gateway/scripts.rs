//! Scripts of gateway clients: their tools are those that the profile shows to the caller, and each call is decided and
//! recorded like a call of the client itself.

use toolhub_core::lang::LocalizedText;
use toolhub_core::{
    BoxFuture, CallerHandle, Coercion, Lang, NestedCall, NestedTool, RawJson, Source, ToolError, ToolOutput,
};
use toolhub_engine::{NestedResult, run_with_nested};
use toolhub_mcp_gateway::{Backend as _, GatewayCall, RpcError};

use super::backend::HubBackend;
use super::client_errors::error_for_clients;
use super::prepared_call::{PreparedCall, ScriptRole};
use super::script_caller::ScriptCaller;
use super::view::{Kind, Target, View};
use crate::script::{declaration_of, signature_of};

/// Characters of a signature in a search result.
const SEARCH_SIGNATURE_CHARS: usize = 400;

impl HubBackend {
    /// Runs `run_script`, once the servers have been listed: a script calls tools that it has not searched for.
    pub(super) fn run_script<'a>(
        &'a self,
        target: &'a Target,
        call: GatewayCall,
    ) -> BoxFuture<'a, Result<RawJson, RpcError>> {
        let caller = call.caller.clone();
        Box::pin(async move {
            let nested_caller = ScriptCaller::of(caller.clone());
            self.settled().await;
            let view = &*self.view(&self.access_of_caller(&caller));
            run_with_nested(
                script_tools(view),
                |nested| {
                    let prepared =
                        PreparedCall { call, coercion: Coercion::Off, script: ScriptRole::Script(nested) };
                    Box::pin(self.run(view, target, prepared))
                },
                |nested| Box::pin(self.call_from_script(view, nested_caller.clone(), nested)),
            )
            .await
        })
    }

    async fn call_from_script(&self, view: &View, caller: CallerHandle, nested: NestedCall) -> NestedResult {
        let NestedCall { parent, tool, arguments } = nested;
        // Only the listed tools can be called, and only as they were listed.
        let target =
            view.targets.get(&tool).filter(|target| is_in_scripts(target)).ok_or(ToolError::Internal)?;
        let call = GatewayCall { name: tool, arguments, caller };
        let prepared = match target.kind {
            // The skill that is checked is the one that is used.
            Kind::UseSkill => {
                let arguments = self.final_arguments(target, &call.arguments)?;
                self.check_skill(&arguments, &call.caller).map_err(ToolError::failed)?;
                let call = GatewayCall { arguments, ..call };
                PreparedCall { call, coercion: Coercion::Off, script: ScriptRole::None }
            }
            _ => self.prepared(target, call),
        };
        let prepared = PreparedCall { script: ScriptRole::CallOf(parent), ..prepared };
        match self.run_for_outcome(view, target, prepared).await {
            Ok(outcome) => outcome.result.map_err(for_scripts),
            Err(refusal) => Err(refused(refusal)),
        }
    }
}

/// Whether scripts can call a target. Finding tools and calling them by name is what scripts do by themselves.
fn is_in_scripts(target: &Target) -> bool {
    matches!(target.kind, Kind::Plain | Kind::UseSkill)
}

/// The tools of a view for scripts.
fn script_tools(view: &View) -> Vec<NestedTool> {
    let shown = view.targets.iter().filter(|(_, target)| is_in_scripts(target));
    shown.map(|(name, target)| script_tool(name, target)).collect()
}

fn script_tool(name: &str, target: &Target) -> NestedTool {
    let member = match &*target.among {
        [Source::Server(id)] => {
            // A prefixed name repeats the server.
            let is_prefixed = name.strip_prefix(id.as_str()).is_some_and(|rest| rest.starts_with("__"));
            let own = if is_prefixed { target.tool.as_str() } else { name };
            Some((id.to_string(), own.to_owned()))
        }
        _ => None,
    };
    let read_only = target.definition.object().and_then(|definition| {
        definition.get("annotations")?.object()?.get("readOnlyHint")?.decode::<bool>().ok()
    });
    NestedTool {
        name: name.to_owned(),
        member,
        definition: target.definition.clone(),
        read_only: read_only == Some(true),
    }
}

/// The signature of a tool in a search result.
pub(super) fn search_signature(name: &str, target: &Target) -> Option<String> {
    is_in_scripts(target).then(|| signature_of(&script_tool(name, target), SEARCH_SIGNATURE_CHARS))
}

/// The declaration of one tool.
pub(super) fn declaration(name: &str, target: &Target) -> Option<String> {
    is_in_scripts(target).then(|| declaration_of(&[script_tool(name, target)]))
}

/// The error without commands for the owner. Errors about arguments keep their kind, for which scripts get the signature.
fn for_scripts(error: ToolError) -> ToolError {
    let text = error_for_clients(&error, Lang::En);
    match error {
        ToolError::Quarantined { .. } | ToolError::LoginNeeded { .. } => {
            ToolError::failed(LocalizedText::from(text))
        }
        other => other,
    }
}

/// The error of a call that was not run, or that a server refused.
fn refused(refusal: Result<RawJson, RpcError>) -> ToolError {
    let text = match refusal {
        Ok(answer) => ToolOutput::from_raw(answer).map(|output| output.texts().0.join("\n")),
        Err(error) => Some(error.message),
    };
    ToolError::failed(LocalizedText::from(text.unwrap_or_default()))
}
