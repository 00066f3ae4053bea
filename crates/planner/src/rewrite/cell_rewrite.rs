//! Rewrites orders about cells and sheets: `write A and B into A1 and B1` becomes one range, `change F7 to 5` becomes a write.

use crate::lexer::literal::{Literal, LiteralSpan};
use crate::rewrite::masked_text::{free_text, has_word, is_open, read_masked};

/// The column number and the row of a single cell.
fn position(cell: &str) -> Option<(usize, usize)> {
    let letters = cell.bytes().take_while(u8::is_ascii_uppercase).count();
    let column =
        cell[..letters].bytes().fold(0, |column, letter| column * 26 + usize::from(letter - b'A') + 1);
    let row = cell[letters..].parse().ok()?;
    (letters > 0).then_some((column, row))
}

/// `write Date, City and Amount into A1, B1 and C1`: adjacent cells of a row that receive one value each are a range.
pub(crate) fn adjacent_cells(text: &str) -> Option<String> {
    const WRITES: [&str; 8] = ["write", "put", "enter", "fill", "type", "写", "填", "录入"];
    let (literals, masked) = read_masked(text);
    let single =
        |found: &&LiteralSpan| matches!(&found.literal, Literal::Cells(cells) if !cells.contains(':'));
    let cells: Vec<&LiteralSpan> = literals.iter().filter(single).collect();
    let [first, .., last] = cells.as_slice() else { return None };
    let joints = [", ", " and ", ", and ", "、", "和", " 和 ", "，", " & ", "、 "];
    let joined = cells
        .windows(2)
        .all(|pair| masked.get(pair[0].end..pair[1].start).is_some_and(|between| joints.contains(&between)));
    let at = |found: &LiteralSpan| match &found.literal {
        Literal::Cells(cell) => position(cell),
        _ => None,
    };
    let places: Option<Vec<(usize, usize)>> = cells.iter().map(|found| at(found)).collect();
    let row = places?.windows(2).all(|pair| pair[0].1 == pair[1].1 && pair[0].0 + 1 == pair[1].0);
    let head = &masked[..first.start];
    let verb = WRITES.iter().filter_map(|verb| head.rfind(verb)).max()?;
    // The values precede the cells, and there are as many of them.
    let values = head.get(verb..)?;
    let count = [", and ", ", ", " and ", "、", "和", "，"]
        .iter()
        .fold(values.to_owned(), |text, joint| text.replace(joint, "\n"))
        .split('\n')
        .filter(|value| !value.trim().is_empty())
        .count();
    (joined && row && count == cells.len() && first.start < free_text(&masked)).then(|| {
        let (start, end) = (&text[first.start..first.end], &text[last.start..last.end]);
        format!("{}{start}:{end}{}", &text[..first.start], &text[last.end..])
    })
}

/// The name of a column.
fn letters(mut column: usize) -> String {
    let mut name = String::new();
    while column > 0 {
        column -= 1;
        name.insert(0, char::from(b'A' + u8::try_from(column % 26).unwrap_or_default()));
        column /= 26;
    }
    name
}

/// The range of a row with `count` cells that begins at a cell.
fn row_from(cell: &str, count: usize) -> Option<String> {
    let (column, row) = position(cell)?;
    Some(format!("{cell}:{}{row}", letters(column + count - 1)))
}

/// Whether a text is the value of one cell: few words, none of them a literal other than a quote.
fn is_value(member: &str) -> bool {
    let words = member.split_whitespace().count();
    (1..=3).contains(&words) && member.chars().count() <= 24 && !member.contains(['/', ':', '=', '。'])
}

