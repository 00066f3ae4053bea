//! Agent Skills: folders with instructions that a model loads on demand, and scripts that are tools. Skills are
//! discovered in the usual folders, read lazily, approved by the user, and run in a sandbox.

mod answer;
mod approval_state;
mod called_tools;
mod calling_check;
mod calling_script;
mod declarations;
mod diagnostic;
mod discover;
mod fields;
mod file_set;
mod frontmatter;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod grants;
mod host;
mod identity;
mod inputs;
mod interpreter;
mod python;
mod registry;
mod remote;
mod run;
mod script_job;
mod skill;
pub mod skill_file;
mod template;
pub mod use_skill;
pub mod use_skill_definition;
mod validate;
mod verification;
mod worker_jobs;
mod yaml;
mod yaml_repair;

pub use approval_state::{ApprovalState, SkillApprovals};
pub use called_tools::CalledTools;
pub use calling_script::{CallingScript, CallingScripts};
pub use declarations::{Runner, SkillTool};
pub use diagnostic::{Diagnostic, Severity};
pub use discover::SkippedFile;
pub use fields::{as_name, is_name};
pub use file_set::{FileKind, FileSet, HardLinks, SkillFile};
pub use grants::{GRANT_KEYS, SkillGrants};
pub use host::SkillHost;
pub use registry::{RegisteredSkill, SkillOptions, SkillRegistry, SkillSnapshot, fatal_diagnostics};
pub use remote::{RemoteSkill, SkillFetcher};
pub use skill::{MANIFEST, Skill, SkillOrigin, SkillRoot, SkillShape};
pub use template::{CreateError, TemplateKind, create_skill};
pub use validate::{SkillValidation, validate, validate_with_python, validate_with_registry};
pub use worker_jobs::{ApprovalSource, LocalSkills, SkillPlacement};

/// Parses the frontmatter of a `SKILL.md` strictly, without repair; `None` if there is none or it is invalid.
pub fn frontmatter_of(text: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
    let parts = frontmatter::split(text).ok()?;
    match yaml::parse(parts.yaml).ok()?.value() {
        serde_json::Value::Object(fields) => Some(fields),
        _ => None,
    }
}
