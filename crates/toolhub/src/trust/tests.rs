//! Unit tests of workspace trust: the folders of a project, the inputs of the digest, and the granting of consent.

use proptest::prelude::*;
use toolhub_client_config::StdioSpec;
use toolhub_core::ServerId;

use super::*;

struct TestWorkspace {
    _temp: tempfile::TempDir,
    root: PathBuf,
}

impl TestWorkspace {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        Self { _temp: temp, root }
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let file = self.root.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    fn digest(&self) -> String {
        self.scan().digest()
    }

    fn scan(&self) -> FolderScan {
        FolderScan::of(
            FolderLocation { folder: self.root.clone(), project: self.root.clone(), is_home: false },
            ScanDepth::Full,
        )
    }

    fn find(&self, run: &RunTrust) -> Workspace {
        let data = self.root.with_extension("data");
        Workspace::find(
            &WorkspaceSearch {
                here: &self.root,
                home_dir: None,
                user_config: None,
                named_servers: None,
                data: &data,
            },
            run,
        )
    }
}

fn server(command: &str, args: &[&str], env: &[(&str, &str)]) -> ServerSpec {
    let pairs = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let spec = StdioSpec {
        command: command.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: pairs.collect(),
        ..StdioSpec::default()
    };
    ServerSpec::new(ServerId::new("a"), TransportSpec::Stdio(spec), PathBuf::from(".mcp.json"))
}

#[test]
fn project_extends_to_repository_root_but_not_to_home() {
    let workspace = TestWorkspace::new();
    workspace.write("work/app/.git/HEAD", "");
    workspace.write("work/app/src/a", "");
    let home = &workspace.root;
    let inner = home.join("work/app/src");
    assert_eq!(project_folders(&inner, Some(home)), [inner.clone(), home.join("work/app")]);
    assert_eq!(project_folders(&home.join("work"), Some(home)), [home.join("work")]);
    assert_eq!(project_folders(home, Some(home)), std::slice::from_ref(home));
}

