"""The official Python library: `client_openai.py chat|responses SCENARIO,…`."""

import sys
import time

import openai
from openai import OpenAI
from pydantic import BaseModel

import observation as o

client = OpenAI(base_url=o.BASE_URL, api_key=o.API_KEY, max_retries=0, timeout=o.TIMEOUT)


class Trip(BaseModel):
    city: str
    days: int


def failed(action):
    try:
        action()
    except openai.APIStatusError as error:
        observed = o.failure(error, error.status_code, error.body)
        return observed | {"param": error.param, "code": error.code, "type": error.type}
    return None


def models():
    # The library encodes the slash of each name.
    return [client.models.retrieve(model.id).id for model in client.models.list()]


# Chat completions.

CHAT_FUNCTION = {
    "type": "function",
    "function": {"name": "get_weather", "description": "The weather of a city.", "parameters": o.WEATHER_SCHEMA},
}


def user(text):
    return {"role": "user", "content": text}


def chat_observed(completion):
    assert len(completion.choices) == 1, completion
    choice = completion.choices[0]
    calls = choice.message.tool_calls or []
    return {
        "text": choice.message.content,
        "finish": choice.finish_reason,
        "calls": [[call.function.name, call.function.arguments] for call in calls],
        "usage": completion.usage and [completion.usage.prompt_tokens, completion.usage.completion_tokens],
        "steps": (choice.message.model_extra or {}).get("toolhub", {}).get("steps"),
        "model": completion.model,
        "fingerprint": completion.system_fingerprint,
    }


def chat(text, **more):
    return client.chat.completions.create(model=o.MODEL, messages=[user(text)], **more)


def chat_plain():
    return chat_observed(chat(o.HELLO))


def chat_calculation():
    return chat_observed(chat(o.CALCULATION))


def chat_stream():
    deltas, ends = [], []
    options = {"include_usage": True}
    messages = [user(o.READ_ROW)]
    with client.chat.completions.stream(model=o.MODEL, messages=messages, stream_options=options) as stream:
        for event in stream:
            if event.type == "content.delta":
                deltas.append(event.delta)
            elif event.type == "chunk":
                ends += [choice.finish_reason for choice in event.chunk.choices if choice.finish_reason]
        final = stream.get_final_completion()
    unstreamed = chat_observed(chat(o.READ_ROW))
    return chat_observed(final) | {"deltas": deltas, "finishes": ends, "unstreamed": unstreamed["text"]}


