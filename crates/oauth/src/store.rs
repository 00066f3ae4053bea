//! Stores logins between runs: in `tokens.json` in the data folder, readable by the owner only. With a working system keyring,
//! the file only refers to it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::binding::Binding;
use crate::error::OAuthError;
use crate::keyring::Keyring;
use crate::lock::{Lock, LockError, hash_of};
use crate::record::Record;

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
struct Document {
    version: u32,
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

    /// Loads a login, if there is one.
    pub(crate) async fn load(&self, key: &str) -> Result<Option<Record>, OAuthError> {
        let file = self.file();
        let Some(entry) = blocking(move || read(&file)).await?.servers.remove(key) else {
            return Ok(None);
        };
        let entry = match entry == in_keyring() {
            true => match self.keyring.read(key).await.and_then(|text| serde_json::from_str(&text).ok()) {
                Some(entry) => entry,
                None => return Ok(None),
            },
            false => entry,
        };
        // An entry of another version or an invalid one counts as no login; the next login replaces it.
        Ok(Record::deserialize(entry).ok())
    }

    /// Stores a login, replacing the previous one.
    pub(crate) async fn save(&self, key: &str, record: &Record) -> Result<(), OAuthError> {
        let failed = |_| OAuthError::Store("it cannot be written down".to_owned());
        let text = zeroize::Zeroizing::new(serde_json::to_string(record).map_err(failed)?);
        let entry = match self.keyring.write(key, &text).await {
            true => in_keyring(),
            false => serde_json::to_value(record).map_err(failed)?,
        };
        self.change(key, Some(entry)).await.map(drop)
    }

    /// Removes a login. Returns whether there was one.
    pub(crate) async fn remove(&self, key: &str) -> Result<bool, OAuthError> {
        let before = self.change(key, None).await?;
        if before == Some(in_keyring()) {
            self.keyring.remove(key).await;
        }
        Ok(before.is_some())
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
    pub(crate) async fn binding(&self, key: &str) -> Result<Option<Binding>, OAuthError> {
        let file = self.file();
        let Some(entry) = blocking(move || read(&file)).await?.issuers.remove(key) else { return Ok(None) };
        // An invalid entry must not count as unbound.
        let invalid =
            |_| OAuthError::Store(format!("`{}` has an odd entry in `issuers`", self.file().display()));
        Binding::deserialize(entry).map(Some).map_err(invalid)
    }

    /// Replaces the authorization server that credentials are bound to, or removes the binding.
    pub(crate) async fn bind(&self, key: &str, binding: Option<&Binding>) -> Result<(), OAuthError> {
        let entry = binding
            .map(|Binding { issuer, token_origin }| json!({"issuer": issuer, "token_origin": token_origin}));
        let _lock = Lock::take(self.folder.join("tokens.lock"), WRITE_LOCK_TIMEOUT).await?;
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

    async fn change(&self, key: &str, entry: Option<Value>) -> Result<Option<Value>, OAuthError> {
        let _lock = Lock::take(self.folder.join("tokens.lock"), WRITE_LOCK_TIMEOUT).await?;
        let (file, key) = (self.file(), key.to_owned());
        blocking(move || {
            let mut document = read(&file)?;
            let before = match entry {
                Some(entry) => document.servers.insert(key, entry),
                None => document.servers.remove(&key),
            };
            write(&file, &document)?;
            Ok(before)
        })
        .await
    }
}

/// The placeholder in the file for a login in the keyring.
fn in_keyring() -> Value {
    json!({"kept_in": "keyring"})
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, OAuthError> + Send + 'static,
) -> Result<T, OAuthError> {
    let shutting_down = |_| Err(OAuthError::Store("the program is ending".to_owned()));
    tokio::task::spawn_blocking(work).await.unwrap_or_else(shutting_down)
}

fn read(file: &Path) -> Result<Document, OAuthError> {
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
            Ok(Document { version: 1, servers: Map::new(), issuers: Map::new() })
        }
        Err(error) => Err(wrong(format!("cannot be read: {error}"))),
    }
}

/// Replaces the file atomically by one that only the owner can read, whatever the mode of the old one.
fn write(file: &Path, document: &Document) -> Result<(), OAuthError> {
    let failed = |error: std::io::Error| OAuthError::Store(format!("`{}`: {error}", file.display()));
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut new = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    serde_json::to_writer_pretty(&mut new, document).map_err(|error| failed(error.into()))?;
    new.as_file().sync_all().map_err(failed)?;
    new.persist(file).map_err(|error| failed(error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(access: &str) -> Record {
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
        store.save(a, &record("t1")).await.unwrap();
        store.save(b, &record("t2")).await.unwrap();
        let access = async |id| store.load(id).await.unwrap().unwrap().tokens.access.unwrap();
        assert_eq!((access(a).await.expose(), access(b).await.expose()), ("t1", "t2"));
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
        assert!(text.contains("odd") && !text.contains("t1"), "{text}");
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
