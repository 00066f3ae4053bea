//! `toolhub result`: the full result of an earlier call, complete or in pages.

use toolhub::ToolOutput;
use toolhub_core::call_log::{CallQuery, RecordId};
use toolhub_core::text::split_pages;
use toolhub_core::{RawJson, RawObject};

use crate::app::App;
use crate::args::history::ResultArgs;
use crate::commands::history::archive::CallArchive;
use crate::commands::tools::call::text_of;
use crate::exit::Exit;

/// Page size in characters.
const PAGE_CHARS: usize = 4_000;
/// The number of recent calls that are searched for `last`.
const MAX_RECENT_CALLS: usize = 50;

pub(crate) async fn run(app: &App, archive: &CallArchive<'_>, args: ResultArgs) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let handle = resolve_handle(archive, &args.handle).await?;
    let found = match &handle {
        Some(handle) => archive.result(handle).await?,
        None => None,
    };
    let (Some(output), Some(handle)) = (found, handle) else {
        let handle_arg = &args.handle;
        return Ok(refuse(app, &lang.choose(
            format!("there is no result `{handle_arg}`, or it is no longer kept; `toolhub history` shows what there is"),
            format!("没有结果 `{handle_arg}`，或已不再保留；`toolhub history` 列出现有的"),
        )));
    };
    let text = text_of(app, &output);
    let all = split_pages(&text, PAGE_CHARS);
    let count = all.len().max(1);
    let content = match args.page {
        None => text.as_str(),
        Some(page) => match page.checked_sub(1).and_then(|index| all.get(index)) {
            Some(content) => content,
            None if page == 1 => "",
            None => {
                return Ok(refuse(
                    app,
                    &lang.choose(
                        format!("page {page} does not exist: there are {count}"),
                        format!("没有第 {page} 页：共 {count} 页"),
                    ),
                ));
            }
        },
    };
    if app.screen.json {
        app.screen.json(&as_json(&handle, &output, args.page, count, content));
        return Ok(Exit::Done);
    }
    app.screen.verbatim(content);
    if let Some(page) = args.page {
        app.screen
            .note(&lang.choose(format!("page {page} of {count}"), format!("第 {page} 页，共 {count} 页")));
    }
    Ok(Exit::Done)
}

/// Resolves a handle: `last` is the most recent call with a result.
async fn resolve_handle(archive: &CallArchive<'_>, handle_arg: &str) -> anyhow::Result<Option<RecordId>> {
    if handle_arg == "last" {
        let newest =
            archive.calls(CallQuery { limit: Some(MAX_RECENT_CALLS), ..CallQuery::default() }).await?;
        for call in newest {
            if archive.result(&call.start.record).await?.is_some() {
                return Ok(Some(call.start.record));
            }
        }
        return Ok(None);
    }
    Ok(Some(RecordId::new(handle_arg.trim())))
}

fn as_json(handle: &RecordId, output: &ToolOutput, page: Option<usize>, pages: usize, text: &str) -> RawJson {
    let mut content = RawObject::default().with("handle", handle.as_str()).with("pages", pages as u64);
    match page {
        Some(page) => {
            content.set("page", page as u64);
            content.set("text", text);
        }
        None => {
            content.set("result", output.result());
            content.set("output", output.raw().clone());
        }
    }
    content.into_raw()
}

fn refuse(app: &App, text: &str) -> Exit {
    if app.screen.json {
        app.screen.json(&RawObject::default().with("success", false).with("error", text).into_raw());
    }
    app.screen.error(text);
    Exit::Failed
}
