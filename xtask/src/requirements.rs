//! System packages that some tests need: whether they are installed, whether they may be installed, and which tests
//! are skipped without them.
use anyhow::Result;

use crate::{bubblewrap, chromium, faketime, haproxy, nats, postgres, steps::Outcome, workspace::Workspace};

/// A system package that tests need.
pub(crate) struct Requirement {
    pub(crate) name: &'static str,
    /// The name of the package on Debian and Ubuntu.
    package: &'static str,
    is_installed: fn(&Workspace) -> bool,
    set_up: fn(&Workspace) -> Result<()>,
    /// Substrings of the names of tests that need it.
    pub(crate) tests: &'static [&'static str],
    /// Packages of the workspace whose integration tests need it.
    pub(crate) packages: &'static [&'static str],
}

pub(crate) const REQUIREMENTS: [Requirement; 6] = [
    Requirement {
        name: "postgres",
        package: "postgresql",
        is_installed: |_| postgres::is_installed(),
        set_up: |_| postgres::set_up(),
        tests: &[
            "postgres::",
            "postgres_keeps_what_was_acknowledged",
            "server_away::",
            "tls::verifies_certificates_if_the_url_requires_it",
            "tls::remote_host_without_verified_certificate_is_rejected",
            "resumes_after_database_restart",
            "postgres_gives_an_instance_to_one_of_many_workers",
            "postgres_fences_a_worker_whose_lease_has_ended",
            "postgres_members_are_listed_while_they_live",
            "cluster_calls::",
            "cluster_faults::",
            "cluster_placement::",
        ],
        packages: &[],
    },
    Requirement {
        name: "nats",
        package: "nats-server",
        is_installed: |_| nats::is_installed(),
        set_up: |_| nats::set_up(),
        tests: &["cluster_calls::", "cluster_faults::", "cluster_placement::"],
        packages: &["toolhub-cluster"],
    },
    Requirement {
        name: "haproxy",
        package: "haproxy",
        is_installed: |_| haproxy::is_installed(),
        set_up: |_| haproxy::set_up(),
        tests: &[],
        packages: &[],
    },
    Requirement {
        name: "faketime",
        package: "libfaketime",
        is_installed: faketime::is_installed,
        set_up: faketime::set_up,
        tests: &["deadlines_ignore_clock_jumps"],
        packages: &[],
    },
    Requirement {
        name: "bubblewrap",
        package: "bubblewrap",
        is_installed: |_| bubblewrap::is_installed(),
        set_up: |_| bubblewrap::set_up(),
        tests: &["sandboxed_server_works_and_cannot_escape", "reports_server_ended_by_sandbox"],
        packages: &["toolhub-sandbox"],
    },
    Requirement {
        name: "chromium",
        package: "chromium",
        is_installed: |_| chromium::is_installed(),
        set_up: |_| chromium::set_up(),
        tests: &["console_pages::", "console_hostile_text::", "console_journeys::", "console_deployment::"],
        packages: &[],
    },
];

/// Whether system packages may be installed: with `--install`, or in continuous integration (`CI=true`).
pub(crate) fn may_install(requested: bool) -> bool {
    requested || std::env::var("CI").is_ok_and(|value| value == "true")
}

impl Requirement {
    /// Sets up the requirement. If it is missing and may not be installed, prints how to install it and returns
    /// `Skipped`.
    pub(crate) fn provide(&self, workspace: &Workspace, may_install: bool) -> Result<Outcome> {
        if may_install || (self.is_installed)(workspace) {
            return (self.set_up)(workspace).map(|()| Outcome::Passed);
        }
        let Self { name, package, .. } = self;
        println!("`{name}` is missing, and the tests that need it are left out. To run them:");
        println!("  sudo apt-get install {package}    (Debian and Ubuntu)");
        println!("or let `cargo xtask test --install` do it, which needs root.");
        Ok(Outcome::Skipped(format!("package `{package}` is missing: `sudo apt-get install {package}`")))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    fn sources(folder: &Path, into: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, into);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                into.push_str(&fs::read_to_string(&path).unwrap());
            }
        }
    }

    /// A renamed test would run without its requirement and fail.
    #[test]
    fn skipped_tests_exist() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        let mut text = String::new();
        for package in ["store", "cli", "sandbox", "cluster"] {
            sources(&crates.join(package).join("tests"), &mut text);
        }
        for part in REQUIREMENTS.iter().flat_map(|requirement| requirement.tests) {
            let exists = part
                .split("::")
                .filter(|word| !word.is_empty())
                .all(|word| text.contains(&format!("mod {word}")) || text.contains(&format!("fn {word}")));
            assert!(exists, "no test has `{part}` in its name");
        }
    }
}
