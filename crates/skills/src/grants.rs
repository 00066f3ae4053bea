//! What a skill's scripts may do beyond the least: asked for in its metadata, given by the owner.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolhub_core::lang::{Lang, Say};

/// What scripts may do beyond reading their skill's own folder and writing to a temporary one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Grants {
    /// Folders and files that may be read; `.` is the folder where toolhub runs, `~` the user's home.
    pub read: Vec<String>,
    /// Folders and files that may be written.
    pub write: Vec<String>,
    /// Whether the network may be used.
    pub network: bool,
    /// Variables of the environment that are handed on.
    pub environment: Vec<String>,
}

/// The keys of a table of grants.
pub const GRANT_KEYS: [&str; 4] = ["read", "write", "network", "environment"];

impl Grants {
    /// Whether nothing is granted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether `other` grants all that this asks for.
    pub fn within(&self, other: &Self) -> bool {
        let all = |asked: &[String], given: &[String]| asked.iter().all(|one| given.contains(one));
        all(&self.read, &other.read)
            && all(&self.write, &other.write)
            && all(&self.environment, &other.environment)
            && (!self.network || other.network)
    }

    /// What either grants.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let both = |one: &[String], other: &[String]| {
            let mut all = one.to_vec();
            all.extend(other.iter().filter(|two| !one.contains(two)).cloned());
            all
        };
        Self {
            read: both(&self.read, &other.read),
            write: both(&self.write, &other.write),
            network: self.network || other.network,
            environment: both(&self.environment, &other.environment),
        }
    }
}

impl Say for Grants {
    fn say(&self, lang: Lang) -> String {
        let named = |names: &[String]| {
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(lang.pick(", ", "、"))
        };
        let mut parts = Vec::new();
        for (names, en, zh) in [
            (&self.read, "read ", "读取 "),
            (&self.write, "write ", "写入 "),
            (&self.environment, "see the variables ", "读取环境变量 "),
        ] {
            if !names.is_empty() {
                parts.push(format!("{}{}", lang.pick(en, zh), named(names)));
            }
        }
        if self.network {
            parts.push(lang.pick("use the network", "使用网络").to_owned());
        }
        match parts.is_empty() {
            true => lang.pick("nothing beyond its own folder", "仅限自己的文件夹").to_owned(),
            false => parts.join(lang.pick(", ", "，")),
        }
    }
}

/// A granted path as the system knows it: `~` is the user's home, what is relative is meant from where toolhub runs.
pub(crate) fn absolute(path: &str, work: &Path) -> PathBuf {
    let path = Path::new(path);
    if let Ok(below) = path.strip_prefix("~")
        && let Some(home) = std::env::home_dir()
    {
        return home.join(below);
    }
    match path.strip_prefix(".") {
        Ok(below) => work.join(below),
        Err(_) => work.join(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_are_compared_and_told() {
        let grants = |read: &[&str], network| Grants {
            read: read.iter().map(|&path| path.to_owned()).collect(),
            network,
            ..Grants::default()
        };
        assert!(grants(&["."], false).within(&grants(&[".", "~/x"], true)));
        assert!(!grants(&["/"], false).within(&grants(&["."], true)));
        assert!(!grants(&[], true).within(&grants(&["."], false)));
        assert_eq!(grants(&["."], true).say(Lang::En), "read `.`, use the network");
        assert_eq!(Grants::default().say(Lang::Zh), "仅限自己的文件夹");
        assert_eq!(absolute("./a", Path::new("/w")), Path::new("/w/a"));
        assert_eq!(absolute(".", Path::new("/w")), Path::new("/w/"));
        assert_eq!(absolute("/etc", Path::new("/w")), Path::new("/etc"));
    }
}
