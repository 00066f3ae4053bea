//! Error texts for clients: the texts for the owner without the `toolhub` commands, which only the owner can run.

use toolhub_core::{Lang, Localize as _, ToolError};

/// Delimiters that begin a removable part of a sentence, each with its closing delimiter.
const BREAKS: [(&str, &str); 6] = [("; ", ""), ("；", ""), (": ", ""), ("：", ""), (" (", ")"), ("（", "）")];
/// The beginning of a command in a text.
const COMMAND: &str = "`toolhub ";

/// The text of a failed call for clients. A client has no command line, so the hint for a timeout names the setting.
pub(super) fn error_for_clients(error: &ToolError, lang: Lang) -> String {
    match error {
        ToolError::TimedOut { .. } => {
            let text = error.brief(lang);
            lang.choose(
                format!("{text}; `call_timeout` in `[[servers]]` of toolhub.toml allows more"),
                format!("{text}；可在 toolhub.toml 的 `[[servers]]` 中用 `call_timeout` 延长"),
            )
        }
        other => for_clients(&other.localize(lang)),
    }
}

/// Removes the parts of a text that name commands for the owner.
pub(super) fn for_clients(text: &str) -> String {
    let mut rest = text;
    let mut output = String::new();
    while let Some(position) = rest.find(COMMAND) {
        let before = &rest[..position];
        let begun = BREAKS
            .iter()
            .filter_map(|(begin, end)| before.rfind(begin).map(|at| (at, *end)))
            .max_by_key(|(at, _)| *at);
        let Some((begin, closing)) = begun else {
            // No delimiter precedes the command, so the text is kept.
            output.push_str(&rest[..position + COMMAND.len()]);
            rest = &rest[position + COMMAND.len()..];
            continue;
        };
        output.push_str(&rest[..begin]);
        let after = &rest[position..];
        rest = match closing {
            "" => after.find("; ").or_else(|| after.find('；')).map_or("", |end| &after[end..]),
            closing => after.find(closing).map_or("", |end| &after[end + closing.len()..]),
        };
    }
    output + rest
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolhub_core::Effect;

    use super::*;

    #[test]
    fn client_errors_name_the_timeout_setting() {
        let error = ToolError::TimedOut { after: Duration::from_secs(30), effect: Effect::Unknown };
        assert_eq!(
            error_for_clients(&error, Lang::En),
            "no answer within 30 s; whether it took effect is unknown; `call_timeout` in `[[servers]]` of toolhub.toml allows more"
        );
        let text = error_for_clients(&error, Lang::Zh);
        assert!(text.contains("call_timeout") && !text.contains("--timeout"), "{text}");
    }

    #[test]
    fn client_errors_omit_commands() {
        let check = |text: &str, expect: &str| assert_eq!(for_clients(text), expect);
        check(
            "wrong arguments for `x`: `a` is missing; see `toolhub tools show x`",
            "wrong arguments for `x`: `a` is missing",
        );
        check("server `s` requires a login: run `toolhub servers login s`", "server `s` requires a login");
        check(
            "the circuit is open (`toolhub servers test s` tries it at once); last: gone",
            "the circuit is open; last: gone",
        );
        check(
            "held back: not what was approved; see `toolhub tools diff t --source s`, then `toolhub tools approve t --source s`",
            "held back: not what was approved",
        );
        check("a; see `toolhub doctor`; b", "a; b");
        check("服务器 `s` 需要登录：请运行 `toolhub servers login s`", "服务器 `s` 需要登录");
        check("已停用（`toolhub servers test s` 立即重试）；最近一次：断开", "已停用；最近一次：断开");
        check("the toolhub is fine", "the toolhub is fine");
    }
}
