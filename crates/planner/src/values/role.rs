//! The role of a text parameter, derived from its name, format and description.

/// The kind of text that a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Path,
    Folder,
    Pattern,
    Sheet,
    Cell,
    Range,
    Formula,
    Url,
    Mail,
    Date,
    Time,
    DateTime,
    /// An offset from a point in time: `in 2 days`.
    Shift,
    /// The target of a countdown.
    Until,
    /// A time zone, or a place with one.
    Zone,
    Place,
    Expression,
    /// A search query.
    Query,
    /// Literal text: a message, a body.
    Text,
    /// The name of a person or a thing.
    Name,
    Language,
    Currency,
    Unit,
    Id,
    /// A branch, a tag or a commit of a repository.
    Revision,
    Other,
}

/// The schema information beside the name. `tool_description` is the description of the tool.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RoleEvidence<'a> {
    pub(crate) description: &'a str,
    pub(crate) format: &'a str,
    pub(crate) tool_description: &'a str,
    pub(crate) examples: &'a [String],
}

type Row = (Role, &'static [&'static str]);

/// Roles by words of the name; the first matching row decides.
const BY_NAME: [Row; 20] = [
    (Role::Mail, &["email", "mail", "recipient", "cc", "bcc", "recipients", "emails"]),
    (Role::Url, &["url", "uri", "link", "website", "webpage"]),
    (Role::Zone, &["timezone", "tz", "zone"]),
    (Role::Language, &["language", "lang", "locale"]),
    (Role::Currency, &["currency", "currencies"]),
    (Role::Formula, &["formula"]),
    (Role::Expression, &["expression", "expr", "equation", "function", "polynomial"]),
    (Role::Sheet, &["sheet", "worksheet"]),
    (Role::Pattern, &["pattern", "glob"]),
    (Role::Range, &["range"]),
    (Role::Cell, &["cell", "cells"]),
    (Role::Folder, &["folder", "directory", "dir"]),
    (Role::Path, &["path", "file", "files", "paths", "filepath", "filename", "workbook"]),
    (Role::DateTime, &["datetime", "timestamp"]),
    (Role::Date, &["date", "birthday", "day", "deadline", "dates", "dob"]),
    (Role::Time, &["time", "hour"]),
    (Role::Query, &["query", "keyword", "keywords", "question", "search", "term", "q", "prompt"]),
    (
        Role::Place,
        &[
            "city",
            "location",
            "place",
            "country",
            "destination",
            "origin",
            "address",
            "region",
            "state",
            "town",
            "area",
            "province",
            "venue",
        ],
    ),
    (Role::Unit, &["unit", "units"]),
    (Role::Id, &["id", "code", "symbol", "ticker", "number", "handle", "identifier", "isbn", "sku"]),
];

/// Words of names whose values are identifiers of any kind: an `email_id` is not an address.
const IDS: [&str; 6] = ["id", "ids", "uuid", "guid", "uid", "identifier"];
/// Words of names for a source or a destination.
const ENDS: [&str; 6] = ["source", "destination", "src", "dst", "dest", "target"];

const TEXTS: [&str; 12] = [
    "text",
    "body",
    "content",
    "message",
    "description",
    "note",
    "comment",
    "sentence",
    "paragraph",
    "caption",
    "reply",
    "notes",
];
const NAMES: [&str; 24] = [
    "name",
    "title",
    "artist",
    "author",
    "player",
    "team",
    "company",
    "person",
    "song",
    "movie",
    "book",
    "subject",
    "user",
    "brand",
    "product",
    "item",
    "topic",
    "event",
    "genre",
    "category",
    "album",
    "actor",
    "hotel",
    "restaurant",
];

