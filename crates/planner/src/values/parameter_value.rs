//! All candidate values of a parameter, by its shape.

use serde_json::{Map, Value as Json};

use crate::lexer::labels::{self, LabelSpan};
use crate::lexer::literal::Literal;
use crate::lexer::mention::MentionValue;
use crate::values::candidate::{ArgumentValue, FAIR, GOOD, MatchContext, POOR, ValueCandidate};
use crate::values::flag;
use crate::values::list_value;
use crate::values::number_value;
use crate::values::parameter::{Parameter, ValueType};
use crate::values::text_value;

/// All candidate values of a parameter.
pub(crate) fn candidates(parameter: &Parameter, context: &MatchContext<'_>) -> Vec<ValueCandidate> {
    let label_spans = labels::find(&parameter.labels, context.parsed, &context.stems);
    let mut found = match &parameter.shape {
        _ if !parameter.choices.is_empty() && !matches!(parameter.shape, ValueType::List(_)) => {
            text_value::chosen(parameter, context, &label_spans)
        }
        ValueType::Text => text_value::candidates(parameter, context, &label_spans),
        ValueType::Integer | ValueType::Number => number_value::candidates(parameter, context, &label_spans),
        ValueType::Boolean => flag::candidates(parameter, context),
        ValueType::List(item) => list_value::lists(parameter, item, context, &label_spans),
        ValueType::Object(members) => objects(members, context, &label_spans),
        ValueType::Any => text_value::candidates(parameter, context, &label_spans),
    };
    found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.start.cmp(&b.start)));
    found.truncate(MAX_CANDIDATE_VALUES);
    found
}

/// Maximum number of candidates; later ones are guesses.
const MAX_CANDIDATE_VALUES: usize = 24;

/// A JSON object literal, or an object whose members the text gives.
pub(crate) fn objects(
    members: &[Parameter],
    context: &MatchContext<'_>,
    label_spans: &[LabelSpan],
) -> Vec<ValueCandidate> {
    let mut found = Vec::new();
    for mention in &context.parsed.mentions {
        if let MentionValue::Literal(Literal::Json(value @ Json::Object(_))) = &mention.value {
            let label = context.labelled(label_spans, mention.start, mention.end);
            let value = ArgumentValue::FromRequest(value.clone());
            found.push(ValueCandidate { value, start: mention.start, end: mention.end, score: GOOD + label });
        }
    }
    let mut object = Map::new();
    let (mut start, mut end) = (usize::MAX, 0);
    for member in members {
        let least = if member.required { POOR } else { GOOD };
        let used = |candidate: &ValueCandidate| {
            candidate.start < end && start < candidate.end && start != usize::MAX
        };
        match candidates(member, context)
            .into_iter()
            .find(|candidate| candidate.score >= least && !used(candidate))
        {
            Some(ValueCandidate {
                value: ArgumentValue::FromRequest(value),
                start: first,
                end: last,
                ..
            }) => {
                (start, end) = (start.min(first), end.max(last));
                object.insert(member.name.clone(), value);
            }
            _ if member.required => return found,
            _ => {}
        }
    }
    if !object.is_empty() {
        // The members may be apart with other values between them, so that the object has an empty range.
        found.push(ValueCandidate {
            value: ArgumentValue::FromRequest(Json::Object(object)),
            start,
            end: start,
            score: FAIR,
        });
    }
    found
}
