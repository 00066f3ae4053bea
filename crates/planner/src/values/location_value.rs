//! Selects a place for a parameter: the part that the parameter needs, and places that are in no table.

use crate::lexer::mention::{Mention, MentionValue};
use crate::lexer::name::{is_country, zone_of};
use crate::lexer::stop_words;
use crate::lexer::token::{TokenKind, is_han};
use crate::values::candidate::MatchContext;
use crate::values::parameter::Parameter;

/// `Sydney, Australia`: the city or the country, depending on the parameter.
pub(crate) fn part(parameter: &Parameter, written: &str) -> Option<String> {
    let (city, region) =
        written.split_once(',').map_or((written, None), |(city, region)| (city, Some(region.trim())));
    if parameter.has_word(&["country", "state", "province", "nation"]) && !parameter.has_word(&["city"]) {
        let is_country = is_country(city);
        return region
            .map(str::to_owned)
            .or_else(|| (is_country || parameter.has_word(&["state", "province"])).then(|| city.to_owned()));
    }
    Some(if parameter.has_word(&["city", "town"]) { city.to_owned() } else { written.to_owned() })
}

/// The value for a time zone parameter: the IANA name if the parameter accepts only IANA names, otherwise the place as written.
pub(crate) fn zone(parameter: &Parameter, written: &str) -> String {
    let described = parameter.description.to_lowercase();
    let only_zones = described.contains("iana") && !described.contains("city") && !described.contains("城市");
    only_zones.then(|| zone_of(written)).flatten().unwrap_or(written).to_owned()
}

/// Whether a preposition of place precedes a name: `in Gotham`.
pub(crate) fn follows_place_preposition(context: &MatchContext<'_>, mention: &Mention) -> bool {
    let before = context.parsed.token_at(mention.start).checked_sub(1);
    before
        .and_then(|at| context.parsed.tokens.get(at))
        .is_some_and(|token| token.is_any(&["in", "at", "for"]))
}

/// `time in gotham`, 哥谭市几点: words in the position of a place that are in no table.
pub(crate) fn unknown(context: &MatchContext<'_>) -> Vec<(usize, usize)> {
    let (text, tokens) = (context.parsed.text, &context.parsed.tokens);
    let known = |start: usize, end: usize| {
        context.parsed.mentions.iter().any(|mention| mention.start < end && start < mention.end)
    };
    let mut found = Vec::new();
    for at in 1..tokens.len() {
        let (before, token) = (&tokens[at - 1], &tokens[at]);
        let ends = tokens.get(at + 1).is_none_or(|next| {
            next.kind == TokenKind::Mark || next.is_any(&["now", "right", "currently", "please"])
        });
        let word = token.kind == TokenKind::Word && !stop_words::is_stop(token.text) && token.text.len() > 3;
        let other =
            token.is_any(&["time", "zone", "timezone", "hours", "hour", "minutes", "days", "advance"]);
        if before.is_word("in") && word && ends && !other && !known(token.start, token.end) {
            found.push((token.start, token.end));
        }
    }
    for (at, mark) in text.match_indices(['市', '城', '岛']) {
        let head: Vec<(usize, char)> = text[..at].char_indices().rev().take(4).collect();
        let begins = head.iter().take_while(|(_, c)| is_han(*c) && !"在是问请看下我这那的个".contains(*c));
        let Some((start, _)) = begins.last().filter(|(start, _)| at - start > 3) else { continue };
        let after = text[at + mark.len()..].trim_start();
        let clock =
            ["现在", "几点", "时间", "的时间", "当地", "今天"].iter().any(|word| after.starts_with(word));
        if clock && !known(*start, at + mark.len()) {
            found.push((*start, at + mark.len()));
        }
    }
    found
}

/// `in Room 4B`, `to Room Amsterdam`: at least two capitalised words or numbers after a preposition.
pub(crate) fn capitals(context: &MatchContext<'_>) -> Option<(usize, usize)> {
    let tokens = &context.parsed.tokens;
    let large = |at: usize| {
        tokens.get(at).is_some_and(|token| {
            token.is_capital()
                || token.kind == TokenKind::Number && token.text.len() <= 4 && !is_clock(context, token.start)
        })
    };
    (1..tokens.len()).find_map(|at| {
        if !tokens[at - 1].is_any(&["in", "at", "to", "into"]) || !tokens[at].is_capital() {
            return None;
        }
        let mut last = at;
        while large(last + 1)
            && context
                .parsed
                .text
                .get(tokens[last].end..tokens[last + 1].start)
                .is_some_and(|gap| gap.len() <= 1)
        {
            last += 1;
        }
        (last > at).then(|| (tokens[at].start, tokens[last].end))
    })
}

