//! Rule: the allowed dependencies between the crates of the workspace; the map of ARCHITECTURE.md as a table.
use crate::workspace::EdgeKind;

pub(super) const RULES_FILE: &str = "xtask/src/tidy/edges.rs";

const TESTKIT: &str = "toolhub-testkit";
const MACROS: &str = "toolhub-macros";
const XTASK: &str = "xtask";
/// Private files and atomic writes, for every crate that stores files.
const PRIVATE_FILES: &str = "toolhub-private-files";
/// The JavaScript engine: only the program links it, and runs it in a process of its own.
const SCRIPT_HOST: &str = "toolhub-script-host";

enum MayUse {
    Only(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}

use MayUse::{AllBut, Only};

const RULES: &[(&str, MayUse)] = &[
    ("toolhub-core", Only(&[])),
    (MACROS, Only(&[])),
    (PRIVATE_FILES, Only(&[])),
    ("toolhub-access", Only(&["toolhub-core"])),
    ("toolhub-audit", Only(&["toolhub-core"])),
    ("toolhub-engine", Only(&["toolhub-core"])),
    ("toolhub-search", Only(&["toolhub-core", PRIVATE_FILES])),
    ("toolhub-http1", Only(&[])),
    ("toolhub-mcp-wire", Only(&["toolhub-core"])),
    ("toolhub-client-config", Only(&["toolhub-core", PRIVATE_FILES])),
    ("toolhub-oauth", Only(&["toolhub-core", "toolhub-mcp-wire", PRIVATE_FILES])),
    (
        "toolhub-mcp-client",
        Only(&[
            "toolhub-core",
            "toolhub-http1",
            "toolhub-mcp-wire",
            "toolhub-client-config",
            "toolhub-oauth",
            PRIVATE_FILES,
        ]),
    ),
    ("toolhub-cluster", Only(&["toolhub-core", "toolhub-mcp-wire", "toolhub-mcp-client"])),
    ("toolhub-mcp-gateway", Only(&["toolhub-core", "toolhub-mcp-wire", PRIVATE_FILES])),
    ("toolhub-native", Only(&["toolhub-core", MACROS])),
    ("toolhub-sandbox", Only(&[])),
    ("toolhub-script", Only(&["toolhub-core", "toolhub-sandbox", PRIVATE_FILES])),
    (SCRIPT_HOST, Only(&["toolhub-core", "toolhub-sandbox", "toolhub-script"])),
    ("toolhub-skills", Only(&["toolhub-core", "toolhub-sandbox", PRIVATE_FILES])),
    ("toolhub-store", Only(&["toolhub-core", "toolhub-audit", PRIVATE_FILES])),
    ("toolhub-llm", Only(&["toolhub-core"])),
    ("toolhub-planner", Only(&["toolhub-core"])),
    ("toolhub-agent", Only(&["toolhub-engine", "toolhub-core", "toolhub-planner"])),
    ("toolhub-server", Only(&["toolhub-core", "toolhub-http1", "toolhub-mcp-wire", "toolhub-mcp-gateway"])),
    (
        "toolhub",
        AllBut(&["toolhub-cli", "toolhub-console", "toolhub-openai-api", SCRIPT_HOST, TESTKIT, XTASK]),
    ),
    ("toolhub-console", AllBut(&["toolhub-cli", "toolhub-openai-api", SCRIPT_HOST, TESTKIT, XTASK])),
    (
        "toolhub-openai-api",
        Only(&["toolhub", "toolhub-agent", "toolhub-core", "toolhub-mcp-gateway", "toolhub-server"]),
    ),
    ("toolhub-cli", AllBut(&[TESTKIT, XTASK])),
    (TESTKIT, AllBut(&["toolhub-cli", XTASK])),
    (XTASK, Only(&[])),
];

#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    Allowed,
    Forbidden(String),
}

pub(super) fn is_known(package: &str) -> bool {
    RULES.iter().any(|(name, _)| *name == package)
}

