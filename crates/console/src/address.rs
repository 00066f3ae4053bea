//! The addresses of running hubs of a data folder, so that `toolhub console` finds one. Each hub has a file that it keeps locked:
//! a file without a lock is left over from a process that was killed, and another program may listen on its port.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use toolhub_mcp_gateway::random_token;
use toolhub_private_files::{create_private_dir, open_private_file};

use crate::folder_sessions::CONSOLE_FOLDER;

const ADDRESSES_FOLDER: &str = "addresses";
/// Maximum length of an address.
const MAX_ADDRESS_BYTES: u64 = 128;

/// The published address of a hub. Dropping it removes its file.
#[derive(Debug)]
pub struct PublishedAddress {
    file: PathBuf,
    _lock: File,
}

impl PublishedAddress {
    /// Publishes the address of a hub with this data folder.
    pub fn publish(home: &Path, address: SocketAddr) -> io::Result<Self> {
        let folder = home.join(CONSOLE_FOLDER).join(ADDRESSES_FOLDER);
        create_private_dir(&home.join(CONSOLE_FOLDER))?;
        create_private_dir(&folder)?;
        let name =
            random_token().ok_or_else(|| io::Error::other("the system has no random numbers to give"))?;
        // It is locked before it has its final name: until then it would look left over.
        let hidden = folder.join(format!(".{name}"));
        let mut lock = open_private_file(&hidden, File::options().write(true).create_new(true))?;
        lock.lock()?;
        lock.write_all(reachable(address).to_string().as_bytes())?;
        let file = folder.join(name);
        fs::rename(&hidden, &file)?;
        Ok(Self { file, _lock: lock })
    }
}

impl Drop for PublishedAddress {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
    }
}

/// The addresses of the running hubs with this data folder. Removes those of hubs that were killed.
pub fn running_addresses(home: &Path) -> Vec<SocketAddr> {
    let entries =
        fs::read_dir(home.join(CONSOLE_FOLDER).join(ADDRESSES_FOLDER)).into_iter().flatten().flatten();
    let mut addresses = Vec::new();
    for entry in entries.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.')) {
        let Ok(file) = File::open(entry.path()) else { continue };
        if file.try_lock().is_ok() {
            let _ = fs::remove_file(entry.path());
            continue;
        }
        let text = io::read_to_string(io::Read::take(file, MAX_ADDRESS_BYTES)).unwrap_or_default();
        addresses.extend(text.parse::<SocketAddr>());
    }
    addresses.sort();
    addresses
}

/// An address that a browser on this machine can open.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_running_hubs_only() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(running_addresses(home.path()), []);
        let all: SocketAddr = "0.0.0.0:7".parse().unwrap();
        let published = PublishedAddress::publish(home.path(), all).unwrap();
        let local: SocketAddr = "127.0.0.1:7".parse().unwrap();
        assert_eq!(running_addresses(home.path()), [local]);
        // The state after a killed process: the file without its lock.
        let folder = home.path().join("console/addresses");
        fs::write(folder.join("left"), "127.0.0.1:8").unwrap();
        assert_eq!(running_addresses(home.path()), [local]);
        assert!(!folder.join("left").exists());
        drop(published);
        assert_eq!(running_addresses(home.path()), []);
    }
}
