//! MCP elicitation requests of servers while a command runs: forms and URLs, answered at the terminal.

use std::io::IsTerminal as _;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolhub::{ClientHandler, HandlerAnswer};
use toolhub_core::error::METHOD_NOT_FOUND;
use toolhub_core::{BoxFuture, Lang, RawJson, ServerId};
use toolhub_engine::definition_scan::escape_invisible;

use crate::render::live::Live;
use crate::render::screen::{BOLD, DIM, ODD, Screen};
use crate::terminal::browser;
use crate::terminal::input::{PromptTurn, read_line};

/// The maximum number of invalid inputs for a value before the form is cancelled.
const MAX_INVALID_INPUTS: usize = 3;

/// Answers requests of servers at the terminal, if there is one.
pub(crate) struct TerminalHandler {
    screen: Arc<Screen>,
    live: Arc<Live>,
}

impl TerminalHandler {
    pub(crate) fn new(screen: Arc<Screen>, live: Arc<Live>) -> Self {
        Self { screen, live }
    }

    fn has_terminal(&self) -> bool {
        !self.screen.json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }

    fn lang(&self) -> Lang {
        self.screen.lang
    }

    async fn elicit(&self, server: &ServerId, params: &Value) -> HandlerAnswer {
        let message = params["message"].as_str().unwrap_or_default();
        if !self.has_terminal() {
            let why = self.lang().choose(
                format!("server `{server}` asks for input (\"{message}\"): run the command at a terminal to answer, or give the value as an argument of the tool"),
                format!("服务器 `{server}` 请求输入（“{message}”）：请在终端中运行该命令以回答，或作为工具的参数给出"),
            );
            self.screen.warn(&escape_invisible(&why));
            return Err((METHOD_NOT_FOUND, why));
        }
        let turn = PromptTurn::take(&self.screen).await;
        self.live.suspend();
        self.screen
            .to_stderr(&format!("{ODD}?{ODD:#} {BOLD}{server}{BOLD:#}: {}", escape_invisible(message)));
        let answer = match params["mode"].as_str() {
            Some("url") => self.visit(params["url"].as_str().unwrap_or_default()).await,
            _ => self.fill_form(&params["requestedSchema"]).await,
        };
        turn.answered();
        Ok(RawJson::from(answer))
    }

    /// Shows a URL and opens it if the user agrees.
    async fn visit(&self, url: &str) -> Value {
        let lang = self.lang();
        if !url.starts_with("https://") && !url.starts_with("http://") {
            self.screen
                .warn(lang.choose("its address is neither http nor https", "其地址不是 http 或 https"));
            return json!({"action": "decline"});
        }
        self.screen.to_stderr(&format!("  {}", escape_invisible(url)));
        self.screen.prompt(lang.choose("Open this address? [y/N] ", "是否打开该地址？[y/N] "));
        match read_line().await {
            None => json!({"action": "cancel"}),
            Some(line) if is_yes(&line) => {
                if !browser::open(url) {
                    self.screen.note(lang.choose(
                        "no browser could be started: open the address yourself",
                        "无法启动浏览器：请自行打开该地址",
                    ));
                }
                json!({"action": "accept"})
            }
            Some(_) => json!({"action": "decline"}),
        }
    }

