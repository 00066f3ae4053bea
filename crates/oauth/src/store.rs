//! Stores logins between runs, encrypted, in `tokens.json` in the data folder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolhub_private_files::{SyncMode, create_private_parent, replace_private};

use crate::error::OAuthError;
use crate::keyring::Keyring;
use crate::lock::{Lock, LockError, hash_of};
use crate::record::{IssuerBinding, LoginRecord};
use crate::token_key::{KeyPlace, TokenKey};

/// How long to wait for another process that writes the file.
const WRITE_LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait for another process that renews a token: longer than a renewal may take.
const RENEWAL_LOCK_TIMEOUT: Duration = Duration::from_secs(40);

/// The logins of all servers, by key.
#[derive(Debug)]
pub struct TokenStore {
    folder: PathBuf,
    keyring: Keyring,
}

#[derive(Serialize, Deserialize)]
struct LoginFile {
    version: u32,
    /// Where the key of the encrypted entries is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<KeyPlace>,
    /// Decoded separately, so that an invalid entry affects only its own server.
    servers: Map<String, Value>,
    /// The authorization servers that credentials are bound to. They outlive logins.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    issuers: Map<String, Value>,
}

impl TokenStore {
    /// The store in this data folder.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), keyring: Keyring::new(folder) }
    }

    fn file(&self) -> PathBuf {
        self.folder.join("tokens.json")
    }

    fn key_file(&self) -> PathBuf {
        self.folder.join("tokens.key")
    }

    /// Loads a login, if there is one.
    pub(crate) async fn load(&self, name: &str) -> Result<Option<LoginRecord>, OAuthError> {
        let file = self.file();
        let mut document = blocking(move || read(&file)).await?;
        let Some(entry) = document.servers.remove(name) else { return Ok(None) };
        // An entry of another version or an invalid one counts as no login; the next login replaces it.
        Ok(match StoredEntry::of(&entry) {
            StoredEntry::Encrypted(text) => {
                let key = self.key(document.key).await?;
                key.decrypt(name, text).and_then(|text| serde_json::from_str(&text).ok())
            }
            // Earlier versions had no logins of principals.
            StoredEntry::InKeyring | StoredEntry::Plain if LoginName::parse(name).principal.is_some() => None,
            StoredEntry::InKeyring => {
                self.keyring.read(name).await.and_then(|text| serde_json::from_str(&text).ok())
            }
            StoredEntry::Plain => {
                let record = LoginRecord::deserialize(entry).ok();
                if let Some(record) = &record {
                    // Versions before 0.1 did not encrypt. If the folder is not writable, the entry stays as it is.
                    let _ = self.update(name, record).await;
                }
                record
            }
        })
    }

    async fn key(&self, place: Option<KeyPlace>) -> Result<TokenKey, OAuthError> {
        TokenKey::load(place.unwrap_or(KeyPlace::File), &self.keyring, &self.key_file()).await
    }

    /// Stores a login, replacing the previous one.
    pub(crate) async fn save(&self, name: &str, record: &LoginRecord) -> Result<(), OAuthError> {
        self.write_entry(name, record, false).await.map(drop)
    }

    /// Replaces a stored login. Returns false if there is none: it was removed meanwhile.
    pub(crate) async fn update(&self, name: &str, record: &LoginRecord) -> Result<bool, OAuthError> {
        self.write_entry(name, record, true).await
    }

    /// The version of the stored logins; `None` if there are none.
    pub(crate) fn version(&self) -> Option<StoreVersion> {
        let metadata = std::fs::metadata(self.file()).ok()?;
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
        #[cfg(not(unix))]
        let inode = 0;
        Some(StoreVersion { modified: metadata.modified().ok(), length: metadata.len(), inode })
    }

    async fn write_entry(
        &self,
        name: &str,
        record: &LoginRecord,
        must_exist: bool,
    ) -> Result<bool, OAuthError> {
        let failed = |_| OAuthError::Store("it cannot be written down".to_owned());
        let text = zeroize::Zeroizing::new(serde_json::to_string(record).map_err(failed)?);
        let _lock = self.lock_file().await?;
        let file = self.file();
        let mut document = blocking(move || read(&file)).await?;
        if must_exist && !document.servers.contains_key(name) {
            return Ok(false);
        }
        let key = match document.key {
            Some(place) => self.key(Some(place)).await?,
            None => {
                let (key, place) = TokenKey::create(&self.keyring, &self.key_file()).await?;
                document.key = Some(place);
                key
            }
        };
        let entry = json!({"encrypted": key.encrypt(name, &text)?});
        let before = document.servers.insert(name.to_owned(), entry);
        document.version = FORMAT_VERSION;
        let file = self.file();
        blocking(move || write(&file, &document)).await?;
        self.remove_from_keyring(name, before.as_ref()).await;
        Ok(true)
    }

    /// Removes a login. Returns whether there was one.
    pub(crate) async fn remove(&self, name: &str) -> Result<bool, OAuthError> {
        Ok(self.remove_all(|found| found == name).await? > 0)
    }

    /// Removes all logins of a principal. Returns their number.
    pub async fn remove_principal(&self, principal: &str) -> Result<usize, OAuthError> {
        self.remove_all(|name| LoginName::parse(name).principal == Some(principal)).await
    }

    /// The ids of the principals with a login, with the server of each.
    pub async fn principals(&self) -> Result<Vec<(String, String)>, OAuthError> {
        let file = self.file();
        let document = blocking(move || read(&file)).await?;
        let names = document.servers.keys().map(|name| LoginName::parse(name));
        let with_principal =
            names.filter_map(|name| Some((name.server.to_owned(), name.principal?.to_owned())));
        Ok(with_principal.collect())
    }

    async fn remove_all(&self, is_removed: impl Fn(&str) -> bool) -> Result<usize, OAuthError> {
        let _lock = self.lock_file().await?;
        let file = self.file();
        let mut document = blocking(move || read(&file)).await?;
        let (removed, kept) =
            std::mem::take(&mut document.servers).into_iter().partition(|(name, _)| is_removed(name));
        document.servers = kept;
        let removed: Map<String, Value> = removed;
        if removed.is_empty() {
            return Ok(0);
        }
        let file = self.file();
        blocking(move || write(&file, &document)).await?;
        for (name, entry) in &removed {
            self.remove_from_keyring(name, Some(entry)).await;
        }
        Ok(removed.len())
    }

    /// Removes a login that an earlier version stored in the keyring.
    async fn remove_from_keyring(&self, name: &str, entry: Option<&Value>) {
        if entry.is_some_and(|entry| matches!(StoredEntry::of(entry), StoredEntry::InKeyring)) {
            self.keyring.remove(name).await;
        }
    }

    async fn lock_file(&self) -> Result<Lock, OAuthError> {
        Ok(Lock::take(self.folder.join("tokens.lock"), WRITE_LOCK_TIMEOUT).await?)
    }

    /// Prevents other processes from renewing the same login concurrently: a refresh token works once. `None` if locks are not
    /// possible; then nothing can be stored either.
    pub(crate) async fn lock_renewal(&self, key: &str) -> Result<Option<Lock>, OAuthError> {
        let file = self.folder.join("locks").join(format!("{}.lock", hash_of(key)));
        match Lock::take(file, RENEWAL_LOCK_TIMEOUT).await {
            Ok(lock) => Ok(Some(lock)),
            Err(LockError::Impossible(_)) => Ok(None),
            Err(LockError::Held(error)) => Err(error),
        }
    }

    /// The authorization server that credentials are bound to, if any.
    pub(crate) async fn binding(&self, key: &str) -> Result<Option<IssuerBinding>, OAuthError> {
        let file = self.file();
        let Some(entry) = blocking(move || read(&file)).await?.issuers.remove(key) else { return Ok(None) };
        // An invalid entry must not count as unbound.
        let invalid =
            |_| OAuthError::Store(format!("`{}` has an invalid entry in `issuers`", self.file().display()));
        IssuerBinding::deserialize(entry).map(Some).map_err(invalid)
    }

    /// Replaces the authorization server that credentials are bound to, or removes the binding.
    pub(crate) async fn bind(&self, key: &str, binding: Option<&IssuerBinding>) -> Result<(), OAuthError> {
        let entry = binding.map(
            |IssuerBinding { issuer, token_origin }| json!({"issuer": issuer, "token_origin": token_origin}),
        );
        let _lock = self.lock_file().await?;
        let (file, key) = (self.file(), key.to_owned());
        blocking(move || {
            let mut document = read(&file)?;
            let changed = match entry {
                Some(entry) => document.issuers.insert(key, entry.clone()) != Some(entry),
                None => document.issuers.remove(&key).is_some(),
            };
            if changed { write(&file, &document) } else { Ok(()) }
        })
        .await
    }
}

