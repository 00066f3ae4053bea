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
        let clues = Clues {
            words,
            description: evidence.description.to_lowercase(),
            tool_description: evidence.tool_description.to_lowercase(),
            examples: evidence.examples,
        };
        role_of_format(evidence.format)
            .or_else(|| clues.reference())
            .or_else(|| clues.time_by_examples())
            .or_else(|| clues.corner_of_cells())
            .or_else(|| clues.time_by_description())
            .or_else(|| clues.mail_participant())
            .unwrap_or_else(|| clues.by_words())
    }
}

/// The role that the keyword `format` of the schema gives.
fn role_of_format(format: &str) -> Option<Role> {
    match format {
        "email" | "idn-email" => Some(Role::Mail),
        "uri" | "url" | "iri" => Some(Role::Url),
        "date" => Some(Role::Date),
        "date-time" => Some(Role::DateTime),
        "time" => Some(Role::Time),
        _ => None,
    }
}

/// The words that a role is derived from.
struct Clues<'a> {
    /// The words of the parameter's name.
    words: &'a [String],
    /// In lowercase.
    description: String,
    /// In lowercase.
    tool_description: String,
    examples: &'a [String],
}

impl Clues<'_> {
    /// Whether one of these is a word of the parameter's name.
    fn has(&self, listed: &[&str]) -> bool {
        self.words.iter().any(|word| listed.contains(&word.as_str()))
    }

    /// Whether the description of the parameter contains one of these.
    fn mentions(&self, listed: &[&str]) -> bool {
        listed.iter().any(|text| self.description.contains(text))
    }

    /// Whether the description of the tool contains one of these.
    fn tool_mentions(&self, listed: &[&str]) -> bool {
        listed.iter().any(|text| self.tool_description.contains(text))
    }

    /// An ID, a revision of a repository, or the source or destination of a tool for files.
    fn reference(&self) -> Option<Role> {
        if self.words.last().is_some_and(|word| IDS.contains(&word.as_str())) {
            return Some(Role::Id);
        }
        let is_kind_of = self.has(&["type", "count", "kind", "number", "message", "path"]);
        if self.has(&["branch", "revision", "commit", "sha", "ref"]) && !is_kind_of
            || self.mentions(&["commit (its sha)", "commit sha", "commit hash"])
            || self.has(&["target", "base"])
                && self.words.len() == 1
                && self.tool_mentions(&["branch", "commit"])
        {
            return Some(Role::Revision);
        }
        let is_end_of_files = self.words.len() == 1
            && self.has(&ENDS)
            && self.tool_mentions(&["file", "director", "folder", "文件", "目录"]);
        is_end_of_files.then_some(Role::Path)
    }

    /// A time that the examples show: `3 days ago`, `2026-03-01 10:00`.
    fn time_by_examples(&self) -> Option<Role> {
        let is_shift = |example: &String| {
            example.ends_with("ago")
                || example.ends_with("天后")
                || (example.starts_with("in ") && example.contains(|c: char| c.is_ascii_digit()))
        };
        if self.examples.iter().any(is_shift) && !self.has(&["timestamp", "date", "since", "until"]) {
            return Some(Role::Shift);
        }
        if self.has(&["until"]) && self.mentions(&["count", "days", "天"]) {
            return Some(Role::Until);
        }
        let is_moment =
            |example: &&String| example.contains(':') && example.contains(|c: char| c.is_ascii_digit());
        let shows_moments = self.examples.iter().filter(is_moment).count() > 1;
        (shows_moments && self.has(&["at", "when", "time", "moment", "start", "end"]))
            .then_some(Role::DateTime)
    }

    /// The first or the last cell of a range: `start_of_range`.
    fn corner_of_cells(&self) -> Option<Role> {
        let is_corner = self.has(&["start", "end"])
            && self.words.len() > 1
            && self.tool_mentions(&["cell", "单元格"])
            && !self.has(&["row", "col", "column", "date", "time"]);
        is_corner.then_some(Role::Cell)
    }

    /// A time whose notation the description gives.
    fn time_by_description(&self) -> Option<Role> {
        if self.has(&["time", "date", "start", "end", "when", "at"])
            && self.mentions(&[
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
            return Some(Role::DateTime);
        }
        self.mentions(&["yyyy-mm-dd", "mm/dd/yyyy", "dd/mm/yyyy"]).then_some(Role::Date)
    }

    /// The sender or the recipient of a mail.
    fn mail_participant(&self) -> Option<Role> {
        (self.has(&["to", "sender"]) && self.mentions(&["mail", "邮"])).then_some(Role::Mail)
    }

    /// The role by the words of the name; for other names by those of the description.
    fn by_words(&self) -> Role {
        let by_name = BY_NAME.iter().find(|(_, listed)| self.has(listed)).map(|(role, _)| *role);
        match by_name {
            Some(Role::Zone) if self.mentions(&["city", "城市"]) => Role::Zone,
            Some(Role::Path)
                if self.mentions(&["folder", "directory", "文件夹", "目录"])
                    && !self.mentions(&["file:", "path of the file", "path to the file", "文件路径"])
                    && !self.has(&["file", "filepath", "filename"]) =>
            {
                Role::Folder
            }
            Some(Role::Id) if self.has(&["name"]) => Role::Name,
            Some(role) => role,
            None => self.by_description(),
        }
    }

    fn by_description(&self) -> Role {
        if self.has(&["start", "end", "cell"]) && self.mentions(&["cell", "单元格"]) {
            Role::Cell
        } else if self.takes_addresses() {
            Role::Mail
        } else if self.has(&TEXTS) {
            Role::Text
        } else if self.has(&NAMES) {
            Role::Name
        } else if self.mentions(&["city", "location", "城市", "地点", "place"])
            && !self.mentions(&["capacity", "replace"])
        {
            Role::Place
        } else if self.mentions(&["path", "路径"]) {
            Role::Path
        } else {
            Role::Other
        }
    }

    fn takes_addresses(&self) -> bool {
        let addresses = [
            "email address",
            "e-mail address",
            "addresses of the recipients",
            "addresses that get",
            "邮箱地址",
        ];
        self.has(&["to", "cc", "bcc", "from"]) && self.mentions(&["mail", "邮"]) || self.mentions(&addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derives_roles_from_names_and_descriptions() {
        let check = |name: &str, description: &str, expect: Role| {
            let words = crate::values::parameter::name_words(name);
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
