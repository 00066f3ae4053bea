//! Replaces literals in a request with the nouns for their kinds: the tool search ranks better without names of files and
//! cells.

use crate::lexer::literal::Literal;
use crate::lexer::mention::{MentionValue, ParsedText};
use crate::lexer::name::has_han;

/// Returns the text with each literal replaced; `None` if nothing changes.
pub(crate) fn generalize(parsed: &ParsedText<'_>) -> Option<String> {
    let zh = has_han(parsed.text);
    let mut text = String::new();
    let mut at = 0;
    for mention in &parsed.mentions {
        let MentionValue::Literal(literal) = &mention.value else { continue };
        let word = match literal {
            Literal::Path(path) => file(path, zh),
            Literal::Cells(cells) if cells.contains(':') => pick(zh, "range of cells", "单元格区域"),
            Literal::Cells(_) => pick(zh, "cell", "单元格"),
            Literal::Formula(_) => pick(zh, "formula", "公式"),
            Literal::Url(_) => pick(zh, "web page url", "网页"),
            Literal::Mail(_) => pick(zh, "email address", "邮箱"),
            Literal::Code(code) if code.to_lowercase().starts_with("sheet") => {
                pick(zh, "worksheet", "工作表")
            }
            Literal::Quoted(_) | Literal::Json(_) => "",
            Literal::Code(_) => continue,
        };
        text.push_str(parsed.text.get(at..mention.start)?);
        text.push(' ');
        text.push_str(word);
        text.push(' ');
        at = mention.end;
    }
    if at == 0 {
        return None;
    }
    text.push_str(parsed.text.get(at..)?);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (text.chars().filter(|c| c.is_alphabetic()).count() > 1).then_some(text)
}

fn pick(zh: bool, english: &'static str, chinese: &'static str) -> &'static str {
    if zh { chinese } else { english }
}

fn file(path: &str, zh: bool) -> &'static str {
    let ending = path.rsplit('.').next().unwrap_or_default().to_lowercase();
    match ending.as_str() {
        "xlsx" | "xls" | "xlsm" => pick(zh, "excel workbook", "Excel 工作簿"),
        "csv" | "tsv" => pick(zh, "csv file", "CSV 文件"),
        "png" | "jpg" | "jpeg" | "gif" | "webp" | "bmp" | "svg" => pick(zh, "image file", "图片文件"),
        "pdf" => pick(zh, "pdf file", "PDF 文件"),
        "doc" | "docx" => pick(zh, "word document", "Word 文档"),
        "mp3" | "wav" => pick(zh, "audio file", "音频文件"),
        "mp4" | "mov" | "avi" => pick(zh, "video file", "视频文件"),
        "txt" | "md" | "log" | "json" | "toml" | "yaml" | "yml" | "rs" | "py" | "conf" | "ini" => {
            pick(zh, "text file", "文本文件")
        }
        _ if path.ends_with('/') || !path.rsplit('/').next().unwrap_or_default().contains('.') => {
            pick(zh, "folder", "文件夹")
        }
        _ => pick(zh, "file", "文件"),
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;

    use super::*;

    #[test]
    fn replaces_literals_by_kind_nouns() {
        let check = |text: &str, expect: Option<&str>| {
            let parsed = ParsedText::of(text, Date::constant(2026, 1, 15));
            assert_eq!(generalize(&parsed).as_deref(), expect, "{text}");
        };
        check("Set cell E10 to =MAX(E2:E9) in a.xlsx", Some("Set cell cell to formula in excel workbook"));
        check("读取 销售.xlsx 的 A1:B2", Some("读取 Excel 工作簿 的 单元格区域"));
        check("what is 2 + 2", None);
        check("\"all of it\"", None);
    }
}
