//! `toolhub ask`: plans and runs a request in natural language. `chat` uses it for each turn.

use std::io::{IsTerminal as _, Read as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use anstream::adapter::strip_str;
use toolhub::{
    AgentMode, AllowAll, Answer, AskError, AskOptions, ChangeSummary, Confirmation, DenyAll, Hub,
    ModelSelection, NoModel, PermissionDecision, RawJson, ReplyDelta, ToolError,
};
use toolhub_core::{BoxFuture, Localize as _, ToolName};
use toolhub_engine::definition_scan::escape_invisible;

use crate::app::App;
use crate::args::ask::{AgentArgs, AskArgs, ModeArg};
use crate::commands::agent::interrupted;
use crate::exit::{Exit, Interrupted, UsageError};
use crate::render::live::FRAME_INTERVAL;
use crate::render::screen::{BAD, DIM, ODD};
use crate::terminal::input::{PromptTurn, read_line};

pub(crate) async fn run(app: &App, args: AskArgs) -> anyhow::Result<Exit> {
    let request = match args.request.as_slice() {
        [one] if one == "-" => from_stdin(app)?,
        // Without quotes, the shell passes the words as separate arguments.
        words => words.join(" "),
    };
    if is_help(&request) {
        let text = app.lang().choose(
            "say what you want done, such as `what time is it in Tokyo?`; `toolhub --help` shows all commands, `toolhub tools` what there is",
            "请说明想做什么，例如 `现在东京几点？`；`toolhub --help` 显示全部命令，`toolhub tools` 列出现有工具",
        );
        return Err(UsageError(text.to_owned()).into());
    }
    let conversation = args.conversation.clone().unwrap_or_else(Hub::new_conversation);
    let options = ask_options(app, &args.agent, &conversation);
    let started_at = SystemTime::now();
    match answer_request(app, &request, &args.agent, &options).await {
        Ok(answer) => Ok(show_answer(app, &answer, &conversation)),
        Err(error) => {
            if error.is::<Interrupted>() && app.screen.json {
                interrupted::show(app, &conversation, started_at).await;
            }
            Err(error)
        }
    }
}

/// Whether the request asks for help, which is answered without a tool.
pub(crate) fn is_help(request: &str) -> bool {
    let bare = request.trim().trim_start_matches('/').trim_end_matches(['?', '？', '!', '！', '.', '。']);
    ["help", "usage", "帮助", "用法", ""].contains(&bare.trim().to_lowercase().as_str())
        && !request.trim().is_empty()
}

fn from_stdin(app: &App) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to() + 1;
        let text = app.lang().choose(
            format!("standard input is no UTF-8 (byte {at}): convert it first, as with `iconv -t UTF-8`"),
            format!("标准输入的内容不是 UTF-8（第 {at} 字节）：请先转换，例如 `iconv -t UTF-8`"),
        );
        UsageError(text).into()
    })
}

/// The options from the command line.
pub(crate) fn ask_options(app: &App, args: &AgentArgs, conversation: &str) -> AskOptions {
    AskOptions {
        agent: args.agent.clone(),
        model: match (&args.model, args.no_llm) {
            (_, true) => ModelSelection::None,
            (Some(name), false) => ModelSelection::Named(name.clone()),
            (None, false) => ModelSelection::Default,
        },
        mode: args.mode.map(|mode| match mode {
            ModeArg::Talk => AgentMode::Talk,
            ModeArg::Plan => AgentMode::Plan,
            ModeArg::Code => AgentMode::Code,
        }),
        conversation: Some(conversation.to_owned()),
        lang: app.lang(),
    }
}

/// An answer, and the part of it that was already printed while it was streamed.
pub(crate) struct StreamedAnswer {
    answer: Answer,
    streamed: String,
}

pub(crate) async fn answer_request(
    app: &App,
    request: &str,
    args: &AgentArgs,
    options: &AskOptions,
) -> anyhow::Result<StreamedAnswer> {
    if request.trim().is_empty() {
        return Err(UsageError(
            app.lang()
                .choose("the request is empty: say what you want", "请求为空：请说明想做什么")
                .to_owned(),
        )
        .into());
    }
    let hub = app.hub().await?;
    if options.model == ModelSelection::Default {
        report_missing_model_once(app, hub).await;
    }
    let terminal = TerminalConfirmation { app, is_all_allowed: AtomicBool::new(false) };
    let confirmation: &dyn Confirmation = match (args.yes, can_prompt(app)) {
        (true, _) => &AllowAll,
        (false, true) => &terminal,
        (false, false) => &DenyAll,
    };
    let streams = !app.screen.json && (args.stream || std::io::stdout().is_terminal());
    let streamed = Mutex::new(String::new());
    let on_delta = |delta: ReplyDelta| {
        if let (ReplyDelta::Text(text), true) = (delta, streams) {
            app.live.suspend();
            app.screen.delta(&text);
            streamed.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
        }
    };
    let work = async {
        let work = hub.ask(request, options, confirmation, &on_delta);
        tokio::pin!(work);
        let mut turn = tokio::time::interval(FRAME_INTERVAL);
        loop {
            tokio::select! {
                done = &mut work => return done,
                _ = turn.tick() => app.live.draw(),
            }
        }
    };
    let answer = app.interruptible(work).await?;
    app.screen.hide_status();
    match answer {
        Ok(answer) => Ok(StreamedAnswer {
            answer,
            streamed: streamed.into_inner().unwrap_or_else(PoisonError::into_inner),
        }),
        Err(AskError::NoModel(why)) => Err(UsageError(why.localize(app.lang())).into()),
        Err(AskError::UnknownAgent { name, .. }) => Err(UsageError(app.lang().choose(
            format!("there is no agent `{name}`: add `[agents.{name}]` to toolhub.toml"),
            format!("没有智能体 `{name}`：请在 toolhub.toml 中添加 `[agents.{name}]`"),
        ))
        .into()),
    }
}

