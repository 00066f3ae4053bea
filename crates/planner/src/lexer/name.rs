//! Proper names in a request: capitalised English words, and places in English and Chinese from a table.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use toolhub_core::name_tables;

use crate::lexer::token::{Token, TokenKind, is_han};

/// The place names of the clock tool. Planner and tool share the tables, so that every planned place can be resolved.
const TABLES: [&str; 2] = [name_tables::CITIES, name_tables::COUNTRIES];

/// The maximum length of a Chinese place name in characters.
const MAX_PLACE_CHARS: usize = 10;
/// The maximum length of an English place name in words.
const MAX_PLACE_WORDS: usize = 5;

static PLACES: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let rows = TABLES.iter().flat_map(|table| table.lines()).filter(|line| !line.starts_with('#'));
    let names = rows.flat_map(|row| row.split('\t').take(2)).flat_map(|names| names.split('|'));
    names.filter(|name| !name.is_empty()).map(str::to_lowercase).collect()
});

static COUNTRIES: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let rows = TABLES[1].lines().filter(|line| !line.starts_with('#'));
    let names = rows.flat_map(|row| row.split('\t').take(2)).flat_map(|names| names.split('|'));
    names.filter(|name| !name.is_empty()).map(str::to_lowercase).collect()
});

/// The time zone of each place; `None` if it is not unique.
static ZONES: LazyLock<HashMap<String, Option<&'static str>>> = LazyLock::new(|| {
    let mut zones: HashMap<String, Option<&'static str>> = HashMap::new();
    for row in TABLES.iter().flat_map(|table| table.lines()).filter(|line| !line.starts_with('#')) {
        let columns: Vec<&'static str> = row.split('\t').collect();
        let zone = columns.get(2).copied().filter(|zone| !zone.contains('|') && !zone.is_empty());
        for name in columns.iter().take(2).flat_map(|names| names.split('|')).filter(|name| !name.is_empty())
        {
            zones
                .entry(name.to_lowercase())
                .and_modify(|known| *known = known.filter(|known| Some(*known) == zone))
                .or_insert(zone);
        }
    }
    zones
});

/// The IANA time zone of a place, if the tables give exactly one.
pub(crate) fn zone_of(name: &str) -> Option<&'static str> {
    let name = name.trim().to_lowercase();
    let bare = name.trim_end_matches(['市', '省', '州']);
    let first = name.split([',', '，']).next().unwrap_or_default().trim();
    [name.as_str(), bare, first].iter().find_map(|name| ZONES.get(*name).copied().flatten())
}

/// Whether a name is the name of a country.
pub(crate) fn is_country(name: &str) -> bool {
    COUNTRIES.contains(&name.trim().to_lowercase()) || ["USA", "UK", "US", "UAE"].contains(&name.trim())
}

/// Words that are capitalised at the start of a sentence or are not names.
const NON_NAMES: &str = " i i'm i'd i've i'll a an the what what's which who whom whose when where why how is are was \
were do does did can could would should will please find get give show tell calculate compute create make \
book send write read open list search look check help if in on at for from to of and or also then next after before \
with using use my me we our you your it its there this that these those suppose given let imagine \
provide return determine predict generate convert translate add set update delete remove schedule remind turn \
play order buy sell compare summarize analyze estimate fetch retrieve display draw plot solve evaluate simulate \
celsius fahrenheit kelvin monday tuesday wednesday thursday friday saturday sunday january february \
march april may june july august september october november december today tomorrow yesterday first second third finally \
lastly secondly firstly additionally furthermore moreover similarly assuming considering between during however \
ok okay yes no not am pm both each every all some any as by be has have had identify locate obtain download upload \
recommend suggest need want could hello hi hey thanks thank dear explain describe rename copy move insert apply merge \
sum multiply divide subtract ";

/// States and provinces that follow a city: `Miami, Florida`.
const STATES: &str = "|alabama|alaska|arizona|arkansas|california|colorado|connecticut|delaware|florida|georgia|hawaii|idaho|\
illinois|indiana|iowa|kansas|kentucky|louisiana|maine|maryland|massachusetts|michigan|minnesota|mississippi|missouri|montana|\
nebraska|nevada|new hampshire|new jersey|new mexico|new york|north carolina|north dakota|ohio|oklahoma|oregon|pennsylvania|\
rhode island|south carolina|south dakota|tennessee|texas|utah|vermont|virginia|washington|west virginia|wisconsin|wyoming|\
ontario|quebec|british columbia|alberta|manitoba|nova scotia|queensland|victoria|new south wales|bavaria|england|scotland|wales|";

/// Lowercase words inside names.
const JOINTS: [&str; 11] = ["of", "the", "de", "la", "van", "von", "del", "da", "di", "du", "&"];

