//! The client side of the official MCP conformance suite, with toolhub as the client. `cargo xtask peers` installs
//! the suites, and a Node that is new enough for them.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::collections::BTreeSet;

use toolhub_testkit::conformance::suite::suite;

/// The ways to log in that are extensions of MCP and that toolhub does not offer. The suite runs them whatever is
/// asked for, and does not count them; they are named here so that nothing else hides among them.
const NOT_OFFERED: [&str; 5] = [
    "auth/client-credentials-jwt",
    "auth/dpop",
    "auth/dpop-nonce",
    "auth/enterprise-managed-authorization",
    "auth/wif-jwt-bearer",
];
/// The same in 0.1.16, which has them in a suite of their own: a login with a signed assertion, and access that another
/// identity provider grants (since renamed to enterprise-managed authorization).
const NOT_OFFERED_BEFORE: [&str; 2] = ["auth/client-credentials-jwt", "auth/cross-app-access-complete-flow"];
/// It warns of a client that comes a fifth of a second late, which is a busy machine's doing. What else it may warn of,
/// that a stream is not taken up where it broke, `connections.rs` tests as well.
const TIMED: &str = "sse-retry";

struct Run<'a> {
    version: &'a str,
    selection: &'a [&'a str],
    /// How many scenarios pass, so that one which is silently left out is missed. Of a single one there is no
    /// summary to count in.
    passing: usize,
    failing: &'a [&'a str],
    verdict: Verdict,
}

/// What the suite's exit code says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Success: what is not required does not count.
    Success,
    /// Failure: every scenario counts.
    Failure,
}

/// Runs some of the suite's scenarios; a failure shows the suite's own words.
fn check(run: &Run<'_>) {
    // The suite hands the command to a shell.
    let client = env!("CARGO_BIN_EXE_conformance-client").replace(' ', "\\ ");
    let ran = suite(run.version)
        .args(["client", "--verbose", "--command", &client])
        .args(run.selection)
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
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
    let what = format!("conformance {} {:?}", run.version, run.selection);
    // The suite ends with a failure for a warning, too.
    let is_verdict = ran.status.success() == (run.verdict == Verdict::Success);
    assert!((is_verdict || any_late) && as_expected, "{what}, {} to pass:{summary}\n{stderr}", run.passing);
}

/// A scenario on skills. It looks at nothing where the client asks for nothing, so its own verdict must be one of success.
fn check_skills(scenario: &str) {
    let client = env!("CARGO_BIN_EXE_conformance-client").replace(' ', "\\ ");
    let ran = suite("0.2.0-alpha.12")
        .args(["client", "--verbose", "--command", &client, "--scenario", scenario])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    let verdicts =
        (said.matches("\"status\": \"SUCCESS\"").count(), said.matches("\"status\": \"SKIPPED\"").count());
    let words = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && verdicts == (1, 0), "{scenario}: {verdicts:?}\n{said}\n{words}");
}

/// One after the other: each runs its scenarios all at once, and some measure time.
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
        // The other one of its suite wants endpoints to be guessed where a server describes none: toolhub does not,
        // since nothing would then say that the code is safe on its way back (2026-07-28, authorization code
        // protection). The older suite's copy of this one gives a wrong issuer.
        run(alpha, &["--scenario", "auth/2025-03-26-oauth-metadata-backcompat"], 0),
    ];
    runs.iter().for_each(check);
    // No revision requires the skills extension, so its scenarios are asked for by name.
    for scenario in [
        "sep-2640-client-no-prefetch",
        "sep-2640-client-verify-digest",
        "sep-2640-client-verify-frontmatter",
        "sep-2640-client-verify-size",
    ] {
        check_skills(scenario);
    }
}
