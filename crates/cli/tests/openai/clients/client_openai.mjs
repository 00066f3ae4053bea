// The official Node library: `client_openai.mjs chat|responses SCENARIO,…`.

import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import * as o from "./observation.mjs";

const settings = { baseURL: o.baseURL, maxRetries: 0, timeout: o.timeout };
const client = new OpenAI({ ...settings, apiKey: o.apiKey });
const stranger = new OpenAI({ ...settings, apiKey: "thk_wrong" });
const Trip = z.object({ city: z.string(), days: z.number().int() });

async function failed(action) {
  try {
    await action();
  } catch (error) {
    if (!(error instanceof OpenAI.APIError)) throw error;
    const { status, param, code, type } = error;
    return { class: error.constructor.name, status, param, code, type, body: error.error };
  }
  return null;
}

async function models() {
  const ids = [];
  // The library encodes the slash of each name.
  for await (const model of client.models.list()) ids.push((await client.models.retrieve(model.id)).id);
  return ids;
}

// Chat completions.

const user = (content) => ({ role: "user", content });

const chatFunction = {
  type: "function",
  function: { name: "get_weather", description: "The weather of a city.", parameters: o.weatherSchema },
};

function chatObserved(completion) {
  const [choice] = completion.choices;
  return {
    text: choice.message.content,
    finish: choice.finish_reason,
    calls: (choice.message.tool_calls ?? []).map((call) => [call.function.name, call.function.arguments]),
    usage: completion.usage && [completion.usage.prompt_tokens, completion.usage.completion_tokens],
    steps: choice.message.toolhub?.steps,
    model: completion.model,
    fingerprint: completion.system_fingerprint,
  };
}

const chat = (text, more) => client.chat.completions.create({ model: o.model, messages: [user(text)], ...more });

async function chatWithFunction(text) {
  const messages = [user(text)];
  const tools = [chatFunction];
  const first = await client.chat.completions.create({ model: o.model, messages, tools });
  const called = first.choices[0].message;
  messages.push(called);
  for (const call of called.tool_calls ?? []) {
    const content = o.weather(JSON.parse(call.function.arguments));
    messages.push({ role: "tool", tool_call_id: call.id, content });
  }
  const final = await client.chat.completions.create({ model: o.model, messages, tools });
  return { first: chatObserved(first), final: chatObserved(final) };
}

const chatScenarios = {
  models,
  plain: async () => chatObserved(await chat(o.hello)),
  calculation: async () => chatObserved(await chat(o.calculation)),
  stream: async () => {
    const [deltas, finishes] = [[], []];
    const stream = client.chat.completions.stream({
      model: o.model,
      messages: [user(o.readRow)],
      stream_options: { include_usage: true },
    });
    stream.on("content", (delta) => deltas.push(delta));
    stream.on("chunk", (chunk) => finishes.push(...chunk.choices.map((choice) => choice.finish_reason)));
    const final = await stream.finalChatCompletion();
    const unstreamed = chatObserved(await chat(o.readRow)).text;
    return { ...chatObserved(final), deltas, finishes: finishes.filter(Boolean), unstreamed };
  },
  function: () => chatWithFunction(o.weatherRequest),
  mixed: () => chatWithFunction(o.readAndWeather),
  // The helper of the library runs the function, and continues by itself.
  runner: async () => {
    const run = { function: o.weather, parse: JSON.parse };
    const tools = [{ type: "function", function: { ...chatFunction.function, ...run } }];
    const runner = client.chat.completions.runTools({
      model: o.model,
      messages: [user(o.weatherRequest)],
      tools,
      stream: true,
    });
    return { text: await runner.finalContent() };
  },
  structured: async () => {
    const response_format = zodResponseFormat(Trip, "trip");
    const messages = [user(o.trip)];
    const parsed = await client.chat.completions.parse({ model: o.model, messages, response_format });
    return { parsed: parsed.choices[0].message.parsed };
  },
  // There is no approval in this API: the call is refused, and the answer says so.
  approval: async () => chatObserved(await chat(o.writeRow)),
  errors: async () => ({
    key: await failed(() => stranger.chat.completions.create({ model: o.model, messages: [user(o.hello)] })),
    model: await failed(() => client.chat.completions.create({ model: "gpt-4o", messages: [user(o.hello)] })),
    parameter: await failed(() => chat(o.hello, { n: 2 })),
  }),
};

/** The client with the repetitions of its defaults. */
const repeating = (timeout) => new OpenAI({ baseURL: o.baseURL, apiKey: o.apiKey, timeout, maxRetries: 2 });

// Responses.

const functionTool = {
  type: "function",
  name: "get_weather",
  description: "The weather of a city.",
  parameters: o.weatherSchema,
  strict: true,
};

function observed(response) {
  const items = response.output;
  const of = (type) => items.filter((item) => item.type === type);
  return {
    text: response.output_text,
    finish: response.status,
    items: items.map((item) => item.type),
    calls: of("function_call").map((item) => [item.name, item.arguments]),
    hub_calls: of("mcp_call").map((item) => [item.server_label, item.name, item.arguments, item.output, item.error]),
    usage: response.usage && [response.usage.input_tokens, response.usage.output_tokens],
    model: response.model,
  };
}

