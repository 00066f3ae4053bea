//! Compatibility rules for endpoints that implement only a part of their wire format.

use toolhub_core::model::ModelError;

/// A part of a request that is omitted or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompatRule {
    /// The schema of the answer is in the prompt, and only JSON mode is requested.
    SchemaInPrompt = 1,
    /// JSON mode is requested in the prompt, too.
    JsonInPrompt = 2,
    /// Usage is not requested.
    OmitUsage = 4,
    /// The token limit has its newer name.
    MaxCompletionTokens = 8,
    /// No temperature is sent.
    OmitTemperature = 16,
    /// No `tool_choice` is sent.
    OmitToolChoice = 32,
}

/// The rules in effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CompatRules(pub(crate) u8);

impl CompatRules {
    pub(crate) fn has(self, rule: CompatRule) -> bool {
        self.0 & rule as u8 != 0
    }

    pub(crate) fn with(self, rule: CompatRule) -> Self {
        Self(self.0 | rule as u8)
    }

    /// Returns the next rule to apply for an error message of the endpoint; `None` if the error is unrelated.
    pub(crate) fn next(self, error: &ModelError, schema_request: SchemaRequest) -> Option<CompatRule> {
        let ModelError::Refused { status: status @ (400 | 404 | 415 | 422 | 500 | 501), detail, .. } = error
        else {
            return None;
        };
        let message = detail.to_lowercase();
        let names = |words: &[&str]| words.iter().any(|word| message.contains(word));
        let schema = (schema_request == SchemaRequest::Yes).then(|| {
            if self.has(CompatRule::SchemaInPrompt) {
                CompatRule::JsonInPrompt
            } else {
                CompatRule::SchemaInPrompt
            }
        });
        let named = [
            (names(&["stream_options", "include_usage"]), Some(CompatRule::OmitUsage)),
            (names(&["max_completion_tokens"]), Some(CompatRule::MaxCompletionTokens)),
            (names(&["temperature"]), Some(CompatRule::OmitTemperature)),
            (names(&["tool_choice"]), Some(CompatRule::OmitToolChoice)),
            (names(&["response_format", "json_schema", "json_object", "structured output"]), schema),
            // Many endpoints only report a bad request; structured output is the least supported feature, so it is
            // dropped first.
            (*status == 400 || *status == 422, schema),
        ];
        let next = named.into_iter().filter(|(is_named, _)| *is_named).find_map(|(_, rule)| rule)?;
        (!self.has(next)).then_some(next)
    }
}

/// Whether a feature was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaRequest {
    /// It was requested.
    Yes,
    /// It was not requested.
    No,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applies_each_compat_rule_once() {
        let check = |made: CompatRules,
                     (status, message): (u16, &str),
                     schema_request: SchemaRequest,
                     expect: Option<CompatRule>| {
            let error = ModelError::Refused { model: "m".to_owned(), status, detail: message.to_owned() };
            assert_eq!(made.next(&error, schema_request), expect, "{status} {message} {schema_request:?}");
        };
        let none = CompatRules::default();
        check(none, (400, "Unknown field: stream_options"), SchemaRequest::No, Some(CompatRule::OmitUsage));
        check(
            none.with(CompatRule::OmitUsage),
            (400, "Unknown field: stream_options"),
            SchemaRequest::No,
            None,
        );
        check(
            none,
            (400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
            SchemaRequest::No,
            Some(CompatRule::MaxCompletionTokens),
        );
        check(
            none,
            (400, "'response_format' is not supported"),
            SchemaRequest::Yes,
            Some(CompatRule::SchemaInPrompt),
        );
        check(none, (400, "'response_format' is not supported"), SchemaRequest::No, None);
        check(none, (400, "bad request"), SchemaRequest::Yes, Some(CompatRule::SchemaInPrompt));
        let words = none.with(CompatRule::SchemaInPrompt);
        check(words, (400, "bad request"), SchemaRequest::Yes, Some(CompatRule::JsonInPrompt));
        check(words.with(CompatRule::JsonInPrompt), (400, "bad request"), SchemaRequest::Yes, None);
        check(none, (404, "no such model"), SchemaRequest::Yes, None);
        check(none, (400, "context too long"), SchemaRequest::No, None);
    }
}
