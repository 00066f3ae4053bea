//! A mention of the request as the value of a parameter: the text that is passed, and the score by the parameter's role.

use crate::lexer::file_extension::{is_bare_file, is_extension};
use crate::lexer::labels;
use crate::lexer::literal::Literal;
use crate::lexer::mention::{Mention, MentionValue};
use crate::lexer::name::is_place;
use crate::lexer::number::Number;
use crate::spreadsheet::cell_like_name::{is_called, names_sheet};
use crate::spreadsheet::format_value;
use crate::values::candidate::{FAIR, GOOD, MatchContext, POOR};
use crate::values::file_value;
use crate::values::location_value;
use crate::values::message_value;
use crate::values::parameter::Parameter;
use crate::values::relative_folder;
use crate::values::role::Role;
use crate::values::transfer_value;

/// The score of a value that is used only if no other parameter takes it.
const FALLBACK_SCORE: f32 = 0.9;

/// The text and the score of a mention as the value of a parameter; `None` if it does not fit.
pub(crate) fn text_and_score(
    parameter: &Parameter,
    context: &MatchContext<'_>,
    mention: &Mention,
) -> Option<(String, f32)> {
    let pairing = Pairing { parameter, context, mention };
    match &mention.value {
        MentionValue::Literal(literal) => pairing.literal(literal),
        MentionValue::Number(number) => pairing.number(number),
        MentionValue::Name | MentionValue::Holiday => pairing.name(),
        MentionValue::Place => pairing.place(),
        MentionValue::Moment(_) => None,
    }
}

/// A parameter and a mention that may be its value.
struct Pairing<'a> {
    parameter: &'a Parameter,
    context: &'a MatchContext<'a>,
    mention: &'a Mention,
}

