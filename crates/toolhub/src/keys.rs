//! The keys in `toolhub.toml`: created, listed, revoked and rotated, without changing anything else in the file.

use std::path::Path;

use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, value};
use toolhub_client_config::{ConfigError, LockedFile};
use toolhub_core::lang::LocalizedText;
use toolhub_core::shell;
use toolhub_mcp_gateway::random_token;
use toolhub_server::hash_of;

use crate::settings::{AuthSettings, Settings, TokenSettings};

/// The prefix of a key, by which scanners for leaked secrets recognise it.
const KEY_PREFIX: &str = "th_";

/// The settings of a new key.
#[derive(Debug, Clone, Default)]
pub struct NewKey {
    /// The name of its principal.
    pub name: String,
    /// The roles; `caller` if empty.
    pub roles: Vec<String>,
    /// The profiles that it opens; all if empty.
    pub profiles: Vec<String>,
    /// The date or time from which it is refused.
    pub expires: Option<String>,
    /// The maximum number of calls per day.
    pub per_day: Option<u64>,
    /// Whether it is for the person whose key of the same name was revoked, who gets access to the data under that name again.
    pub same_person: bool,
}

/// Why a key could not be changed.
#[derive(Debug)]
pub enum KeyError {
    /// A key of that name exists.
    Exists,
    /// There is no key of that name.
    Unknown,
    /// A key of that name was revoked at this time: what its person did is stored under the name.
    Revoked(String),
    /// The keys are not written as `[[auth.tokens]]`.
    Inline,
    /// The system has no random numbers.
    NoRandomness,
    /// The file cannot be read or written, or the result would be invalid.
    Config(Box<ConfigError>),
}

impl From<ConfigError> for KeyError {
    fn from(error: ConfigError) -> Self {
        Self::Config(Box::new(error))
    }
}

impl KeyError {
    /// The message for the person.
    pub fn text(&self, name: &str) -> LocalizedText {
        match self {
            Self::Exists => LocalizedText::new(
                format!(
                    "there is a key `{name}` already: `toolhub keys rotate {}` replaces it",
                    shell::shell_quote(name)
                ),
                format!("已有密钥 `{name}`：可用 `toolhub keys rotate {}` 更换", shell::shell_quote(name)),
            ),
            Self::Unknown => LocalizedText::new(
                format!("there is no key `{name}`: `toolhub keys list` shows them"),
                format!("没有密钥 `{name}`：可用 `toolhub keys list` 查看"),
            ),
            Self::Revoked(at) => LocalizedText::new(
                format!(
                    "a key `{name}` was revoked ({at}), and its calls, responses and approvals are stored under that name: \
                     choose another name, or, if the key is for the same person, add `--same-person` (API: `same_person`)"
                ),
                format!(
                    "密钥 `{name}` 已于 {at} 吊销，其调用、响应和批准都存于该名称下：请换一个名称；\
                     如仍供同一人使用，请加上 `--same-person`（API：`same_person`）"
                ),
            ),
            Self::Inline => LocalizedText::new(
                "the keys are written as an inline list: write them as `[[auth.tokens]]` tables first",
                "密钥写成了内联列表：请先改为 `[[auth.tokens]]` 的形式",
            ),
            Self::NoRandomness => LocalizedText::new(
                "the system provides no random numbers, so no key was made",
                "系统无法提供随机数，未生成密钥",
            ),
            Self::Config(error) => {
                let text = |lang| toolhub_core::Localize::localize(&**error, lang);
                LocalizedText::new(text(toolhub_core::Lang::En), text(toolhub_core::Lang::Zh))
            }
        }
    }
}

/// A new secret of 256 random bits.
fn new_secret() -> Result<String, KeyError> {
    random_token()
        .zip(random_token())
        .map(|(one, other)| format!("{KEY_PREFIX}{one}{other}"))
        .ok_or(KeyError::NoRandomness)
}

/// Adds a key. Returns its secret, which is not stored. The name of a revoked key is refused, unless the new key is for the same
/// person.
pub fn create(config: &Path, new: &NewKey) -> Result<String, KeyError> {
    let secret = new_secret()?;
    edit(config, |tokens| {
        while let Some(index) = find(tokens, &new.name) {
            match tokens.get(index).and_then(revoked_at) {
                None => return Err(KeyError::Exists),
                Some(at) if !new.same_person => return Err(KeyError::Revoked(at.to_owned())),
                Some(_) => tokens.remove(index),
            };
        }
        let mut table = Table::new();
        table["name"] = value(&new.name);
        table["sha256"] = value(hash_of(&secret));
        let list = |items: &[String]| value(items.iter().map(String::as_str).collect::<Array>());
        if !new.roles.is_empty() {
            table["roles"] = list(&new.roles);
        }
        if !new.profiles.is_empty() {
            table["profiles"] = list(&new.profiles);
        }
        if let Some(expires) = &new.expires {
            table["expires"] = value(expires);
        }
        if let Some(per_day) = new.per_day.and_then(|limit| i64::try_from(limit).ok()) {
            table["per_day"] = value(per_day);
        }
        tokens.push(table);
        Ok(())
    })?;
    Ok(secret)
}

/// Revokes a key: it is refused from now on, and a running gateway ends its streams within a second. Its name stays in the file
/// without the hash, since the data of its principal is stored under it.
pub fn revoke(config: &Path, name: &str) -> Result<(), KeyError> {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    edit(config, |tokens| {
        let table = find(tokens, name).and_then(|index| tokens.get_mut(index));
        let table = table.filter(|table| revoked_at(table).is_none()).ok_or(KeyError::Unknown)?;
        table.retain(|setting, _| setting == "name");
        table["revoked"] = value(now);
        Ok(())
    })
}

