//! Plausibility checks of a result: agreement with earlier results, and possible numbers, dates and times. Pure, with
//! reasons.

mod agreement;
mod dates;
mod numbers;

pub use agreement::similarity;

use toolhub_core::lang::LocalizedText;
use toolhub_core::outcome::OutcomeVerification;

/// Maximum characters that are checked.
const MAX_CHECKED_CHARS: usize = 20_000;
/// Confidence without any evidence.
const PLAIN_CONFIDENCE: f64 = 0.7;
/// Results less similar than this contradict each other.
const MIN_SIMILARITY: f64 = 0.3;
/// Reduction of confidence per issue.
const ISSUE_COST: f64 = 0.25;

/// Checks a result. `earlier` are results of the same call, newest first.
pub fn verify(answer: &str, earlier: &[String]) -> OutcomeVerification {
    let answer = answer.char_indices().nth(MAX_CHECKED_CHARS).map_or(answer, |(at, _)| &answer[..at]);
    let mut issues = Vec::new();
    if answer.trim().is_empty() {
        issues.push(LocalizedText::new("the answer is empty", "结果为空"));
    }
    issues.extend(numbers::issues(answer));
    issues.extend(dates::issues(answer));
    let mut confidence = PLAIN_CONFIDENCE;
    let alike: Vec<f64> = earlier.iter().map(|other| similarity(answer, other)).collect();
    if let Some(best) = alike.iter().copied().reduce(f64::max) {
        // From 0.4 for a result unlike all earlier ones to 0.95 for an identical one.
        confidence = 0.4 + 0.55 * best;
        if best < MIN_SIMILARITY {
            let (count, percent) = (earlier.len(), (best * 100.0).round());
            issues.push(LocalizedText::new(
                format!("it has little in common ({percent}%) with {count} earlier answers to the same call"),
                format!("与同一调用之前的 {count} 个结果相差很大（相似度 {percent}%）"),
            ));
        }
    }
    confidence -= ISSUE_COST * issues.len() as f64;
    OutcomeVerification { verified: issues.is_empty(), confidence: confidence.clamp(0.05, 0.95), issues }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolhub_core::{Lang, Localize as _};

    fn issues(answer: &str, earlier: &[&str]) -> Vec<String> {
        let earlier: Vec<String> = earlier.iter().map(ToString::to_string).collect();
        verify(answer, &earlier).issues.iter().map(|issue| issue.localize(Lang::En)).collect()
    }

    #[test]
    fn reports_impossible_values() {
        let check = |answer: &str, expect: &[&str]| {
            let found = issues(answer, &[]);
            assert_eq!(found.len(), expect.len(), "{answer}: {found:?}");
            for (found, expect) in found.iter().zip(expect) {
                assert!(found.contains(expect), "{answer}: {found}");
            }
        };
        check("The meeting is on 2026-11-15 at 14:30.", &[]);
        check("", &["empty"]);
        check("Due 2026-02-30", &["`2026-02-30` is no date"]);
        check("2025年13月1日", &["`2025年13月1日` is no date"]);
        check("at 25:61", &["`25:61` is no time"]);
        check("result: NaN", &["`NaN`"]);
        check("概率为 1.7", &["probability"]);
        check("from 2026-05-02 to 2026-05-01", &["ends before it begins"]);
        check("ratio 16:9, score 3:2, at 10.0.0.1:8080, v1.2.3", &[]);
        check("2024-02-29 is fine", &[]);
        check("2023/02/29", &["no date"]);
        check("The band Infinity played", &[]);
    }

    /// A year that is divisible by 100 is a leap year only if it is divisible by 400.
    #[test]
    fn century_is_a_leap_year_only_if_divisible_by_400() {
        for year in [1600, 2000, 2400] {
            assert_eq!(issues(&format!("{year}-02-29"), &[]), Vec::<String>::new());
        }
        for year in [1700, 1900, 2100] {
            assert_eq!(
                issues(&format!("{year}-02-29"), &[]),
                [format!("`{year}-02-29` is no date")],
                "{year} has no 29 February"
            );
        }
    }

    #[test]
    fn answer_less_similar_than_three_tenths_is_reported_as_contradiction() {
        // 3 common words of 10, then 2 of 7.
        let (at_threshold, below) =
            (issues("a b c d e f", &["a b c g h i j"]), issues("a b c d", &["a b e f g"]));
        assert_eq!(at_threshold, Vec::<String>::new());
        assert_eq!(below.len(), 1, "{below:?}");
        assert!(below[0].contains("(29%)"), "{below:?}");
        // The most similar of the earlier answers counts.
        assert_eq!(issues("a b c d", &["x y", "a b e f g", "a b c d"]), Vec::<String>::new());
        // A little more than the threshold is no contradiction either.
        assert_eq!(issues("a b", &["b c"]), Vec::<String>::new());
    }

    #[test]
    fn agreement_raises_and_contradiction_lowers_confidence() {
        let same = verify("北京今天晴，气温 20 度", &["北京今天晴，气温 21 度".to_owned()]);
        let unrelated = verify("error page: please log in", &["北京今天晴，气温 21 度".to_owned()]);
        let alone = verify("北京今天晴", &[]);
        assert!(same.verified && same.confidence > alone.confidence, "{same:?}");
        assert!(!unrelated.verified && unrelated.confidence < alone.confidence, "{unrelated:?}");
    }
}