    /// Prompts for each value of a form.
    async fn fill_form(&self, schema: &Value) -> Value {
        let lang = self.lang();
        self.screen.note(&format!(
            "  {DIM}{}{DIM:#}",
            lang.choose(
                "empty: leave out or take the default; /decline refuses; Ctrl-D cancels",
                "留空：省略或使用默认值；/decline 拒绝；Ctrl-D 取消"
            )
        ));
        let empty = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&empty);
        let required: Vec<&str> = schema["required"]
            .as_array()
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let mut content = Map::new();
        for (name, property) in properties {
            match self.ask_value(name, property, required.contains(&name.as_str())).await {
                Reply::Value(value) => drop(content.insert(name.clone(), value)),
                Reply::Omitted => {}
                Reply::Declined => return json!({"action": "decline"}),
                Reply::Cancelled => return json!({"action": "cancel"}),
            }
        }
        json!({"action": "accept", "content": content})
    }

    async fn ask_value(&self, name: &str, property: &Value, required: bool) -> Reply {
        let lang = self.lang();
        let title = property["title"].as_str().or_else(|| property["description"].as_str()).unwrap_or(name);
        let options = options(property);
        let mut hints = Vec::new();
        if !options.is_empty() {
            hints.push(options.join("/"));
        } else if property["type"] != "string" {
            hints.extend(property["type"].as_str().map(str::to_owned));
        }
        if let Some(default) = property.get("default") {
            hints.push(lang.choose(format!("default {default}"), format!("默认 {default}")));
        } else if !required {
            hints.push(lang.choose("optional", "可选").to_owned());
        }
        let hints = if hints.is_empty() { String::new() } else { format!(" ({})", hints.join(", ")) };
        for _ in 0..MAX_INVALID_INPUTS {
            self.screen.prompt(&format!("  {}{}: ", escape_invisible(title), escape_invisible(&hints)));
            let Some(line) = read_line().await else { return Reply::Cancelled };
            match line.trim() {
                "/decline" => return Reply::Declined,
                "" => match property.get("default") {
                    Some(default) => return Reply::Value(default.clone()),
                    None if !required => return Reply::Omitted,
                    None => self.screen.warn(lang.choose("a value is required", "必须填写")),
                },
                text => match typed(text, property, &options) {
                    Some(value) => return Reply::Value(value),
                    None => self.screen.warn(&lang.choose(
                        format!("`{text}` does not fit{hints}"),
                        format!("`{text}` 不符合要求{hints}"),
                    )),
                },
            }
        }
        Reply::Cancelled
    }
}

/// The user's input for one value.
enum Reply {
    Value(Value),
    Omitted,
    Declined,
    Cancelled,
}

fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_lowercase().as_str(), "y" | "yes" | "是" | "好")
}

/// The values that a property allows: `enum`, or the constants of `oneOf`.
fn options(property: &Value) -> Vec<String> {
    let listed = property["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let constants =
        property["oneOf"].as_array().into_iter().flatten().filter_map(|option| option["const"].as_str());
    listed.chain(constants).map(str::to_owned).collect()
}

/// Parses the text as the type of its property; `None` if it does not match.
fn typed(text: &str, property: &Value, options: &[String]) -> Option<Value> {
    match property["type"].as_str() {
        Some("integer") => text.parse::<i64>().ok().map(Value::from),
        Some("number") => text.parse::<f64>().ok().and_then(serde_json::Number::from_f64).map(Value::from),
        Some("boolean") => match text.to_lowercase().as_str() {
            "y" | "yes" | "true" | "是" => Some(Value::Bool(true)),
            "n" | "no" | "false" | "否" => Some(Value::Bool(false)),
            _ => None,
        },
        Some("array") => {
            let all: Vec<Value> = text.split(',').map(|one| Value::from(one.trim())).collect();
            Some(Value::Array(all))
        }
        _ if options.is_empty() => Some(Value::from(text)),
        _ => options.iter().any(|option| option == text).then(|| Value::from(text)),
    }
}

impl ClientHandler for TerminalHandler {
    fn capabilities(&self) -> RawJson {
        match self.has_terminal() {
            true => RawJson::from(json!({"elicitation": {"form": {}, "url": {}}})),
            false => RawJson::empty_object(),
        }
    }

    fn request<'a>(
        &'a self,
        server: &'a ServerId,
        method: String,
        params: Option<RawJson>,
    ) -> BoxFuture<'a, HandlerAnswer> {
        Box::pin(async move {
            match method.as_str() {
                "elicitation/create" => {
                    let params = params.map(|params| params.value()).unwrap_or_default();
                    self.elicit(server, &params).await
                }
                _ => Err((METHOD_NOT_FOUND, format!("method not found: {method}"))),
            }
        })
    }
}
