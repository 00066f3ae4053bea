//! Retries a call that a tool rejected because a path is not absolute, with the path resolved against the folder of the
//! request. The message, which names the path and asks for an absolute one, is taken as proof that the tool did nothing.

use std::path::Path;

use serde_json::Value;
use toolhub_core::{Lang, Localize as _, Outcome, RawJson, RawObject, ToolError};

/// The arguments with absolute paths; `None` unless the tool's error message demands an absolute path.
pub(crate) fn absolute_path(outcome: &Outcome, arguments: &RawJson, folder: &Path) -> Option<RawJson> {
    let Err(ToolError::Failed { message, .. }) = &outcome.result else { return None };
    let complaint = message.localize(Lang::En).to_lowercase();
    if !complaint.contains("absolute path") && !complaint.contains("绝对路径") {
        return None;
    }
    let mut changed = false;
    let mut resolved = RawObject::default();
    for (name, value) in arguments.object()?.iter() {
        let text = match value.value() {
            Value::String(text) if is_relative(&text, &complaint) => text,
            _ => {
                resolved.set(name.to_owned(), value.clone());
                continue;
            }
        };
        changed = true;
        resolved
            .set(name.to_owned(), folder.join(text.trim_start_matches("./")).to_string_lossy().into_owned());
    }
    changed.then(|| resolved.into_raw())
}

/// Whether a text is a relative path that the error message quotes.
fn is_relative(text: &str, complaint: &str) -> bool {
    let path = Path::new(text);
    !text.is_empty()
        && path.is_relative()
        && path.extension().is_some()
        && complaint.contains(&text.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    use toolhub_core::{CallId, ToolName};

    #[test]
    fn resolves_only_the_path_named_in_the_error() {
        let check = |message: &str, arguments: &str, expect: Option<&str>| {
            let error = ToolError::failed(message);
            let outcome = Outcome::refused(CallId::generate(), ToolName::new("t"), error);
            let arguments = RawJson::parse(arguments.to_owned()).unwrap();
            let found = absolute_path(&outcome, &arguments, Path::new("/data/me"));
            assert_eq!(found.as_ref().map(RawJson::get), expect, "{message}");
        };
        let arguments = r#"{"filepath":"My.xlsx","sheet":"Sheet1"}"#;
        let expected = r#"{"filepath":"/data/me/My.xlsx","sheet":"Sheet1"}"#;
        check(
            "Invalid filename: My.xlsx, must be an absolute path when not in SSE mode",
            arguments,
            Some(expected),
        );
        check("no such file: My.xlsx", arguments, None);
        check("other.xlsx must be an absolute path", arguments, None);
    }
}
