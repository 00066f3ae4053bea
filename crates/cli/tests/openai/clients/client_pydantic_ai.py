"""Agents of Pydantic AI: `client_pydantic_ai.py chat|responses SCENARIO,…`."""

import asyncio
import sys

from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

import observation as o

IS_RESPONSES = sys.argv[1] == "responses"


def model(name=o.MODEL, key=o.API_KEY):
    client = AsyncOpenAI(base_url=o.BASE_URL, api_key=key, max_retries=0, timeout=o.TIMEOUT)
    kind = OpenAIResponsesModel if IS_RESPONSES else OpenAIChatModel
    return kind(name, provider=OpenAIProvider(openai_client=client))


class Trip(BaseModel):
    city: str
    days: int


def observed(result):
    responses = [message for message in result.all_messages() if message.kind == "response"]
    calls = [
        [part.tool_name, part.args_as_json_str()]
        for message in responses
        for part in message.parts
        if part.part_kind == "tool-call"
    ]
    usage = result.usage
    return {
        "text": result.output,
        "finish": responses[-1].finish_reason,
        "items": [part.part_kind for message in responses for part in message.parts],
        "calls": calls,
        "requests": usage.requests,
        "usage": [usage.input_tokens, usage.output_tokens],
    }


async def plain():
    return observed(await Agent(model()).run(o.HELLO))


async def calculation():
    return observed(await Agent(model()).run(o.CALCULATION))


async def stream():
    agent = Agent(model())
    deltas = []
    async with agent.run_stream(o.READ_ROW) as result:
        async for delta in result.stream_text(delta=True, debounce_by=None):
            deltas.append(delta)
        text = await result.get_output()
        finish = [message.finish_reason for message in result.all_messages() if message.kind == "response"]
    unstreamed = (await agent.run(o.READ_ROW)).output
    return {"text": text, "finish": finish[-1], "deltas": deltas, "unstreamed": unstreamed}


def with_weather():
    agent = Agent(model())

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """The weather of a city."""
        return o.weather(city)

    return agent


async def function():
    return observed(await with_weather().run(o.WEATHER))


async def mixed():
    return observed(await with_weather().run(o.READ_AND_WEATHER))


async def structured():
    agent = Agent(model(), output_type=NativeOutput(Trip))
    return {"parsed": (await agent.run(o.TRIP)).output.model_dump()}


async def previous():
    agent = Agent(model())
    first = await agent.run(o.MY_NAME)
    settings = {"openai_previous_response_id": "auto"}
    history = first.all_messages()
    chained = await agent.run(o.WHOSE_NAME, message_history=history, model_settings=settings)
    return {"chained": observed(chained), "alone": (await agent.run(o.WHOSE_NAME)).output}


async def failed(of):
    try:
        await Agent(of).run(o.HELLO)
    except ModelHTTPError as error:
        return o.failure(error.__cause__, error.status_code, error.body)
    return None


async def errors():
    return {"key": await failed(model(key="thk_wrong")), "model": await failed(model("gpt-4o"))}


def once(scenario):
    return lambda: asyncio.run(scenario())


scenarios = [plain, calculation, stream, function, mixed, structured, previous, errors]
o.run({scenario.__name__: once(scenario) for scenario in scenarios})
