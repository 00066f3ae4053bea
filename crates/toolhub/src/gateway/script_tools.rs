//! The tools of a view for scripts, and how they are described to models that write scripts.

use std::sync::Arc;

use toolhub_core::{NestedTool, NestedToolList, Source};

use super::target_kind::TargetKind;
use super::view::{ToolTarget, View};
use crate::script::{declaration_of, signature_of};

/// Characters of a signature in a search result.
const SEARCH_SIGNATURE_CHARS: usize = 400;

impl View {
    /// The tools that a call of this kind may use. A script of a skill calls no other scripts.
    pub(super) fn script_tools(&self, kind: TargetKind) -> Arc<NestedToolList> {
        let lists = &self.script_tools;
        match kind {
            TargetKind::SkillScript => lists
                .without_scripts
                .get_or_make(|| self.script_tools(TargetKind::RunScript).without_scripts()),
            _ => lists.all.get_or_make(|| {
                let usable = self.targets.iter().filter(|(_, target)| is_in_scripts(target));
                Arc::new(NestedToolList::new(
                    usable.map(|(name, target)| script_tool(name, target)).collect(),
                ))
            }),
        }
    }

    /// The target that a script of this kind calls by a name. Only the listed tools can be called, and only as they were
    /// listed.
    pub(super) fn script_target(&self, kind: TargetKind, name: &str) -> Option<&ToolTarget> {
        let is_callable = |target: &&ToolTarget| {
            is_in_scripts(target) && (kind, target.kind) != (TargetKind::SkillScript, TargetKind::SkillScript)
        };
        self.targets.get(name).filter(is_callable)
    }
}

/// Whether scripts can call a target. Finding tools and calling them by name is what scripts do by themselves.
fn is_in_scripts(target: &ToolTarget) -> bool {
    matches!(target.kind, TargetKind::Plain | TargetKind::UseSkill | TargetKind::SkillScript)
}

fn script_tool(name: &str, target: &ToolTarget) -> NestedTool {
    let member = match &*target.sources {
        [Source::Server(id)] => {
            // A prefixed name repeats the server.
            let is_prefixed = name.strip_prefix(id.as_str()).is_some_and(|rest| rest.starts_with("__"));
            let tool_name = if is_prefixed { target.tool.as_str() } else { name };
            Some((id.to_string(), tool_name.to_owned()))
        }
        _ => None,
    };
    let read_only = target.definition.object().and_then(|definition| {
        definition.get("annotations")?.object()?.get("readOnlyHint")?.decode::<bool>().ok()
    });
    let is_script = target.kind == TargetKind::SkillScript;
    NestedTool {
        name: name.to_owned(),
        member,
        definition: target.definition.clone(),
        read_only: read_only == Some(true) && !is_script,
        is_script,
    }
}

/// The signature of a tool in a search result.
pub(super) fn search_signature(name: &str, target: &ToolTarget) -> Option<String> {
    is_in_scripts(target).then(|| signature_of(&script_tool(name, target), SEARCH_SIGNATURE_CHARS))
}

/// The declaration of one tool.
pub(super) fn tool_declaration(name: &str, target: &ToolTarget) -> Option<String> {
    is_in_scripts(target).then(|| declaration_of(&[script_tool(name, target)]))
}
