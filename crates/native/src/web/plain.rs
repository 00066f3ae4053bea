//! Converts text from search services to plain text: without tags, entities and line breaks.

/// Tags that do not separate words.
const INLINE: [&str; 23] = [
    "a", "abbr", "b", "bdi", "cite", "code", "em", "font", "i", "kbd", "mark", "q", "s", "small", "span",
    "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
];
/// Tags that separate words.
const BLOCK: [&str; 25] = [
    "blockquote",
    "br",
    "dd",
    "div",
    "dl",
    "dt",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "img",
    "li",
    "ol",
    "p",
    "pre",
    "script",
    "section",
    "style",
    "table",
    "td",
    "tr",
    "ul",
];
const MAX_TAG: usize = 1_000;

/// The text on one line, as displayed. Only HTML tags are removed: `Vec<String>` is kept.
pub(super) fn plain(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        bare.push_str(&rest[..start]);
        rest = &rest[start..];
        match tag(rest) {
            Some((length, between)) => {
                bare.push_str(between);
                rest = &rest[length..];
            }
            None => {
                bare.push('<');
                rest = &rest[1..];
            }
        }
    }
    bare.push_str(rest);
    // Entities are decoded last: `&lt;b&gt;` means the characters, not a tag.
    let text = html_escape::decode_html_entities(&bare);
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// The length of the tag at the start of `text`, and its replacement.
fn tag(text: &str) -> Option<(usize, &'static str)> {
    if let Some(comment) = text.strip_prefix("<!--") {
        return comment.find("-->").map(|end| (end + "<!---->".len(), ""));
    }
    let inside = &text[1..];
    let inside = inside.strip_prefix('/').unwrap_or(inside);
    let end = inside.find(|c: char| !c.is_ascii_alphanumeric())?;
    let (name, after) = inside.split_at(end);
    let between = kind(name)?;
    let close =
        after.find(['<', '>']).filter(|close| *close < MAX_TAG && after[*close..].starts_with('>'))?;
    let parted = after.starts_with(|c: char| c.is_whitespace() || c == '/' || c == '>');
    parted.then_some((text.len() - after.len() + close + 1, between))
}

/// The replacement of a tag; `None` if the name is unknown. A single capital letter is more likely a type parameter.
fn kind(name: &str) -> Option<&'static str> {
    let lower = if name.len() == 1 { name.to_owned() } else { name.to_ascii_lowercase() };
    if INLINE.contains(&lower.as_str()) { Some("") } else { BLOCK.contains(&lower.as_str()).then_some(" ") }
}
