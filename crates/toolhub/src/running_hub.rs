//! The Unix socket in the data folder through which commands use the connections of `toolhub serve`; accessible only to the
//! owner.
//!
//! The folder has mode 0700 and the socket 0600; both sides check the owner of the files they open and the user id of the peer.
//! Clients send a secret from a file next to the socket: a sandboxed program with access to Unix sockets cannot read it. The
//! socket of an ended process refuses connections immediately and is removed by the next `toolhub serve`.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolhub_core::BoxFuture;
use toolhub_core::lang::LocalizedText;
use toolhub_mcp_client::config::ServerSpec;
use toolhub_mcp_client::{Dialer, HubStream, LiveServer, Relay, RestartOutcome, ServerState};
use toolhub_mcp_gateway::random_token;
use toolhub_private_files::{create_private_dir, open_private_file};

use crate::hub::Hub;

/// The folder of sockets in the data folder.
const FOLDER: &str = "hubs";
/// The suffix of a socket's name.
const SUFFIX: &str = ".sock";
/// The extension of the file with its secret.
const KEY_EXTENSION: &str = "key";
/// The maximum size of a secret.
const MAX_SECRET_BYTES: u64 = 256;
/// The maximum number of hubs that a command tries.
const MAX_HUBS: usize = 8;
/// The maximum length of a socket's path on all systems (sun_path, unix(7)).
const MAX_PATH_BYTES: usize = 100;
/// Timeout for connecting to a socket. A listener accepts or refuses a connection immediately, or its backlog is full.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(200);
/// Delay after a failed `accept`.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Mode bits that give access to other users.
const OTHER_USERS_MASK: u32 = 0o077;

/// The folder of sockets, opened and checked.
struct Folder {
    path: PathBuf,
    opened: File,
}

impl Folder {
    /// Opens the folder, if the user owns it and others have no access.
    fn open(data_dir: &Path) -> io::Result<Self> {
        let path = data_dir.join(FOLDER);
        let is_link = path.symlink_metadata()?.is_symlink();
        let opened = File::open(&path)?;
        let metadata = opened.metadata()?;
        if is_link || !metadata.is_dir() || !is_own(&metadata) || metadata.mode() & OTHER_USERS_MASK != 0 {
            return Err(refused(&path));
        }
        Ok(Self { path, opened })
    }

    /// The path of a file in the folder, in a form that is short enough for a socket.
    fn address(&self, name: &str) -> PathBuf {
        let path = self.path.join(name);
        match cfg!(target_os = "linux") && path.as_os_str().len() > MAX_PATH_BYTES {
            true => PathBuf::from(format!("/proc/self/fd/{}/{name}", self.opened.as_raw_fd())),
            false => path,
        }
    }

    async fn connect(&self, name: &str) -> io::Result<UnixStream> {
        let connecting = UnixStream::connect(self.address(name));
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
        connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// The names of the sockets, in a fixed order.
    fn sockets(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> =
            names.filter(|name| name.ends_with(SUFFIX) && !name.starts_with('.')).collect();
        names.sort();
        names
    }
}

fn is_own(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw()
}

fn refused(path: &Path) -> io::Error {
    let why = format!("`{}` is open to others, or belongs to them", path.display());
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// Whether the peer process belongs to the same user.
fn is_same_user(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw())
}

/// The socket of a running hub. Dropping it removes its files.
pub struct HubSocket {
    listener: UnixListener,
    file: PathBuf,
    secret: String,
}

impl std::fmt::Debug for HubSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HubSocket").field("file", &self.file).finish_non_exhaustive()
    }
}

