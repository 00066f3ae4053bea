//! Values of formats: colours as six hexadecimal digits, and number formats as they are written.

use serde_json::Value as Json;

use super::candidate::{Candidate, GOOD, Given, Scene};
use super::labels::Place;
use super::parameter::Parameter;

/// Whether a code is a colour: `D9D9D9`, `#FF0000`.
pub(super) fn is_colour(code: &str) -> bool {
    let digits = code.trim_start_matches('#');
    digits.len() == 6
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && digits.bytes().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// `the number format 0.00%`, 数字格式 #,##0: what follows the label up to a blank.
pub(super) fn number_format(parameter: &Parameter, scene: &Scene<'_>, places: &[Place]) -> Option<Candidate> {
    if !(parameter.has_word(&["format"]) && parameter.has_word(&["number", "date", "numeric"])) {
        return None;
    }
    let text = scene.reading.text;
    places.iter().filter(|place| place.strength >= 1.2).find_map(|place| {
        let rest = text.get(place.end..)?;
        let skipped = rest.trim_start_matches(|c: char| c.is_whitespace() || "\"'“:：为是用成to".contains(c));
        let start = text.len() - skipped.len();
        let end =
            skipped.find(|c: char| c.is_whitespace() || "，。；\"'”、".contains(c)).unwrap_or(skipped.len());
        let code = skipped[..end].trim_end_matches(['.', ',', '!', '?']);
        let is_code = code.contains(['0', '#', '@'])
            && code.chars().all(|c| c.is_ascii_alphanumeric() || "#,.%$-/:;_@¥€ ".contains(c));
        is_code.then(|| Candidate {
            value: Given::Said(Json::from(code)),
            start,
            end: start + code.len(),
            score: GOOD + 2.0,
        })
    })
}
