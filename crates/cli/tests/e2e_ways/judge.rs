//! Judges the `--json` answer of the program to a request. Only work of the model counts: an answer by rules, or one that the
//! hub composed because the model gave none, does not.

use serde_json::Value;

use crate::requests::{Request, Right, Shown};

/// Phrases that state that something cannot be done.
const DECLINES: [&str; 16] = [
    "can't",
    "cannot",
    "can not",
    "unable",
    "not able",
    "sorry",
    "don't have",
    "do not have",
    "no tool",
    "not possible",
    "无法",
    "不能",
    "抱歉",
    "没有",
    "对不起",
    "不支持",
];

/// The verdict on one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Verdict {
    /// The model answered, not the rules.
    pub(crate) by_model: bool,
    /// The expected tools were called successfully; none if none is expected.
    pub(crate) tools: bool,
    /// Their arguments were right as well.
    pub(crate) arguments: bool,
    /// The final answer of the model is right.
    pub(crate) answer: bool,
}

pub(crate) fn judge(request: &Request, answer_json: &Value) -> Verdict {
    if answer_json["model"].is_null() {
        return Verdict::default();
    }
    let steps: Vec<&Value> = answer_json["steps"].as_array().into_iter().flatten().collect();
    let called = |tool: &str| {
        steps.iter().copied().filter(move |step| step["tool"] == tool && step["success"] == true).collect()
    };
    let tools = match request.calls {
        [] => steps.iter().all(|step| step["tool"].is_null()),
        expected => expected.iter().all(|call| !Vec::<&Value>::is_empty(&called(call.tool))),
    };
    let arguments =
        request.calls.iter().all(|call| called(call.tool).iter().any(|step| fits(&call.shown_by, step)));
    let own_words = answer_json["notes"].as_array().is_none_or(Vec::is_empty);
    let text = answer_json["answer"].as_str().unwrap_or_default().replace(',', "").to_lowercase();
    let answer = own_words
        && match request.answer {
            Right::Holds(parts) => parts.iter().all(|part| text.contains(part)),
            Right::Time(parts) => {
                let times: Vec<&Value> = called("get_time");
                parts.iter().all(|part| text.contains(part)) && times.iter().any(|step| mentions(&text, step))
            }
            Right::Declines => DECLINES.iter().any(|prompt| text.contains(prompt)),
        };
    Verdict { by_model: true, tools, arguments: tools && arguments, answer }
}

fn fits(shown: &Shown, step: &Value) -> bool {
    match shown {
        Shown::Arguments(expected) => expected
            .iter()
            .all(|(name, end)| step["arguments"][name].as_str().is_some_and(|value| value.ends_with(end))),
        Shown::Result(holds) => step["result"].as_str().is_some_and(|result| result.contains(holds)),
    }
}

/// Whether a text contains the hour and minute of a result like `2026-11-15 14:22:37 +01:00 …`, in 24-hour or 12-hour form.
fn mentions(text: &str, step: &Value) -> bool {
    let time =
        step["result"].as_str().and_then(|result| result.split_whitespace().nth(1)).unwrap_or_default();
    let mut parts = time.split(':').map(|part| part.parse::<u32>().ok());
    let (Some(Some(hour)), Some(Some(minute))) = (parts.next(), parts.next()) else { return false };
    let numbers: Vec<u32> = text
        .split(|letter: char| !letter.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect();
    numbers.windows(2).any(|pair| (pair[0] == hour || pair[0] == (hour + 11) % 12 + 1) && pair[1] == minute)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::requests::REQUESTS;

    #[test]
    fn judges_only_calls_of_the_model() {
        let step = json!({"tool": "calculate", "arguments": {"expression": "23 * 47"}, "success": true, "result": "1081"});
        let answer_json = json!({"model": "m", "answer": "It is 1,081.", "steps": [step], "notes": []});
        let all = Verdict { by_model: true, tools: true, arguments: true, answer: true };
        assert_eq!(judge(&REQUESTS[0], &answer_json), all);
        let changed = |name: &str, value: Value| {
            let mut answer_json = answer_json.clone();
            answer_json[name] = value;
            judge(&REQUESTS[0], &answer_json)
        };
        assert_eq!(changed("model", Value::Null), Verdict::default());
        assert_eq!(
            changed("notes", json!(["the model returned an empty response"])),
            Verdict { answer: false, ..all }
        );
        assert_eq!(changed("answer", json!("It is 851.")), Verdict { answer: false, ..all });
        assert_eq!(changed("steps", json!([])), Verdict { tools: false, arguments: false, ..all });
        let wrong = json!([{"tool": "calculate", "success": true, "result": "851"}]);
        assert_eq!(changed("steps", wrong), Verdict { arguments: false, ..all });
    }

    #[test]
    fn judges_times_and_refusals() {
        let step = json!({"tool": "get_time", "success": true, "result": "2026-11-15 14:05:37 +01:00 (Europe/Berlin, Sunday)"});
        let berlin = REQUESTS.iter().find(|request| request.prompt.contains("柏林")).unwrap();
        for (answer, right) in [
            ("现在柏林是下午2点05分。", true),
            ("14:05:37", true),
            ("It is 14:06.", false),
            ("2026-11-15", false),
        ] {
            let answer_json = json!({"model": "m", "answer": answer, "steps": [step], "notes": []});
            assert_eq!(judge(berlin, &answer_json).answer, right, "{answer}");
        }
        let mail = REQUESTS.iter().find(|request| request.prompt.contains("e-mail")).unwrap();
        for (answer, right) in [("I'm sorry, I cannot send mail.", true), ("The e-mail was sent.", false)] {
            let answer_json = json!({"model": "m", "answer": answer, "steps": [], "notes": []});
            assert_eq!(judge(mail, &answer_json).answer, right, "{answer}");
        }
    }
}