pub(super) fn judge(from: &str, to: &str, kind: EdgeKind) -> Verdict {
    let Some((_, may_use)) = RULES.iter().find(|(name, _)| *name == from) else { return Verdict::Allowed };
    if kind == EdgeKind::Dev && from != XTASK && [TESTKIT, MACROS].contains(&to) {
        return Verdict::Allowed;
    }
    if to == TESTKIT {
        return Verdict::Forbidden("testkit is a dev-dependency only".to_owned());
    }
    match may_use {
        Only(allowed) if allowed.contains(&to) => Verdict::Allowed,
        Only([]) => Verdict::Forbidden("it stands on no other crate".to_owned()),
        Only(allowed) => Verdict::Forbidden(format!("it knows {} alone", allowed.join(", "))),
        AllBut(forbidden) if !forbidden.contains(&to) => Verdict::Allowed,
        AllBut(_) => Verdict::Forbidden("nothing stands on it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use EdgeKind::{Build, Dev, Normal};

    use super::*;

    #[test]
    fn allows_only_listed_dependencies() {
        for (from, to, kind, allowed) in [
            ("toolhub-engine", "toolhub-core", Normal, true),
            ("toolhub-core", "toolhub-engine", Normal, false),
            ("toolhub-core", "toolhub-macros", Normal, false),
            ("toolhub-core", "toolhub-macros", Dev, true),
            ("toolhub-macros", "toolhub-core", Normal, false),
            ("toolhub-mcp-client", "toolhub-mcp-wire", Normal, true),
            ("toolhub-mcp-client", "toolhub-client-config", Normal, true),
            ("toolhub-client-config", "toolhub-mcp-wire", Normal, false),
            ("toolhub-client-config", "toolhub-oauth", Normal, false),
            ("toolhub-oauth", "toolhub-client-config", Normal, false),
            ("toolhub-oauth", "toolhub-mcp-client", Normal, false),
            ("toolhub-mcp-wire", "toolhub-mcp-client", Normal, false),
            ("toolhub-mcp-client", "toolhub-engine", Normal, false),
            ("toolhub-mcp-client", "toolhub-engine", Dev, false),
            ("toolhub-mcp-client", "toolhub-testkit", Dev, true),
            ("toolhub-mcp-client", "toolhub-testkit", Normal, false),
            ("toolhub-mcp-client", "toolhub-testkit", Build, false),
            ("toolhub-native", "toolhub-macros", Normal, true),
            ("toolhub-skills", "toolhub-macros", Build, false),
            ("toolhub-skills", "toolhub-sandbox", Normal, true),
            ("toolhub-mcp-client", "toolhub-sandbox", Normal, false),
            ("toolhub-sandbox", "toolhub-core", Normal, false),
            ("toolhub-script", "toolhub-sandbox", Normal, true),
            ("toolhub-store", "toolhub-private-files", Normal, true),
            ("toolhub-core", "toolhub-private-files", Normal, false),
            ("toolhub-private-files", "toolhub-core", Normal, false),
            ("toolhub-script", "toolhub-script-host", Normal, false),
            ("toolhub-script", "toolhub-engine", Normal, false),
            ("toolhub-script-host", "toolhub-script", Normal, true),
            ("toolhub", "toolhub-script", Normal, true),
            ("toolhub", "toolhub-script-host", Normal, false),
            ("toolhub-console", "toolhub-script-host", Normal, false),
            ("toolhub-cli", "toolhub-script-host", Normal, true),
            ("toolhub-store", "toolhub-macros", Normal, false),
            ("toolhub-agent", "toolhub-engine", Normal, true),
            ("toolhub-agent", "toolhub-llm", Normal, false),
            ("toolhub-server", "toolhub-mcp-gateway", Normal, true),
            ("toolhub-server", "toolhub-mcp-client", Normal, false),
            ("toolhub-mcp-gateway", "toolhub-mcp-client", Normal, false),
            ("toolhub-mcp-client", "toolhub-mcp-gateway", Normal, false),
            ("toolhub-server", "toolhub-store", Normal, false),
            ("toolhub-server", "toolhub-engine", Normal, false),
            ("toolhub", "toolhub-server", Normal, true),
            ("toolhub", "toolhub-cli", Normal, false),
            ("toolhub-cli", "toolhub", Normal, true),
            ("toolhub-testkit", "toolhub-cli", Normal, false),
            ("toolhub", "toolhub-testkit", Normal, false),
            ("toolhub", "toolhub-testkit", Dev, true),
            ("toolhub", "xtask", Normal, false),
            ("toolhub-testkit", "toolhub", Normal, true),
            ("toolhub-testkit", "xtask", Dev, false),
            ("xtask", "toolhub-core", Normal, false),
            ("xtask", "toolhub-testkit", Dev, false),
        ] {
            let verdict = judge(from, to, kind);
            assert_eq!(verdict == Verdict::Allowed, allowed, "{from} → {to} ({kind:?}): {verdict:?}");
        }
    }

    #[test]
    fn knows_all_workspace_crates() {
        for (package, expect) in [("toolhub", true), ("toolhub-llm", true), ("toolhub-utils", false)] {
            assert_eq!(is_known(package), expect, "{package}");
        }
    }
}
