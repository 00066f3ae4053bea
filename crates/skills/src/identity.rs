//! What two machines must have in common to run the same tool of a skill: one digest over its files, grants,
//! entry file and runner, and which granted variables are set.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use toolhub_core::{RawJson, hex};

use crate::declarations::{Runner, SkillTool};
use crate::file_set::FileSet;
use crate::registry::RegisteredSkill;

/// The version of the canonical form.
const VERSION: u32 = 1;

/// The canonical form: JSON with members in this order, and sorted lists without duplicates.
#[derive(Serialize)]
struct Identity<'a> {
    version: u32,
    skill: &'a str,
    /// The digest over paths, kinds and digests of all files.
    files: String,
    file: &'a str,
    runner: &'a str,
    class: Option<&'a str>,
    read: BTreeSet<&'a str>,
    write: BTreeSet<&'a str>,
    network: bool,
    tools: bool,
    /// Whether each granted variable is set on the machine: a script without its credentials would fail. Their values are not
    /// compared.
    environment: BTreeMap<&'a str, bool>,
}

/// The SHA-256 of a tool of a skill with these files, in hexadecimal. `is_set` tells whether an environment variable is set.
pub(crate) fn identity(
    known: &RegisteredSkill,
    tool: &SkillTool,
    files: &FileSet,
    is_set: impl Fn(&str) -> bool,
) -> String {
    let grants = &known.grants;
    let (runner, class) = match &tool.runner {
        Runner::Script => ("script", None),
        Runner::PythonClass(class) => ("python_class", Some(class.as_str())),
        Runner::Calling => ("toolhub", None),
    };
    let canonical = Identity {
        version: VERSION,
        skill: &known.skill.name,
        files: files.digest(),
        file: &tool.file,
        runner,
        class,
        read: grants.read.iter().map(String::as_str).collect(),
        write: grants.write.iter().map(String::as_str).collect(),
        network: grants.network,
        tools: grants.tools,
        environment: grants.environment.iter().map(|name| (name.as_str(), is_set(name))).collect(),
    };
    hex::sha256(RawJson::of(&canonical).get().as_bytes())
}

/// Whether an environment variable of this process is set.
pub(crate) fn is_variable_set(name: &str) -> bool {
    std::env::var(name).is_ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use toolhub_core::Hints;

    use super::*;
    use crate::approval_state::ApprovalState;
    use crate::file_set::{FileKind, HardLinks, SkillFile};
    use crate::grants::SkillGrants;
    use crate::skill::{Skill, SkillOrigin};

    struct Case {
        known: RegisteredSkill,
        tool: SkillTool,
        files: FileSet,
        variables: Vec<&'static str>,
    }

    impl Case {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(
                folder.path().join("SKILL.md"),
                "---\nname: s\ndescription: Does something.\n---\n",
            )
            .unwrap();
            let skill = Skill::read(folder.path(), SkillOrigin::User).unwrap();
            let grants = SkillGrants {
                read: vec!["/a".to_owned(), "/b".to_owned()],
                write: vec!["/c".to_owned()],
                environment: vec!["KEY".to_owned(), "OTHER".to_owned()],
                ..SkillGrants::default()
            };
            let known = RegisteredSkill {
                skill: Arc::new(skill),
                approval: ApprovalState::Approved,
                grants,
                hidden_by: None,
                tool_names: Vec::new(),
            };
            let tool = SkillTool {
                name: "sum".to_owned(),
                description: String::new(),
                file: "sum.sh".to_owned(),
                runner: Runner::Script,
                schema: RawJson::empty_object(),
                hints: Hints::default(),
                tags: Vec::new(),
            };
            let file = SkillFile {
                digest: hex::sha256(b"x"),
                size: 1,
                kind: FileKind::Plain,
                names: HardLinks::One,
            };
            let files = FileSet { files: [("sum.sh".to_owned(), file)].into() };
            Self { known, tool, files, variables: vec!["KEY"] }
        }

        fn with(change: impl FnOnce(&mut Self)) -> Self {
            let mut case = Self::new();
            change(&mut case);
            case
        }

        fn identity(&self) -> String {
            identity(&self.known, &self.tool, &self.files, |name| self.variables.contains(&name))
        }
    }

    #[test]
    fn identity_depends_on_files_grants_variables_and_runner() {
        let usual = Case::new().identity();
        let file = |case: &mut Case, change: fn(&mut SkillFile)| {
            change(case.files.files.get_mut("sum.sh").unwrap());
        };
        let changed = [
            Case::with(|case| file(case, |file| file.digest = hex::sha256(b"y"))),
            Case::with(|case| file(case, |file| file.kind = FileKind::Executable)),
            Case::with(|case| {
                let file = case.files.files.remove("sum.sh").unwrap();
                case.files.files.insert("sum2.sh".to_owned(), file);
            }),
            Case::with(|case| case.known.grants.read = vec!["/a".to_owned()]),
            Case::with(|case| case.known.grants.write.push("/b".to_owned())),
            Case::with(|case| case.known.grants.network = true),
            Case::with(|case| case.known.grants.environment.truncate(1)),
            Case::with(|case| case.variables.clear()),
            Case::with(|case| case.tool.file = "other.sh".to_owned()),
            Case::with(|case| case.tool.runner = Runner::PythonClass("Sum".to_owned())),
            Case::with(|case| case.tool.runner = Runner::PythonClass("Other".to_owned())),
        ];
        let mut all: Vec<String> = changed.iter().map(Case::identity).collect();
        all.push(usual.clone());
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), changed.len() + 1);
        // A granted path is not the same as one of another kind, whatever the order.
        let swapped = Case::with(|case| case.known.grants.read.reverse());
        assert_eq!(swapped.identity(), usual);
        let described = Case::with(|case| case.tool.description = "Sums up".to_owned());
        assert_eq!(described.identity(), usual);
    }
}