const respond = (input, more) => client.responses.create({ model: o.model, input, ...more });

async function withFunction(text) {
  const tools = [functionTool];
  const first = await respond(text, { tools });
  const results = first.output
    .filter((item) => item.type === "function_call")
    .map((item) => ({
      type: "function_call_output",
      call_id: item.call_id,
      output: o.weather(JSON.parse(item.arguments)),
    }));
  const final = await respond(results, { tools, previous_response_id: first.id });
  // The same conversation without a stored response: all items are sent again.
  const stateless = await respond([user(text), ...first.output, ...results], { tools, store: false });
  return { first: observed(first), final: observed(final), stateless: observed(stateless) };
}

chatScenarios.repetitions = async () => {
  const create = (text, timeout = 60_000) =>
    repeating(timeout).chat.completions.create({ model: o.model, messages: [user(text)] });
  return { failure: await failed(() => create("Write.")), timeout: await failed(() => create("Hold.", 3_000)) };
};

const responsesScenarios = {
  models,
  repetitions: async () => {
    const create = (input, timeout = 60_000) => repeating(timeout).responses.create({ model: o.model, input });
    return { failure: (await create("Write.")).status, timeout: await failed(() => create("Hold.", 3_000)) };
  },
  plain: async () => observed(await respond(o.hello)),
  calculation: async () => observed(await respond(o.calculation)),
  stream: async () => {
    const [deltas, events] = [[], []];
    const stream = client.responses.stream({ model: o.model, input: o.readRow });
    for await (const event of stream) {
      events.push(event.type);
      if (event.type === "response.output_text.delta") deltas.push(event.delta);
    }
    const final = await stream.finalResponse();
    const unstreamed = (await respond(o.readRow)).output_text;
    return { ...observed(final), deltas, events, unstreamed };
  },
  function: () => withFunction(o.weatherRequest),
  mixed: () => withFunction(o.readAndWeather),
  structured: async () => {
    const text = { format: zodTextFormat(Trip, "trip") };
    const parsed = await client.responses.parse({ model: o.model, input: o.trip, text });
    return { parsed: parsed.output_parsed };
  },
  previous: async () => {
    const first = await respond(o.myName);
    const chained = await respond(o.whoseName, { previous_response_id: first.id });
    const alone = await respond(o.whoseName);
    const inputs = [];
    for await (const item of client.responses.inputItems.list(first.id)) {
      inputs.push([item.type, item.role, item.content[0].text]);
    }
    const retrieved = await client.responses.retrieve(first.id);
    await client.responses.delete(first.id);
    return {
      chained: { ...observed(chained), previous_is_first: chained.previous_response_id === first.id },
      alone: alone.output_text,
      inputs,
      retrieved: observed(retrieved),
      deleted: await failed(() => client.responses.retrieve(first.id)),
      unknown: await failed(() => respond(o.hello, { previous_response_id: "resp_unknown" })),
    };
  },
  approval: async () => {
    const tools = [{ type: "mcp", server_label: o.server, require_approval: "always" }];
    const report = {};
    for (const [name, approve] of Object.entries({ approved: true, denied: false })) {
      const first = await respond(o.writeRow, { tools });
      const asked = first.output.filter((item) => item.type === "mcp_approval_request");
      const answers = asked.map((item) => ({ type: "mcp_approval_response", approval_request_id: item.id, approve }));
      const final = await respond(answers, { tools, previous_response_id: first.id });
      report[name] = {
        asked: asked.map((item) => [item.server_label, item.name, item.arguments]),
        first: observed(first),
        final: observed(final),
      };
    }
    return report;
  },
  background: async () => {
    const begun = await respond(o.hello, { background: true });
    const deadline = Date.now() + 30_000;
    let response = begun;
    while (["queued", "in_progress"].includes(response.status)) {
      if (Date.now() > deadline) throw new Error(`still ${response.status}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
      response = await client.responses.retrieve(begun.id);
    }
    const endless = await respond(o.endless, { background: true });
    const cancelled = await client.responses.cancel(endless.id);
    const finished = await respond(o.hello);
    return {
      begun: begun.status,
      final: observed(response),
      endless: endless.status,
      cancelled: cancelled.status,
      retrieved: (await client.responses.retrieve(endless.id)).status,
      not_in_background: await failed(() => client.responses.cancel(finished.id)),
    };
  },
  errors: async () => {
    const foreign = { type: "mcp", server_label: "foreign", server_url: "https://example.org/mcp" };
    return {
      key: await failed(() => stranger.responses.create({ model: o.model, input: o.hello })),
      model: await failed(() => client.responses.create({ model: "gpt-4o", input: o.hello })),
      parameter: await failed(() => respond(o.hello, { tools: [foreign] })),
      response: await failed(() => client.responses.retrieve("resp_unknown")),
    };
  },
};

await o.run({ chat: chatScenarios, responses: responsesScenarios }[o.api]);
