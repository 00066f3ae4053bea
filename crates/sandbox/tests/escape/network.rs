//! Connecting to the network and to local servers, with every socket family.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use tempfile::TempDir;
use toolhub_sandbox::{NetworkAccess, SandboxPolicy, StopReason};

use crate::harness::{ISOLATIONS, policy, python, run, token};

const CONNECT: &str = r#"
import socket, sys
family, kind, host, port = sys.argv[1:]
print("tried")
s = socket.socket(getattr(socket, family), getattr(socket, kind))
s.settimeout(10)
s.connect((host, int(port)))
s.send(b"x")
print("escaped")
"#;

#[test]
fn denies_tcp_and_udp() {
    for isolation in ISOLATIONS {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_nonblocking(true).unwrap();
        let port = tcp.local_addr().unwrap().port().to_string();
        let result =
            run(&policy(isolation), python(CONNECT, &["AF_INET", "SOCK_STREAM", "127.0.0.1", &port]));
        result.assert_no_escape();
        result.assert_stopped_by(&StopReason::Network);
        assert!(tcp.accept().is_err());
        let port = udp.local_addr().unwrap().port().to_string();
        let result = run(&policy(isolation), python(CONNECT, &["AF_INET", "SOCK_DGRAM", "127.0.0.1", &port]));
        result.assert_no_escape();
        result.assert_stopped_by(&StopReason::Network);
        assert!(udp.recv(&mut [0; 8]).is_err());
        let result = run(&policy(isolation), python(CONNECT, &["AF_INET6", "SOCK_STREAM", "::1", &port]));
        result.assert_no_escape();
        result.assert_stopped_by(&StopReason::Network);
    }
}

#[test]
fn denies_other_address_families_and_name_resolution() {
    let code = r#"
import socket
for family in ["AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_ALG", "AF_BLUETOOTH", "AF_CAN", "AF_UNIX"]:
    for kind in [socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET]:
        print("tried", family)
        try:
            socket.socket(getattr(socket, family), kind); print("escaped", family, kind)
        except (OSError, AttributeError): pass
socket.getaddrinfo("example.com", 80)
"#;
    for isolation in ISOLATIONS {
        let result = run(&policy(isolation), python(code, &[]));
        result.assert_no_escape();
        result.assert_stopped_by(&StopReason::Network);
    }
}

#[test]
fn unix_sockets() {
    let code = r#"
import socket, sys
path, abstract, datagrams = sys.argv[1:]
def attempt(how, step):
    print("tried", how)
    try: step(); print("escaped by", how)
    except OSError: pass
def connect(kind, address):
    s = socket.socket(socket.AF_UNIX, kind); s.connect(address); s.send(b"x")
def by_pair():
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b"x", datagrams)
attempt("path", lambda: connect(socket.SOCK_STREAM, path))
attempt("abstract name", lambda: connect(socket.SOCK_STREAM, "\0" + abstract))
attempt("datagram", lambda: connect(socket.SOCK_DGRAM, datagrams))
attempt("datagram of a pair", by_pair)
a, b = socket.socketpair(); a.send(b"inside"); assert b.recv(9) == b"inside"
"#;
    for isolation in ISOLATIONS {
        let folder = TempDir::new().unwrap();
        let (path, datagrams) = (folder.path().join("stream"), folder.path().join("datagrams"));
        let listener = UnixListener::bind(&path).unwrap();
        let datagram = UnixDatagram::bind(&datagrams).unwrap();
        let name = token();
        let hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        for listener in [&listener, &hidden] {
            listener.set_nonblocking(true).unwrap();
        }
        datagram.set_nonblocking(true).unwrap();
        // Denied even if the folder of the sockets is writable.
        let policy = SandboxPolicy { write: vec![folder.path().into()], ..policy(isolation) };
        let arguments = [path.to_str().unwrap(), &name, datagrams.to_str().unwrap()];
        let result = run(&policy, python(code, &arguments));
        result.assert_no_escape();
        assert!(result.status.success(), "{result:#?}");
        assert!(listener.accept().is_err() && hidden.accept().is_err());
        assert!(datagram.recv(&mut [0; 8]).is_err());
    }
}

#[test]
fn granted_network_is_reachable() {
    for isolation in ISOLATIONS {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port().to_string();
        let open = SandboxPolicy { network: NetworkAccess::All, ..policy(isolation) };
        let result = run(&open, python(CONNECT, &["AF_INET", "SOCK_STREAM", "127.0.0.1", &port]));
        assert!(result.status.success() && result.stdout.contains("escaped"), "{result:#?}");
        tcp.accept().unwrap();
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let open =
            SandboxPolicy { unix_sockets: true, write: vec![folder.path().into()], ..policy(isolation) };
        let code = "import socket, sys\ns = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])";
        let result = run(&open, python(code, &[path.to_str().unwrap()]));
        assert!(result.status.success(), "{result:#?}");
        listener.accept().unwrap();
    }
}
