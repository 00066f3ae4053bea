//! The table of `docs/conformance.md`: the number of passed checks per scenario with the fixture server directly, and
//! through the gateway. Tests compare every run with it.

use std::collections::BTreeMap;

use super::suite::ServerReport;

const TEXT: &str = include_str!("../../../../docs/conformance.md");

/// The server under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The fixture server itself.
    Fixture,
    /// The gateway in front of the fixture server.
    Gateway,
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    fixture: usize,
    gateway: usize,
    /// Why there are no checks, or fewer through the gateway.
    reason: String,
}

/// The scenarios of a run, by name.
type Rows = BTreeMap<String, Row>;

/// Compares a report with the section of the table for this suite and selection.
///
/// # Errors
/// Describes the difference, with the lines that the report would produce: another number of checks, a missing or new
/// scenario, or a missing reason.
pub fn compare(report: &ServerReport, side: Side) -> Result<(), String> {
    compare_with(TEXT, report, side)
}

fn compare_with(text: &str, report: &ServerReport, side: Side) -> Result<(), String> {
    let heading = heading(&report.version, &report.selection);
    let rows = rows(text, &heading)?;
    unexplained(&rows).map_err(|names| format!("{heading}: no reason is named for {names}"))?;
    let expected: BTreeMap<&str, usize> = rows
        .iter()
        .map(|(name, row)| (name.as_str(), if side == Side::Fixture { row.fixture } else { row.gateway }))
        .collect();
    let found: BTreeMap<&str, usize> =
        report.by_scenario.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    if expected == found {
        return Ok(());
    }
    let differ = found.iter().filter(|(name, count)| expected.get(*name) != Some(*count));
    let missing = expected.keys().filter(|name| !found.contains_key(*name));
    Err(format!(
        "{heading}, {side:?}: docs/conformance.md has other numbers.\nfound: {:#?}\nmissing: {:#?}",
        differ.collect::<Vec<_>>(),
        missing.collect::<Vec<_>>()
    ))
}

fn heading(version: &str, selection: &[String]) -> String {
    format!("## Suite {version}, `{}`", selection.join(" "))
}

/// The rows below a heading.
fn rows(text: &str, heading: &str) -> Result<Rows, String> {
    let mut rows = Rows::new();
    let section = text.lines().skip_while(|line| *line != heading).skip(1);
    for line in section.take_while(|line| !line.starts_with("## ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [scenario, fixture, gateway, reason] = cells.as_slice() else { continue };
        let (Ok(fixture), Ok(gateway)) = (fixture.parse(), gateway.parse()) else { continue };
        let row = Row { fixture, gateway, reason: (*reason).to_owned() };
        if rows.insert((*scenario).trim_matches('`').to_owned(), row).is_some() {
            return Err(format!("{heading}: {scenario} is listed twice"));
        }
    }
    match rows.is_empty() {
        true => Err(format!("docs/conformance.md has no rows under `{heading}`")),
        false => Ok(rows),
    }
}

/// Scenarios without checks, or with fewer through the gateway, must have a reason.
fn unexplained(rows: &Rows) -> Result<(), String> {
    let lacks = |row: &Row| (row.gateway < row.fixture || row.gateway == 0) && row.reason.is_empty();
    let names: Vec<&str> = rows.iter().filter(|(_, row)| lacks(row)).map(|(name, _)| name.as_str()).collect();
    if names.is_empty() { Ok(()) } else { Err(names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(counts: &[(&str, usize)]) -> ServerReport {
        ServerReport {
            version: "1".to_owned(),
            selection: vec!["--suite".to_owned(), "all".to_owned()],
            by_scenario: counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            ..ServerReport::default()
        }
    }

    fn table(rows: &str) -> String {
        format!(
            "# C\n\n## Suite 1, `--suite all`\n\n| scenario | fixture | gateway | reason |\n|---|---|---|---|\n{rows}"
        )
    }

    #[test]
    fn reports_every_difference() {
        let text = table("| `a` | 2 | 2 | |\n| `b` | 3 | 1 | not offered |\n");
        let check = |counts: &[(&str, usize)], side| {
            compare_with(&text, &report(counts), side).map_err(|error| error.len())
        };
        assert_eq!(check(&[("a", 2), ("b", 1)], Side::Gateway), Ok(()));
        assert_eq!(check(&[("a", 2), ("b", 3)], Side::Fixture), Ok(()));
        for wrong in
            [&[("a", 2), ("b", 3)][..], &[("a", 2)], &[("a", 2), ("b", 1), ("c", 1)], &[("a", 0), ("b", 1)]]
        {
            assert!(check(wrong, Side::Gateway).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn requires_reason_for_fewer_checks() {
        for (rows, is_right) in [
            ("| `a` | 2 | 1 | |\n", false),
            ("| `a` | 0 | 0 | |\n", false),
            ("| `a` | 2 | 1 | because |\n", true),
            ("| `a` | 0 | 0 | because |\n", true),
            ("| `a` | 1 | 2 | |\n", true),
        ] {
            let rows = self::rows(&table(rows), "## Suite 1, `--suite all`").unwrap();
            assert_eq!(unexplained(&rows).is_ok(), is_right, "{rows:?}");
        }
    }

    #[test]
    fn finds_no_rows_for_another_selection() {
        let text = table("| `a` | 1 | 1 | |\n");
        let other = ServerReport { version: "2".to_owned(), ..report(&[("a", 1)]) };
        assert!(compare_with(&text, &other, Side::Fixture).is_err());
    }
}