impl HubSocket {
    /// Binds a socket in the data folder `data_dir`, and removes sockets of ended processes.
    pub async fn bind(data_dir: &Path) -> io::Result<Self> {
        create_private_dir(&data_dir.join(FOLDER))?;
        let folder = Folder::open(data_dir)?;
        for name in folder.sockets() {
            let connected = folder.connect(&name).await;
            if connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
                remove(&folder.path.join(name));
            }
        }
        let name = format!("{:016x}{SUFFIX}", fastrand::u64(..));
        let hidden = format!(".{name}");
        let no_secret = || io::Error::other("the system has no random numbers to give");
        let secret =
            random_token().zip(random_token()).map(|(one, other)| one + &other).ok_or_else(no_secret)?;
        let listener = UnixListener::bind(folder.address(&hidden))?;
        // The socket is renamed to its final name once its mode is set and its secret is written.
        let (bound, file) = (folder.path.join(&hidden), folder.path.join(&name));
        let mut options = File::options();
        let published = open_private_file(&key_of(&file), options.write(true).create_new(true))
            .and_then(|mut key| key.write_all(secret.as_bytes()))
            .and_then(|()| std::fs::set_permissions(&bound, Permissions::from_mode(0o600)))
            .and_then(|()| std::fs::rename(&bound, &file));
        if let Err(error) = published {
            let _ = std::fs::remove_file(bound);
            remove(&file);
            return Err(error);
        }
        Ok(Self { listener, file, secret })
    }

    /// A relay to the enabled servers of a hub, for processes of its owner, which act as `principal`.
    pub fn relay(&self, hub: &Arc<Hub>, principal: &str) -> Relay {
        let servers = Arc::clone(&hub.servers);
        let find = move |id: &str| servers.find(id).filter(|server| server.spec().enabled);
        let (hub, principal_id) = (Arc::downgrade(hub), Arc::<str>::from(principal));
        let restart = move |id: String| -> BoxFuture<'static, Option<RestartOutcome>> {
            let (hub, principal_id) = (hub.upgrade(), Arc::clone(&principal_id));
            Box::pin(async move { hub?.restart_server(&id, &principal_id).await })
        };
        Relay::new(principal, &self.secret, find).with_restart(restart)
    }

    /// Serves connections until `stop`; then waits up to `grace` for those with running requests.
    pub async fn serve(self, relay: Relay, stop: CancellationToken, grace: Duration) {
        let relay = Arc::new(relay);
        let mut links = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) if is_same_user(&stream) => {
                        let relay = Arc::clone(&relay);
                        links.spawn(async move { relay.serve(Box::new(stream)).await });
                    }
                    Ok(_) => {}
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                },
                Some(_) = links.join_next() => {}
                () = stop.cancelled() => break,
            }
        }
        drop(self);
        relay.close();
        let ended = async { while links.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(grace, ended).await;
    }
}

impl Drop for HubSocket {
    fn drop(&mut self) {
        remove(&self.file);
    }
}

/// The file with the secret of a socket.
fn key_of(socket: &Path) -> PathBuf {
    socket.with_extension(KEY_EXTENSION)
}

/// Removes a socket and its secret.
fn remove(socket: &Path) {
    let _ = std::fs::remove_file(socket);
    let _ = std::fs::remove_file(key_of(socket));
}

/// Finds the running hubs of a data folder.
pub(crate) struct RunningHubs {
    data_dir: PathBuf,
}

impl RunningHubs {
    pub(crate) fn of(data_dir: &Path) -> Self {
        Self { data_dir: data_dir.to_owned() }
    }

    async fn connect(folder: &Folder, name: &str) -> Option<HubStream> {
        let file = folder.path.join(name);
        let metadata = file.symlink_metadata().ok()?;
        if !metadata.file_type().is_socket() || !is_own(&metadata) {
            return None;
        }
        let stream = folder.connect(name).await.ok().filter(is_same_user)?;
        let key = open_private_file(&key_of(&file), File::options().read(true)).ok()?;
        let mut secret = String::new();
        key.take(MAX_SECRET_BYTES).read_to_string(&mut secret).ok()?;
        Some(HubStream { stream: Box::new(stream), secret })
    }
}

/// The states of servers at the running hubs of a data folder.
#[derive(Debug, Default)]
pub struct LiveServers {
    /// The servers that a hub has with the same entry. A connected one takes precedence if several hubs have it.
    pub servers: Vec<LiveServer>,
    /// Why hubs did not answer.
    pub problems: Vec<LocalizedText>,
}

/// Asks the running hubs of the data folder `data_dir` for the states of servers. A hub that hangs is given up after one second.
pub async fn live_servers(data_dir: &Path, specs: &[&ServerSpec]) -> LiveServers {
    let mut live = LiveServers::default();
    for stream in RunningHubs::of(data_dir).dial().await {
        let states = match toolhub_mcp_client::live_servers(stream, specs).await {
            Ok(states) => states,
            Err(problem) => {
                live.problems.push(problem);
                continue;
            }
        };
        for state in states {
            match live.servers.iter_mut().find(|known_server| known_server.id == state.id) {
                None => live.servers.push(state),
                Some(known_server) if matches!(state.state, ServerState::Connected { .. }) => {
                    *known_server = state;
                }
                Some(_) => {}
            }
        }
    }
    live
}

/// Restarts a server at the running hubs of the data folder `data_dir` that have it with the same entry. Returns `None` if none does.
pub async fn restart_at_hubs(
    data_dir: &Path,
    spec: &ServerSpec,
) -> Result<Option<RestartOutcome>, LocalizedText> {
    let (mut last, mut problem) = (None, None);
    for stream in RunningHubs::of(data_dir).dial().await {
        match toolhub_mcp_client::restart_at_hub(stream, spec).await {
            Ok(outcome) => last = outcome.or(last),
            Err(why) => problem = Some(why),
        }
    }
    match (last, problem) {
        (None, Some(problem)) => Err(problem),
        (last, _) => Ok(last),
    }
}

/// The number of running hubs of the data folder `data_dir`.
pub async fn running_hubs(data_dir: &Path) -> usize {
    RunningHubs::of(data_dir).dial().await.len()
}