/// The state of the file, which every write replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoreVersion {
    modified: Option<std::time::SystemTime>,
    length: u64,
    inode: u64,
}

/// The format of the file.
const FORMAT_VERSION: u32 = 2;

/// The name of a login in the file: the server, a hash of its URL, since tokens are sent to no other one, and the principal that
/// it belongs to, if it is not the hub's own.
pub(crate) struct LoginName<'a> {
    pub(crate) server: &'a str,
    pub(crate) url_hash: &'a str,
    pub(crate) principal: Option<&'a str>,
}

impl<'a> LoginName<'a> {
    /// Reads the name. An id of a server may contain spaces, but no line break.
    fn parse(name: &'a str) -> Self {
        let (own, principal) = name.split_once('\n').map_or((name, None), |(own, id)| (own, Some(id)));
        let (server, url_hash) = own.rsplit_once(' ').unwrap_or((own, ""));
        Self { server, url_hash, principal }
    }
}

impl std::fmt::Display for LoginName<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.server, self.url_hash)?;
        self.principal.map_or(Ok(()), |principal| write!(f, "\n{principal}"))
    }
}

/// An entry of the file.
enum StoredEntry<'a> {
    Encrypted(&'a str),
    /// In the keyring, as an earlier version stored it.
    InKeyring,
    /// Not encrypted, as an earlier version stored it.
    Plain,
}

