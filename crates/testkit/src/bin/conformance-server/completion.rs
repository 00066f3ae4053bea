//! Completes partially typed arguments.

use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData, Reference};

use crate::resources::TEMPLATE;

const PLACES: &[&str] = &["paris", "park", "party", "pisa", "prague"];
const IDS: &[&str] = &["1", "12", "123"];

/// Completes the arguments of the prompt with two arguments, and of the resource template; others have no completions.
pub(crate) fn complete(request: &CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
    let known = match (&request.r#ref, request.argument.name.as_str()) {
        (Reference::Prompt(prompt), "arg1" | "arg2") if prompt.name == "test_prompt_with_arguments" => PLACES,
        (Reference::Resource(resource), "id") if resource.uri == TEMPLATE => IDS,
        _ => &[],
    };
    let prefix = request.argument.value.as_str();
    let values = known.iter().filter(|value| value.starts_with(prefix)).map(|value| (*value).to_owned());
    let info = CompletionInfo::with_all_values(values.collect());
    Ok(CompleteResult::new(info.map_err(|error| ErrorData::internal_error(error, None))?))
}
