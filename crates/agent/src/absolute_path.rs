//! Resolves the path of a call that a tool rejected because the path is not absolute, against the folder of the request. The
//! message is a text of the server and proves nothing: a tool that may change something may have done so before. The call is
//! repeated only if it may be repeated; otherwise the error names the absolute path, for another call.

use std::path::Path;

use serde_json::Value;
use toolhub_core::lang::LocalizedText;
use toolhub_core::{Lang, Localize as _, Outcome, RawJson, RawObject, ToolError};

/// Adds to the error of `outcome` which paths another call should name.
pub(crate) fn hint_absolute_path(outcome: &mut Outcome, arguments: &RawJson, resolved: &RawJson) {
    let Err(ToolError::Failed { message, .. }) = &mut outcome.result else { return };
    let (Some(before), Some(after)) = (arguments.object(), resolved.object()) else { return };
    let changed: Vec<String> = after
        .iter()
        .filter(|(name, value)| before.get(name).is_none_or(|before| before.get() != value.get()))
        .map(|(name, value)| format!("`{name}`: {}", value.get()))
        .collect();
    let (en, zh) = (message.localize(Lang::En), message.localize(Lang::Zh));
    *message = LocalizedText::new(
        format!(
            "{en}\nIt was not sent again, since it may have changed something. To try again, call it with the absolute path: {}",
            changed.join(", ")
        ),
        format!("{zh}\n由于可能已作出更改，没有重新发送。如需再试，请用绝对路径调用：{}", changed.join("，")),
    );
}

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

    #[test]
    fn hint_names_the_changed_argument_alone() {
        let error = ToolError::failed("My.xlsx must be an absolute path");
        let mut outcome = Outcome::refused(CallId::generate(), ToolName::new("t"), error);
        let json = |text: &str| RawJson::parse(text.to_owned()).unwrap();
        let before = json(r#"{"filepath":"My.xlsx","sheet":"Sheet1"}"#);
        let after = json(r#"{"filepath":"/data/me/My.xlsx","sheet":"Sheet1"}"#);
        hint_absolute_path(&mut outcome, &before, &after);
        let text = outcome.result.unwrap_err().to_string();
        assert!(text.starts_with("My.xlsx must be an absolute path\n"), "{text}");
        assert!(text.ends_with("`filepath`: \"/data/me/My.xlsx\""), "{text}");
    }
}