/// Whether a number is part of a date or a time.
fn is_clock(context: &MatchContext<'_>, start: usize) -> bool {
    context.parsed.mentions.iter().any(|mention| {
        matches!(mention.value, MentionValue::Moment(_)) && mention.start <= start && start < mention.end
    })
}

/// `…, in the gym`, `…, at the office`: a location in a clause of its own.
pub(crate) fn separate_location(context: &MatchContext<'_>) -> Option<(usize, usize)> {
    let text = context.parsed.text;
    let lower = text.to_ascii_lowercase();
    let leads = [", in the ", ", at the ", ", in ", ", at "];
    let (at, lead) = leads.iter().find_map(|lead| lower.find(lead).map(|at| (at, *lead)))?;
    let start = at + lead.len();
    let rest = text.get(start..)?;
    let end = rest.find([',', '.', ';', '?']).unwrap_or(rest.len());
    let words = rest[..end].split_whitespace().count();
    let literal = context.parsed.mentions.iter().any(|mention| {
        !matches!(mention.value, MentionValue::Name | MentionValue::Place)
            && mention.start < start + end
            && start < mention.end
    });
    let other =
        rest[..end].split_whitespace().any(|word| ["with", "and", "for", "my", "calendar"].contains(&word));
    ((1..=4).contains(&words) && !literal && !other).then(|| (start, start + rest[..end].trim_end().len()))
}

/// 李经理发来的邮件, 来自 王总 的邮件: the name of the sender.
pub(crate) fn sender(context: &MatchContext<'_>) -> Option<(usize, usize)> {
    let text = context.parsed.text;
    let name = |c: char| is_han(c) && !"的一下找搜查看把给有我在从是要".contains(c);
    if let Some(at) = text.find("来自").map(|at| at + "来自".len()) {
        let rest = text[at..].trim_start();
        let start = text.len() - rest.len();
        let end = rest.find(|c: char| !name(c)).unwrap_or(rest.len());
        return (end > 0).then_some((start, start + end));
    }
    let verbs = ["发给我的", "发过来的", "发来的", "寄来的", "写来的", "发的"];
    let at = verbs.iter().find_map(|verb| text.find(verb))?;
    // 孙莉 从 2026-04-01 起发来的: a date may stand between the name and the verb.
    let before = text[..at].trim_end_matches(['起', '以', '后', '来', '之', '前', '间', ' ']);
    let day = context.parsed.mentions.iter().rev().find(|mention| {
        matches!(mention.value, MentionValue::Moment(_)) && mention.end == before.len() && mention.end < at
    });
    let at = match day {
        Some(day) => {
            let head = text[..day.start].trim_end().trim_end_matches(['从', '自', '在', '于']).trim_end();
            let mail = |mention: &&Mention| {
                matches!(mention.value, MentionValue::Literal(crate::lexer::literal::Literal::Mail(_)))
                    && mention.end == head.len()
            };
            if let Some(mail) = context.parsed.mentions.iter().find(mail) {
                return Some((mail.start, mail.end));
            }
            head.len()
        }
        None => at,
    };
    let start = text[..at].char_indices().rev().take_while(|(_, c)| name(*c)).last()?.0;
    // 2026-04-10 起陈立发来的: a word of time before the name is not part of it.
    let time = ["之前", "之后", "以来", "以后", "以前", "起"]
        .iter()
        .find(|word| text[start..at].starts_with(**word));
    let start = start + time.map_or(0, |word| word.len());
    let length = text[start..at].chars().count();
    (2..=5).contains(&length).then_some((start, at))
}
/// `in room A12`: a room by its number.
pub(crate) fn find_room(text: &str) -> Option<(usize, usize)> {
    let lower = text.to_ascii_lowercase();
    let leads = [
        " in room ",
        " at room ",
        " in meeting room ",
        " in conference room ",
        " in the conference room ",
        " in hall ",
        " in building ",
    ];
    let (at, lead) = leads.iter().find_map(|lead| lower.find(lead).map(|at| (at, *lead)))?;
    let words = if lead.starts_with(" at ") || lead.starts_with(" in ") { 4 } else { 1 };
    let number = at + lead.len();
    let rest = &text[number..];
    let length = rest.find(|c: char| !c.is_alphanumeric() && c != '.' && c != '-').unwrap_or(rest.len());
    let end = number + rest[..length].trim_end_matches('.').len();
    (end > number && text[number..end].contains(|c: char| c.is_ascii_digit())).then_some((at + words, end))
}
/// Whether `at` or `in` stands directly before a name.
pub(crate) fn follows_at_or_in(context: &MatchContext<'_>, mention: &Mention) -> bool {
    let before = context.parsed.text.get(..mention.start).unwrap_or_default().trim_end();
    let last = before.rsplit(' ').next().unwrap_or_default();
    ["at", "in"].iter().any(|word| last.eq_ignore_ascii_case(word))
}