impl Role {
    /// Derives the role. `tool_description` is the description of the tool; `examples` are the examples of the parameter.
    pub(crate) fn of(words: &[String], evidence: &RoleEvidence<'_>) -> Self {
        let RoleEvidence { description, format, tool_description, examples } = *evidence;
        match format {
            "email" | "idn-email" => return Self::Mail,
            "uri" | "url" | "iri" => return Self::Url,
            "date" => return Self::Date,
            "date-time" => return Self::DateTime,
            "time" => return Self::Time,
            _ => {}
        }
        let lower = description.to_lowercase();
        let has = |listed: &[&str]| words.iter().any(|word| listed.contains(&word.as_str()));
        let mentions = |listed: &[&str]| listed.iter().any(|text| lower.contains(text));
        if words.last().is_some_and(|word| IDS.contains(&word.as_str())) {
            return Self::Id;
        }
        let about_lower = tool_description.to_lowercase();
        let tells = |listed: &[&str]| listed.iter().any(|text| about_lower.contains(text));
        let kind_of = has(&["type", "count", "kind", "number", "message", "path"]);
        if has(&["branch", "revision", "commit", "sha", "ref"]) && !kind_of
            || mentions(&["commit (its sha)", "commit sha", "commit hash"])
            || has(&["target", "base"]) && words.len() == 1 && tells(&["branch", "commit"])
        {
            return Self::Revision;
        }
        // The source and destination of a tool for files are paths.
        if words.len() == 1 && has(&ENDS) && tells(&["file", "director", "folder", "文件", "目录"]) {
            return Self::Path;
        }
        let is_shift = |example: &String| {
            example.ends_with("ago")
                || example.ends_with("天后")
                || (example.starts_with("in ") && example.contains(|c: char| c.is_ascii_digit()))
        };
        if examples.iter().any(is_shift) && !has(&["timestamp", "date", "since", "until"]) {
            return Self::Shift;
        }
        if has(&["until"]) && mentions(&["count", "days", "天"]) {
            return Self::Until;
        }
        let is_moment =
            |example: &&String| example.contains(':') && example.contains(|c: char| c.is_ascii_digit());
        if examples.iter().filter(is_moment).count() > 1
            && has(&["at", "when", "time", "moment", "start", "end"])
        {
            return Self::DateTime;
        }
        if has(&["start", "end"])
            && words.len() > 1
            && ["cell", "单元格"].iter().any(|word| tool_description.to_lowercase().contains(word))
            && !has(&["row", "col", "column", "date", "time"])
        {
            return Self::Cell;
        }
        if has(&["time", "date", "start", "end", "when", "at"])
            && mentions(&[
                "iso 8601",
                "yyyy-mm-ddt",
                "date and time",
                "日期和时间",
                "日期时间",
                "rfc 3339",
                "yyyy-mm-dd hh",
                "yyyy-mm-dd'",
            ])
        {
            return Self::DateTime;
        }
        if mentions(&["yyyy-mm-dd", "mm/dd/yyyy", "dd/mm/yyyy"]) {
            return Self::Date;
        }
        if has(&["to", "sender"]) && mentions(&["mail", "邮"]) {
            return Self::Mail;
        }
        let by_name = BY_NAME.iter().find(|(_, listed)| has(listed)).map(|(role, _)| *role);
        match by_name {
            Some(Self::Zone) if mentions(&["city", "城市"]) => Self::Zone,
            Some(Self::Path)
                if mentions(&["folder", "directory", "文件夹", "目录"])
                    && !mentions(&["file:", "path of the file", "path to the file", "文件路径"])
                    && !has(&["file", "filepath", "filename"]) =>
            {
                Self::Folder
            }
            Some(Self::Id) if has(&["name"]) => Self::Name,
            Some(role) => role,
            None if has(&["start", "end", "cell"]) && mentions(&["cell", "单元格"]) => Self::Cell,
            None if has(&["to", "cc", "bcc", "from"]) && mentions(&["mail", "邮"]) => Self::Mail,
            None if mentions(&[
                "email address",
                "e-mail address",
                "addresses of the recipients",
                "addresses that get",
                "邮箱地址",
            ]) =>
            {
                Self::Mail
            }
            None if has(&TEXTS) => Self::Text,
            None if has(&NAMES) => Self::Name,
            None if mentions(&["city", "location", "城市", "地点", "place"])
                && !mentions(&["capacity", "replace"]) =>
            {
                Self::Place
            }
            None if mentions(&["path", "路径"]) => Self::Path,
            None => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derives_roles_from_names_and_descriptions() {
        let check = |name: &str, description: &str, expect: Role| {
            let words = crate::values::parameter::words(name);
            let evidence = RoleEvidence { description, ..RoleEvidence::default() };
            assert_eq!(Role::of(&words, &evidence), expect, "{name}: {description}");
        };
        check("filepath", "Path to Excel file", Role::Path);
        check("sheet_name", "", Role::Sheet);
        check("start_cell", "", Role::Cell);
        check("startDate", "YYYY-MM-DD", Role::Date);
        check("to", "E-mail address", Role::Mail);
        check("zone", "IANA zone, city", Role::Zone);
        check("city", "", Role::Place);
        check("path", "The folder: relative to an allowed folder", Role::Folder);
        check("expression", "", Role::Expression);
        check("body", "", Role::Text);
        check("email_id", "", Role::Id);
        check("branch_name", "", Role::Revision);
        check("branch_type", "", Role::Other);
        let evidence =
            RoleEvidence { tool_description: "Moves or renames a file", ..RoleEvidence::default() };
        assert_eq!(Role::of(&["destination".to_owned()], &evidence), Role::Path);
        let evidence = RoleEvidence { tool_description: "Books a flight", ..RoleEvidence::default() };
        assert_eq!(Role::of(&["destination".to_owned()], &evidence), Role::Place);
    }
}
