"""The OpenAI Agents SDK: `client_agents.py chat|responses SCENARIO,…`."""

import asyncio
import sys

import openai
from agents import (
    Agent,
    HostedMCPTool,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from pydantic import BaseModel

import observation as o

set_tracing_disabled(True)
IS_RESPONSES = sys.argv[1] == "responses"


def agent(name=o.MODEL, key=o.API_KEY, **more):
    client = AsyncOpenAI(base_url=o.BASE_URL, api_key=key, max_retries=0, timeout=o.TIMEOUT)
    kind = OpenAIResponsesModel if IS_RESPONSES else OpenAIChatCompletionsModel
    return Agent(name="Tester", model=kind(model=name, openai_client=client), **more)


class Trip(BaseModel):
    city: str
    days: int


@function_tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return o.weather(city)


def observed(result):
    raw = [getattr(item, "raw_item", None) for item in result.new_items if item.type == "tool_call_item"]
    calls = [[item.name, item.arguments] for item in raw if item.type == "function_call"]
    usage = result.context_wrapper.usage
    return {
        "text": result.final_output,
        "items": [item.type for item in result.new_items],
        "calls": calls,
        "requests": usage.requests,
        "usage": [usage.input_tokens, usage.output_tokens],
    }


async def plain():
    return observed(await Runner.run(agent(), o.HELLO))


async def calculation():
    return observed(await Runner.run(agent(), o.CALCULATION))


async def stream():
    result = Runner.run_streamed(agent(), o.READ_ROW)
    deltas = []
    async for event in result.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            deltas.append(event.data.delta)
    unstreamed = await Runner.run(agent(), o.READ_ROW)
    return observed(result) | {"deltas": deltas, "unstreamed": unstreamed.final_output}


async def function():
    return observed(await Runner.run(agent(tools=[get_weather]), o.WEATHER))


async def mixed():
    return observed(await Runner.run(agent(tools=[get_weather]), o.READ_AND_WEATHER))


async def structured():
    return {"parsed": (await Runner.run(agent(output_type=Trip), o.TRIP)).final_output.model_dump()}


async def previous():
    first = await Runner.run(agent(), o.MY_NAME)
    chained = await Runner.run(agent(), o.WHOSE_NAME, previous_response_id=first.last_response_id)
    return {"chained": observed(chained), "alone": (await Runner.run(agent(), o.WHOSE_NAME)).final_output}


async def approval():
    report = {}
    for name, approve in [("approved", True), ("denied", False)]:
        asked = []

        def decide(request, asked=asked, approve=approve):
            asked.append([request.data.server_label, request.data.name, request.data.arguments])
            return {"approve": approve}

        hosted = HostedMCPTool(
            tool_config={"type": "mcp", "server_label": o.SERVER, "require_approval": "always"},
            on_approval_request=decide,
        )
        result = await Runner.run(agent(tools=[hosted]), o.WRITE_ROW)
        report[name] = {"asked": asked, "final": observed(result)}
    return report


async def failed(of):
    try:
        await Runner.run(of, o.HELLO)
    except openai.APIStatusError as error:
        return o.failure(error, error.status_code, error.body) | {"param": error.param}
    return None


async def errors():
    return {"key": await failed(agent(key="thk_wrong")), "model": await failed(agent("gpt-4o"))}


def once(scenario):
    return lambda: asyncio.run(scenario())


scenarios = [plain, calculation, stream, function, mixed, structured, previous, approval, errors]
o.run({scenario.__name__: once(scenario) for scenario in scenarios})
