//! Attacks by symlinks in granted paths: created before the grant, or between check and use (TOCTOU).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;
use toolhub_sandbox::{Isolation, SandboxError, SandboxPolicy, confine};

use crate::harness::{ISOLATIONS, Outside, SECRET, run};

fn shell(arguments: &[&Path]) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "echo tried; cat \"$1\"", "sh"]).args(arguments);
    command
}

#[test]
fn grants_own_code_only_by_canonical_path() {
    let (folder, outside) = (TempDir::new().unwrap(), Outside::new());
    let root = folder.path().canonicalize().unwrap();
    symlink(outside.folder.path(), root.join("skill")).unwrap();
    fs::create_dir(root.join("real")).unwrap();
    symlink("real", root.join("around")).unwrap();
    fs::create_dir(root.join("real/skill")).unwrap();
    for isolation in ISOLATIONS {
        for own in ["skill", "around/skill", "real/../skill"] {
            let policy = SandboxPolicy { own: vec![root.join(own)], isolation, ..SandboxPolicy::default() };
            let error = confine(&policy, &mut Command::new("/bin/sh")).unwrap_err();
            assert!(matches!(error, SandboxError::Grant { .. }), "{own}: {error}");
        }
        let home = std::env::home_dir().unwrap().canonicalize().unwrap();
        for wide in [Path::new("/"), Path::new("/etc"), &home] {
            let policy = SandboxPolicy { own: vec![wide.into()], isolation, ..SandboxPolicy::default() };
            let error = confine(&policy, &mut Command::new("/bin/sh")).unwrap_err();
            assert!(matches!(error, SandboxError::TooWide { .. }), "{error}");
        }
        fs::write(root.join("real/skill/data"), "own").unwrap();
        let policy =
            SandboxPolicy { own: vec![root.join("real/skill")], isolation, ..SandboxPolicy::default() };
        run(&policy, shell(&[&root.join("real/skill/data")])).printed("tried\nown");
    }
}

#[test]
fn rejects_grant_widened_by_symlink_in_both_languages() {
    let folder = TempDir::new().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let home = std::env::home_dir().unwrap();
    for (name, target) in [("root", Path::new("/")), ("home", &home), ("etc", Path::new("/etc"))] {
        let link = root.join(name);
        symlink(target, &link).unwrap();
        for isolation in ISOLATIONS {
            for policy in [
                SandboxPolicy { read: vec![link.clone()], isolation, ..SandboxPolicy::default() },
                SandboxPolicy { write: vec![link.clone()], isolation, ..SandboxPolicy::default() },
            ] {
                let error = confine(&policy, &mut Command::new("/bin/sh")).unwrap_err();
                assert!(matches!(error, SandboxError::TooWide { .. }), "{error}");
                assert!(error.to_string().contains("is a link to") && error.chinese().contains("链接"));
            }
        }
    }
    // A symlink to an ordinary folder is granted, and so is a wide path that the policy names explicitly.
    let outside = Outside::new();
    symlink(outside.folder.path(), root.join("data")).unwrap();
    for isolation in ISOLATIONS {
        let policy = SandboxPolicy { read: vec![root.join("data")], isolation, ..SandboxPolicy::default() };
        let result = run(&policy, shell(&[&root.join("data/secret.txt")]));
        assert!(result.status.success() && result.stdout.contains(SECRET), "{result:#?}");
    }
    let policy =
        SandboxPolicy { read: vec!["/".into()], isolation: Isolation::Builtin, ..SandboxPolicy::default() };
    assert!(run(&policy, shell(&[&outside.secret])).stdout.contains(SECRET));
}

/// While a thread replaces a granted folder by a symlink to a secret and back, each run gets the folder or an error.
#[test]
fn swapped_symlink_grants_nothing() {
    let (folder, outside) = (TempDir::new().unwrap(), Outside::new());
    let root = folder.path().canonicalize().unwrap();
    let (granted, aside) = (root.join("granted"), root.join("aside"));
    fs::create_dir(&granted).unwrap();
    fs::write(granted.join("secret.txt"), "harmless").unwrap();
    let link = root.join("link");
    symlink(outside.folder.path(), &link).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let swapping = {
        let (granted, done) = (granted.clone(), Arc::clone(&done));
        std::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                let _ = fs::rename(&granted, &aside).and_then(|()| fs::rename(&link, &granted));
                let _ = fs::rename(&granted, &link).and_then(|()| fs::rename(&aside, &granted));
            }
        })
    };
    for isolation in ISOLATIONS {
        for _ in 0..20 {
            let policy = SandboxPolicy { own: vec![granted.clone()], isolation, ..SandboxPolicy::default() };
            let mut command = shell(&[&outside.secret]);
            let Ok(confinement) = confine(&policy, &mut command) else { continue };
            let output = command.output().unwrap();
            confinement.finish();
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(!printed.contains(SECRET), "{printed}");
        }
    }
    done.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
}