/// Without a model, requests are planned by rules; prints a note about that once per data folder.
async fn report_missing_model_once(app: &App, hub: &Hub) {
    let marker = hub.paths().data_dir.join("no-model.told");
    if marker.exists() || !matches!(hub.chosen_model().await, Err(NoModel::NotSetUp { .. })) {
        return;
    }
    app.screen.note(app.lang().choose(
        "no language model is set up: requests are planned by rules. `toolhub doctor` explains how to set one up (shown once)",
        "没有配置语言模型：请求按规则规划。`toolhub doctor` 说明如何配置（此提示只显示一次）",
    ));
    let _ =
        toolhub_private_files::open_private_file(&marker, std::fs::File::options().write(true).create(true));
}

fn can_prompt(app: &App) -> bool {
    !app.screen.json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Prompts at the terminal before data is changed or deleted.
struct TerminalConfirmation<'a> {
    app: &'a App,
    /// Whether the user agreed to all further changes of this request.
    is_all_allowed: AtomicBool,
}

impl Confirmation for TerminalConfirmation<'_> {
    fn allow<'a>(&'a self, tool: &'a ToolName, arguments: &'a RawJson) -> BoxFuture<'a, PermissionDecision> {
        Box::pin(async move {
            if self.is_all_allowed.load(Ordering::Relaxed) {
                return PermissionDecision::Granted;
            }
            // The calls of a script may ask at the same time.
            let turn = PromptTurn::take(&self.app.screen).await;
            if self.is_all_allowed.load(Ordering::Relaxed) {
                turn.answered();
                return PermissionDecision::Granted;
            }
            self.app.live.suspend();
            let lang = self.app.lang();
            let change = ChangeSummary::new(tool, arguments);
            let text = change.text().localize(lang);
            let text = escape_invisible(&text);
            let style = if change.deletes { BAD } else { ODD };
            self.app.screen.to_stderr(&format!("{style}!{style:#} {text}{}", lang.choose(".", "。")));
            if self.app.global.verbose > 0 {
                self.app.screen.to_stderr(&format!("  {DIM}{}{DIM:#}", escape_invisible(arguments.get())));
            }
            self.app.screen.prompt(lang.choose(
                "Run it? [y/N/a] (a: this and all others of this request) ",
                "是否执行？[y/N/a]（a：执行本次请求的全部操作）",
            ));
            let line = read_line().await.unwrap_or_default();
            turn.answered();
            match line.trim().to_lowercase().as_str() {
                "y" | "yes" | "是" | "好" => PermissionDecision::Granted,
                "a" | "all" | "全部" => {
                    self.is_all_allowed.store(true, Ordering::Relaxed);
                    PermissionDecision::Granted
                }
                _ => PermissionDecision::Denied,
            }
        })
    }
}

/// Prints an answer. Returns the exit code.
pub(crate) fn show_answer(app: &App, outcome: &StreamedAnswer, conversation: &str) -> Exit {
    let (lang, answer) = (app.lang(), &outcome.answer);
    if app.screen.json {
        let json = answer.to_json(lang).with("conversation", conversation);
        app.screen.json(&json.into_raw());
        return exit(answer);
    }
    for note in &answer.notes {
        app.screen.warn(&note.localize(lang));
    }
    let streamed = outcome.streamed.trim_end();
    if !streamed.is_empty() && streamed.ends_with(answer.text.trim()) {
        app.screen.line("");
    } else if answer.success {
        if !outcome.streamed.is_empty() {
            app.screen.line("");
        }
        // An answer is text: removes terminal escape sequences from it.
        app.screen.verbatim(&strip_str(&answer.text).to_string());
    } else {
        // Prints completed parts as the answer, and failures separately.
        let failed = answer.failures.join("\n");
        let done = answer.text.strip_suffix(&failed).filter(|_| !failed.is_empty()).unwrap_or_default();
        if !done.trim().is_empty() {
            app.screen.verbatim(&strip_str(done.trim_end()).to_string());
        }
        match answer.failures.is_empty() {
            true => app.screen.error(&answer.text),
            false => answer.failures.iter().for_each(|failure| app.screen.error(failure)),
        }
    }
    for issue in &answer.verification.issues {
        // Failures and missing parts are already in the answer.
        let message = issue.localize(lang);
        if answer.success && !answer.text.contains(&message) {
            app.screen.warn(&message);
        }
    }
    if app.global.verbose > 0 && answer.usage.output > 0 {
        let (input, output) = (answer.usage.input, answer.usage.output);
        app.screen.note(&lang.choose(
            format!("{DIM}{input} tokens read, {output} written{DIM:#}"),
            format!("{DIM}读入 {input} token，写出 {output} token{DIM:#}"),
        ));
    }
    exit(answer)
}

fn exit(answer: &Answer) -> Exit {
    if answer.success {
        return Exit::Done;
    }
    // Some steps succeeded, so the exit code of a single failed tool does not apply.
    if answer.steps.iter().any(toolhub::StepResult::success) {
        return Exit::Failed;
    }
    let error = |step: &toolhub::StepResult| -> Option<ToolError> {
        step.outcome.as_ref()?.result.as_ref().err().cloned()
    };
    answer.steps.iter().find_map(error).map_or(Exit::Failed, |error| Exit::from(&error))
}
