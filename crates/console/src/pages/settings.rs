//! The page of the configuration file.

use maud::{Markup, html};

use super::layout::PageFrame;
use crate::api::config;
use crate::problem::Problem;
use crate::request::ConsoleContext;

pub(crate) fn page(context: &ConsoleContext<'_>, frame: &PageFrame<'_>) -> Result<(String, Markup), Problem> {
    let title = frame.text("Settings", "设置");
    let config = config::read(context)?;
    let content = html! {
        h1 { (title) }
        p.muted { code { (config.file) } }
        @if let Some(why) = &config.read_only { p.problem { (why) } }
        @if !config.restart.is_empty() {
            p.problem {
                (frame.text("Changed since the hub was started, and in effect after a restart:", "自 hub 启动后已修改，重启后生效："))
                " " @for section in &config.restart { code { "[" (section) "]" } " " }
            }
        }
        @for warning in &config.warnings { p.problem { (warning) } }
        div #settings-editor data-static data-config=(frame.api("config")) data-file=(config.file) data-version=(config.version) {
            div.field {
                label for="config-text" { (frame.text("Text of the file", "文件内容")) }
                textarea #config-text rows="24" spellcheck="false" autocomplete="off" wrap="off"
                    readonly[config.read_only.is_some()] aria-describedby="config-hint" { (config.text) }
                span #config-hint.muted.small { (frame.text(
                    "{{secret N}} stands for a secret of the file: leave it to keep the secret, or write a new one. Better still, write ${VAR} and keep the secret in the environment.",
                    "{{secret N}} 代表文件中的机密值：保留即不变，也可写入新值。更好的做法是写 ${VAR}，把机密值放在环境变量中。",
                )) }
            }
        }
    };
    Ok((title.to_owned(), content))
}
