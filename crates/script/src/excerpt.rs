//! The part of a script that an error points to, with a caret under the column.

/// Lines shown before the line of the error.
const LINES_BEFORE: usize = 2;
/// Characters shown of a line.
const MAX_WIDTH: usize = 120;
/// Characters shown before the column, if the line is longer.
const WIDTH_BEFORE: usize = 80;

/// A place in a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Position {
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
}

/// Checks a position that a host claims. One behind the script becomes its end; `None` if the script is empty.
pub(crate) fn checked(code: &str, line: Option<u32>, column: Option<u32>) -> Option<Position> {
    let line = line.filter(|line| *line > 0)?;
    let count = u32::try_from(code.lines().count()).unwrap_or(u32::MAX);
    let (line, column) = if line > count { (count, u32::MAX) } else { (line, column.unwrap_or(1)) };
    let text = nth_line(code, line)?;
    let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    Some(Position { line, column: column.clamp(1, length.saturating_add(1)) })
}

/// The lines around a position, each with its number, and a caret under the column.
pub(crate) fn excerpt(code: &str, position: Position) -> String {
    let last = usize::try_from(position.line).unwrap_or(usize::MAX);
    let first = last.saturating_sub(LINES_BEFORE).max(1);
    let digits = last.to_string().len();
    let column = usize::try_from(position.column).unwrap_or(1).saturating_sub(1);
    let mut text = String::new();
    for (index, line) in code.lines().enumerate().take(last).skip(first - 1) {
        let number = index + 1;
        let (shown, offset) = window(line, if number == last { column } else { 0 });
        text.push_str(&format!("{number:>digits$} | {shown}\n"));
        if number == last {
            text.push_str(&format!("{:>digits$} | {}^", "", " ".repeat(column - offset)));
        }
    }
    text
}

fn nth_line(code: &str, line: u32) -> Option<&str> {
    code.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?)
}

/// The visible part of a line around a column, and how many characters precede it.
fn window(line: &str, column: usize) -> (String, usize) {
    let length = line.chars().count();
    let start = if length <= MAX_WIDTH { 0 } else { column.saturating_sub(WIDTH_BEFORE) };
    let shown = line.chars().skip(start).take(MAX_WIDTH);
    // Tabs and control characters would move the caret.
    (shown.map(|letter| if letter.is_control() { ' ' } else { letter }).collect(), start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_to_the_column() {
        let code = "const a = 1;\n\tlet b = a.x.y;\nreturn b";
        let position = checked(code, Some(2), Some(14)).unwrap();
        assert_eq!(excerpt(code, position), "1 | const a = 1;\n2 |  let b = a.x.y;\n  |              ^");
    }

    #[test]
    fn cuts_long_lines_around_the_column() {
        let code = format!("{}error{}", "a".repeat(1000), "b".repeat(1000));
        let text = excerpt(&code, checked(&code, Some(1), Some(1001)).unwrap());
        let (shown, caret) = text.split_once('\n').unwrap();
        assert_eq!(shown.chars().count(), "1 | ".len() + MAX_WIDTH);
        assert_eq!(shown.find("error"), caret.find('^'));
    }

    #[test]
    fn keeps_positions_inside_the_script() {
        let end = Some(Position { line: 2, column: 3 });
        for (line, column, expect) in [
            (None, Some(1), None),
            (Some(0), None, None),
            (Some(3), None, end),
            (Some(u32::MAX), Some(u32::MAX), end),
            (Some(2), Some(u32::MAX), end),
            (Some(1), Some(0), Some(Position { line: 1, column: 1 })),
        ] {
            assert_eq!(checked("ab\ncd\n", line, column), expect, "{line:?} {column:?}");
        }
        assert_eq!(checked("", Some(1), Some(1)), None);
    }
}
