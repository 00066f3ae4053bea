"""`ChatOpenAI` of LangChain: `client_langchain.py chat|responses SCENARIO,…`."""

import sys

import openai
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

import observation as o

IS_RESPONSES = sys.argv[1] == "responses"


def chat_model(**more):
    settings = {"base_url": o.BASE_URL, "api_key": o.API_KEY, "model": o.MODEL, "max_retries": 0, "timeout": o.TIMEOUT}
    return ChatOpenAI(**settings | {"use_responses_api": IS_RESPONSES} | more)


class Trip(BaseModel):
    """A trip."""

    city: str
    days: int


@tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return o.weather(city)


def observed(message):
    usage = message.usage_metadata
    blocks = message.content if isinstance(message.content, list) else []
    return {
        "text": message.text,
        "finish": message.response_metadata.get("finish_reason") or message.response_metadata.get("status"),
        "items": [block["type"] for block in blocks],
        "calls": [[call["name"], o.json.dumps(call["args"])] for call in message.tool_calls],
        "invalid_calls": len(message.invalid_tool_calls),
        "usage": usage and [usage["input_tokens"], usage["output_tokens"]],
    }


def plain():
    return observed(chat_model().invoke(o.HELLO))


def calculation():
    return observed(chat_model().invoke(o.CALCULATION))


def stream():
    model = chat_model(stream_usage=True)
    chunks = list(model.stream(o.READ_ROW))
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    finishes = [chunk.response_metadata.get("finish_reason") for chunk in chunks]
    finishes = [finish for finish in finishes if finish]
    return observed(whole) | {
        "deltas": [chunk.text for chunk in chunks if chunk.text],
        "finishes": None if IS_RESPONSES else finishes,
        "unstreamed": model.invoke(o.READ_ROW).text,
    }


def with_function(text):
    model = chat_model().bind_tools([get_weather])
    messages = [HumanMessage(text)]
    first = model.invoke(messages)
    messages.append(first)
    for call in first.tool_calls:
        messages.append(ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"]))
    return {"first": observed(first), "final": observed(model.invoke(messages))}


def function():
    return with_function(o.WEATHER)


def mixed():
    return with_function(o.READ_AND_WEATHER)


def structured():
    model = chat_model().with_structured_output(Trip, method="json_schema")
    return {"parsed": model.invoke(o.TRIP).model_dump()}


def previous():
    model = chat_model(use_previous_response_id=True)
    messages = [HumanMessage(o.MY_NAME)]
    messages += [model.invoke(messages), HumanMessage(o.WHOSE_NAME)]
    return {"chained": observed(model.invoke(messages)), "alone": observed(model.invoke(o.WHOSE_NAME))["text"]}


def approval():
    hosted = {"type": "mcp", "server_label": o.SERVER, "require_approval": "always"}
    model = chat_model(output_version="responses/v1").bind_tools([hosted])
    report = {}
    for name, approve in [("approved", True), ("denied", False)]:
        first = model.invoke(o.WRITE_ROW)
        asked = [block for block in first.content if block["type"] == "mcp_approval_request"]
        answers = [
            {"type": "mcp_approval_response", "approval_request_id": block["id"], "approve": approve}
            for block in asked
        ]
        final = model.invoke([HumanMessage(answers)], previous_response_id=first.response_metadata["id"])
        report[name] = {
            "asked": [[block["server_label"], block["name"], block["arguments"]] for block in asked],
            "final": observed(final),
        }
    return report


def failed(action):
    try:
        action()
    except openai.APIStatusError as error:
        # LangChain derives classes of its own from those of the library.
        bases = [base.__name__ for base in type(error).__mro__ if base.__module__.startswith("openai")]
        return o.failure(error, error.status_code, error.body) | {"class": bases[0], "param": error.param}
    return None


def errors():
    return {
        "key": failed(lambda: chat_model(api_key="thk_wrong").invoke(o.HELLO)),
        "model": failed(lambda: chat_model(model="gpt-4o").invoke(o.HELLO)),
    }


o.run(
    {
        "plain": plain,
        "calculation": calculation,
        "stream": stream,
        "function": function,
        "mixed": mixed,
        "structured": structured,
        "previous": previous,
        "approval": approval,
        "errors": errors,
    }
)