#[test]
fn grants_consent_to_project_servers_only_in_trusted_folder() {
    let workspace = TestWorkspace::new();
    workspace.write(".mcp.json", r#"{"mcpServers": {"a": {"command": "./run"}}}"#);
    let (spec, file) = (server("./run", &[], &[]), Path::new(".mcp.json"));
    assert!(Workspace::default().consent(&spec, file).permit().is_err());
    let untrusted = workspace.find(&RunTrust::default());
    assert!(untrusted.consent(&spec, file).permit().is_err());
    assert_eq!(untrusted.shared_servers(), None);
    let trusted = workspace.find(&RunTrust { current_folder: true, ..RunTrust::default() });
    assert!(trusted.consent(&spec, file).permit().is_ok());
    assert!(trusted.shared_servers().is_some());
    // The owner's own file requires no trust.
    // The owner's own file requires no trust, unless an entry depends on the current folder.
    let own = |command: &str| {
        untrusted.consent(&server(command, &[], &[]), Path::new("/etc/toolhub/mcp.json")).permit().is_ok()
    };
    assert!(own("/usr/bin/env"));
    assert!(!own("./run"));
}

/// A server that is started again, such as after its idle timeout, must not run what was added to the folder meanwhile.
#[test]
fn each_start_of_an_own_server_checks_the_folder_again() {
    let workspace = TestWorkspace::new();
    workspace.write("README.md", "");
    let found = workspace.find(&RunTrust::default());
    let consent = found.consent(&server("python3", &["-m", "json"], &[]), Path::new("/etc/toolhub/mcp.json"));
    assert_eq!(consent.permit().unwrap().rules().folder, None, "a folder with nothing but data");
    workspace.write("json.py", "");
    let permit = consent.permit().unwrap();
    let folder = permit.rules().folder.clone().unwrap();
    assert_eq!(folder.path(), found.neutral_folder());
    let (one, other) = (folder.prepare().unwrap(), folder.prepare().unwrap());
    assert_ne!(one.path(), other.path(), "a new folder for each start");
    assert_eq!(permit.rules().excluded.as_deref(), Some(workspace.root.as_path()));
    // An entry that depends on the folder is not started at all.
    let relative = server("python3", &["./s.py"], &[]);
    let consent = found.consent(&relative, Path::new("/etc/toolhub/mcp.json"));
    assert!(consent.permit().is_err());
    std::fs::remove_file(workspace.root.join("json.py")).unwrap();
    assert!(consent.permit().is_ok());
}

/// Each start reads the files that the entry loads, so it does that once.
#[test]
fn own_server_of_a_named_config_is_checked_once_per_start() {
    let workspace = TestWorkspace::new();
    workspace.write(".mcp.json", "{}");
    workspace.write("run.sh", "");
    let own = tempfile::tempdir().unwrap();
    let file = own.path().join("mcp.json");
    std::fs::write(&file, r#"{"mcpServers": {"a": {"command": "sh", "args": ["./run.sh"]}}}"#).unwrap();
    let data = own.path().join("data");
    let find = |named_servers, run: &RunTrust| {
        let here = &workspace.root;
        Workspace::find(
            &WorkspaceSearch { here, home_dir: None, user_config: None, named_servers, data: &data },
            run,
        )
    };
    let review = RunTrust { review: true, ..RunTrust::default() };
    let spec = server("sh", &["./run.sh"], &[]);
    let start = || find(Some(&file), &RunTrust::default()).consent(&spec, &file);
    find(None, &review).trust().unwrap();
    assert!(start().permit().is_err(), "it was not shown");
    find(Some(&file), &review).trust().unwrap();
    // The review of another config does not withdraw it.
    find(None, &review).trust().unwrap();
    let consent = start();
    let before = binding::CHECKS.get();
    assert_eq!(consent.permit().unwrap().rules(), &toolhub_core::consent::StartRules::default());
    assert_eq!(binding::CHECKS.get() - before, 1);
    workspace.write("run.sh", "changed");
    assert!(consent.permit().is_err());
    assert_eq!(binding::CHECKS.get() - before, 2);
}

#[test]
fn fingerprints_depend_on_boundaries() {
    let shifted = [
        server("x", &["a b"], &[]),
        server("x", &["a", "b"], &[]),
        server("x", &["a", "b", ""], &[]),
        server("x", &["a"], &[("b", "")]),
        server("x", &[], &[("a", "b"), ("c", "d")]),
        server("x", &[], &[("a", "b,c=d")]),
        server("x", &["a", "b", "c", "d"], &[]),
        server("x a b", &[], &[]),
    ];
    let all: std::collections::BTreeSet<String> = shifted.iter().map(ServerSpec::fingerprint).collect();
    assert_eq!(all.len(), shifted.len());
    // Equal entries of two folders are different servers.
    let mut bound = server("x", &[], &[]);
    let own = bound.fingerprint();
    bound.consent = Consent::bound(Arc::new(ConsentBinding { digest: "d".to_owned(), launch: None }));
    assert_ne!(bound.fingerprint(), own);
}

#[test]
fn every_part_of_a_workspace_affects_its_digest() {
    let workspace = TestWorkspace::new();
    workspace.write(
        ".mcp.json",
        r#"{"mcpServers": {"a": {"command": "node", "args": ["--import=./b.js", "c.js"]}}}"#,
    );
    let mut before = workspace.digest();
    let mut changes = |path: &str, text: &str| {
        workspace.write(path, text);
        let now = workspace.digest();
        assert_ne!(now, before, "{path}");
        before = now;
    };
    changes("b.js", "1");
    changes("b.js", "2");
    changes("c.js", "1");
    changes("toolhub.toml", "");
    changes("mcp.json", "{}");
    changes("skills/a/SKILL.md", "1");
    changes("skills/a/SKILL.md", "2");
    changes(".claude/skills/a/deep/er/file", "");
    changes("toolhub.toml", "[skills]\npython = \"./python\"\nfolders = [\"more\"]\n");
    changes("python", "#!/bin/sh");
    changes("more/x/SKILL.md", "");
    let same = workspace.digest();
    workspace.write("README.md", "what nothing names");
    assert_eq!(workspace.digest(), same);
}

#[test]
fn incomplete_scan_is_never_trusted() {
    let workspace = TestWorkspace::new();
    workspace.write(".mcp.json", vec![b' '; files::MAX_CONFIG_BYTES as usize + 1]);
    let found = workspace.find(&RunTrust { current_folder: true, ..RunTrust::default() });
    assert!(found.shared_servers().is_none() && found.notice(None).is_some());
    assert!(found.trust().is_err());
}

/// Only this folder grants consent.
#[test]
fn only_trust_module_grants_consent() {
    fn collect_offenders(folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() && !["target", "tests"].contains(&path.file_name().unwrap().to_str().unwrap()) {
                collect_offenders(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                if code.contains("Consent::of_owner") || code.contains("Consent::bound") {
                    found.push(path.display().to_string());
                }
            }
        }
    }
    let mut found = Vec::new();
    collect_offenders(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut found);
    let outside: Vec<&String> = found
        .iter()
        .filter(|path| {
            !path.contains("toolhub/src/trust/")
                // Benchmarks start servers that they have written themselves; no program links them.
                && !path.contains("/testkit/")
                && !path.ends_with("/tests.rs")
                && !path.ends_with("/attacks.rs")
        })
        .collect();
    assert!(outside.is_empty(), "{outside:?}");
    assert!(!found.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Two lists of arguments and variables have the same fingerprint only if they are equal.
    #[test]
    fn fingerprints_are_injective(
        one in (prop::collection::vec("[ab, =]{0,3}", 0..4), prop::collection::vec(("[ab]", "[ab, =]{0,3}"), 0..3)),
        other in (prop::collection::vec("[ab, =]{0,3}", 0..4), prop::collection::vec(("[ab]", "[ab, =]{0,3}"), 0..3)),
    ) {
        let spec = |(args, env): &(Vec<String>, Vec<(String, String)>)| {
            let stdio = StdioSpec { command: "x".to_owned(), args: args.clone(), env: env.clone(), ..StdioSpec::default() };
            ServerSpec::new(ServerId::new("a"), TransportSpec::Stdio(stdio), PathBuf::new()).fingerprint()
        };
        prop_assert_eq!(spec(&one) == spec(&other), one == other);
    }
}
