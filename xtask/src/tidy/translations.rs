//! Rule: a Chinese document has the headings, code blocks and table rows of the English one, in the same order.
use std::path::Path;

use super::{Finding, sources::Source};

const CHINESE_README: &str = "README.zh-CN.md";

/// Pages that differ on purpose, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("docs/conformance.md", "the Chinese page has the totals alone"),
    ("docs/explanation/e2e-model.md", "the Chinese page has the results alone"),
    ("docs/guides/excel.md", "the Chinese page is a longer guide, as the English one points to it"),
    ("docs/releasing.md", "for maintainers, who read English"),
    ("docs/SUMMARY.md", "one table of contents for both languages"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Heading(usize),
    Code,
    Row,
}

pub(super) fn check(files: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for english in files {
        let Some(chinese) = translation(&english.path) else { continue };
        if EXCEPTIONS.iter().any(|(path, _)| Path::new(path) == english.path) {
            continue;
        }
        match files.iter().find(|file| file.path == Path::new(&chinese)) {
            Some(chinese) => findings.extend(difference(english, chinese)),
            None => {
                findings.push(Finding::new(&english.path, 1, format!("has no Chinese page `{chinese}`")));
            }
        }
    }
    findings
}

/// The path of the Chinese page, if there should be one.
fn translation(path: &Path) -> Option<String> {
    let path = path.to_str()?;
    if path == "README.md" {
        return Some(CHINESE_README.to_owned());
    }
    let page = path.strip_prefix("docs/").filter(|page| page.ends_with(".md") && !page.starts_with("zh/"))?;
    Some(format!("docs/zh/{page}"))
}

fn difference(english: &Source, chinese: &Source) -> Option<Finding> {
    let (expected, found) = (elements(&english.text), elements(&chinese.text));
    let end = (0, None);
    let at = |elements: &[(usize, Element)], index: usize| {
        elements.get(index).map_or(end, |(line, element)| (*line, Some(*element)))
    };
    let index =
        (0..expected.len().max(found.len())).find(|&index| at(&expected, index).1 != at(&found, index).1)?;
    let name = |element: Option<Element>| match element {
        Some(Element::Heading(level)) => format!("a heading of level {level}"),
        Some(Element::Code) => "a code block".to_owned(),
        Some(Element::Row) => "a table row".to_owned(),
        None => "the end".to_owned(),
    };
    let ((line, expected_name), (found_line, actual)) = (at(&expected, index), at(&found, index));
    let message = format!(
        "has {} where `{}`, line {line}, has {}: both languages have the same structure",
        name(actual),
        english.path.display(),
        name(expected_name),
    );
    Some(Finding::new(&chinese.path, found_line.max(1), message))
}

/// The structure of a page, each element with its line number.
fn elements(markdown: &str) -> Vec<(usize, Element)> {
    let (mut elements, mut in_code) = (Vec::new(), false);
    for (index, line) in markdown.lines().enumerate() {
        let element = if line.trim_start().starts_with("```") {
            in_code = !in_code;
            in_code.then_some(Element::Code)
        } else if in_code {
            None
        } else if line.starts_with('|') {
            Some(Element::Row)
        } else {
            let level = line.bytes().take_while(|byte| *byte == b'#').count();
            (level > 0 && line.as_bytes().get(level) == Some(&b' ')).then_some(Element::Heading(level))
        };
        elements.extend(element.map(|element| (index + 1, element)));
    }
    elements
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.to_owned() }
    }

    #[test]
    fn reports_the_first_difference_in_structure() {
        let english = "# A\n\ntext\n\n```sh\n# no heading\n```\n| a |\n|---|\n## B\n";
        let check = |chinese: &str| {
            check(&[page("docs/a.md", english), page("docs/zh/a.md", chinese)])
                .iter()
                .map(|finding| finding.line)
                .collect::<Vec<_>>()
        };
        assert!(check("# 甲\n```sh\n# 无\n```\n| 一 |\n|---|\n\n## 乙\n").is_empty());
        assert_eq!(check("# 甲\n| 一 |\n|---|\n## 乙\n"), [2]);
        assert_eq!(check("# 甲\n```sh\n```\n| 一 |\n|---|\n"), [1]);
    }

    #[test]
    fn reports_missing_pages() {
        assert_eq!(check(&[page("docs/b.md", "# B\n")]).len(), 1);
        assert_eq!(check(&[page("README.md", "# B\n")]).len(), 1);
        assert!(check(&[page("crates/x/README.md", "# B\n")]).is_empty());
    }
}
