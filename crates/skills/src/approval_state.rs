//! The approval state of a skill: whether it needs the user's approval, and whether its files still match the approved
//! digest.

use std::collections::HashMap;

use toolhub_core::lang::{Lang, Localize, LocalizedText};

use crate::file_set::{Digests, FileSet};
use crate::grants::SkillGrants;
use crate::skill::{Skill, SkillOrigin, SkillShape};

/// Approved digests of file sets, by skill key.
pub type SkillApprovals = HashMap<String, String>;

/// The approval state of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalState {
    /// Needs no approval: not a project skill, and requests no grant beyond the configured ones.
    NotRequired,
    /// The files match the approved digest.
    Approved,
    /// Not approved yet.
    Unapproved,
    /// The files differ from the approved ones.
    Changed,
    /// The files cannot be read, so the skill cannot be approved.
    Unreadable(LocalizedText),
}

impl ApprovalState {
    /// The machine-readable name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NotRequired => "own",
            Self::Approved => "approved",
            Self::Unapproved => "unapproved",
            Self::Changed => "changed",
            Self::Unreadable(_) => "unreadable",
        }
    }

    /// Whether the skill may be used.
    pub fn may_be_used(&self) -> bool {
        matches!(self, Self::NotRequired | Self::Approved)
    }
}

impl Localize for ApprovalState {
    fn localize(&self, lang: Lang) -> String {
        match self {
            Self::NotRequired => lang.choose("your own", "自有").to_owned(),
            Self::Approved => lang.choose("approved", "已批准").to_owned(),
            Self::Unapproved => lang.choose("not approved yet", "尚未批准").to_owned(),
            Self::Changed => lang.choose("changed since it was approved", "批准后有改动").to_owned(),
            Self::Unreadable(why) => why.localize(lang),
        }
    }
}

impl Skill {
    /// The key of the skill's approval: its canonical path, since names are not unique.
    pub fn key(&self) -> String {
        let path = match self.shape {
            SkillShape::Folder => &self.folder,
            SkillShape::PythonFile => &self.file,
        };
        path.canonicalize().unwrap_or_else(|_| path.clone()).display().to_string()
    }

    /// Whether the skill needs approval if the config grants `granted`.
    pub fn needs_approval(&self, granted: &SkillGrants) -> bool {
        self.origin == SkillOrigin::Project || !self.requested.within(granted)
    }
}

/// Returns the approval state of a skill, and its files if they were read.
pub(crate) fn approval(
    skill: &Skill,
    granted: &SkillGrants,
    approvals: &SkillApprovals,
    digests: &Digests,
) -> (ApprovalState, Option<FileSet>) {
    if !skill.needs_approval(granted) {
        return (ApprovalState::NotRequired, None);
    }
    match digests.files_of(skill) {
        Err(why) => (ApprovalState::Unreadable(why), None),
        Ok(files) => {
            let approval = match approvals.get(&skill.key()) {
                None => ApprovalState::Unapproved,
                Some(digest) if *digest == files.digest() => ApprovalState::Approved,
                Some(_) => ApprovalState::Changed,
            };
            (approval, Some(files))
        }
    }
}