impl Dialer for RunningHubs {
    fn dial(&self) -> BoxFuture<'_, Vec<HubStream>> {
        Box::pin(async move {
            let Ok(folder) = Folder::open(&self.data_dir) else { return Vec::new() };
            let mut streams = Vec::new();
            for name in folder.sockets().iter().take(MAX_HUBS) {
                streams.extend(Self::connect(&folder, name).await);
            }
            streams
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn data_dir() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    async fn reached(data_dir: &Path) -> usize {
        RunningHubs::of(data_dir).dial().await.len()
    }

    #[tokio::test]
    async fn socket_is_private_and_removed_at_the_end() {
        let data_dir = data_dir();
        assert_eq!(reached(data_dir.path()).await, 0);
        let socket = HubSocket::bind(data_dir.path()).await.unwrap();
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        let folder = data_dir.path().join(FOLDER);
        assert_eq!((mode(&folder), mode(&socket.file), mode(&key_of(&socket.file))), (0o700, 0o600, 0o600));
        assert_eq!(reached(data_dir.path()).await, 1);
        let second = HubSocket::bind(data_dir.path()).await.unwrap();
        assert_eq!(reached(data_dir.path()).await, 2);
        // A process that cannot read the secret is refused.
        std::fs::remove_file(key_of(&second.file)).unwrap();
        assert_eq!(reached(data_dir.path()).await, 1);
        drop((socket, second));
        assert_eq!(data_dir.path().join(FOLDER).read_dir().unwrap().count(), 0);
    }

    #[tokio::test]
    async fn dead_socket_is_skipped_and_removed_by_the_next_hub() {
        let data_dir = data_dir();
        let mut socket = HubSocket::bind(data_dir.path()).await.unwrap();
        // The state after a killed process: the file without a listener.
        let file = std::mem::take(&mut socket.file);
        drop(socket);
        assert!(file.exists());
        assert_eq!(reached(data_dir.path()).await, 0);
        let socket = HubSocket::bind(data_dir.path()).await.unwrap();
        assert!(!file.exists() && !key_of(&file).exists() && socket.file.exists());
    }

    #[tokio::test]
    async fn rejects_symlinks_public_directories_and_non_sockets() {
        let (data_dir, other) = (data_dir(), data_dir());
        let socket = HubSocket::bind(other.path()).await.unwrap();
        // The folder is a link.
        symlink(other.path().join(FOLDER), data_dir.path().join(FOLDER)).unwrap();
        assert_eq!(reached(data_dir.path()).await, 0);
        assert!(HubSocket::bind(data_dir.path()).await.is_err());
        std::fs::remove_file(data_dir.path().join(FOLDER)).unwrap();
        // The socket is a link, or a file.
        create_private_dir(&data_dir.path().join(FOLDER)).unwrap();
        symlink(&socket.file, data_dir.path().join(FOLDER).join("1.sock")).unwrap();
        std::fs::write(data_dir.path().join(FOLDER).join("2.sock"), "").unwrap();
        assert_eq!(reached(data_dir.path()).await, 0);
        // The folder is open to others.
        std::fs::set_permissions(other.path().join(FOLDER), Permissions::from_mode(0o711)).unwrap();
        assert_eq!(reached(other.path()).await, 0);
    }

    /// Even with permissive modes: the kernel reports the peer's user id. Only root can switch to another user for this test.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn rejects_processes_of_another_user() {
        if rustix::process::geteuid().as_raw() != 0 {
            return;
        }
        let data_dir = data_dir();
        let socket = HubSocket::bind(data_dir.path()).await.unwrap();
        for path in [data_dir.path(), &data_dir.path().join(FOLDER), &socket.file] {
            std::fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
        }
        let file = socket.file.clone();
        let stop = CancellationToken::new();
        let relay = Relay::new("owner", "secret", |_| None);
        let mut serving = JoinSet::new();
        serving.spawn(socket.serve(relay, stop.clone(), Duration::ZERO));
        let answer = |user: u32| {
            let file = file.clone();
            tokio::task::spawn_blocking(move || {
                let asking = std::thread::spawn(move || {
                    rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(user)).unwrap();
                    let mut stream = std::os::unix::net::UnixStream::connect(file).unwrap();
                    let _ = stream.write_all(b"{}\n");
                    let mut answer = String::new();
                    let _ = stream.read_to_string(&mut answer);
                    answer
                });
                asking.join().unwrap()
            })
        };
        assert_eq!(answer(65534).await.unwrap(), "");
        let refused = answer(0).await.unwrap();
        assert!(refused.contains("another version"), "{refused}");
        stop.cancel();
        serving.join_all().await;
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn connects_to_socket_under_long_path() {
        let data_dir = data_dir();
        let deep = data_dir.path().join("d".repeat(120));
        let _socket = HubSocket::bind(&deep).await.unwrap();
        assert_eq!(reached(&deep).await, 1);
    }
}
