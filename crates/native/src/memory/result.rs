//! `read_result`: the full result of an earlier call, page by page.

use toolhub_core::call_log::RecordId;
use toolhub_core::lang::LocalizedText;
use toolhub_core::text::split_pages;
use toolhub_core::{RawJson, RawObject, ToolError, ToolOutput};
use toolhub_macros::tool;

use super::{Memory, store_error};

/// Characters per page.
const PAGE: usize = 4_000;

/// Reads the full result of an earlier call whose result was cut, page by page.
#[tool(read_only, idempotent, open_world = false, crate = crate::private)]
pub async fn read_result(
    #[state] memory: &Memory,
    #[doc = "The handle that came with the cut result"] handle: String,
    #[doc = "Which page, counted from 1"]
    #[schemars(range(min = 1))]
    page: Option<u32>,
) -> Result<ToolOutput, ToolError> {
    let found =
        memory.store()?.output(&RecordId::new(handle.trim())).await.map_err(|error| store_error(&error))?;
    let Some(output) = found.and_then(ToolOutput::from_raw) else {
        return Err(ToolError::failed(LocalizedText::new(
            format!("there is no result `{handle}`, or it is no longer kept; call the tool again"),
            format!("没有结果 `{handle}`，或已不再保留；请重新调用该工具"),
        )));
    };
    let text = text_of(&output);
    let all = split_pages(&text, PAGE);
    let (count, page_number) = (all.len().max(1), page.unwrap_or(1) as usize);
    let Some(page_text) = all.get(page_number - 1).copied().or((page_number == 1).then_some("")) else {
        return Err(ToolError::failed(LocalizedText::new(
            format!("page {page_number} does not exist: there are {count}"),
            format!("没有第 {page_number} 页：共 {count} 页"),
        )));
    };
    let more = if page_number < count {
        format!("\n\n(page {page_number} of {count}; read on with page {})", page_number + 1)
    } else {
        format!("\n\n(page {page_number} of {count}, the last)")
    };
    let mut blocks =
        vec![RawObject::default().with("type", "text").with("text", format!("{page_text}{more}")).into_raw()];
    if page_number == 1 {
        // Blocks other than text are included once, on the first page.
        let is_text = |block: &RawJson| {
            block
                .object()
                .is_some_and(|members| members.get("type").is_some_and(|kind| kind.get() == "\"text\""))
        };
        blocks.extend(output.blocks().into_iter().filter(|block| !is_text(block)));
    }
    let structured = RawObject::default().with("page", page_number as u64).with("pages", count as u64);
    let members =
        RawObject::default().with("content", RawJson::of(&blocks)).with("structuredContent", structured);
    ToolOutput::from_raw(members.into_raw()).ok_or(ToolError::Internal)
}

/// The text blocks; the structured content if there are none.
fn text_of(output: &ToolOutput) -> String {
    let (texts, _) = output.texts();
    match output.structured() {
        Some(structured) if texts.is_empty() => structured.get().to_owned(),
        _ => texts.join("\n"),
    }
}
