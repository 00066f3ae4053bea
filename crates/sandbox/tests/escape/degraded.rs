//! A system that forbids namespaces, as some distributions and most containers do: no protection may be lost silently.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::fence::{Outside, SECRET, interpreter};
use crate::ordinary_user::Setting;

/// Runs Python in the sandbox on a system where no further namespace can be created.
fn run(setting: &Setting, isolation: &str, code: &str, arguments: &[&str]) -> String {
    let deny = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", deny, "sh"]).arg(setting.program());
    command.args(["run", isolation]).arg(interpreter("python3")).args(["-I", "-c", code]).args(arguments);
    let output = command.output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn without_namespaces_the_rest_makes_up_for_them() {
    let setting = Setting::new();
    let outside = Outside::new();
    let secret = outside.secret.to_str().unwrap();
    let said = run(&setting, "builtin", "import sys\nprint(open(sys.argv[1]).read())", &[secret]);
    assert!(said.contains("mount_namespace: false"), "{said}");
    assert!(said.contains("was not granted") && !said.contains(SECRET), "{said}");
    // With a mount namespace, read-only mounts protect file metadata. Without it, every change of metadata is denied.
    std::fs::set_permissions(&outside.secret, std::fs::Permissions::from_mode(0o644)).unwrap();
    let changes = "import os, sys\nfor step in [lambda p: os.chmod(p, 0o777), lambda p: os.utime(p, (1, 1)), lambda p: os.chown(p, 0, 0), lambda p: os.setxattr(p, 'user.x', b'1')]:\n  try: step(sys.argv[1]); print('escaped')\n  except PermissionError: print('tried')";
    let said = run(&setting, "builtin", changes, &[secret]);
    assert!(said.contains("tried") && !said.contains("escaped"), "{said}");
    outside.is_untouched();
    let bomb = "import os, time\nfor _ in range(400):\n  if os.fork() == 0: time.sleep(30); os._exit(0)\ntime.sleep(30)";
    let said = run(&setting, "builtin", bomb, &[]);
    assert!(said.contains("more processes and threads"), "{said}");
}

#[test]
fn bubblewrap_that_cannot_work_is_refused_and_auto_goes_without() {
    let setting = Setting::new();
    let said = run(&setting, "bubblewrap", "print('ran')", &[]);
    assert!(said.contains("`bubblewrap` (`bwrap` is installed and does not work"), "{said}");
    assert!(said.contains("`allow_missing`") && !said.contains("ran\n"), "{said}");
    let said = run(&setting, "auto", "print('ran')", &[]);
    assert!(said.contains("ran\n") && said.contains("verdict: none"), "{said}");
}