impl<'a> StoredEntry<'a> {
    fn of(entry: &'a Value) -> Self {
        match entry.get("encrypted").and_then(Value::as_str) {
            Some(text) => Self::Encrypted(text),
            None if *entry == json!({"kept_in": "keyring"}) => Self::InKeyring,
            None => Self::Plain,
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, OAuthError> + Send + 'static,
) -> Result<T, OAuthError> {
    let shutting_down = |_| Err(OAuthError::Store("the program is ending".to_owned()));
    tokio::task::spawn_blocking(work).await.unwrap_or_else(shutting_down)
}

fn read(file: &Path) -> Result<LoginFile, OAuthError> {
    let wrong = |what: String| OAuthError::Store(format!("`{}` {what}", file.display()));
    match std::fs::read(file) {
        // Never the parser's message, which quotes the input.
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            wrong(format!(
                "cannot be read at line {line}, column {column}: mend it, or remove it and log in again"
            ))
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Ok(LoginFile { version: FORMAT_VERSION, key: None, servers: Map::new(), issuers: Map::new() })
        }
        Err(error) => Err(wrong(format!("cannot be read: {error}"))),
    }
}

/// Replaces the file atomically by one that only the owner can read, whatever the mode of the old one.
fn write(file: &Path, document: &LoginFile) -> Result<(), OAuthError> {
    let failed = |error: std::io::Error| OAuthError::Store(format!("`{}`: {error}", file.display()));
    let text = serde_json::to_vec_pretty(document).map_err(|error| failed(error.into()))?;
    create_private_parent(file).map_err(failed)?;
    replace_private(file, &text, SyncMode::File).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(access: &str) -> LoginRecord {
        serde_json::from_value(json!({
            "resource": "https://a.example/mcp", "issuer": "https://b.example",
            "token_endpoint": "https://b.example/token", "client": {"id": "c", "method": "none"},
            "tokens": {"access": access},
        }))
        .unwrap()
    }

    #[tokio::test]
    async fn stores_logins_separately_in_a_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let store = TokenStore::new(folder.path());
        let (a, b) = ("a", "服务");
        assert!(store.load(a).await.unwrap().is_none());
        std::fs::write(folder.path().join("tokens.json"), r#"{"version":1,"servers":{"odd":{"new":1}}}"#)
            .unwrap();
        store.save(a, &record("first token")).await.unwrap();
        store.save(b, &record("second token")).await.unwrap();
        let access = async |id| store.load(id).await.unwrap().unwrap().tokens.access.unwrap();
        assert_eq!((access(a).await.expose(), access(b).await.expose()), ("first token", "second token"));
        assert!(store.load("odd").await.unwrap().is_none());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::metadata(folder.path().join("tokens.json")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert!(store.remove(a).await.unwrap());
        assert!(!store.remove(a).await.unwrap());
        assert!(store.load(a).await.unwrap().is_none() && store.load(b).await.unwrap().is_some());
        let text = std::fs::read_to_string(folder.path().join("tokens.json")).unwrap();
        assert!(
            text.contains("odd") && !text.contains("first token") && !text.contains("second token"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn encrypts_entries_of_earlier_versions() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens.json");
        let old =
            json!({"version": 1, "servers": {"a 1": serde_json::to_value(record("plain-token")).unwrap()}});
        std::fs::write(&file, old.to_string()).unwrap();
        let store = TokenStore::new(folder.path());
        for _ in 0..2 {
            let loaded = store.load("a 1").await.unwrap().unwrap();
            assert_eq!(loaded.tokens.access.unwrap().expose(), "plain-token");
            assert!(!std::fs::read_to_string(&file).unwrap().contains("plain-token"));
        }
    }

    #[tokio::test]
    async fn entries_cannot_be_exchanged_between_principals() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens.json");
        let store = TokenStore::new(folder.path());
        store.save("a 1\nkey:ann", &record("t1")).await.unwrap();
        store.save("a 1\noidc:https://i#b b", &record("t2")).await.unwrap();
        let expected = [("a", "key:ann"), ("a", "oidc:https://i#b b")];
        let principals = store.principals().await.unwrap();
        assert_eq!(principals, expected.map(|(server, id)| (server.to_owned(), id.to_owned())));
        let mut document: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        document["servers"]["a 1\nkey:bob"] = document["servers"]["a 1\nkey:ann"].clone();
        std::fs::write(&file, document.to_string()).unwrap();
        assert!(store.load("a 1\nkey:bob").await.unwrap().is_none());
        assert!(store.load("a 1\nkey:ann").await.unwrap().is_some());
        assert_eq!(store.remove_principal("key:ann").await.unwrap(), 1);
        assert!(store.load("a 1\nkey:ann").await.unwrap().is_none());
    }

    #[tokio::test]
    async fn names_the_reason_if_the_key_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let store = TokenStore::new(folder.path());
        store.save("a 1", &record("t1")).await.unwrap();
        let key = folder.path().join("tokens.key");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
            std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
            let error = store.load("a 1").await.unwrap_err().to_string();
            assert!(error.contains("chmod 600"), "{error}");
        }
        std::fs::remove_file(&key).unwrap();
        let error = store.load("a 1").await.unwrap_err().to_string();
        assert!(error.contains("tokens.key"), "{error}");
        // Nothing is overwritten with another key.
        assert!(store.save("a 1", &record("t2")).await.is_err() && !key.exists());
    }

    #[tokio::test]
    async fn leaves_unreadable_file_unchanged_and_does_not_quote_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens.json");
        for text in [r#"{"version": "hunter2"}"#, "{ hunter2"] {
            std::fs::write(&file, text).unwrap();
            let store = TokenStore::new(folder.path());
            let error = store.save("a", &record("t")).await.unwrap_err().to_string();
            assert!(error.contains("line 1") && !error.contains("hunter2"), "{error}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
    }
}
