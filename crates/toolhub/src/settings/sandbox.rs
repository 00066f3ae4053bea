//! `sandbox` of a server: `true`, or a table with the permissions of its process.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use toolhub_sandbox::{Isolation, NetworkAccess, Protection, SandboxLimits, SandboxPolicy};

use super::span::DurationSetting;

/// Whether a process is sandboxed, and its permissions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxSetting(Option<SandboxTable>);

/// The permissions of a sandboxed process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct SandboxTable {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    network: bool,
    unix_sockets: bool,
    limits: LimitsTable,
    isolation: IsolationName,
    allow_missing: Vec<ProtectionName>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct LimitsTable {
    memory: Option<Size>,
    cpu: Option<DurationSetting>,
    processes: Option<u64>,
    open_files: Option<u64>,
    file_size: Option<Size>,
    disk: Option<Size>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum IsolationName {
    #[default]
    Auto,
    Builtin,
    Bubblewrap,
}

impl SandboxSetting {
    /// The sandbox policy, if any; relative paths are resolved against the folder of `config`, `~` is the home folder.
    pub fn policy(&self, config: &Path) -> Option<SandboxPolicy> {
        let table = self.0.as_ref()?;
        let base = config.parent().unwrap_or(Path::new(""));
        let rooted = |paths: &[PathBuf]| paths.iter().map(|path| base.join(at_home(path))).collect();
        let (limits, defaults) = (&table.limits, SandboxLimits::default());
        let size = |size: &Option<Size>, defaults| size.as_ref().map_or(defaults, |size| size.0);
        Some(SandboxPolicy {
            read: rooted(&table.read),
            write: rooted(&table.write),
            network: if table.network { NetworkAccess::All } else { NetworkAccess::None },
            unix_sockets: table.unix_sockets,
            limits: SandboxLimits {
                memory: size(&limits.memory, defaults.memory),
                // Unlimited by default: a server may run for weeks.
                cpu: limits.cpu.map_or(Duration::MAX, |span| span.0),
                processes: limits.processes.unwrap_or(defaults.processes),
                open_files: limits.open_files.unwrap_or(defaults.open_files),
                file_size: size(&limits.file_size, defaults.file_size),
                disk: size(&limits.disk, defaults.disk),
            },
            isolation: match table.isolation {
                IsolationName::Auto => Isolation::Auto,
                IsolationName::Builtin => Isolation::Builtin,
                IsolationName::Bubblewrap => Isolation::Bubblewrap,
            },
            allow_missing: table.allow_missing.iter().map(|name| name.0).collect(),
            ..SandboxPolicy::default()
        })
    }
}

fn at_home(path: &Path) -> PathBuf {
    let below = path.strip_prefix("~").ok().zip(std::env::home_dir());
    below.map_or_else(|| path.to_path_buf(), |(rest, home)| home.join(rest))
}

impl<'de> Deserialize<'de> for SandboxSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = SandboxSetting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`true`, `false` or a table of what it may do")
            }

            fn visit_bool<E: Error>(self, enabled: bool) -> Result<SandboxSetting, E> {
                Ok(SandboxSetting(enabled.then(SandboxTable::default)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SandboxSetting, A::Error> {
                SandboxTable::deserialize(MapAccessDeserializer::new(map))
                    .map(|table| SandboxSetting(Some(table)))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// A protection, as named in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtectionName(pub Protection);

impl<'de> Deserialize<'de> for ProtectionName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map(Self).map_err(D::Error::custom)
    }
}

/// A number of bytes: `512MiB`, `2G`, or a plain number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size(u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no size: write it like `512MiB`, `2G` or `1048576`");
        let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let shift = match unit.trim().to_ascii_lowercase().trim_end_matches('b').trim_end_matches('i') {
            "" => 0,
            "k" => 10,
            "m" => 20,
            "g" => 30,
            _ => return Err(wrong()),
        };
        number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).map(Self).ok_or_else(wrong)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Size;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as \"512MiB\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Size, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_i64<E: Error>(self, bytes: i64) -> Result<Size, E> {
                bytes.to_string().parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct File {
        #[serde(default)]
        sandbox: SandboxSetting,
    }

    fn policy(text: &str) -> Result<Option<SandboxPolicy>, String> {
        let file: File = toml_edit::de::from_str(text).map_err(|error| error.message().to_owned())?;
        Ok(file.sandbox.policy(Path::new("/etc/hub/toolhub.toml")))
    }

    #[test]
    fn sandbox_is_off_by_default() {
        assert_eq!(policy(""), Ok(None));
        assert_eq!(policy("sandbox = false"), Ok(None));
        let defaults = policy("sandbox = true").unwrap().unwrap();
        assert_eq!(
            (defaults.network, defaults.read.len(), defaults.limits.cpu),
            (NetworkAccess::None, 0, Duration::MAX)
        );
    }

    #[test]
    fn parses_sandbox_tables() {
        let text = "[sandbox]\nread = [\"data\", \"/srv\"]\nwrite = [\"~/out\"]\nnetwork = true\nisolation = \"builtin\"\nallow_missing = [\"landlock\"]\nlimits = { memory = \"2G\", disk = \"64MiB\", file_size = 1048576, cpu = \"5m\", processes = 9 }\n";
        let policy = policy(text).unwrap().unwrap();
        assert_eq!(policy.read, [PathBuf::from("/etc/hub/data"), "/srv".into()]);
        assert_eq!(policy.write, [std::env::home_dir().unwrap().join("out")]);
        assert_eq!((policy.network, policy.isolation), (NetworkAccess::All, Isolation::Builtin));
        assert_eq!(policy.allow_missing, [Protection::Landlock]);
        let limits = policy.limits;
        assert_eq!((limits.memory, limits.disk, limits.file_size), (2 << 30, 64 << 20, 1 << 20));
        assert_eq!((limits.cpu, limits.processes), (Duration::from_secs(300), 9));
    }

    #[test]
    fn explains_invalid_sandbox_settings() {
        for (text, expect) in [
            ("sandbox = 1", "`true`, `false` or a table"),
            ("sandbox = { allow_missing = [\"firewall\"] }", "no protection is called `firewall`"),
            ("sandbox = { limits = { memory = \"much\" } }", "`much` is no size"),
            ("sandbox = { limits = { memory = 0 } }", "`0` is no size"),
            ("sandbox = { isolation = \"docker\" }", "unknown variant `docker`"),
        ] {
            let error = policy(text).unwrap_err();
            assert!(error.contains(expect), "{text}: {error}");
        }
    }
}
