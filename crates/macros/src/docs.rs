//! Extracts texts from doc comments, joining lines to paragraphs for models.

use syn::{Attribute, Expr, ExprLit, Lit, Meta, Result, spanned::Spanned};

/// The text of the doc comments in `attributes`; `None` if there are none.
pub(crate) fn text(attributes: &[Attribute]) -> Result<Option<String>> {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        // Skips `#[doc(hidden)]` and similar.
        let Meta::NameValue(pair) = &attribute.meta else { continue };
        let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &pair.value else {
            return Err(syn::Error::new(pair.value.span(), "write the text here: `#[tool]` must see it"));
        };
        lines.extend(text.value().lines().map(str::to_owned));
        if text.value().is_empty() {
            lines.push(String::new());
        }
    }
    let text = join(&lines);
    Ok((!text.is_empty()).then_some(text))
}

/// Joins the lines of each paragraph; list items, headings, tables and code keep lines of their own.
fn join(lines: &[String]) -> String {
    let mut out = String::new();
    let mut in_code = false;
    let mut breaks = 0_usize;
    for line in lines {
        let line = line.strip_prefix(' ').unwrap_or(line).trim_end();
        let fence = line.trim_start().starts_with("```");
        if line.is_empty() && !in_code {
            breaks = 2;
            continue;
        }
        if fence || in_code || is_separate_line(line) {
            breaks = breaks.max(1);
        }
        if !out.is_empty() {
            match breaks {
                0 if !continues_line(&out, line) => out.push(' '),
                0 => {}
                _ => out.push_str(&"\n"[..].repeat(breaks)),
            }
        }
        out.push_str(if in_code || fence || breaks > 0 { line } else { line.trim_start() });
        in_code ^= fence;
        breaks = usize::from(fence || in_code || line.starts_with('#') || line.starts_with('|'));
    }
    out
}

fn is_separate_line(line: &str) -> bool {
    let line = line.trim_start();
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    ["- ", "* ", "+ ", "#", "|", ">"].iter().any(|mark| line.starts_with(mark))
        || (numbered.len() < line.len() && (numbered.starts_with(". ") || numbered.starts_with(") ")))
}

/// Whether lines are joined without a space, as in Chinese and Japanese.
fn continues_line(before: &str, after: &str) -> bool {
    let wide =
        |c: char| matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}');
    before.ends_with(wide) && after.trim_start().starts_with(wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_lines_into_paragraphs() {
        let check = |input: &[&str], expect: &str| {
            let lines: Vec<String> = input.iter().map(|line| (*line).to_owned()).collect();
            assert_eq!(join(&lines), expect);
        };
        check(&[" One.", " Two."], "One. Two.");
        check(&[" One.", "", "", " Two.", ""], "One.\n\nTwo.");
        check(&[" Kinds:", " - a", "   more", " - b", " 1. c"], "Kinds:\n- a more\n- b\n1. c");
        check(&[" See", " ```", " a", "", "   b", " ```", " end"], "See\n```\na\n\n  b\n```\nend");
        check(&[" 查询", " 天气 or", " rain"], "查询天气 or rain");
        check(&[" # Head", " text"], "# Head\ntext");
        check(&[], "");
    }
}
