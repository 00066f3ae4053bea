//! Yes or no: what a request turns on or off by naming it.

use serde_json::Value as Json;

use super::candidate::{Candidate, Given, Scene};
use super::labels::{self, Label};
use super::parameter::Parameter;
use super::phrase::is_stop;

/// Words of flags' names that say nothing of what they turn on.
const EMPTY: [&str; 22] = [
    "include",
    "is",
    "with",
    "show",
    "get",
    "enable",
    "use",
    "has",
    "should",
    "only",
    "allow",
    "return",
    "in",
    "and",
    "flag",
    "do",
    "be",
    "to",
    "include_all",
    "required",
    "requires",
    "display",
];
const AGAINST: [&str; 20] = [
    "no",
    "not",
    "without",
    "don't",
    "dont",
    "never",
    "exclude",
    "excluding",
    "disable",
    "don’t",
    "不",
    "不要",
    "别",
    "无需",
    "不用",
    "除去",
    "没有",
    "不带",
    "不含",
    "关闭",
];

/// What people say for flags that schemas have often.
const SAID: [(&str, &[&str]); 16] = [
    ("unread", &["unread", "未读"]),
    ("permanent", &["permanently", "for_good", "永久", "彻底"]),
    ("recursive", &["subfolders", "subdirectories", "recursively", "子文件夹", "子目录", "递归", "所有层级"]),
    ("bold", &["bold", "加粗", "粗体"]),
    ("italic", &["italic", "italics", "斜体"]),
    ("underline", &["underline", "underlined", "下划线"]),
    ("wrap", &["wrap", "换行"]),
    ("preview", &["preview", "预览"]),
    ("ranges", &["ranges", "范围", "区域"]),
    ("urgent", &["urgent", "紧急", "加急"]),
    ("toll", &["toll", "tolls", "收费"]),
    ("repeat", &["repeat", "重复"]),
    ("all", &["all_day", "全天"]),
    ("detailed", &["detailed", "in_detail", "详细"]),
    ("weekend", &["weekend", "周末"]),
    ("breakfast", &["breakfast", "早餐"]),
];

pub(super) fn candidates(parameter: &Parameter, scene: &Scene<'_>) -> Vec<Candidate> {
    let telling: Vec<&String> =
        parameter.words.iter().filter(|word| !EMPTY.contains(&word.as_str())).collect();
    let mut labels = Vec::new();
    if !telling.is_empty() {
        let whole: Vec<String> = telling.iter().map(|word| (*word).clone()).collect();
        labels.push(Label::new(&whole.join("_"), 2.6));
        for word in &telling {
            labels.push(Label::new(word, if telling.len() == 1 { 2.6 } else { 1.4 }));
        }
    }
    for (word, said) in SAID {
        if parameter.has_word(&[word]) {
            labels.extend(said.iter().map(|name| Label::new(name, 2.6)));
        }
    }
    labels.extend(
        parameter
            .labels
            .iter()
            .filter(|label| label.words.first().is_some_and(|word| super::name::has_han(word)))
            .cloned(),
    );
    let mut found: Vec<Candidate> = labels::places(&labels, scene.reading, &scene.stems)
        .into_iter()
        .map(|place| {
            let value = Json::from(!denied(scene, place.start));
            Candidate {
                value: Given::Said(value),
                start: place.start,
                end: place.start,
                score: place.strength,
            }
        })
        .collect();
    // `detailed` speaks of details, `multi-player` of what is multiplayer.
    for token in scene.reading.tokens.iter().filter(|token| token.kind == super::token::Kind::Word) {
        let said = token.text.to_lowercase().replace('-', "");
        if telling.iter().any(|word| labels::alike(word, &said))
            && !scene.tool_words[..scene.tool_words.len().min(3)].contains(&said)
            // Who speaks of cells does not say what is to be done with them.
            && !super::lexicon::is_kind(&said)
        {
            let value = Given::Said(Json::from(!denied(scene, token.start)));
            found.push(Candidate { value, start: token.start, end: token.start, score: 2.1 });
        }
    }
    // What half of its describing words speak of is meant, too.
    let described: Vec<String> = parameter
        .description
        .split(|c: char| !c.is_alphabetic())
        .filter(|word| word.len() > 3 && !is_stop(word))
        .map(labels::stem)
        .filter(|word| {
            !scene.tool_words.contains(word)
                && !["default", "true", "false", "whether", "boolean"].contains(&word.as_str())
        })
        .take(6)
        .collect();
    let said = described.iter().filter(|word| scene.stems.contains(word)).count();
    if said >= 2 && said * 2 >= described.len() {
        let at = scene.stems.iter().position(|stem| described.contains(stem)).unwrap_or(0);
        let start = scene.reading.tokens.get(at).map_or(0, |token| token.start);
        found.push(Candidate {
            value: Given::Said(Json::from(!denied(scene, start))),
            start,
            end: start,
            score: 2.1,
        });
    }
    found
}

/// Whether one of the few words before says no.
fn denied(scene: &Scene<'_>, start: usize) -> bool {
    let at = scene.reading.token_at(start);
    let first = at.saturating_sub(4);
    let before = scene.reading.tokens.get(first..at).unwrap_or_default();
    let from = before.first().map_or(start, |token| token.start);
    let text = scene.reading.text.get(from..start).unwrap_or_default();
    let near = text.rsplit([',', '，', '.', '。', ';']).next().unwrap_or_default().to_lowercase();
    AGAINST.iter().any(|word| {
        if super::name::has_han(word) {
            near.contains(word)
        } else {
            near.split_whitespace().any(|other| other == *word)
        }
    })
}
