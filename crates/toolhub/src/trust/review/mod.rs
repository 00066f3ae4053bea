//! The effects that trusting a folder would have, for review by its owner: programs, addresses, settings and skills.

mod calling_skills;
pub(super) mod folder_review;
mod suspicious;

use std::collections::BTreeSet;
use std::path::PathBuf;

use toolhub_core::lang::LocalizedText;

use crate::trust::TrustStatus;
use crate::trust::launch_form::LaunchScope;
use crate::trust::record::changes::FileChange;
use crate::trust::scan::{CONFIG, SERVERS, SHARED_SERVERS};

/// The contents of a folder.
#[derive(Debug, Clone)]
pub struct FolderReview {
    /// Its canonical path.
    pub folder: PathBuf,
    /// The trust decision.
    pub status: TrustStatus,
    /// Whether it is the current folder; of parent folders only the skills are used.
    pub is_here: bool,
    /// The changes since the folder was trusted.
    pub changes: Vec<FileChange>,
    /// The names of its files and folders, for display.
    pub brings: Vec<String>,
    /// Programs that would be started.
    pub programs: Vec<ReviewedProgram>,
    /// Programs of the user's own configuration that would be started in the folder.
    pub user_programs: Vec<ReviewedProgram>,
    /// The other servers of that configuration that depend on the folder, with the reason why trust cannot cover what they load.
    pub user_program_problems: Vec<LocalizedText>,
    /// Whether what the former load is unchanged since the folder was trusted.
    pub are_user_servers_current: bool,
    /// URLs that would be contacted.
    pub addresses: Vec<ReviewedAddress>,
    /// Settings that contain variables of the user, each with their names.
    pub reading_settings: Vec<(String, Vec<String>)>,
    /// Every setting, as key and value.
    pub settings: Vec<(String, String)>,
    /// Settings that give tools, scripts or clients additional permissions.
    pub capabilities: Vec<LocalizedText>,
    /// Files that can change what the owner's own servers run, if they are started in this folder.
    pub steering: Vec<String>,
    /// Its skills.
    pub skills: Vec<ReviewedSkill>,
    /// Suspicious findings.
    pub suspicious: Vec<LocalizedText>,
    /// Why it cannot be trusted in this state.
    pub problems: Vec<LocalizedText>,
}

/// A program that would be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewedProgram {
    /// Its purpose, such as the id of a server.
    pub purpose: String,
    /// The command and its arguments, before variable expansion.
    pub command: Vec<String>,
    /// The file that the command resolves to.
    pub resolved: Option<PathBuf>,
    /// Its working directory.
    pub folder: PathBuf,
    /// Variables of the user that it can read, besides common ones such as `PATH`.
    pub reads: Vec<String>,
    /// Variables that are set for it, before expansion.
    pub sets: Vec<(String, String)>,
    /// Files of the project that it is started from.
    pub files: Vec<PathBuf>,
    /// Which files of the project the trust in it covers.
    pub scope: LaunchScope,
    /// Whether it runs in a sandbox.
    pub sandboxed: bool,
}

/// A URL that would be contacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewedAddress {
    /// Its purpose.
    pub purpose: String,
    /// The URL, before variable expansion.
    pub url: String,
    /// Headers that are sent there, before variable expansion.
    pub headers: Vec<(String, String)>,
    /// Variables of the user that would be sent there.
    pub reads: Vec<String>,
}

impl FolderReview {
    /// All variables of the user that something in the folder reads, each once.
    pub fn variables(&self) -> BTreeSet<&str> {
        let programs = self.programs.iter().chain(&self.user_programs).flat_map(|program| &program.reads);
        let addresses = self.addresses.iter().flat_map(|address| &address.reads);
        let settings = self.reading_settings.iter().flat_map(|(_, names)| names);
        programs.chain(addresses).chain(settings).map(String::as_str).collect()
    }

    /// All addresses, each once.
    pub fn urls(&self) -> BTreeSet<&str> {
        self.addresses.iter().map(|address| address.url.as_str()).collect()
    }

    /// Whether it has settings or servers.
    pub fn has_config(&self) -> bool {
        self.brings.iter().any(|name| [CONFIG, SERVERS, SHARED_SERVERS].contains(&name.as_str()))
    }
}

/// A skill.
#[derive(Debug, Clone)]
pub struct ReviewedSkill {
    /// Its folder or file, relative to the project.
    pub path: PathBuf,
    /// Its executable files and scripts.
    pub scripts: Vec<PathBuf>,
}