impl Pairing<'_> {
    fn written(&self) -> String {
        self.context.parsed.written(self.mention).to_owned()
    }

    /// Whether the mention is one of the tool's own words, which denote its action.
    fn is_tool_word(&self) -> bool {
        self.context.tool_words.contains(&labels::stem(&self.written()))
    }

    fn literal(&self, literal: &Literal) -> Option<(String, f32)> {
        let (text, score) = match literal {
            Literal::Path(text) => (text, self.path_score(text)?),
            Literal::Code(text) => (text, self.code_score(text)?),
            Literal::Url(text) => (text, self.url_score()?),
            Literal::Mail(text) => (text, self.mail_score()?),
            Literal::Cells(text) => (text, self.cells_score(text)?),
            Literal::Quoted(text) => (text, self.quoted_score(text)?),
            Literal::Formula(text) if self.parameter.role == Role::Formula => (text, GOOD + 1.0),
            Literal::Formula(_) | Literal::Json(_) => return None,
        };
        Some((text.clone(), score))
    }

    fn path_score(&self, path: &str) -> Option<f32> {
        match self.parameter.role {
            Role::Pattern if path.contains('*') => Some(GOOD),
            Role::Pattern if is_bare_file(path) && !path.contains('/') => Some(GOOD + 0.2),
            Role::Folder if file_value::is_mail(self.context) => None,
            Role::Path | Role::Folder if !path.contains('*') => self.file_or_folder_score(path),
            Role::Name | Role::Other | Role::Id => Some(POOR * 0.5),
            _ => None,
        }
    }

    /// The score of a path without wildcards for a parameter that takes a file or a folder.
    fn file_or_folder_score(&self, path: &str) -> Option<f32> {
        let (parameter, context) = (self.parameter, self.context);
        let is_file = path.rsplit('/').next().is_some_and(|name| name.trim_start_matches('.').contains('.'))
            || is_bare_file(path);
        let leading_words = &context.tool_words[..context.tool_words.len().min(4)];
        if is_file && parameter.words == ["path"] && leading_words.iter().any(|word| word == "directory") {
            return None;
        }
        // A file is not a folder.
        let has_extension = || path.rsplit('.').next().is_some_and(is_extension);
        if is_file && parameter.role == Role::Folder && has_extension() {
            return None;
        }
        if is_file && file_value::names_repository(parameter, context) {
            return None;
        }
        let takes_folder =
            parameter.role == Role::Folder || parameter.has_word(&["repo", "repository", "project"]);
        let base = if takes_folder && is_file { POOR } else { GOOD };
        Some(if transfer_value::is_target(parameter) { base - FAIR } else { base })
    }

    fn code_score(&self, code: &str) -> Option<f32> {
        if self.is_tool_word() {
            return None;
        }
        let parameter = self.parameter;
        match parameter.role {
            Role::Path
                if code.contains('/')
                    && relative_folder::fits(parameter, self.context.parsed, self.mention) =>
            {
                Some(if transfer_value::is_target(parameter) { FAIR } else { GOOD })
            }
            _ if format_value::is_colour(code) => parameter.has_word(&["color", "colour"]).then_some(FAIR),
            Role::Id if !code.to_lowercase().starts_with("sheet") => {
                Some(GOOD + id_prefix_score(parameter, code))
            }
            Role::Id | Role::Name | Role::Other => Some(FAIR),
            Role::Sheet => Some(FALLBACK_SCORE),
            Role::Zone if code.contains('/') => Some(GOOD + 0.2),
            _ => None,
        }
    }

    fn url_score(&self) -> Option<f32> {
        match self.parameter.role {
            Role::Url => Some(GOOD + 0.5),
            Role::Other | Role::Text | Role::Query => Some(FAIR),
            _ => None,
        }
    }

    fn mail_score(&self) -> Option<f32> {
        match self.parameter.role {
            Role::Mail => Some(GOOD + 0.5),
            Role::Id if self.is_returned_by_tool() => None,
            Role::Name | Role::Other | Role::Id => {
                Some(FAIR + message_value::of_address(self.parameter, self.context, self.mention))
            }
            _ => None,
        }
    }

    /// Whether the description of the parameter says that another tool returns its value: `list_events gives it`.
    fn is_returned_by_tool(&self) -> bool {
        self.parameter.description.contains(" gives it")
    }

    fn cells_score(&self, cells: &str) -> Option<f32> {
        let is_sheet = || names_sheet(self.context, self.mention);
        match self.parameter.role {
            Role::Range => Some(if cells.contains(':') { GOOD + 0.5 } else { FAIR }),
            Role::Cell if !cells.contains(':') => Some(if is_sheet() { -GOOD } else { GOOD }),
            Role::Id => Some(POOR),
            Role::Sheet => is_sheet().then_some(FALLBACK_SCORE),
            Role::Name | Role::Other => (is_sheet() || is_called(self.context, self.mention)).then_some(FAIR),
            _ => None,
        }
    }

    fn quoted_score(&self, text: &str) -> Option<f32> {
        // An ID is a single word; an ID that another tool returns contains a digit or an underscore.
        let is_malformed_id = || {
            text.contains([' ', '/', '\\'])
                || self.is_returned_by_tool() && !text.contains(|c: char| c.is_ascii_digit() || c == '_')
        };
        match self.parameter.role {
            Role::Id if is_malformed_id() => None,
            Role::Text | Role::Query | Role::Name => Some(GOOD),
            Role::Expression if !text.contains(|c: char| c.is_ascii_digit() || "()^*+/=".contains(c)) => None,
            Role::Other | Role::Id | Role::Expression | Role::Place | Role::Revision => Some(FAIR + 0.5),
            Role::Sheet => Some(FALLBACK_SCORE),
            Role::Path | Role::Folder if is_rooted(text) && file_value::has_plain_path(self.context) => {
                Some(POOR)
            }
            Role::Path | Role::Folder if is_rooted(text) => Some(GOOD),
            Role::Path | Role::Folder | Role::Pattern if text.contains(['.', '/', '\\']) => Some(FAIR),
            Role::Path | Role::Folder if !text.contains(' ') => Some(POOR),
            Role::Formula if text.starts_with('=') => Some(FAIR),
            Role::Language | Role::Unit | Role::Currency => Some(FAIR),
            _ => None,
        }
    }

    fn place(&self) -> Option<(String, f32)> {
        let written = self.written();
        match self.parameter.role {
            Role::Place => Some((location_value::part(self.parameter, &written)?, GOOD + 0.2)),
            Role::Zone => Some((location_value::zone(self.parameter, &written), GOOD + 0.2)),
            Role::Name | Role::Other => Some((written, FAIR)),
            _ => None,
        }
    }

    /// A name or a holiday. Only names can be time zones.
    fn name(&self) -> Option<(String, f32)> {
        let written = self.written();
        let is_name = self.mention.value == MentionValue::Name;
        match self.parameter.role {
            Role::Zone if is_name => {
                let score = self.zone_score(&written);
                Some((written, score))
            }
            // `at Room 12`: a name after `at` is a place. Of other names only the part after `of` is used if it is a place: `King
            // of France` gives France.
            Role::Place if is_name && location_value::follows_at_or_in(self.context, self.mention) => {
                Some((written, GOOD + 0.1))
            }
            Role::Place => match written.rsplit_once(" of ") {
                Some((_, place)) if is_place(place) => Some((place.to_owned(), FAIR + 0.5)),
                _ => Some((written, FAIR + 0.3)),
            },
            Role::Name if !self.is_tool_word() => Some((written, FAIR + 0.7)),
            Role::Other if !self.is_tool_word() => Some((written, FAIR + 0.5)),
            Role::Id => Some((written, POOR)),
            _ => None,
        }
    }

    /// The score of a name as a time zone. A place that is in no table is passed on; the clock tool then reports that it is
    /// unknown.
    fn zone_score(&self, name: &str) -> f32 {
        if ["UTC", "GMT"].contains(&name) {
            return GOOD + 0.2;
        }
        if location_value::follows_place_preposition(self.context, self.mention) { GOOD } else { POOR }
    }

    fn number(&self, number: &Number) -> Option<(String, f32)> {
        let score = match self.parameter.role {
            Role::Id if number.percent => return None,
            Role::Id if message_value::is_listed(self.parameter, self.context, self.mention) => GOOD,
            Role::Id | Role::Other | Role::Name | Role::Text => POOR * 0.6,
            _ => return None,
        };
        Some((plain_number(self.context.parsed.written(self.mention))?, score))
    }
}

