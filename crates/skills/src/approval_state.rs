//! How a skill stands to what its owner agreed to: whose word is needed, and what it was given for.

use std::collections::HashMap;

use toolhub_core::lang::{Lang, Say, Text};

use crate::file_set::{Digests, FileSet};
use crate::grants::Grants;
use crate::skill::{Origin, Shape, Skill};

/// What owners agreed to: the digest of the file set, by the key of the skill.
pub type Agreed = HashMap<String, String>;

/// How a skill stands to what its owner agreed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalState {
    /// It is the owner's own, and asks for nothing: nobody need agree.
    Own,
    /// It is what was agreed to.
    Approved,
    /// Nobody agreed to it yet.
    Unapproved,
    /// It is not what was agreed to any more.
    Changed,
    /// Its files cannot be read, so nobody can agree to them.
    Unreadable(Text),
}

impl ApprovalState {
    /// Its name, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Approved => "approved",
            Self::Unapproved => "unapproved",
            Self::Changed => "changed",
            Self::Unreadable(_) => "unreadable",
        }
    }

    /// Whether the skill may be used.
    pub fn may_be_used(&self) -> bool {
        matches!(self, Self::Own | Self::Approved)
    }
}

impl Say for ApprovalState {
    fn say(&self, lang: Lang) -> String {
        match self {
            Self::Own => lang.pick("your own", "自有").to_owned(),
            Self::Approved => lang.pick("approved", "已批准").to_owned(),
            Self::Unapproved => lang.pick("not approved yet", "尚未批准").to_owned(),
            Self::Changed => lang.pick("changed since it was approved", "批准后有改动").to_owned(),
            Self::Unreadable(why) => why.say(lang),
        }
    }
}

impl Skill {
    /// What an approval of it is kept under: the place it lies at, since names are not unique.
    pub fn key(&self) -> String {
        let place = match self.shape {
            Shape::Folder => &self.folder,
            Shape::PythonFile => &self.file,
        };
        place.canonicalize().unwrap_or_else(|_| place.clone()).display().to_string()
    }

    /// Whether its owner must agree to it, where the config grants `given`.
    pub fn needs_approval(&self, given: &Grants) -> bool {
        self.origin == Origin::Project || !self.asked.within(given)
    }
}

/// How a skill stands, and its files where they were looked at.
pub(crate) fn standing(
    skill: &Skill,
    given: &Grants,
    (agreed, digests): (&Agreed, &Digests),
) -> (ApprovalState, Option<FileSet>) {
    if !skill.needs_approval(given) {
        return (ApprovalState::Own, None);
    }
    match digests.files_of(skill) {
        Err(why) => (ApprovalState::Unreadable(why), None),
        Ok(files) => {
            let standing = match agreed.get(&skill.key()) {
                None => ApprovalState::Unapproved,
                Some(digest) if *digest == files.digest() => ApprovalState::Approved,
                Some(_) => ApprovalState::Changed,
            };
            (standing, Some(files))
        }
    }
}
