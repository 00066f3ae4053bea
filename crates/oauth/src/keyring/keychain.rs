//! The macOS keychain.

use security_framework::passwords::{delete_generic_password, get_generic_password, set_generic_password};
use zeroize::Zeroizing;

use super::KeyringEntry;

const SERVICE: &str = "toolhub";

pub(super) fn is_available() -> bool {
    true
}

/// The keychain may prompt the user, so it must not block a thread of the runtime.
async fn with_account<T: Send + 'static>(
    entry: &KeyringEntry,
    work: impl FnOnce(&str) -> Option<T> + Send + 'static,
) -> Option<T> {
    let account = format!("{} {}", entry.key, entry.home);
    tokio::task::spawn_blocking(move || work(&account)).await.ok()?
}

pub(super) async fn read(entry: &KeyringEntry) -> Option<Zeroizing<String>> {
    let bytes = with_account(entry, |account| get_generic_password(SERVICE, account).ok()).await?;
    String::from_utf8(bytes).ok().map(Zeroizing::new)
}

pub(super) async fn write(entry: &KeyringEntry, text: &str) -> Option<()> {
    let text = Zeroizing::new(text.to_owned());
    with_account(entry, move |account| set_generic_password(SERVICE, account, text.as_bytes()).ok()).await
}

pub(super) async fn remove(entry: &KeyringEntry) -> Option<()> {
    with_account(entry, |account| delete_generic_password(SERVICE, account).ok()).await
}