/// A name and the index of the token after it.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    pub(crate) after: usize,
    pub(crate) is_place: bool,
}

pub(crate) fn is_place(name: &str) -> bool {
    let name = name.to_lowercase();
    let bare = name.trim_end_matches(['市', '省', '县', '区', '州']);
    let first = name.split([',', '，']).next().unwrap_or_default().trim();
    [name.as_str(), bare, first].iter().any(|name| PLACES.contains(*name))
        || first.strip_suffix(" city").is_some_and(|name| PLACES.contains(name))
}

/// Reads the name that starts at token `at`. `free` returns whether a token is not part of another mention.
pub(crate) fn read(
    text: &str,
    tokens: &[Token<'_>],
    at: usize,
    free: &dyn Fn(usize) -> bool,
) -> Option<Name> {
    let token = tokens.get(at)?;
    match token.kind {
        TokenKind::Han => chinese(tokens, at, free),
        TokenKind::Word => english(text, tokens, at, free),
        TokenKind::Number | TokenKind::Mark => None,
    }
}

fn chinese(tokens: &[Token<'_>], at: usize, free: &dyn Fn(usize) -> bool) -> Option<Name> {
    let run: Vec<&str> = tokens[at..]
        .iter()
        .enumerate()
        .take(MAX_PLACE_CHARS)
        .take_while(|(place, token)| token.kind == TokenKind::Han && free(at + place))
        .map(|(_, token)| token.text)
        .collect();
    let length = (2..=run.len()).rev().find(|length| PLACES.contains(&run[..*length].concat()))?;
    // 在日历里加一个: 里 after a noun is a postposition, not part of a place name.
    let noun = at.checked_sub(1).and_then(|before| tokens.get(before)).is_some_and(|before| {
        before.kind == TokenKind::Han
            && before.end == tokens[at].start
            && !"去到在飞离和与、".contains(before.text)
    });
    if run[0] == "里" && noun {
        return None;
    }
    let suffix = run.get(length).is_some_and(|next| matches!(*next, "市" | "省" | "县"));
    // 上海浦东, 美国纽约: adjacent place names form one place.
    let mut after = at + length + usize::from(suffix);
    if let Some(more) = chinese(tokens, after, free) {
        after = more.after;
    }
    Some(Name { after, is_place: true })
}

fn english(text: &str, tokens: &[Token<'_>], at: usize, free: &dyn Fn(usize) -> bool) -> Option<Name> {
    // A place may be written in lowercase: `weather in tokyo`.
    let place = (1..=MAX_PLACE_WORDS).rev().find(|length| {
        let Some(words) = tokens.get(at..at + length) else { return false };
        let joined = words.windows(2).all(|pair| text[pair[0].end..pair[1].start] == *" ");
        let name = &text[words[0].start..words[words.len() - 1].end];
        joined
            && (0..*length).all(|place| free(at + place))
            && name.len() > 3
            && PLACES.contains(&name.to_lowercase())
            && (words[0].is_capital() || !is_common(name))
    });
    let begins = |at: usize| {
        let Some(before) = at.checked_sub(1).and_then(|before| tokens.get(before)) else { return true };
        matches!(before.text, "." | "?" | "!" | ":" | "\"" | "。" | "？" | "！")
            || text[before.end..tokens[at].start].contains('\n')
    };
    let capital = |at: usize| {
        tokens.get(at).is_some_and(|token| token.is_capital() && !is_no_name(token.text)) && free(at)
    };
    let mut after = at + place.unwrap_or(0);
    if place.is_none() {
        let token = tokens.get(at)?;
        let second = capital(at + 1) && tokens.get(at + 1).is_some_and(|next| next.start == token.end + 1);
        let is_acronym =
            token.text.len() > 1 && token.text.chars().all(|c| c.is_uppercase() || !c.is_alphabetic());
        if !capital(at) || (begins(at) && !second && !is_acronym) {
            return None;
        }
        if token.text.chars().count() == 1 && (begins(at) || token.is_word("I")) {
            return None;
        }
        after = at + 1;
    }
    loop {
        let close = |at: usize| {
            tokens
                .get(at)
                .is_some_and(|next| at > 0 && text[tokens[at - 1].end..next.start].chars().all(|c| c == ' '))
        };
        if capital(after) && close(after) {
            after += 1;
        } else if tokens.get(after).is_some_and(|next| next.text == "." && tokens[after - 1].text.len() <= 4)
            && capital(after + 1)
            && is_short_form(tokens[after - 1].text)
        {
            after += 2;
        } else if tokens.get(after).is_some_and(|next| next.is_any(&JOINTS)) && close(after) {
            let article = usize::from(tokens.get(after + 1).is_some_and(|next| next.is_word("the")));
            if !capital(after + 1 + article) {
                break;
            }
            after += 2 + article;
        } else if tokens[after - 1].is_any(&ROOMS)
            && close(after)
            && free(after)
            && tokens.get(after).is_some_and(|next| next.kind == TokenKind::Number)
        {
            after += 1;
            break;
        } else {
            after += region(text, tokens, at..after, free);
            break;
        }
    }
    let full_name = text.get(tokens[at].start..tokens[after - 1].end)?;
    let first = full_name.split(',').next().unwrap_or_default();
    Some(Name {
        after,
        is_place: is_place(full_name) || is_place(first) || (full_name.contains(", ") && place.is_some()),
    })
}

/// Words for places that are followed by a number: `Room 12`.
const ROOMS: [&str; 12] = [
    "Room", "Hall", "Building", "Gate", "Floor", "Suite", "Platform", "Studio", "Lab", "Office", "Terminal",
    "Zone",
];

/// Common words that are also the names of small places.
fn is_common(name: &str) -> bool {
    [
        "nice", "reading", "mobile", "bath", "male", "orange", "split", "turkey", "chad", "georgia",
        "jordan", "most", "bar", "same",
    ]
    .contains(&name)
}

fn is_no_name(word: &str) -> bool {
    let word = word.to_lowercase().replace('’', "'");
    NON_NAMES.contains(&format!(" {word} ")) || (word.len() > 3 && crate::lexer::units::of(&word).is_some())
}

fn is_short_form(word: &str) -> bool {
    ["Dr", "Mr", "Mrs", "Ms", "St", "Prof", "Jr", "Mt"].contains(&word) || word.len() == 1
}

/// `, CA` or `, United Kingdom` after a place: the number of tokens of the region.
fn region(text: &str, tokens: &[Token<'_>], place: Range<usize>, free: &dyn Fn(usize) -> bool) -> usize {
    let Range { start: from, end: at } = place;
    let Some(comma) = tokens.get(at).filter(|comma| comma.text == ",") else { return 0 };
    let name = text.get(tokens[from].start..comma.start).unwrap_or_default().trim();
    for length in (1..=3).rev() {
        let Some(words) = tokens.get(at + 1..at + 1 + length) else { continue };
        let region_text = text.get(words[0].start..words[length - 1].end).unwrap_or_default();
        let letters = region_text.len() == 2 && region_text.bytes().all(|byte| byte.is_ascii_uppercase());
        let state = STATES.contains(&format!("|{}|", region_text.to_lowercase()));
        let country = (is_country(region_text) || state) && !is_country(name) && words[0].is_capital();
        if (letters || country) && (1..=length).all(|place| free(at + place)) {
            return length + 1;
        }
    }
    0
}

/// Whether a text contains Chinese characters.
pub(crate) fn has_han(text: &str) -> bool {
    text.contains(is_han)
}

/// Whether a run of 2 to 8 characters has a space before it and whitespace, punctuation or the end of the text after it. Names
/// are written this way.
pub(crate) fn stands_alone(text: &str, start: usize, length: usize) -> bool {
    const MAX_NAME_CHARS: usize = 8;
    let run = text.get(start..start + length).unwrap_or_default();
    let after = text.get(start + length..).unwrap_or_default().chars().next();
    text.get(..start).is_some_and(|before| before.ends_with(' '))
        && after.is_none_or(|c| c.is_whitespace() || "，。；！？、,;.".contains(c))
        && (2..=MAX_NAME_CHARS).contains(&run.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::token::tokenize;

    #[test]
    fn finds_proper_names() {
        let check = |text: &str, expect: &[&str]| {
            let tokens = tokenize(text);
            let mut found = Vec::new();
            let mut at = 0;
            while at < tokens.len() {
                match read(text, &tokens, at, &|_| true) {
                    Some(name) => {
                        found.push(&text[tokens[at].start..tokens[name.after - 1].end]);
                        at = name.after;
                    }
                    None => at += 1,
                }
            }
            assert_eq!(found, expect, "{text}");
        };
        check("what time is it in Tokyo and in Berlin?", &["Tokyo", "Berlin"]);
        check("restaurants in San Francisco, CA please", &["San Francisco, CA"]);
        check("weather in tokyo", &["tokyo"]);
        check("the Museum of Modern Art in New York", &["Museum of Modern Art", "New York"]);
        check("Pope Innocent III was born", &["Pope Innocent III"]);
        check("Find the price", &[]);
        check("东京和柏林现在几点", &["东京", "柏林"]);
        check("美国纽约的天气", &["美国纽约"]);
        check("北京市天气", &["北京市"]);
        check("a flight from Paris, France to Rome", &["Paris, France", "Rome"]);
        check("the stock of Apple Inc and AAPL", &["Apple Inc", "AAPL"]);
    }
}
