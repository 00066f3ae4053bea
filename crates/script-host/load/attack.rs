//! A host that tries to use the system, as one that a script has taken over could.

use std::fs::{self, File};
use std::io::{Read as _, Write as _, stdin, stdout};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;

use rustix::process::{Pid, Signal};

/// Gives up its permissions as the real host does, tries everything, and returns the names of what worked.
pub(crate) fn run(targets: &[&str]) {
    let [file, port, pid, ..] = targets else { return };
    let restricted = toolhub_sandbox::restrict_to_computation().is_ok();
    let mut out = stdout().lock();
    let _ = writeln!(out, "{{\"ready\":{{\"version\":2,\"restricted\":{restricted}}}}}")
        .and_then(|()| out.flush());
    let mut byte = [0];
    // The script is not of interest; its arrival shows that the hub accepts this host.
    let _ = stdin().read(&mut byte);
    let _ = out.write_all(b"{\"started\":{}}\n").and_then(|()| out.flush());
    let worked: Vec<String> = attempts(file, port, pid)
        .into_iter()
        .filter(|(_, attempt)| attempt())
        .map(|(name, _)| format!("\"{name}\""))
        .collect();
    let count = attempts(file, port, pid).len();
    let value = format!("{{\"tried\":{count},\"worked\":[{}]}}", worked.join(","));
    let _ = writeln!(out, "{{\"finished\":{{\"value\":{value},\"dropped_lines\":0}}}}")
        .and_then(|()| out.flush());
}

type Attempt<'a> = (&'static str, Box<dyn Fn() -> bool + 'a>);

fn attempts<'a>(file: &'a str, port: &'a str, pid: &'a str) -> Vec<Attempt<'a>> {
    let address = format!("127.0.0.1:{port}");
    let (first, second) = (address.clone(), address);
    vec![
        ("read a file", Box::new(move || fs::read(file).is_ok())),
        ("write a file", Box::new(move || fs::write(file, "changed").is_ok())),
        ("create a file", Box::new(move || File::create(format!("{file}.new")).is_ok())),
        ("remove a file", Box::new(move || fs::remove_file(file).is_ok())),
        ("stat a file", Box::new(move || fs::metadata(file).is_ok())),
        ("link a file", Box::new(move || fs::hard_link(file, "stolen").is_ok())),
        ("list the root", Box::new(|| fs::read_dir("/").is_ok())),
        ("read system settings", Box::new(|| fs::read("/etc/passwd").is_ok())),
        ("read a library", Box::new(|| fs::read_dir("/usr/lib").is_ok())),
        ("use the private folder", Box::new(|| fs::write(std::env::temp_dir().join("x"), "x").is_ok())),
        ("read /proc/self", Box::new(|| fs::read("/proc/self/status").is_ok())),
        ("read the memory of the hub", Box::new(move || File::open(format!("/proc/{pid}/mem")).is_ok())),
        (
            "read the environment of the hub",
            Box::new(move || fs::read(format!("/proc/{pid}/environ")).is_ok()),
        ),
        ("read own memory by file", Box::new(|| File::options().write(true).open("/proc/self/mem").is_ok())),
        ("open a device", Box::new(|| File::open("/dev/urandom").is_ok())),
        ("change the folder", Box::new(|| std::env::set_current_dir("/").is_ok())),
        ("connect by TCP", Box::new(move || TcpStream::connect(&first).is_ok())),
        ("listen by TCP", Box::new(|| TcpListener::bind("127.0.0.1:0").is_ok())),
        (
            "send by UDP",
            Box::new(move || {
                UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(b"x", &second)).is_ok()
            }),
        ),
        ("connect by a Unix socket", Box::new(|| UnixStream::connect("/run/dbus/system_bus_socket").is_ok())),
        ("listen by a Unix socket", Box::new(|| UnixListener::bind("socket").is_ok())),
        ("make a socket pair", Box::new(|| UnixStream::pair().is_ok())),
        ("make a pipe", Box::new(|| rustix::pipe::pipe().is_ok())),
        ("start a program", Box::new(|| Command::new("/bin/true").spawn().is_ok())),
        ("start a shell", Box::new(|| Command::new("/bin/sh").args(["-c", "true"]).status().is_ok())),
        ("start a thread", Box::new(|| std::thread::Builder::new().spawn(|| ()).is_ok())),
        ("signal the hub", Box::new(move || signal(pid, Signal::CONT))),
        ("abort the hub", Box::new(move || signal(pid, Signal::ABORT))),
        ("signal its group", Box::new(|| rustix::process::kill_current_process_group(Signal::CONT).is_ok())),
        (
            "change a limit",
            Box::new(|| {
                let limit = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
                rustix::process::setrlimit(rustix::process::Resource::Core, limit).is_ok()
            }),
        ),
        ("duplicate a descriptor", Box::new(|| rustix::io::dup(stdin()).is_ok())),
        (
            "change a descriptor",
            Box::new(|| rustix::io::fcntl_setfd(stdin(), rustix::io::FdFlags::empty()).is_ok()),
        ),
        (
            "make a file in memory",
            Box::new(|| rustix::fs::memfd_create("x", rustix::fs::MemfdFlags::empty()).is_ok()),
        ),
        ("start a session", Box::new(|| rustix::process::setsid().is_ok())),
        ("become another user", Box::new(move || rustix::fs::chown(file, None, None).is_ok())),
    ]
}

fn signal(pid: &str, signal: Signal) -> bool {
    let pid = pid.parse().ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::kill_process(pid, signal).is_ok())
}