/// `write Item, Cost and Date into that sheet, starting at A1`: the values of a row get the range that they fill.
pub(crate) fn row_of_values(text: &str) -> Option<String> {
    const WRITES: [&str; 4] = ["write ", "put ", "enter ", "fill in "];
    const ENDS: [&str; 7] =
        [" into ", " in ", " to ", ", starting ", " starting ", ", beginning ", " beginning "];
    // Words between the values and the first cell that name no other place.
    const SMALL: [&str; 18] = [
        "into",
        "in",
        "to",
        "that",
        "sheet",
        "it",
        "its",
        "the",
        "first",
        "row",
        "starting",
        "beginning",
        "at",
        "from",
        "cell",
        "on",
        "a",
        "with",
    ];
    let (literals, masked) = read_masked(text);
    let cell = literals.iter().find(|found| matches!(found.literal, Literal::Cells(_)))?;
    let Literal::Cells(name) = &cell.literal else { return None };
    let head = masked.get(..cell.start)?;
    let (verb, word) = WRITES.iter().filter_map(|verb| head.rfind(verb).map(|at| (at, *verb))).max()?;
    let is_whole_word = verb == 0 || head[..verb].ends_with(' ');
    let start = verb + word.len();
    let end = ENDS.iter().filter_map(|mark| head[start..].find(mark)).min()? + start;
    let members = crate::lexer::series::members(text.get(start..end)?.trim_end_matches(','));
    let between = head.get(end..)?;
    let plain = between.split([' ', ',']).filter(|word| !word.is_empty()).all(|word| SMALL.contains(&word));
    let starts = ["starting", "beginning", " from "].iter().any(|word| between.contains(word))
        || between.trim() == "into";
    let only = literals.iter().filter(|found| matches!(found.literal, Literal::Cells(_))).count() == 1;
    let free = start < free_text(&masked) && !is_open(&masked);
    let sound = members.len() > 1 && members.iter().all(|member| is_value(member)) && !name.contains(':');
    (is_whole_word && plain && starts && only && free && sound).then(|| {
        let range = row_from(name, members.len())?;
        Some(format!(
            "{}{} into {range}{}",
            &text[..start],
            text[start..end].trim_end_matches(','),
            &text[cell.end..]
        ))
    })?
}

/// 从 A1 起写一行：姓名、公司: the same in Chinese.
pub(crate) fn row_in_chinese(text: &str) -> Option<String> {
    const ROWS: [&str; 12] = [
        "写一行表头：",
        "写一行：",
        "写入一行：",
        "写一行数据：",
        "填一行：",
        "写入表头：",
        "写表头：",
        "写一行标题：",
        "写上一行：",
        "写入：",
        "录入一行：",
        "加一行：",
    ];
    let (literals, masked) = read_masked(text);
    let (at, label) = ROWS.iter().find_map(|label| masked.find(label).map(|at| (at, *label)))?;
    let cell =
        literals.iter().rev().find(|found| found.end <= at && matches!(found.literal, Literal::Cells(_)))?;
    let Literal::Cells(name) = &cell.literal else { return None };
    let between = masked.get(cell.end..at)?.trim();
    let starts =
        ["开始", "起", "开始，", "起，", "", "处", "单元格", "单元格开始", "单元格起"].contains(&between);
    let lead =
        ["从", "在", "自"].iter().find_map(|word| masked[..cell.start].trim_end().strip_suffix(word))?.len();
    let rest = text.get(at + label.len()..)?;
    let end = rest.find(['，', '。', '；']).unwrap_or(rest.len());
    let members = crate::lexer::series::members(rest[..end].trim());
    let sound = members.len() > 1 && members.iter().all(|member| is_value(member)) && !name.contains(':');
    (starts && sound).then(|| {
        let range = row_from(name, members.len())?;
        let head = text[..lead].trim_end_matches(['再', ' ']);
        // A place before the row belongs to it; another order before it ends there.
        let made = ["加", "建", "创建"].iter().any(|verb| head.contains(verb));
        let head = if made {
            format!("{}，然后", head.trim_end_matches('，'))
        } else {
            head.trim_end_matches('，').to_owned()
        };
        Some(format!("{head}把 {} 写到 {range}{}", rest[..end].trim(), &rest[end..]))
    })?
}