/// `evt_310` belongs to an event: the score that the letters of an ID add or subtract for a parameter.
fn id_prefix_score(parameter: &Parameter, code: &str) -> f32 {
    let prefix: String = code.chars().take_while(char::is_ascii_lowercase).collect();
    if prefix.len() < 2 || prefix.len() == code.len() || !parameter.has_word(&["id"]) {
        return 0.0;
    }
    let abbreviates = |word: &str| {
        let mut letters = prefix.chars().peekable();
        word.chars().for_each(|c| {
            letters.next_if_eq(&c);
        });
        letters.peek().is_none() && word.starts_with(&prefix[..1])
    };
    let described = parameter.description.to_lowercase();
    let mut words =
        parameter.words.iter().map(String::as_str).chain(described.split(|c: char| !c.is_alphabetic()));
    if words.any(abbreviates) { 0.4 } else { -0.4 }
}

fn is_rooted(text: &str) -> bool {
    ["/", "~/", "./", "../"].iter().any(|root| text.starts_with(root))
}

/// The digits, sign and decimal point of a number, without its unit.
fn plain_number(written: &str) -> Option<String> {
    let plain: String = written.chars().filter(|c| c.is_ascii_digit() || ".-".contains(*c)).collect();
    plain.contains(|c: char| c.is_ascii_digit()).then_some(plain)
}
