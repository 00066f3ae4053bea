//! A system that forbids namespaces, as some distributions and most containers do: no protection may be lost silently.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::harness::{Outside, SECRET, interpreter};
use crate::ordinary_user::UnprivilegedUser;

/// Runs Python in the sandbox on a system where no further namespace can be created.
fn run(setting: &UnprivilegedUser, isolation: &str, code: &str, arguments: &[&str]) -> String {
    let deny = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", deny, "sh"]).arg(setting.program());
    command.args(["run", isolation]).arg(interpreter("python3")).args(["-I", "-c", code]).args(arguments);
    let output = command.output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn remaining_layers_protect_without_namespaces() {
    let setting = UnprivilegedUser::new();
    let outside = Outside::new();
    let secret = outside.secret.to_str().unwrap();
    let printed = run(&setting, "builtin", "import sys\nprint(open(sys.argv[1]).read())", &[secret]);
    assert!(printed.contains("mount_namespace: false"), "{printed}");
    assert!(printed.contains("was not granted") && !printed.contains(SECRET), "{printed}");
    // With a mount namespace, read-only mounts protect file metadata. Without it, every change of metadata is denied.
    std::fs::set_permissions(&outside.secret, std::fs::Permissions::from_mode(0o644)).unwrap();
    let changes = "import os, sys\nfor step in [lambda p: os.chmod(p, 0o777), lambda p: os.utime(p, (1, 1)), lambda p: os.chown(p, 0, 0), lambda p: os.setxattr(p, 'user.x', b'1')]:\n  try: step(sys.argv[1]); print('escaped')\n  except PermissionError: print('tried')";
    let printed = run(&setting, "builtin", changes, &[secret]);
    assert!(printed.contains("tried") && !printed.contains("escaped"), "{printed}");
    outside.assert_untouched();
    let bomb = "import os, time\nfor _ in range(400):\n  if os.fork() == 0: time.sleep(30); os._exit(0)\ntime.sleep(30)";
    let printed = run(&setting, "builtin", bomb, &[]);
    assert!(printed.contains("more processes and threads"), "{printed}");
}

#[test]
fn rejects_unusable_bubblewrap_and_auto_falls_back() {
    let setting = UnprivilegedUser::new();
    let printed = run(&setting, "bubblewrap", "print('ran')", &[]);
    assert!(printed.contains("`bubblewrap` (`bwrap` is installed and does not work"), "{printed}");
    assert!(printed.contains("`allow_missing`") && !printed.contains("ran\n"), "{printed}");
    let printed = run(&setting, "auto", "print('ran')", &[]);
    assert!(printed.contains("ran\n") && printed.contains("verdict: none"), "{printed}");
}