def chat_with_function(text):
    messages = [user(text)]
    first = client.chat.completions.create(model=o.MODEL, messages=messages, tools=[CHAT_FUNCTION])
    called = first.choices[0].message
    messages.append(called.model_dump(exclude_none=True))
    for call in called.tool_calls or []:
        arguments = call.function.arguments
        result = o.weather(**o.json.loads(arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    final = client.chat.completions.create(model=o.MODEL, messages=messages, tools=[CHAT_FUNCTION])
    return {"first": chat_observed(first), "final": chat_observed(final)}


def chat_function():
    return chat_with_function(o.WEATHER)


def chat_mixed():
    return chat_with_function(o.READ_AND_WEATHER)


def chat_streamed_function():
    with client.chat.completions.stream(
        model=o.MODEL, messages=[user(o.WEATHER)], tools=[CHAT_FUNCTION]
    ) as stream:
        for _ in stream:
            pass
        return chat_observed(stream.get_final_completion())


def chat_structured():
    parsed = client.chat.completions.parse(model=o.MODEL, messages=[user(o.TRIP)], response_format=Trip)
    return {"parsed": parsed.choices[0].message.parsed.model_dump()}


def chat_errors():
    stranger = OpenAI(base_url=o.BASE_URL, api_key="thk_wrong", max_retries=0)
    return {
        "key": failed(lambda: stranger.chat.completions.create(model=o.MODEL, messages=[user(o.HELLO)])),
        "model": failed(lambda: client.chat.completions.create(model="gpt-4o", messages=[user(o.HELLO)])),
        "parameter": failed(lambda: chat(o.HELLO, n=2)),
    }


def chat_approval():
    """There is no approval in this API: the call is refused, and the answer says so."""
    return chat_observed(chat(o.WRITE_ROW))


def repeating(timeout):
    """The client with the repetitions of its defaults."""
    return OpenAI(base_url=o.BASE_URL, api_key=o.API_KEY, timeout=timeout, max_retries=2)


def chat_repetitions():
    def create(text, timeout=60):
        return repeating(timeout).chat.completions.create(model=o.MODEL, messages=[user(text)])

    return {"failure": failed(lambda: create("Write.")), "timeout": failed(lambda: create("Hold.", 3))}


# Responses.

FUNCTION = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": o.WEATHER_SCHEMA,
    "strict": True,
}


def observed(response):
    items = response.output
    calls = [[item.name, item.arguments] for item in items if item.type == "function_call"]
    run = [item for item in items if item.type == "mcp_call"]
    return {
        "text": response.output_text,
        "finish": response.status,
        "items": [item.type for item in items],
        "calls": calls,
        "hub_calls": [[item.server_label, item.name, item.arguments, item.output, item.error] for item in run],
        "usage": response.usage and [response.usage.input_tokens, response.usage.output_tokens],
        "model": response.model,
        "previous": response.previous_response_id,
    }


def respond(text, **more):
    return client.responses.create(model=o.MODEL, input=text, **more)


def plain():
    return observed(respond(o.HELLO))


def calculation():
    return observed(respond(o.CALCULATION))


def stream():
    deltas, kinds = [], []
    with client.responses.stream(model=o.MODEL, input=o.READ_ROW) as events:
        for event in events:
            kinds.append(event.type)
            if event.type == "response.output_text.delta":
                deltas.append(event.delta)
        final = events.get_final_response()
    unstreamed = observed(respond(o.READ_ROW))
    return observed(final) | {"deltas": deltas, "events": kinds, "unstreamed": unstreamed["text"]}


def with_function(text):
    first = respond(text, tools=[FUNCTION])
    results = [
        {
            "type": "function_call_output",
            "call_id": item.call_id,
            "output": o.weather(**o.json.loads(item.arguments)),
        }
        for item in first.output
        if item.type == "function_call"
    ]
    final = client.responses.create(
        model=o.MODEL, input=results, previous_response_id=first.id, tools=[FUNCTION]
    )
    # The same conversation without a stored response: all items are sent again.
    items = [user(text), *(item.model_dump(exclude_none=True) for item in first.output), *results]
    stateless = client.responses.create(model=o.MODEL, input=items, tools=[FUNCTION], store=False)
    return {"first": observed(first), "final": observed(final), "stateless": observed(stateless)}


def function():
    return with_function(o.WEATHER)


def mixed():
    return with_function(o.READ_AND_WEATHER)


def streamed_function():
    with client.responses.stream(model=o.MODEL, input=o.WEATHER, tools=[FUNCTION]) as events:
        for _ in events:
            pass
        return observed(events.get_final_response())


def structured():
    parsed = client.responses.parse(model=o.MODEL, input=o.TRIP, text_format=Trip)
    return {"parsed": parsed.output_parsed.model_dump()}


def previous():
    first = respond(o.MY_NAME)
    chained = respond(o.WHOSE_NAME, previous_response_id=first.id)
    third = respond(o.WHOSE_NAME, previous_response_id=chained.id)
    alone = respond(o.WHOSE_NAME)
    retrieved = client.responses.retrieve(first.id)
    inputs = list(client.responses.input_items.list(first.id))
    client.responses.delete(first.id)
    return {
        "chained": observed(chained) | {"previous_is_first": chained.previous_response_id == first.id},
        "third": third.output_text,
        "alone": alone.output_text,
        "retrieved": observed(retrieved),
        "inputs": [[item.type, item.role, item.content[0].text] for item in inputs],
        "deleted": failed(lambda: client.responses.retrieve(first.id)),
        "unknown": failed(lambda: respond(o.HELLO, previous_response_id="resp_unknown")),
    }


def approval():
    tool = {"type": "mcp", "server_label": o.SERVER, "require_approval": "always"}
    report = {}
    for name, approve in [("approved", True), ("denied", False)]:
        first = respond(o.WRITE_ROW, tools=[tool])
        asked = [item for item in first.output if item.type == "mcp_approval_request"]
        answers = [
            {"type": "mcp_approval_response", "approval_request_id": item.id, "approve": approve}
            for item in asked
        ]
        final = client.responses.create(
            model=o.MODEL, input=answers, previous_response_id=first.id, tools=[tool]
        )
        report[name] = {
            "asked": [[item.server_label, item.name, item.arguments] for item in asked],
            "first": observed(first),
            "final": observed(final),
        }
    return report


def background():
    begun = respond(o.HELLO, background=True)
    response = begun
    deadline = time.monotonic() + 30
    while response.status in ("queued", "in_progress"):
        assert time.monotonic() < deadline, response
        time.sleep(0.05)
        response = client.responses.retrieve(begun.id)
    endless = respond(o.ENDLESS, background=True)
    cancelled = client.responses.cancel(endless.id)
    return {
        "begun": begun.status,
        "final": observed(response),
        "endless": endless.status,
        "cancelled": cancelled.status,
        "retrieved": client.responses.retrieve(endless.id).status,
        "not_in_background": failed(lambda: client.responses.cancel(respond(o.HELLO).id)),
    }


def repetitions():
    def create(text, timeout=60):
        return repeating(timeout).responses.create(model=o.MODEL, input=text)

    return {"failure": create("Write.").status, "timeout": failed(lambda: create("Hold.", 3))}


def errors():
    stranger = OpenAI(base_url=o.BASE_URL, api_key="thk_wrong", max_retries=0)
    foreign = {"type": "mcp", "server_label": "foreign", "server_url": "https://example.org/mcp"}
    return {
        "key": failed(lambda: stranger.responses.create(model=o.MODEL, input=o.HELLO)),
        "model": failed(lambda: client.responses.create(model="gpt-4o", input=o.HELLO)),
        "parameter": failed(lambda: respond(o.HELLO, tools=[foreign])),
        "response": failed(lambda: client.responses.retrieve("resp_unknown")),
    }


CHAT = {
    "plain": chat_plain,
    "calculation": chat_calculation,
    "stream": chat_stream,
    "function": chat_function,
    "streamed_function": chat_streamed_function,
    "mixed": chat_mixed,
    "structured": chat_structured,
    "approval": chat_approval,
    "errors": chat_errors,
    "repetitions": chat_repetitions,
    "models": models,
}
RESPONSES = {
    "plain": plain,
    "calculation": calculation,
    "stream": stream,
    "function": function,
    "streamed_function": streamed_function,
    "mixed": mixed,
    "structured": structured,
    "previous": previous,
    "approval": approval,
    "background": background,
    "errors": errors,
    "repetitions": repetitions,
    "models": models,
}

o.run({"chat": CHAT, "responses": RESPONSES}[sys.argv[1]])