/// `change F7 on the sheet S of a.xlsx to 48200`: writes a value into a cell.
pub(crate) fn cell_write(text: &str) -> Option<String> {
    const CHANGES: [&str; 6] = ["change ", "set ", "update ", "correct ", "fix ", "overwrite "];
    let (literals, masked) = read_masked(text);
    let start = masked.strip_prefix("please ").map_or(0, |_| "please ".len());
    let verb = CHANGES.iter().find(|verb| masked[start..].starts_with(**verb))?;
    let object = masked[start + verb.len()..].trim_start_matches("the ").trim_start_matches("value of ");
    let object = object.trim_start_matches("cell ");
    let from = masked.len() - object.len();
    let cell = literals.first().filter(|found| {
        found.start == from && matches!(&found.literal, Literal::Cells(cells) if !cells.contains(':'))
    })?;
    let file =
        literals.iter().any(|found| matches!(&found.literal, Literal::Path(path) if path.contains(".xls")));
    let (at, joint) =
        [" to ", " with "].iter().filter_map(|joint| masked.rfind(joint).map(|at| (at, *joint))).max()?;
    let value = text.get(at + joint.len()..)?.trim_end_matches(['.', '!', ' ']);
    let number = value.trim_start_matches('-').parse::<f64>().is_ok();
    let quoted = literals.iter().any(|found| {
        matches!(found.literal, Literal::Quoted(_))
            && found.start == at + joint.len()
            && found.end == at + joint.len() + value.len()
    });
    let location = masked.get(cell.end..at)?;
    let other = ["color", "colour", "font", "bold", "format", "width", "from"]
        .iter()
        .any(|word| has_word(location, word));
    (file && (number || quoted) && !other && !is_open(&masked))
        .then(|| format!("write {value} into {}{}", &text[cell.start..cell.end], &text[cell.end..at]))
}

/// `give A1:F1 of … a gray background`: sets a format.
pub(crate) fn cell_format(text: &str) -> Option<String> {
    let (literals, masked) = read_masked(text);
    let cells = literals.iter().any(|found| matches!(found.literal, Literal::Cells(_)));
    let lead = ["give ", "please give "].iter().find(|lead| masked.starts_with(**lead)).filter(|_| cells)?;
    // `… a yellow fill and make it bold`
    let styles =
        [" and make it bold", " and make it italic", " and bold", " and make them bold", " and bold text"];
    let trimmed = masked.trim_end_matches(['.', '!', ' ']);
    if let Some(style) = styles.iter().find(|style| trimmed.ends_with(**style)) {
        let inner = cell_format(&text[..trimmed.len() - style.len()])?;
        let word = if style.contains("italic") { "italic" } else { "bold" };
        let rest = inner.strip_prefix("set ")?;
        return Some(format!("set {word} and {rest}"));
    }
    for style in [" bold text and a ", " bold and a ", " bold font and a "] {
        if let Some(at) = masked.find(style) {
            let inner = cell_format(&format!("{} a {}", &text[..at], &text[at + style.len()..]))?;
            let rest = inner.strip_prefix("set ")?;
            return Some(format!("set bold and {rest}"));
        }
    }
    let kinds = [" background", " border", " fill", " font", " borders"];
    let kind = kinds.iter().find(|kind| masked.trim_end_matches(['.', '!']).ends_with(**kind))?;
    let end = masked.rfind(kind)? + kind.len();
    let start = masked[..end]
        .rfind(" a ")
        .map(|at| (at, at + 3))
        .or_else(|| masked[..end].rfind(" an ").map(|at| (at, at + 4)))?;
    (start.0 > lead.len()).then(|| format!("set {} on {}", &text[start.1..end], &text[lead.len()..start.0]))
}

