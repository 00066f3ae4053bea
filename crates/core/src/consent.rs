//! Consent to start the program or to contact the address of a configuration entry: without it neither happens.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::fresh_folder::{self, FreshFolder};
use crate::lang::LocalizedText;

/// The scope of a consent: a folder and the contents of its files. Verified again before each start.
pub trait ConsentScope: Send + Sync {
    /// A digest of the folder and of every file that the consent covers.
    fn digest(&self) -> &str;

    /// Checks that the files are still those that the consent was given for.
    fn verify(&self) -> Result<(), LocalizedText>;
}

/// Decides where a program of the owner's own configuration starts. Called before each start, since the current folder may have
/// changed since the last one.
pub trait StartFolder: Send + Sync {
    /// The restrictions of the start. Fails if the program must not be started here.
    fn start_folder(&self) -> Result<StartRules, LocalizedText>;
}

/// The restrictions of a start, since the current folder is not trusted. The default is that there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartRules {
    /// The working directory of a program without a configured one; `None` for the current directory.
    pub folder: Option<WorkFolder>,
    /// The root of a project whose folders in `PATH` are not searched for programs.
    pub excluded: Option<Arc<Path>>,
}

/// The working directory of a program without a configured one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkFolder {
    /// This folder.
    Fixed(Arc<Path>),
    /// A new empty folder below this one for each start: what earlier programs have written is not loaded.
    Fresh(Arc<Path>),
}

impl WorkFolder {
    /// The folder, or the one that contains the new folders. Equal at each start.
    pub fn path(&self) -> &Path {
        match self {
            Self::Fixed(folder) | Self::Fresh(folder) => folder,
        }
    }

    /// The folder for one start.
    pub fn prepare(&self) -> io::Result<PreparedFolder> {
        match self {
            Self::Fixed(folder) => Ok(PreparedFolder::from(folder.to_path_buf())),
            Self::Fresh(parent) => {
                fresh_folder::create(parent).map(|folder| PreparedFolder(Prepared::New(folder)))
            }
        }
    }
}

/// The working directory of one start. If it was created for it, it is removed when this value is dropped, unless the program has
/// left files in it.
#[derive(Debug)]
pub struct PreparedFolder(Prepared);

#[derive(Debug)]
enum Prepared {
    Existing(PathBuf),
    New(FreshFolder),
}

impl PreparedFolder {
    /// The path of the folder.
    pub fn path(&self) -> &Path {
        match &self.0 {
            Prepared::Existing(folder) => folder,
            Prepared::New(folder) => folder.path(),
        }
    }
}

impl From<PathBuf> for PreparedFolder {
    fn from(folder: PathBuf) -> Self {
        Self(Prepared::Existing(folder))
    }
}

/// Whether the owner of this machine consented to a configuration entry. The default is that they did not.
///
/// Entries are read from files without consent. `toolhub::trust` is the only code that grants it, after it decided
/// whether the file is the owner's own or belongs to a trusted workspace.
#[derive(Clone, Default)]
pub struct Consent(ConsentState);

#[derive(Clone, Default)]
enum ConsentState {
    #[default]
    Missing,
    Owner(StartRules),
    OwnerInFolder(Arc<dyn StartFolder>),
    Bound(Arc<dyn ConsentScope>),
}

/// Proof that consent was checked. Only [`Consent::permit`] makes one.
#[derive(Debug)]
pub struct LaunchPermit {
    rules: StartRules,
}

impl LaunchPermit {
    /// The restrictions of the start.
    pub fn rules(&self) -> &StartRules {
        &self.rules
    }
}

impl Consent {
    /// Consent to an entry of the owner's own configuration.
    pub fn of_owner() -> Self {
        Self(ConsentState::Owner(StartRules::default()))
    }

    /// Consent to an entry of the owner's own configuration. A program without a configured working directory starts in
    /// `folder`, because the current directory is not trusted.
    pub fn of_owner_in(folder: Arc<Path>) -> Self {
        Self(ConsentState::Owner(StartRules { folder: Some(WorkFolder::Fixed(folder)), excluded: None }))
    }

    /// Consent to an entry of the owner's own configuration, for which `folder` decides at each start where it runs.
    pub fn of_owner_by(folder: Arc<dyn StartFolder>) -> Self {
        Self(ConsentState::OwnerInFolder(folder))
    }

    /// Consent to an entry that a trusted workspace brings, for as long as `binding` holds.
    pub fn bound(binding: Arc<dyn ConsentScope>) -> Self {
        Self(ConsentState::Bound(binding))
    }

    /// The digest of what the consent is bound to; `None` for the owner's own entries.
    pub fn digest(&self) -> Option<&str> {
        match &self.0 {
            ConsentState::Bound(binding) => Some(binding.digest()),
            ConsentState::Missing | ConsentState::Owner(_) | ConsentState::OwnerInFolder(_) => None,
        }
    }

    /// Permits one start, or returns the reason why not.
    pub fn permit(&self) -> Result<LaunchPermit, LocalizedText> {
        match &self.0 {
            ConsentState::Owner(rules) => Ok(LaunchPermit { rules: rules.clone() }),
            ConsentState::OwnerInFolder(start) => start.start_folder().map(|rules| LaunchPermit { rules }),
            ConsentState::Bound(binding) => {
                binding.verify().map(|()| LaunchPermit { rules: StartRules::default() })
            }
            ConsentState::Missing => Err(LocalizedText::new(
                "not started: its config file is not trusted; run `toolhub trust` in its folder",
                "未启动：它的配置文件未受信任；请在其目录中运行 `toolhub trust`",
            )),
        }
    }
}

impl fmt::Debug for Consent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            ConsentState::Missing => "Consent(missing)",
            ConsentState::Owner(_) | ConsentState::OwnerInFolder(_) => "Consent(owner)",
            ConsentState::Bound(_) => "Consent(bound)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Changed(bool);

    impl ConsentScope for Changed {
        fn digest(&self) -> &str {
            "d"
        }

        fn verify(&self) -> Result<(), LocalizedText> {
            if self.0 { Err(LocalizedText::new("changed", "已改动")) } else { Ok(()) }
        }
    }

    #[test]
    fn permits_nothing_by_default_and_nothing_that_changed() {
        assert!(Consent::default().permit().is_err());
        assert!(Consent::of_owner().permit().is_ok());
        assert!(Consent::bound(Arc::new(Changed(false))).permit().is_ok());
        assert!(Consent::bound(Arc::new(Changed(true))).permit().is_err());
    }
}
