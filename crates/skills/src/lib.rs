//! Agent Skills: folders with instructions that a model loads on demand, and scripts that are tools. Skills are
//! discovered in the usual folders, read lazily, approved by the user, and run in a sandbox.

mod answer;
mod approval_state;
mod book;
mod declared;
mod discover;
mod fault;
mod fields;
mod file_set;
mod frontmatter;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod grants;
mod host;
mod inputs;
mod interpreter;
mod python;
mod remote;
pub mod resource;
mod run;
mod skill;
mod template;
pub mod use_skill;
mod validate;
mod yaml;
mod yaml_repair;

pub use approval_state::{Agreed, ApprovalState};
pub use book::{Known, SkillOptions, SkillRegistry, Snapshot, serious};
pub use declared::{Runner, SkillTool};
pub use discover::Skipped;
pub use fault::{Fault, Weight};
pub use fields::{as_name, is_name};
pub use file_set::{FileSet, Mark, Names, SkillFile, sha256};
pub use grants::{GRANT_KEYS, Grants};
pub use host::SkillHost;
pub use remote::{Fetch, RemoteSkill};
pub use skill::{MANIFEST, Origin, Root, Shape, Skill};
pub use template::{Kind, NotMade, make};
pub use validate::{Looked, validate, validate_with_book, validate_with_python};

/// Parses the frontmatter of a `SKILL.md` strictly, without repair; `None` if there is none or it is invalid.
pub fn frontmatter_of(text: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
    let parts = frontmatter::split(text).ok()?;
    match yaml::parse(parts.yaml).ok()?.value() {
        serde_json::Value::Object(fields) => Some(fields),
        _ => None,
    }
}
