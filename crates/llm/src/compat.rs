//! What is left out for an endpoint that refuses it: each speaks a little less than the format it is named after.

use toolhub_core::model::ModelError;

/// One thing that is left out, or said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompatRule {
    /// The schema of the answer is told in words, and JSON asked for.
    SchemaInWords = 1,
    /// JSON is asked for in words as well.
    JsonInWords = 2,
    /// The count of tokens is not asked for.
    NoCount = 4,
    /// The limit of tokens has its newer name.
    NewLimitName = 8,
    /// The temperature is the endpoint's own.
    OwnTemperature = 16,
    /// Whether to call a tool is the model's own choice.
    FreeChoice = 32,
}

/// What is left out so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CompatRules(pub(crate) u8);

impl CompatRules {
    pub(crate) fn has(self, one: CompatRule) -> bool {
        self.0 & one as u8 != 0
    }

    pub(crate) fn with(self, one: CompatRule) -> Self {
        Self(self.0 | one as u8)
    }

    /// What to give up next, by what the endpoint said of the request; nothing where that was not the trouble.
    pub(crate) fn next(self, error: &ModelError, asked_schema: Asked) -> Option<CompatRule> {
        let ModelError::Refused { status: status @ (400 | 404 | 415 | 422 | 500 | 501), detail, .. } = error
        else {
            return None;
        };
        let said = detail.to_lowercase();
        let names = |words: &[&str]| words.iter().any(|word| said.contains(word));
        let schema = (asked_schema == Asked::Yes).then(|| {
            if self.has(CompatRule::SchemaInWords) {
                CompatRule::JsonInWords
            } else {
                CompatRule::SchemaInWords
            }
        });
        let named = [
            (names(&["stream_options", "include_usage"]), Some(CompatRule::NoCount)),
            (names(&["max_completion_tokens"]), Some(CompatRule::NewLimitName)),
            (names(&["temperature"]), Some(CompatRule::OwnTemperature)),
            (names(&["tool_choice"]), Some(CompatRule::FreeChoice)),
            (names(&["response_format", "json_schema", "json_object", "structured output"]), schema),
            // Many say no more than that the request is bad; then it is what the fewest endpoints know.
            (*status == 400 || *status == 422, schema),
        ];
        let next = named.into_iter().filter(|(is_named, _)| *is_named).find_map(|(_, one)| one)?;
        (!self.has(next)).then_some(next)
    }
}

/// Whether something was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// It was.
    Yes,
    /// It was not.
    No,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_is_left_out_once() {
        let check =
            |made: CompatRules, (status, said): (u16, &str), asked: Asked, expect: Option<CompatRule>| {
                let error = ModelError::Refused { model: "m".to_owned(), status, detail: said.to_owned() };
                assert_eq!(made.next(&error, asked), expect, "{status} {said} {asked:?}");
            };
        let none = CompatRules::default();
        check(none, (400, "Unknown field: stream_options"), Asked::No, Some(CompatRule::NoCount));
        check(none.with(CompatRule::NoCount), (400, "Unknown field: stream_options"), Asked::No, None);
        check(
            none,
            (400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
            Asked::No,
            Some(CompatRule::NewLimitName),
        );
        check(none, (400, "'response_format' is not supported"), Asked::Yes, Some(CompatRule::SchemaInWords));
        check(none, (400, "'response_format' is not supported"), Asked::No, None);
        check(none, (400, "bad request"), Asked::Yes, Some(CompatRule::SchemaInWords));
        let words = none.with(CompatRule::SchemaInWords);
        check(words, (400, "bad request"), Asked::Yes, Some(CompatRule::JsonInWords));
        check(words.with(CompatRule::JsonInWords), (400, "bad request"), Asked::Yes, None);
        check(none, (404, "no such model"), Asked::Yes, None);
        check(none, (400, "context too long"), Asked::No, None);
    }
}
