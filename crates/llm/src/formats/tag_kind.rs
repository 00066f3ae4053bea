//! The meaning of tags: which enclose calls, which thoughts, which quoted tool results.

use super::tag::Tag;

/// The content that a tag opens or closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TagKind {
    /// Calls.
    Call,
    /// A call whose name is in the tag.
    NamedCall,
    /// Thoughts: calls inside are ignored.
    Thought,
    /// A tool result, real or invented by the model.
    Result,
    /// A special token without meaning of its own.
    Token,
    /// Unknown.
    Other,
}

const CALLS: &[&str] = &[
    "tool_call",
    "tool_calls",
    "toolcall",
    "toolcalls",
    "tool-call",
    "function_call",
    "function_calls",
    "functioncall",
    "function-call",
    "longcat_tool_call",
    "tool_use",
    "use_tool",
    "use_mcp_tool",
    "python_tag",
    "python_start",
    "tool_call_start",
    "tool_calls_start",
    "tool_call_begin",
    "tool_calls_begin",
    "tool_calls_section_begin",
    "start_function_call",
    "action_start",
    "start_action",
    "plugin",
    "interpreter",
    "tool_code",
    "tools",
];

const ENDS: &[&str] = &[
    "tool_call_end",
    "tool_calls_end",
    "tool_calls_section_end",
    "end_function_call",
    "action_end",
    "end_action",
    "python_end",
    "im_end",
    "eot_id",
    "eom_id",
    "call",
    "end",
    "endoftext",
    "end_of_turn",
    "turn_end",
    "s",
];

const THOUGHTS: &[&str] = &[
    "think",
    "thinking",
    "thought",
    "thoughts",
    "reasoning",
    "reflection",
    "scratchpad",
    "scratch_pad",
    "inner_monologue",
    "analysis",
    "start_thinking",
    "begin_of_thought",
    "unused6",
];

const RESULTS: &[&str] = &[
    "tool_response",
    "tool_responses",
    "tool_result",
    "tool_results",
    "tool_output",
    "tool_outputs",
    "function_response",
    "function_responses",
    "function_result",
    "function_results",
    "function_output",
    "observation",
    "observations",
    "tool_outputs_begin",
    "tool_output_begin",
    "start_tool_result",
    "start_function_response",
];

/// The meaning of an opening or closing tag.
pub(super) fn tag_kind(tag: &Tag<'_>) -> TagKind {
    let name = tag.name.as_str();
    if matches!(name, "function" | "invoke" | "tool" | "call" | "action") && named(tag) {
        TagKind::NamedCall
    } else if CALLS.contains(&name) || name == "invoke" {
        TagKind::Call
    } else if THOUGHTS.contains(&name) {
        TagKind::Thought
    } else if RESULTS.contains(&name) {
        TagKind::Result
    } else if tag.special || ENDS.contains(&name) {
        TagKind::Token
    } else {
        TagKind::Other
    }
}

/// Whether a tag contains the name of a tool.
fn named(tag: &Tag<'_>) -> bool {
    tag.closing || tag.value.is_some() || tag.attribute("name").is_some()
}

/// Whether `tag` closes `open`.
pub(super) fn ends(tag: &Tag<'_>, open: &Tag<'_>) -> bool {
    if tag.closing {
        return tag.name == open.name;
    }
    let (name, begun) = (tag.name.as_str(), open.name.as_str());
    match begun {
        "start_thinking" => name == "end_thinking",
        "begin_of_thought" => name == "end_of_thought",
        "unused6" => name == "unused7",
        "start_tool_result" => name == "end_tool_result",
        "start_function_response" => name == "end_function_response",
        "tool_outputs_begin" => name == "tool_outputs_end",
        "tool_output_begin" => name == "tool_output_end",
        _ => false,
    }
}

/// Whether a tag ends calls, whichever tag opened them.
pub(super) fn ends_calls(tag: &Tag<'_>) -> bool {
    let call = matches!(tag_kind(tag), TagKind::Call | TagKind::NamedCall);
    // Gemma 4 closes `<|tool_call>` with `<tool_call|>`, which parses as a special token of the same name.
    (tag.closing && call) || ENDS.contains(&tag.name.as_str())
}
