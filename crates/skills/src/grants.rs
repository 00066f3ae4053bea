//! Permissions of a skill's scripts beyond the minimum: requested in its metadata, granted by the user.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolhub_core::lang::{Lang, Localize};

/// Permissions beyond reading the skill's folder and writing to a temporary folder. Scripts that call tools have none of
/// these but `tools`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SkillGrants {
    /// Readable files and folders; `.` is the working directory of toolhub, `~` the user's home.
    pub read: Vec<String>,
    /// Writable files and folders.
    pub write: Vec<String>,
    /// Whether network access is allowed.
    pub network: bool,
    /// Environment variables that are passed to the script.
    pub environment: Vec<String>,
    /// Whether its scripts may call the tools that their caller may call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tools: bool,
}

/// The keys of a grants table.
pub const GRANT_KEYS: [&str; 5] = ["read", "write", "network", "environment", "tools"];

impl SkillGrants {
    /// Whether nothing is granted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether `other` includes all grants of `self`.
    pub fn within(&self, other: &Self) -> bool {
        let all =
            |requested: &[String], granted: &[String]| requested.iter().all(|one| granted.contains(one));
        all(&self.read, &other.read)
            && all(&self.write, &other.write)
            && all(&self.environment, &other.environment)
            && (!self.network || other.network)
            && (!self.tools || other.tools)
    }

    /// The union of both.
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
            tools: self.tools || other.tools,
        }
    }
}

impl Localize for SkillGrants {
    fn localize(&self, lang: Lang) -> String {
        let named = |names: &[String]| {
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(lang.choose(", ", "、"))
        };
        let mut parts = Vec::new();
        for (names, en, zh) in [
            (&self.read, "read ", "读取 "),
            (&self.write, "write ", "写入 "),
            (&self.environment, "see the variables ", "读取环境变量 "),
        ] {
            if !names.is_empty() {
                parts.push(format!("{}{}", lang.choose(en, zh), named(names)));
            }
        }
        if self.network {
            parts.push(lang.choose("use the network", "使用网络").to_owned());
        }
        if self.tools {
            parts.push(lang.choose("call the tools of their caller", "调用其调用方可用的工具").to_owned());
        }
        match parts.is_empty() {
            true => lang.choose("nothing beyond its own folder", "仅限自己的目录").to_owned(),
            false => parts.join(lang.choose(", ", "，")),
        }
    }
}

/// Makes a granted path absolute: `~` is the user's home, relative paths start at toolhub's working directory.
pub(crate) fn absolute_grant(path: &str, work: &Path) -> PathBuf {
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
    fn compares_and_localizes_grants() {
        let grants = |read: &[&str], network| SkillGrants {
            read: read.iter().map(|&path| path.to_owned()).collect(),
            network,
            ..SkillGrants::default()
        };
        assert!(grants(&["."], false).within(&grants(&[".", "~/x"], true)));
        assert!(!grants(&["/"], false).within(&grants(&["."], true)));
        assert!(!grants(&[], true).within(&grants(&["."], false)));
        assert_eq!(grants(&["."], true).localize(Lang::En), "read `.`, use the network");
        let calling = SkillGrants { tools: true, ..SkillGrants::default() };
        assert!(!calling.within(&grants(&[], true)) && calling.within(&calling.and(&grants(&[], false))));
        assert_eq!(calling.localize(Lang::En), "call the tools of their caller");
        assert_eq!(SkillGrants::default().localize(Lang::Zh), "仅限自己的目录");
        assert_eq!(absolute_grant("./a", Path::new("/w")), Path::new("/w/a"));
        assert_eq!(absolute_grant(".", Path::new("/w")), Path::new("/w/"));
        assert_eq!(absolute_grant("/etc", Path::new("/w")), Path::new("/etc"));
    }
}