/// Replaces the secret of a key and keeps its other settings. Returns the new secret.
pub fn rotate(config: &Path, name: &str) -> Result<String, KeyError> {
    let secret = new_secret()?;
    edit(config, |tokens| {
        let table = find(tokens, name).and_then(|index| tokens.get_mut(index)).ok_or(KeyError::Unknown)?;
        if let Some(at) = revoked_at(table) {
            return Err(KeyError::Revoked(at.to_owned()));
        }
        table["sha256"] = value(hash_of(&secret));
        Ok(())
    })?;
    Ok(secret)
}

/// The key of that name.
pub fn find_key<'a>(auth: &'a AuthSettings, name: &str) -> Result<&'a TokenSettings, KeyError> {
    auth.tokens.iter().find(|token| token.name == name).ok_or(KeyError::Unknown)
}

/// When a key was revoked; `None` for a key in force.
fn revoked_at(table: &Table) -> Option<&str> {
    table.get("revoked").map(|at| at.as_str().unwrap_or("?"))
}

fn find(tokens: &ArrayOfTables, name: &str) -> Option<usize> {
    tokens.iter().position(|table| table.get("name").and_then(Item::as_str) == Some(name))
}

/// Edits the keys of a file under its lock. A result that cannot be used is not written.
fn edit(
    config: &Path,
    change: impl FnOnce(&mut ArrayOfTables) -> Result<(), KeyError>,
) -> Result<(), KeyError> {
    let file = LockedFile::open(config)?;
    // An invalid file is reported with its position, and not changed.
    Settings::parse(config, file.text())?;
    let invalid = |_| KeyError::Inline;
    let mut document: DocumentMut = file.text().parse().map_err(invalid)?;
    let auth = document.entry("auth").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let auth = auth.as_table_mut().ok_or(KeyError::Inline)?;
    let tokens = auth.entry("tokens").or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    change(tokens.as_array_of_tables_mut().ok_or(KeyError::Inline)?)?;
    let text = document.to_string();
    Settings::parse(config, &text)?;
    file.write(&text)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn key(name: &str) -> NewKey {
        NewKey { name: name.to_owned(), ..NewKey::default() }
    }

    #[test]
    fn keys_are_added_rotated_and_revoked_without_other_changes() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("toolhub.toml");
        let before = "# mine\n[serve]\nper_second = 5 # fast enough\n";
        fs::write(&config, before).unwrap();
        let secret = create(&config, &key("ann")).unwrap();
        assert!(secret.starts_with(KEY_PREFIX) && secret.len() == KEY_PREFIX.len() + 64);
        let auth =
            |config: &Path| Settings::parse(config, &fs::read_to_string(config).unwrap()).unwrap().auth;
        assert_eq!(auth(&config).tokens[0].sha256, hash_of(&secret));
        assert!(!fs::read_to_string(&config).unwrap().contains(&secret), "the secret is not stored");
        assert!(matches!(create(&config, &key("ann")), Err(KeyError::Exists)));
        let full = NewKey {
            roles: vec!["viewer".to_owned()],
            profiles: vec!["office".to_owned()],
            expires: Some("2030-01-01".to_owned()),
            per_day: Some(7),
            ..key("ci")
        };
        create(&config, &full).unwrap();
        let rotated = rotate(&config, "ci").unwrap();
        let ci = auth(&config).tokens[1].clone();
        assert_eq!((ci.sha256, ci.per_day), (hash_of(&rotated), Some(7)));
        assert_eq!(ci.profiles.as_deref(), Some(&["office".to_owned()][..]));
        revoke(&config, "ann").unwrap();
        revoke(&config, "ci").unwrap();
        assert!(matches!(revoke(&config, "ci"), Err(KeyError::Unknown)));
        let after = fs::read_to_string(&config).unwrap();
        assert!(after.starts_with(before), "{after}");
        assert!(
            !after.contains("sha256") && !after.contains("roles"),
            "the name and the time are left: {after}"
        );
        assert!(auth(&config).tokens.is_empty());
    }

    #[test]
    fn name_of_a_revoked_key_is_for_the_same_person_only() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("toolhub.toml");
        create(&config, &key("ann")).unwrap();
        create(&config, &key("bob")).unwrap();
        revoke(&config, "ann").unwrap();
        let revoked = fs::read_to_string(&config).unwrap();
        for attempt in [create(&config, &key("ann")), rotate(&config, "ann")] {
            assert!(matches!(attempt, Err(KeyError::Revoked(_))), "{attempt:?}");
        }
        assert_eq!(fs::read_to_string(&config).unwrap(), revoked, "a refused attempt changes nothing");
        let same = NewKey { same_person: true, ..key("ann") };
        let secret = create(&config, &same).unwrap();
        let auth = Settings::parse(&config, &fs::read_to_string(&config).unwrap()).unwrap().auth;
        assert!(auth.revoked.is_empty() && auth.tokens.iter().any(|token| token.sha256 == hash_of(&secret)));
        // `same_person` does not replace a key in force.
        assert!(matches!(create(&config, &same), Err(KeyError::Exists)));
        assert!(rotate(&config, "bob").is_ok());
    }

    #[test]
    fn invalid_keys_and_files_change_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("toolhub.toml");
        let invalid = NewKey { roles: vec!["admin".to_owned()], ..key("ann") };
        assert!(matches!(create(&config, &invalid), Err(KeyError::Config(_))));
        assert!(!config.exists());
        for text in ["[auth\n", "auth = { tokens = [] }\n", "[auth]\ntokens = []\n"] {
            fs::write(&config, text).unwrap();
            assert!(create(&config, &key("ann")).is_err(), "{text}");
            assert_eq!(fs::read_to_string(&config).unwrap(), text);
        }
    }
}