/// `list the tabs in a.xlsx`: the tabs of a workbook are its sheets.
pub(crate) fn tabs_as_sheets(text: &str) -> Option<String> {
    let (literals, masked) = read_masked(text);
    let workbook = literals.iter().any(|found| {
        matches!(&found.literal, Literal::Path(path) if path.ends_with(".xlsx") || path.ends_with(".xls") || path.ends_with(".xlsm"))
    });
    let at = masked.find("the tabs").filter(|_| workbook)? + 4;
    let is_whole_word = !masked[at + 4..].starts_with(|c: char| c.is_ascii_alphanumeric());
    is_whole_word.then(|| format!("{}sheets{}", &text[..at], &text[at + 4..]))
}

/// `create a workbook a.xlsx with a sheet named X`: becomes two orders.
pub(crate) fn workbook_with_sheet(text: &str) -> Option<String> {
    let (literals, masked) = read_masked(text);
    let book = literals
        .iter()
        .find(|found| matches!(&found.literal, Literal::Path(path) if path.ends_with(".xlsx")))?;
    let head = &masked[..book.start];
    let made = ["create", "make", "new", "set up", "start"].iter().any(|verb| has_word(head, verb));
    let kind = ["workbook", "excel", "spreadsheet"].iter().any(|kind| head.contains(kind));
    let rest = masked.get(book.end..)?;
    let lead = [
        " with a sheet ",
        " with a worksheet ",
        " with one sheet ",
        " with a tab ",
        " and a sheet ",
        " containing a sheet ",
    ]
    .iter()
    .find(|lead| rest.starts_with(**lead))?;
    let name = text.get(book.end + lead.len()..)?;
    let path = &text[book.start..book.end];
    let plain = name.split(' ').count() <= 4 && !name.contains([',', ';']);
    (made && kind && plain).then(|| {
        format!("{} and then add a sheet {} to {path}", &text[..book.end], name.trim_end_matches(['.', '!']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_cells_of_one_row_into_range() {
        let check =
            |text: &str, expect: Option<&str>| assert_eq!(adjacent_cells(text).as_deref(), expect, "{text}");
        check(
            "write Date, City and Amount into A1, B1 and C1 of a.xlsx",
            Some("write Date, City and Amount into A1:C1 of a.xlsx"),
        );
        check("write Date and City into A1 and C1 of a.xlsx", None);
        check("write 5 into A1 and B1 of a.xlsx", None);
        check("write Date and City into A1 and A2 of a.xlsx", None);
    }

    #[test]
    fn assigns_range_to_row_of_values() {
        let check = |step: fn(&str) -> Option<String>, text: &str, expect: Option<&str>| {
            assert_eq!(step(text).as_deref(), expect, "{text}");
        };
        check(
            row_of_values,
            "write Item, Cost into that sheet, starting at A1",
            Some("write Item, Cost into A1:B1"),
        );
        check(
            row_of_values,
            "Write 14, 18 and 23 starting at Z6 of a.xlsx",
            Some("Write 14, 18 and 23 into Z6:AB6 of a.xlsx"),
        );
        check(row_of_values, "write Item and Cost into the sheet Old, starting at A1", None);
        check(row_of_values, "write hello into it, starting at A1", None);
        check(
            row_in_chinese,
            "从 A12 开始写一行：打印费、36、张老师。",
            Some("把 打印费、36、张老师 写到 A12:C12。"),
        );
        check(row_in_chinese, "从 A12 开始写一行：打印费", None);
    }

    #[test]
    fn rewrites_cell_change_as_write() {
        let check =
            |text: &str, expect: Option<&str>| assert_eq!(cell_write(text).as_deref(), expect, "{text}");
        check(
            "change F7 on the Budget sheet of hr/plan.xlsx to 48200",
            Some("write 48200 into F7 on the Budget sheet of hr/plan.xlsx"),
        );
        check("change F7 on the Budget sheet of hr/plan.xlsx to red", None);
        check("set the font of F7 in plan.xlsx to 12", None);
        check("change F7 in plan.xlsx to 12 if it is empty", None);
    }
}
