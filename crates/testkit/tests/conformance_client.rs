//! The client side of the official MCP conformance suite, with toolhub as the client. `cargo xtask peers` installs the suites
//! and a Node version that supports them.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::collections::BTreeSet;

use toolhub_testkit::conformance::suite::suite;

/// Login methods that are MCP extensions and that toolhub does not support. The suite runs them with any selection and does not
/// count them; listing them here makes any other failure visible.
const NOT_OFFERED: [&str; 5] = [
    "auth/client-credentials-jwt",
    "auth/dpop",
    "auth/dpop-nonce",
    "auth/enterprise-managed-authorization",
    "auth/wif-jwt-bearer",
];
/// The same in 0.1.16, which has them in a separate suite: login with a signed assertion, and access granted by another
/// identity provider (since renamed to enterprise-managed authorization).
const NOT_OFFERED_BEFORE: [&str; 2] = ["auth/client-credentials-jwt", "auth/cross-app-access-complete-flow"];
/// This scenario warns if a client reconnects 200 ms late, which happens on a busy machine. Its other possible warning, that a
/// broken stream is not resumed, is also covered by `connections.rs`.
const TIMED: &str = "sse-retry";

struct Run<'a> {
    version: &'a str,
    selection: &'a [&'a str],
    /// The number of passing scenarios, so that a silently skipped one is noticed. The run of a single scenario prints no
    /// summary and is not counted.
    passing: usize,
    failing: &'a [&'a str],
    verdict: Verdict,
}

/// The expected exit code of the suite.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Success: scenarios that are not required do not count.
    Success,
    /// Failure: every scenario counts.
    Failure,
}

/// Runs a selection of scenarios; a failure prints the output of the suite.
fn check(run: &Run<'_>) {
    // The suite passes the command to a shell.
    let client = env!("CARGO_BIN_EXE_conformance-client").replace(' ', "\\ ");
    let output = suite(run.version)
        .args(["client", "--verbose", "--command", &client])
        .args(run.selection)
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let summary = stdout.split_once("=== SUITE SUMMARY ===").map_or(&*stdout, |(_, summary)| summary);
    let (mut passed, mut failed) = (BTreeSet::new(), BTreeSet::new());
    let mut any_late = false;
    for (name, counts) in summary.lines().filter_map(|line| line.split_once(": ")) {
        let late = name == format!("✗ {TIMED}") && counts.contains(" 0 failed");
        any_late |= late;
        match name.split_once(' ') {
            Some(("✓", name)) => passed.insert(name),
            Some(("✗", name)) if late => passed.insert(name),
            Some(("✗", name)) => failed.insert(name),
            _ => continue,
        };
    }
    let as_expected = failed.iter().eq(run.failing) && passed.len() == run.passing;
    let label = format!("conformance {} {:?}", run.version, run.selection);
    // The suite also exits with a failure on a warning.
    let is_verdict = output.status.success() == (run.verdict == Verdict::Success);
    assert!((is_verdict || any_late) && as_expected, "{label}, {} to pass:{summary}\n{stderr}", run.passing);
}

/// Runs a scenario on skills. Such a scenario checks nothing if the client sends no request, so an explicit SUCCESS is
/// required.
fn check_skills(scenario: &str) {
    let client = env!("CARGO_BIN_EXE_conformance-client").replace(' ', "\\ ");
    let output = suite("0.2.0-alpha.12")
        .args(["client", "--verbose", "--command", &client, "--scenario", scenario])
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let verdicts = (
        stdout.matches("\"status\": \"SUCCESS\"").count(),
        stdout.matches("\"status\": \"SKIPPED\"").count(),
    );
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && verdicts == (1, 0), "{scenario}: {verdicts:?}\n{stdout}\n{words}");
}

/// Sequential: each run executes its scenarios concurrently, and some measure time.
#[test]
fn toolhub_conforms_as_a_client() {
    let run = |version, selection, passing| Run {
        version,
        selection,
        passing,
        failing: &[],
        verdict: Verdict::Success,
    };
    let alpha = "0.2.0-alpha.12";
    let runs = [
        run("0.1.16", &["--suite", "core"], 18),
        run("0.1.16", &["--suite", "draft"], 3),
        Run {
            failing: &NOT_OFFERED_BEFORE,
            verdict: Verdict::Failure,
            ..run("0.1.16", &["--suite", "extensions"], 1)
        },
        Run { failing: &NOT_OFFERED, ..run(alpha, &["--requirements", "2025-11-25"], 20) },
        Run { failing: &NOT_OFFERED, ..run(alpha, &["--requirements", "2026-07-28"], 34) },
        // The other scenario of its suite expects a client to guess endpoints if a server publishes no metadata. toolhub does
        // not, since nothing would then confirm the protection of the authorization code (2026-07-28, authorization code
        // protection). The copy of this scenario in the older suite sends a wrong issuer.
        run(alpha, &["--scenario", "auth/2025-03-26-oauth-metadata-backcompat"], 0),
    ];
    runs.iter().for_each(check);
    // No revision requires the skills extension, so its scenarios are selected by name.
    for scenario in [
        "sep-2640-client-no-prefetch",
        "sep-2640-client-verify-digest",
        "sep-2640-client-verify-frontmatter",
        "sep-2640-client-verify-size",
    ] {
        check_skills(scenario);
    }
}
