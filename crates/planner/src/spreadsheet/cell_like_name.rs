//! Names that look like cells, such as a sheet `Q1`: the words around them decide.

use crate::lexer::mention::Mention;
use crate::spreadsheet::sheet_name;
use crate::values::candidate::MatchContext;

/// `to Q1`, `called Q1`, 改成 Q1: text that looks like a cell may be a new name.
pub(crate) fn is_called(context: &MatchContext<'_>, mention: &Mention) -> bool {
    let before = context.parsed.text.get(..mention.start).unwrap_or_default().trim_end().to_lowercase();
    ["to", "as", "called", "named", "into", "sheet", "tab", "叫", "为", "成", "名", "表"]
        .iter()
        .any(|word| before.ends_with(word))
}

/// `Q1 sheet`, `Q1 表`: text that looks like a cell may be the name of a sheet.
pub(crate) fn names_sheet(context: &MatchContext<'_>, mention: &Mention) -> bool {
    let rest = context.parsed.text.get(mention.end..).unwrap_or_default().trim_start().to_lowercase();
    ["sheet", "worksheet", "tab ", "工作表", "表"].iter().any(|word| rest.starts_with(word))
        || sheet_name::follows_marker(context.parsed, mention)
}
