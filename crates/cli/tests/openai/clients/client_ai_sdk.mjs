// The AI SDK: `client_ai_sdk.mjs chat|responses|compatible SCENARIO,…`. The last one is `@ai-sdk/openai-compatible`.

import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateText, isStepCount, Output, streamText, tool } from "ai";
import { z } from "zod";
import * as o from "./observation.mjs";

const compatible = { name: "toolhub", includeUsage: true, supportsStructuredOutputs: true };
const providers = {
  chat: (settings) => createOpenAI(settings).chat,
  responses: (settings) => createOpenAI(settings).responses,
  compatible: (settings) => createOpenAICompatible({ ...compatible, ...settings }),
};
const languageModel = (id = o.model, apiKey = o.apiKey) => providers[o.api]({ baseURL: o.baseURL, apiKey })(id);
const settings = { model: languageModel(), maxRetries: 0 };

const get_weather = tool({
  description: "The weather of a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async (input) => o.weather(input),
});

const own = (call) => !call.providerExecuted;

function observed(result) {
  const steps = result.steps;
  return {
    text: result.text,
    finish: result.finishReason,
    items: steps.flatMap((step) => step.content.map((part) => part.type)),
    calls: steps.flatMap((step) => step.toolCalls.filter(own)).map((call) => [call.toolName, JSON.stringify(call.input)]),
    requests: steps.length,
    usage: [result.totalUsage.inputTokens, result.totalUsage.outputTokens],
  };
}

const generate = (prompt, more) => generateText({ ...settings, prompt, ...more });

async function failed(action) {
  try {
    await action();
  } catch (error) {
    if (!APICallError.isInstance(error)) throw error;
    return { class: "APICallError", status: error.statusCode, body: error.data?.error, message: error.message };
  }
  return null;
}

await o.run({
  plain: async () => observed(await generate(o.hello)),
  calculation: async () => observed(await generate(o.calculation)),
  stream: async () => {
    const errors = [];
    const result = streamText({ ...settings, prompt: o.readRow, onError: ({ error }) => errors.push(String(error)) });
    const [deltas, finishes] = [[], []];
    for await (const part of result.fullStream) {
      if (part.type === "text-delta") deltas.push(part.text);
      if (part.type === "finish-step") finishes.push(part.finishReason);
    }
    const usage = await result.totalUsage;
    return {
      text: await result.text,
      finish: await result.finishReason,
      deltas,
      finishes,
      errors,
      usage: [usage.inputTokens, usage.outputTokens],
      unstreamed: (await generate(o.readRow)).text,
    };
  },
  function: async () => observed(await generate(o.weatherRequest, { tools: { get_weather }, stopWhen: isStepCount(4) })),
  mixed: async () => observed(await generate(o.readAndWeather, { tools: { get_weather }, stopWhen: isStepCount(4) })),
  structured: async () => {
    const schema = z.object({ city: z.string(), days: z.number() });
    return { parsed: (await generate(o.trip, { output: Output.object({ schema }) })).output };
  },
  previous: async () => {
    const first = await generate(o.myName);
    const previousResponseId = first.providerMetadata.openai.responseId;
    const chained = await generate(o.whoseName, { providerOptions: { openai: { previousResponseId } } });
    return { chained: observed(chained), alone: (await generate(o.whoseName)).text };
  },
  // This library requires a URL in the tool; that of the hub itself is not foreign.
  approval: async () => {
    const provider = createOpenAI({ baseURL: o.baseURL, apiKey: o.apiKey });
    const serverUrl = o.baseURL.replace(/v1$/, "mcp");
    const tools = { mcp: provider.tools.mcp({ serverLabel: o.server, serverUrl, requireApproval: "always" }) };
    const report = {};
    for (const [name, approved] of Object.entries({ approved: true, denied: false })) {
      const messages = [{ role: "user", content: o.writeRow }];
      const first = await generateText({ ...settings, messages, tools });
      const asked = first.content.filter((part) => part.type === "tool-approval-request");
      const answer = { type: "tool-approval-response", approved, providerExecuted: true };
      const answers = asked.map(({ approvalId }) => ({ ...answer, approvalId }));
      messages.push(...first.response.messages, { role: "tool", content: answers });
      const final = await generateText({ ...settings, messages, tools });
      report[name] = {
        asked: asked.map(({ toolCall }) => [o.server, toolCall.toolName.replace(/^mcp\./, ""), toolCall.input]),
        final: observed(final),
      };
    }
    return report;
  },
  errors: async () => ({
    key: await failed(() => generate(o.hello, { model: languageModel(o.model, "thk_wrong") })),
    model: await failed(() => generate(o.hello, { model: languageModel("gpt-4o") })),
  }),
});
