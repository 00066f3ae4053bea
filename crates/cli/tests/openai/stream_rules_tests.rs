//! The rules of streams, checked with streams that follow them and with streams that break one of them each.

use serde_json::{Value, json};

use crate::sse_frames::{self, Frame};
use crate::{chat_stream_rules, stream_rules};

/// A response that calls a tool of the hub, writes a text, and calls a function of the client.
fn good_response() -> Vec<Value> {
    let list = json!({"id": "mcpl_1", "type": "mcp_list_tools", "server_label": "s", "tools": []});
    let call = json!({"id": "mcp_1", "type": "mcp_call", "server_label": "s", "name": "read", "arguments": "{\"row\":3}",
        "output": "three", "error": null, "status": "completed"});
    let part = json!({"type": "output_text", "text": "Row 3.", "annotations": []});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]});
    let thought = json!({"id": "rs_1", "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]});
    let function =
        json!({"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"});
    let response = |status: &str, output: Value| json!({"id": "resp_1", "status": status, "output": output});
    let added = |item: &Value, index: usize, emptied: &[(&str, Value)]| {
        let mut item = item.clone();
        for (member, value) in emptied {
            item[*member] = value.clone();
        }
        json!({"type": "response.output_item.added", "output_index": index, "item": item})
    };
    let done = |item: &Value, index: usize| json!({"type": "response.output_item.done", "output_index": index, "item": item});
    let within = |kind: &str, index: usize, item: &Value, more: Value| {
        let mut event =
            json!({"type": format!("response.{kind}"), "output_index": index, "item_id": item["id"]});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let empty = json!({"type": "output_text", "text": "", "annotations": []});
    let mut events = vec![
        json!({"type": "response.created", "response": response("in_progress", json!([]))}),
        json!({"type": "response.in_progress", "response": response("in_progress", json!([]))}),
        added(&list, 0, &[]),
        within("mcp_list_tools.in_progress", 0, &list, json!({})),
        within("mcp_list_tools.completed", 0, &list, json!({})),
        done(&list, 0),
        added(&call, 1, &[("arguments", json!("")), ("output", Value::Null)]),
        within("mcp_call.in_progress", 1, &call, json!({})),
        within("mcp_call_arguments.delta", 1, &call, json!({"delta": "{\"row\":"})),
        within("mcp_call_arguments.delta", 1, &call, json!({"delta": "3}"})),
        within("mcp_call_arguments.done", 1, &call, json!({"arguments": "{\"row\":3}"})),
        within("mcp_call.completed", 1, &call, json!({})),
        done(&call, 1),
        added(&message, 2, &[("content", json!([]))]),
        within("content_part.added", 2, &message, json!({"content_index": 0, "part": empty})),
        within("output_text.delta", 2, &message, json!({"content_index": 0, "delta": "Row "})),
        within("output_text.delta", 2, &message, json!({"content_index": 0, "delta": "3."})),
        within("output_text.done", 2, &message, json!({"content_index": 0, "text": "Row 3."})),
        within("content_part.done", 2, &message, json!({"content_index": 0, "part": part})),
        done(&message, 2),
        added(&thought, 3, &[("content", json!([]))]),
        within("reasoning_text.delta", 3, &thought, json!({"content_index": 0, "delta": "H"})),
        within("reasoning_text.delta", 3, &thought, json!({"content_index": 0, "delta": "m."})),
        within("reasoning_text.done", 3, &thought, json!({"content_index": 0, "text": "Hm."})),
        done(&thought, 3),
        added(&function, 4, &[("arguments", json!(""))]),
        within("function_call_arguments.delta", 4, &function, json!({"delta": "{}"})),
        within("function_call_arguments.done", 4, &function, json!({"arguments": "{}"})),
        done(&function, 4),
        json!({"type": "response.completed",
            "response": response("completed", json!([list, call, message, thought, function]))}),
    ];
    number(&mut events);
    events
}

fn number(events: &mut [Value]) {
    for (position, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = position.into();
    }
}

fn frames(events: &[Value]) -> Vec<Frame> {
    let body: String = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n: heartbeat\n\n", event["type"].as_str().unwrap()))
        .collect();
    sse_frames::parse(&body).unwrap()
}

fn position(events: &[Value], kind: &str) -> usize {
    events.iter().position(|event| event["type"] == format!("response.{kind}")).unwrap()
}

#[test]
fn accepts_good_response() {
    let checked = stream_rules::check(&frames(&good_response())).unwrap();
    assert_eq!(checked.deltas, ["Row ", "3."]);
    assert_eq!(checked.response["status"], "completed");
}

#[test]
fn accepts_response_that_ends_before_any_item() {
    for end in ["incomplete", "failed", "cancelled"] {
        let mut events = good_response();
        events.truncate(2);
        let response = json!({"id": "resp_1", "status": end, "output": []});
        events.push(json!({"type": format!("response.{end}"), "response": response}));
        number(&mut events);
        stream_rules::check(&frames(&events)).unwrap();
    }
}

/// Calls that run concurrently: the second one begins before the first one has ended, and ends first.
#[test]
fn accepts_overlapping_items() {
    let mut events = good_response();
    let begin = position(&events, "mcp_call.in_progress") - 1;
    let call: Vec<Value> = events[begin..begin + 7].to_vec();
    let mut other = call.clone();
    for event in &mut other {
        event["output_index"] = 0.into();
        let id = if event.get("item").is_some() { &mut event["item"]["id"] } else { &mut event["item_id"] };
        *id = "mcp_0".into();
    }
    // In place of the list of tools, whose events begin after the first two and end before the call.
    let overlapping = [&other[..5], &call[..], &other[5..]].concat();
    let first_item = other[6]["item"].clone();
    events.splice(2..begin + 7, overlapping);
    let last = events.last_mut().unwrap();
    last["response"]["output"][0] = first_item;
    number(&mut events);
    stream_rules::check(&frames(&events)).unwrap();
}

/// Changes the good response, and requires an error that contains `expect`.
fn check_bad_response(expect: &str, change: impl FnOnce(&mut Vec<Value>)) {
    let mut events = good_response();
    change(&mut events);
    let error = stream_rules::check(&frames(&events)).expect_err(expect);
    assert!(error.contains(expect), "`{expect}` is not in `{error}`");
}

/// Like `check_bad_response`, with consecutive numbers after the change.
fn check_bad_order(expect: &str, change: impl FnOnce(&mut Vec<Value>)) {
    check_bad_response(expect, |events| {
        change(events);
        number(events);
    });
}

fn remove(kind: &'static str) -> impl FnOnce(&mut Vec<Value>) {
    move |events| {
        events.remove(position(events, kind));
    }
}

fn repeat(kind: &'static str) -> impl FnOnce(&mut Vec<Value>) {
    move |events| {
        let at = position(events, kind);
        events.insert(at, events[at].clone());
    }
}

fn edit(kind: &'static str, edit: impl FnOnce(&mut Value)) -> impl FnOnce(&mut Vec<Value>) {
    move |events| {
        let at = position(events, kind);
        edit(&mut events[at]);
    }
}

#[test]
fn rejects_wrong_beginning_and_end() {
    check_bad_order("not at this place", remove("created"));
    check_bad_order("before `response.in_progress`", remove("in_progress"));
    check_bad_order("not at this place", repeat("in_progress"));
    check_bad_order("no terminal event", remove("completed"));
    check_bad_order("after the terminal one", repeat("completed"));
    check_bad_order("after the terminal one", |events| events.push(events[15].clone()));
    check_bad_order("status", edit("completed", |event| event["response"]["status"] = "in_progress".into()));
    check_bad_order("another response", edit("completed", |event| event["response"]["id"] = "resp_2".into()));
}

#[test]
fn rejects_wrong_sequence_numbers() {
    check_bad_response("not consecutive", |events| {
        events.iter_mut().for_each(|event| {
            event["sequence_number"] = (event["sequence_number"].as_u64().unwrap() + 1).into();
        });
    });
    check_bad_response("not consecutive", |events| events[4]["sequence_number"] = 3.into());
    check_bad_response("not consecutive", |events| {
        events[4].as_object_mut().unwrap().remove("sequence_number");
    });
}

#[test]
fn rejects_wrong_items() {
    check_bad_order("output index", edit("output_item.added", |event| event["output_index"] = 1.into()));
    check_bad_order("an item is still open", remove("output_item.done"));
    check_bad_order("no item with this index is open", remove("output_item.added"));
    check_bad_order("no item with this index is open", repeat("output_item.done"));
    check_bad_order("output index", repeat("output_item.added"));
    check_bad_order(
        "not the items that were done",
        edit("completed", |event| {
            event["response"]["output"].as_array_mut().unwrap().swap(0, 1);
        }),
    );
    check_bad_order(
        "not the items that were done",
        edit("completed", |event| {
            event["response"]["output"].as_array_mut().unwrap().pop();
        }),
    );
    check_bad_order("another item", edit("output_text.delta", |event| event["item_id"] = "msg_2".into()));
}

#[test]
fn rejects_wrong_text() {
    check_bad_order("no content part is open", remove("content_part.added"));
    check_bad_order("a content part is still open", remove("content_part.done"));
    check_bad_order("is not done", remove("output_text.done"));
    check_bad_order("done twice", repeat("output_text.done"));
    check_bad_order("the deltas are", repeat("output_text.delta"));
    check_bad_order("the deltas are", remove("output_text.delta"));
    check_bad_order("another text", edit("content_part.done", |event| event["part"]["text"] = "Row".into()));
    check_bad_order("content index", edit("output_text.delta", |event| event["content_index"] = 1.into()));
    check_bad_order("a delta after", |events| {
        let at = position(events, "content_part.done");
        let delta = events[position(events, "output_text.delta")].clone();
        events.insert(at, delta);
    });
    check_bad_order("content at the beginning", |events| {
        let message = events.iter_mut().find(|event| event["item"]["type"] == "message").unwrap();
        message["item"]["content"] = json!([{"type": "output_text", "text": "Row 3."}]);
    });
}

#[test]
fn rejects_wrong_thoughts() {
    check_bad_order("the deltas are", remove("reasoning_text.delta"));
    check_bad_order("a content part is still open", remove("reasoning_text.done"));
    check_bad_order("no thought is open", repeat("reasoning_text.done"));
}

#[test]
fn rejects_wrong_calls() {
    check_bad_order("not in progress", remove("mcp_call.in_progress"));
    check_bad_order("has no end", remove("mcp_call.completed"));
    check_bad_order("arguments are not done", remove("mcp_call_arguments.done"));
    check_bad_order("the deltas are", remove("mcp_call_arguments.delta"));
    check_bad_order(
        "is_failed: true",
        edit("mcp_call.completed", |event| {
            event["type"] = "response.mcp_call.failed".into();
        }),
    );
    check_bad_order("not at this place of a call", repeat("mcp_call.completed"));
    check_bad_order("arguments are not done", remove("function_call_arguments.done"));
    check_bad_order("the deltas are", repeat("function_call_arguments.delta"));
    check_bad_order(
        "not an event of an item",
        edit("function_call_arguments.delta", |event| {
            event["type"] = "response.mcp_call_arguments.delta".into();
        }),
    );
}

#[test]
fn rejects_field_event_that_differs_from_the_type() {
    let mut frames = frames(&good_response());
    frames[3].event = Some("message".to_owned());
    assert!(stream_rules::check(&frames).unwrap_err().contains("the field `event`"));
    frames[3].event = None;
    assert!(stream_rules::check(&frames).unwrap_err().contains("the field `event`"));
}

#[test]
fn rejects_malformed_frames() {
    for (body, expect) in [
        ("data: 1\n\ndata: 2\n", "complete event"),
        ("data: 1\nnonsense\n\n", "not a field"),
        ("data: 1\ndata: 2\n\n", "repeated field"),
        ("event: a\n\n", "without data"),
        ("id: 1\ndata: 2\n\n", "unexpected field"),
    ] {
        let error = sse_frames::parse(body).unwrap_err();
        assert!(error.contains(expect), "{body:?}: {error}");
    }
}

fn chunk(delta: &Value, finish: &Value) -> Value {
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn usage() -> Value {
    let mut chunk = chunk(&json!({}), &Value::Null);
    chunk["choices"] = json!([]);
    chunk["usage"] = json!({"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3});
    chunk
}

fn call(index: usize, name: Option<&str>, arguments: &str) -> Value {
    let mut call = json!({"index": index, "function": {"arguments": arguments}});
    if let Some(name) = name {
        call["id"] = json!("call_1");
        call["type"] = json!("function");
        call["function"]["name"] = name.into();
    }
    chunk(&json!({"tool_calls": [call]}), &Value::Null)
}

fn good_chat() -> Vec<Value> {
    vec![
        chunk(&json!({"role": "assistant", "content": ""}), &Value::Null),
        chunk(&json!({"content": "Row "}), &Value::Null),
        chunk(&json!({"content": "3."}), &Value::Null),
        chunk(&json!({"toolhub": {"steps": []}}), &json!("stop")),
        usage(),
    ]
}

fn chat_frames(chunks: &[Value]) -> Vec<Frame> {
    let mut body: String = chunks.iter().map(|chunk| format!(": heartbeat\n\ndata: {chunk}\n\n")).collect();
    body.push_str("data: [DONE]\n\n");
    sse_frames::parse(&body).unwrap()
}

#[test]
fn accepts_good_chats() {
    let checked = chat_stream_rules::check(&chat_frames(&good_chat()), &[]).unwrap();
    assert_eq!((checked.deltas.concat(), checked.finish.as_str()), ("Row 3.".to_owned(), "stop"));
    assert_eq!(checked.usage.unwrap()["total_tokens"], 3);
    chat_stream_rules::check(&chat_frames(&good_chat()[..4]), &[]).unwrap();

    let mut calls = good_chat();
    calls.splice(
        1..4,
        [
            call(0, Some("f"), ""),
            call(0, None, "{\"a\":"),
            call(0, None, "1}"),
            call(1, Some("f"), "{}"),
            chunk(&json!({}), &json!("tool_calls")),
        ],
    );
    let checked = chat_stream_rules::check(&chat_frames(&calls), &["f"]).unwrap();
    let expect = [("f".to_owned(), "{\"a\":1}".to_owned()), ("f".to_owned(), "{}".to_owned())];
    assert_eq!(checked.calls, expect);
}

#[test]
fn rejects_bad_chats() {
    let check = |expect: &str, change: &dyn Fn(&mut Vec<Value>)| {
        let mut chunks = good_chat();
        change(&mut chunks);
        let error = chat_stream_rules::check(&chat_frames(&chunks), &["f"]).expect_err(expect);
        assert!(error.contains(expect), "`{expect}` is not in `{error}`");
    };
    check("the first delta has no role", &|chunks| _ = chunks.remove(0));
    check("a role after the first chunk", &|chunks| {
        chunks[1]["choices"][0]["delta"]["role"] = "assistant".into();
    });
    check("no `finish_reason`", &|chunks| chunks.truncate(3));
    check("usage before the `finish_reason`", &|chunks| _ = chunks.remove(3));
    // A reason to end in the middle is what leaves a client with an empty reply.
    check("after the `finish_reason`", &|chunks| chunks.insert(1, chunk(&json!({}), &json!("tool_calls"))));
    check("after the `finish_reason`", &|chunks| chunks.insert(4, chunk(&json!({}), &json!("stop"))));
    check("a chunk after the usage", &|chunks| chunks.push(usage()));
    check("usage in a chunk with a choice", &|chunks| chunks[3]["usage"] = usage()["usage"].clone());
    check("does not have", &|chunks| chunks.insert(1, call(0, Some("read_sheet"), "{}")));
    check("do not match", &|chunks| chunks.insert(1, call(0, Some("f"), "{}")));
    check("do not match", &|chunks| chunks[3]["choices"][0]["finish_reason"] = "tool_calls".into());
    check("index of a call", &|chunks| chunks.insert(1, call(1, Some("f"), "{}")));
    check("without a name", &|chunks| chunks.insert(1, call(0, None, "{}")));
    check("unexpected member `reasoning_content`", &|chunks| {
        chunks.insert(1, chunk(&json!({"reasoning_content": "hm"}), &Value::Null));
    });
    check("same completion", &|chunks| chunks[2]["id"] = "chatcmpl-2".into());
    check("an empty delta", &|chunks| chunks[2]["choices"][0]["delta"]["content"] = "".into());

    let mut unfinished = chat_frames(&good_chat());
    unfinished.pop();
    assert!(chat_stream_rules::check(&unfinished, &[]).unwrap_err().contains("[DONE]"));
}
