//! No keyring. The Windows credential store is limited to 2560 bytes, less than most logins need; the file in the user's data
//! folder is not accessible to other users.

use zeroize::Zeroizing;

use super::KeyringEntry;

pub(super) fn is_available() -> bool {
    false
}

pub(super) async fn read(_: &KeyringEntry) -> Option<Zeroizing<String>> {
    None
}

pub(super) async fn write(_: &KeyringEntry, _: &str) -> Option<()> {
    None
}

pub(super) async fn remove(_: &KeyringEntry) -> Option<()> {
    None
}
