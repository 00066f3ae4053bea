//! Truncates texts in both languages: at a sentence end if possible, never inside a grapheme cluster; lengths are in
//! characters.

use unicode_segmentation::UnicodeSegmentation as _;

/// Closing marks that may follow the end of a sentence.
const CLOSING: [&str; 10] = ["\"", "'", ")", "]", "”", "’", "）", "」", "』", "》"];

/// Marks a text that was cut inside a sentence.
pub const ELLIPSIS: char = '…';

/// Truncates a text to at most `limit` characters; `None` if it is short enough. It ends at the last sentence that fits; if none
/// does, at a space or any grapheme cluster with `…` appended, which is counted.
pub fn truncate(text: &str, limit: usize) -> Option<String> {
    // The byte length is an upper bound of the number of characters.
    if text.len() <= limit || text.char_indices().nth(limit).is_none() {
        return None;
    }
    if limit == 0 {
        return Some(String::new());
    }
    let fitting = prefix(text, limit);
    if let Some(end) = last_sentence_end(fitting) {
        return Some(fitting[..end].trim_end().to_owned());
    }
    // No sentence fits: cut at a space in the second half, or else anywhere, and append an ellipsis.
    let head = prefix(text, limit - 1);
    let space = head.char_indices().rev().find(|(_, letter)| letter.is_whitespace()).map(|(at, _)| at);
    let end = space.filter(|at| *at >= head.len() / 2).unwrap_or(head.len());
    let mut shortened = head[..end].trim_end().to_owned();
    shortened.push(ELLIPSIS);
    Some(shortened)
}

/// The longest prefix of at most `limit` bytes that splits no character. Nothing is appended.
pub fn byte_prefix(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

/// Splits a text into pages of at most `size` characters, without loss. A page ends at a sentence or line end if
/// there is one in its second half.
pub fn split_pages(text: &str, size: usize) -> Vec<&str> {
    let size = size.max(1);
    let mut pages = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut page = prefix(rest, size);
        if page.is_empty() {
            // A single grapheme cluster longer than a page is split between its code points.
            page = &rest[..rest.char_indices().nth(size).map_or(rest.len(), |(at, _)| at)];
        }
        if page.len() < rest.len()
            && let Some(end) = last_sentence_end(page).filter(|end| *end > page.len() / 2)
        {
            page = &page[..end];
        }
        pages.push(page);
        rest = &rest[page.len()..];
    }
    pages
}

/// The longest prefix of at most `limit` characters that splits no grapheme cluster.
fn prefix(text: &str, limit: usize) -> &str {
    let (mut end, mut count) = (0, 0);
    for (at, cluster) in text.grapheme_indices(true) {
        count += cluster.chars().count();
        if count > limit {
            break;
        }
        end = at + cluster.len();
    }
    &text[..end]
}

/// The end of the last complete sentence of `text`, including closing marks.
fn last_sentence_end(text: &str) -> Option<usize> {
    let ends = text.grapheme_indices(true).rev().filter(|(at, cluster)| ends_sentence(text, *at, cluster));
    ends.map(|(at, cluster)| after_closing(text, at + cluster.len()))
        .find(|end| !text[..*end].trim().is_empty())
}

/// A cluster of several code points, such as a mark with an accent, does not end a sentence.
fn ends_sentence(text: &str, at: usize, cluster: &str) -> bool {
    let end = at + cluster.len();
    match cluster {
        "。" | "！" | "？" | "；" | "\n" | "\r\n" => true,
        // Not the point of `3.14`, `a.txt` or `e.g`. At the end of `text`, it is undecided and does not count.
        "." | "!" | "?" => {
            let after = text[after_closing(text, end)..].chars().next();
            after.is_some_and(|next| next.is_whitespace() || is_cjk(next)) && !abbreviation(&text[..at])
        }
        "…" => text[end..].starts_with(char::is_whitespace),
        _ => false,
    }
}

/// Whether a full stop after `before` probably belongs to an abbreviation or a list number.
fn abbreviation(before: &str) -> bool {
    let word =
        before.rsplit(|letter: char| letter.is_whitespace() || letter == '(').next().unwrap_or_default();
    let lower = word.to_ascii_lowercase();
    ["e.g", "i.e", "etc", "vs", "mr", "mrs", "ms", "dr", "prof", "no", "fig", "approx", "st"]
        .contains(&lower.as_str())
        || (word.chars().count() == 1 && word.chars().all(char::is_uppercase))
        || (!word.is_empty() && word.len() <= 3 && word.bytes().all(|byte| byte.is_ascii_digit()))
}

