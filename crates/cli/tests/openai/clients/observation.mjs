// What the Node clients share: their settings, the prompts, and the report of what they observed.

export const baseURL = process.env.BASE_URL;
export const apiKey = process.env.API_KEY;
export const model = process.env.MODEL ?? "toolhub/default";
export const server = "sheets";
// In milliseconds. A model on a processor takes its time.
export const timeout = Number(process.env.CLIENT_TIMEOUT ?? 60) * 1000;

// The scripted model recognises these requests; see `scripted_model.rs`.
export const hello = process.env.HELLO ?? "Say hello.";
export const calculation = process.env.CALCULATION ?? "Work out 17 * 23.";
export const readRow = process.env.READ_ROW ?? "Read row 3.";
export const weatherRequest = "What is the weather in Kyoto?";
export const readAndWeather = "Read row 3, and tell me the weather in Kyoto.";
export const trip = "A trip to Osaka, as JSON.";
export const myName = "My name is Ada.";
export const whoseName = "What is my name?";
export const writeRow = "Write row 7.";
export const endless = "Think for ever.";

export const weatherSchema = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};

export const weather = ({ city }) => `sunny in ${city}`;

/** Which of the two APIs is used: the first argument. */
export const api = process.argv[2];

/**
 * Runs the scenarios named in the arguments, and prints what each observed as one JSON object. An exception is what that
 * scenario observed: the others are still run.
 */
export async function run(scenarios) {
  const report = {};
  for (const name of process.argv[3].split(",")) {
    try {
      report[name] = await scenarios[name]();
    } catch (error) {
      report[name] = { exception: `${error.stack}\n${error.cause ?? ""}` };
    }
  }
  console.log(JSON.stringify(report));
}
