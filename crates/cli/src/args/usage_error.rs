//! Errors of the command line parser, and its help.

use std::error::Error as _;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use toolhub_core::lang::LocalizedText;
use toolhub_core::{Lang, Localize as _};
use toolhub_engine::definition_scan::escape_invisible;
use toolhub_engine::similar_names;

use crate::args::help::translate_clap_text;
use crate::exit::Exit;
use crate::render::sanitize::one_line;

/// Prints a parser error or the help.
pub(crate) fn refuse(error: &clap::Error, lang: Lang) -> ExitCode {
    let wanted_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if wanted_help {
        let text = translate_clap_text(error.render().ansi().to_string(), lang);
        let _ = std::io::Write::write_all(&mut anstream::stdout().lock(), text.as_bytes());
        return Exit::Done.into();
    }
    // An argument may be a file name chosen by another user.
    match localized_message(error).filter(|_| lang == Lang::Zh) {
        Some(text) => to_stderr(&text),
        None => to_stderr(&translate_clap_text(error.render().to_string(), lang)),
    }
    Exit::Usage.into()
}

/// Adds the most similar command to the error about an unknown one. The measure of clap does not notice transposed letters
/// in short words (`aks`).
pub(crate) fn with_suggestion(
    mut error: clap::Error,
    command: &clap::Command,
    args: &[OsString],
) -> clap::Error {
    let unknown = context(&error, ContextKind::InvalidSubcommand).and_then(|names| names.into_iter().next());
    let Some(unknown) = unknown else { return error };
    // The command in which the word stands, such as `servers`.
    let mut parent = command;
    for arg in args.iter().skip(1) {
        match arg.to_str().and_then(|name| parent.find_subcommand(name)) {
            Some(inner) => parent = inner,
            None if *arg == *unknown => break,
            None => {}
        }
    }
    let names = parent.get_subcommands().filter(|known| !known.is_hide_set()).map(clap::Command::get_name);
    let similar = similar_names(&unknown, names, 1);
    if !similar.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(similar));
    }
    error
}

fn to_stderr(text: &str) {
    // A line break inside an argument would start a separate line.
    let broken = std::env::args_os().any(|arg| arg.as_encoded_bytes().contains(&b'\n'));
    let text = if broken { one_line(text) } else { text.into() };
    let lines = text.lines().map(|line| escape_invisible(line).into_owned() + "\n").collect::<String>();
    let _ = std::io::Write::write_all(&mut anstream::stderr().lock(), lines.as_bytes());
}

/// The error with its tip and usage line in Chinese, as clap formats them in English; `None` for kinds without a Chinese text.
fn localized_message(error: &clap::Error) -> Option<String> {
    let mut text = format!("错误：{}\n", message(error)?);
    for tip in tips(error) {
        text += &format!("\n  提示：{tip}\n");
    }
    if let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) {
        let usage = usage.to_string();
        let usage = usage.trim().strip_prefix("Usage:").unwrap_or(&usage).trim();
        text += &translate_clap_text(format!("\n用法：{usage}\n"), Lang::Zh);
    }
    text += "\n更多信息请用 `--help` 查看。\n";
    Some(text)
}

fn context(error: &clap::Error, kind: ContextKind) -> Option<Vec<String>> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(vec![text.clone()]),
        ContextValue::Strings(texts) => Some(texts.clone()),
        _ => None,
    }
}

fn message(error: &clap::Error) -> Option<String> {
    let first = |kind| context(error, kind).and_then(|texts| texts.into_iter().next()).unwrap_or_default();
    let arg = first(ContextKind::InvalidArg);
    let mut text = match error.kind() {
        ErrorKind::UnknownArgument => format!("未知参数 `{arg}`"),
        ErrorKind::InvalidSubcommand => format!("未知命令 `{}`", first(ContextKind::InvalidSubcommand)),
        ErrorKind::MissingRequiredArgument => {
            let missing = context(error, ContextKind::InvalidArg).unwrap_or_default();
            format!("缺少必需的参数：\n  {}", missing.join("\n  "))
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => match first(ContextKind::InvalidValue) {
            value if value.is_empty() => format!("`{arg}` 缺少值"),
            value => format!("`{arg}` 的值 `{value}` 无效"),
        },
        ErrorKind::ArgumentConflict => {
            let others = context(error, ContextKind::PriorArg).unwrap_or_default();
            let others: Vec<String> = others.iter().map(|other| format!("`{other}`")).collect();
            match others.is_empty() {
                true => format!("`{arg}` 不能重复使用"),
                false => format!("`{arg}` 不能与 {} 同时使用", others.join("、")),
            }
        }
        ErrorKind::TooManyValues => format!("`{arg}` 多了一个值 `{}`", first(ContextKind::InvalidValue)),
        ErrorKind::MissingSubcommand => "缺少命令".to_owned(),
        _ => return None,
    };
    if let Some(why) = error.source().filter(|_| error.kind() == ErrorKind::ValueValidation) {
        text += &match why.downcast_ref::<LocalizedText>() {
            Some(why) => format!("：{}", why.localize(Lang::Zh)),
            None if why.is::<std::num::ParseIntError>() || why.is::<std::num::TryFromIntError>() => {
                "：应为整数".to_owned()
            }
            None => format!("：{why}"),
        };
    }
    let values = context(error, ContextKind::ValidValue).unwrap_or_default();
    if !values.is_empty() {
        text += &format!("\n  [可用值：{}]", values.join("、"));
    }
    Some(text)
}

/// Suggestions for a misspelled word.
fn tips(error: &clap::Error) -> Vec<String> {
    let similar = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    let similar: Vec<String> =
        similar.into_iter().filter_map(|kind| context(error, kind)).flatten().collect();
    if !similar.is_empty() {
        // clap puts the best suggestion last.
        let similar: Vec<String> = similar.iter().rev().map(|similar| format!("`{similar}`")).collect();
        return vec![format!("是否想用 {}？", similar.join("、"))];
    }
    let arg = context(error, ContextKind::InvalidArg).and_then(|args| args.into_iter().next());
    let is_value = error.kind() == ErrorKind::UnknownArgument && error.get(ContextKind::Suggested).is_some();
    match arg.filter(|arg| is_value && arg.starts_with('-')) {
        Some(arg) => vec![format!("如要把 `{arg}` 作为值传入，请写成 `-- {arg}`")],
        None => Vec::new(),
    }
}