fn after_closing(text: &str, end: usize) -> usize {
    let closing = text[end..].graphemes(true).take_while(|cluster| CLOSING.contains(cluster));
    end + closing.map(str::len).sum::<usize>()
}

fn is_cjk(letter: char) -> bool {
    matches!(letter, '\u{3000}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn truncates_at_sentence_ends() {
        let check = |text: &str, limit: usize, expect: Option<&str>| {
            assert_eq!(truncate(text, limit).as_deref(), expect, "{text:?} {limit}");
        };
        check("short", 5, None);
        check("One. Two. Three.", 12, Some("One. Two."));
        check("今天天气很好。明天下雨。后天呢？", 9, Some("今天天气很好。"));
        check("It costs 3.14 euros and more", 16, Some("It costs 3.14…"));
        check("他说：“好的。”然后走了很远很远的路", 9, Some("他说：“好的。”"));
        check("Dr. Smith went to the market and stayed", 20, Some("Dr. Smith went to…"));
        check("line one\nline two is long", 14, Some("line one"));
        check("一二三四五六七八九十", 5, Some("一二三四…"));
        check("anything", 0, Some(""));
        check("👨‍👩‍👧‍👦👨‍👩‍👧‍👦", 10, Some("👨‍👩‍👧‍👦…"));
        check("see a.txt. Then b.txt and on", 15, Some("see a.txt."));
    }

    #[test]
    fn byte_prefix_splits_no_character() {
        for (limit, expect) in [(0, ""), (1, "a"), (2, "a"), (3, "a"), (4, "a表"), (5, "a表b"), (9, "a表b")]
        {
            assert_eq!(byte_prefix("a表b", limit), expect, "{limit}");
        }
    }

    #[test]
    fn pages_concatenate_to_the_text() {
        let text = "第一句。第二句很长很长很长。Third sentence here. 4th!\n".repeat(50);
        let found = split_pages(&text, 100);
        assert_eq!(found.concat(), text);
        assert!(found.iter().all(|page| page.chars().count() <= 100));
        assert!(found.iter().all(|page| page.ends_with(['。', '.', '!', '\n'])), "{found:?}");
        assert!(split_pages("", 10).is_empty());
        assert_eq!(split_pages("👨‍👩‍👧‍👦", 2).concat(), "👨‍👩‍👧‍👦");
    }

    proptest! {
        #[test]
        fn truncated_text_is_a_prefix_within_its_limit(
            text in "[a-z .!?。！？…（）”0-9\n天地人👍é\u{301}👨\u{200d}👩]{0,200}",
            limit in 0_usize..220,
        ) {
            match truncate(&text, limit) {
                None => prop_assert!(text.chars().count() <= limit),
                Some(shortened) => {
                    prop_assert!(text.chars().count() > limit);
                    prop_assert!(shortened.chars().count() <= limit);
                    // The kept part is a prefix; the text itself may contain our ellipsis.
                    let clusters: Vec<usize> =
                        text.grapheme_indices(true).map(|(at, _)| at).chain([text.len()]).collect();
                    let beginning = |part: &str| text.starts_with(part) && clusters.contains(&part.len());
                    let unmarked = shortened.strip_suffix(ELLIPSIS);
                    prop_assert!(
                        beginning(&shortened) || unmarked.is_some_and(beginning),
                        "{shortened:?} splits a character of {text:?}"
                    );
                    // If a sentence ends within the limit, the cut is at a sentence end.
                    if let Some(end) = last_sentence_end(prefix(&text, limit)) {
                        prop_assert_eq!(shortened, text[..end].trim_end());
                    }
                }
            }
        }

        #[test]
        fn pages_preserve_arbitrary_text(text in any::<String>(), size in 1_usize..50) {
            let found = split_pages(&text, size);
            prop_assert_eq!(&found.concat(), &text);
            prop_assert!(found.iter().all(|page| !page.is_empty() && page.chars().count() <= size));
        }
    }
}
