//! What tags and marks mean: which begin a call, which a thought, which the quoted answer of a tool.

use super::tag::Tag;

/// What a tag begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Calls stand inside.
    Call,
    /// A call whose name stands in the tag itself.
    NamedCall,
    /// Thoughts: nothing inside is meant to be done.
    Thought,
    /// What a tool answered, or what the model pretends it answered.
    Result,
    /// A token between parts: of no meaning of its own.
    Token,
    /// Nothing that is known.
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

/// What a tag means, whether it opens or closes that.
pub(super) fn meaning(tag: &Tag<'_>) -> Meaning {
    let name = tag.name.as_str();
    if matches!(name, "function" | "invoke" | "tool" | "call" | "action") && named(tag) {
        Meaning::NamedCall
    } else if CALLS.contains(&name) || name == "invoke" {
        Meaning::Call
    } else if THOUGHTS.contains(&name) {
        Meaning::Thought
    } else if RESULTS.contains(&name) {
        Meaning::Result
    } else if tag.special || ENDS.contains(&name) {
        Meaning::Token
    } else {
        Meaning::Other
    }
}

/// Whether a tag says which tool is called.
fn named(tag: &Tag<'_>) -> bool {
    tag.closing || tag.value.is_some() || tag.attribute("name").is_some()
}

/// Whether `tag` ends what `open` began.
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

/// Whether a tag ends calls, whichever tag began them.
pub(super) fn ends_calls(tag: &Tag<'_>) -> bool {
    let call = matches!(meaning(tag), Meaning::Call | Meaning::NamedCall);
    // `<tool_call|>` is how Gemma 4 closes `<|tool_call>`; it reads as a special token of the same name.
    (tag.closing && call) || ENDS.contains(&tag.name.as_str())
}
