//! What a clause asks for, apart from the texts that it contains.

use crate::lexer::labels;
use crate::lexer::mention::ParsedText;
use crate::selection::intent::Intent;
use crate::values::candidate::{MatchContext, ValueCandidate};

/// The intent of a text. Names of sheets are ignored.
pub(crate) fn intent(parsed_clause: &ParsedText<'_>) -> Intent {
    let context =
        MatchContext { parsed: parsed_clause, stems: labels::stems(parsed_clause), tool_words: Vec::new() };
    let mut names: Vec<(usize, usize)> =
        crate::spreadsheet::sheet::find(&context).iter().map(|name| (name.start, name.end)).collect();
    // Text to be written into cells is ignored, too, but `a comment` is an object and not such a text.
    let is_text = |entry: &&ValueCandidate| {
        let written =
            parsed_clause.text.get(entry.start..entry.end).unwrap_or_default().trim_start().to_lowercase();
        !["a ", "an ", "some ", "the ", "一"].iter().any(|article| written.starts_with(article))
    };
    // The text of a reply is ignored as well.
    names.extend(
        crate::lexer::split::answer_begins(parsed_clause).map(|start| (start, parsed_clause.text.len())),
    );
    let written = crate::spreadsheet::entry::candidates(&context);
    names.extend(written.iter().filter(is_text).map(|entry| (entry.start, entry.end)));
    Intent::of(parsed_clause, &names)
}
