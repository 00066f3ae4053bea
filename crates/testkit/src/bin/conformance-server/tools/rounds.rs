//! Tools that request input from modern clients in rounds; legacy clients get the same requests during their call.

use rmcp::model::{ErrorData, InputRequiredResult};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Arguments, Fixture, Outcome, done, text_content};
use crate::exchange::{Exchange, Step};
use crate::input_requests::{field, input_requests, prompt, roots};

pub(super) const FIXTURES: &[Fixture] = &[
    Fixture {
        name: "test_input_required_result_elicitation",
        description: "Asks a person for a name",
        arguments: Arguments::None,
        step: greet,
    },
    Fixture {
        name: "test_input_required_result_sampling",
        description: "Asks the caller's model for a capital",
        arguments: Arguments::None,
        step: ask_capital,
    },
    Fixture {
        name: "test_input_required_result_list_roots",
        description: "Asks the caller for its roots",
        arguments: Arguments::None,
        step: ask_roots,
    },
    Fixture {
        name: "test_input_required_result_request_state",
        description: "Asks a person to confirm, and has the caller carry its state",
        arguments: Arguments::None,
        step: confirm,
    },
    Fixture {
        name: "test_input_required_result_tampered_state",
        description: "Asks a person to confirm, and notices when its state was changed",
        arguments: Arguments::None,
        step: confirm,
    },
    Fixture {
        name: "test_input_required_result_multiple_inputs",
        description: "Asks a person, a model and for roots in one round",
        arguments: Arguments::None,
        step: ask_everything,
    },
    Fixture {
        name: "test_input_required_result_multi_round",
        description: "Asks a person twice, one question after the other",
        arguments: Arguments::None,
        step: ask_twice,
    },
    Fixture {
        name: "test_input_required_result_capabilities",
        description: "Asks only what the caller can answer",
        arguments: Arguments::None,
        step: ask_what_is_possible,
    },
];

/// The state between rounds, sealed and carried by the client.
#[derive(Debug, Serialize, Deserialize)]
enum RoundState {
    Confirming,
    AskingEverything,
    AskingName,
    AskingColor { name: String },
}

impl RoundState {
    fn seal(&self, exchange: &Exchange) -> Result<String, ErrorData> {
        let sealed = exchange.server_state.seal.seal_json(self);
        sealed.map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    /// `None` in the first round; an error if the seal is invalid.
    fn open(exchange: &Exchange) -> Result<Option<Self>, ErrorData> {
        let Some(sealed) = &exchange.answers.state else { return Ok(None) };
        let state = exchange.server_state.seal.open_json(sealed);
        state.map(Some).map_err(|error| ErrorData::invalid_params(format!("`requestState`: {error}"), None))
    }
}

fn text_field(exchange: &Exchange, key: &str, field: &str) -> Result<Option<String>, ErrorData> {
    Ok(exchange.field(key, field)?.and_then(|value| value.as_str().map(str::to_owned)))
}

fn ask_with<const N: usize>(
    exchange: &Exchange,
    requested: [(&str, Value); N],
    state: &RoundState,
) -> Result<Step<Outcome>, ErrorData> {
    Ok(Step::Ask(InputRequiredResult::new(Some(input_requests(requested)?), Some(state.seal(exchange)?))))
}

fn greet(exchange: &Exchange) -> Result<Step<Outcome>, ErrorData> {
    match text_field(exchange, "user_name", "name")? {
        Some(name) => done(text_content(format!("Hello, {name}!"))),
        None => Step::ask([("user_name", field("What is your name?", "name", "string"))]),
    }
}

fn ask_capital(exchange: &Exchange) -> Result<Step<Outcome>, ErrorData> {
    match exchange.sampled("capital_question") {
        Some(text) => done(text_content(text)),
        None => Step::ask([("capital_question", prompt("What is the capital of France?"))]),
    }
}

fn ask_roots(exchange: &Exchange) -> Result<Step<Outcome>, ErrorData> {
    match exchange.roots("client_roots") {
        Some(roots) => done(text_content(format!("{} root(s): {}", roots.len(), roots.join(", ")))),
        None => Step::ask([("client_roots", roots())]),
    }
}

fn confirm(exchange: &Exchange) -> Result<Step<Outcome>, ErrorData> {
    match (RoundState::open(exchange)?, exchange.field("confirm", "ok")?) {
        (Some(RoundState::Confirming), Some(ok)) => done(text_content(format!("state-ok, confirmed: {ok}"))),
        _ => ask_with(
            exchange,
            [("confirm", field("Please confirm", "ok", "boolean"))],
            &RoundState::Confirming,
        ),
    }
}

fn ask_everything(exchange: &Exchange) -> Result<Step<Outcome>, ErrorData> {
    let state = RoundState::open(exchange)?;
    let name = text_field(exchange, "user_name", "name")?;
    let answers = (name, exchange.sampled("greeting"), exchange.roots("client_roots"));
    if let (Some(RoundState::AskingEverything), (Some(name), Some(greeting), Some(roots))) = (state, answers)
    {
        return done(text_content(format!("{greeting} {name}, you work in {}", roots.join(", "))));
    }
    let requested = [
        ("user_name", field("What is your name?", "name", "string")),
        ("greeting", prompt("Generate a greeting")),
        ("client_roots", roots()),
    ];
    ask_with(exchange, requested, &RoundState::AskingEverything)
}

fn ask_twice(exchange: &Exchange) -> Result<Step<Outcome>, ErrorData> {
    let color = |name: String| {
        let requested = field("Step 2: What is your favorite color?", "color", "string");
        ask_with(exchange, [("step2", requested)], &RoundState::AskingColor { name })
    };
    match RoundState::open(exchange)? {
        Some(RoundState::AskingColor { name }) => match text_field(exchange, "step2", "color")? {
            Some(text) => done(text_content(format!("{name} likes {text}"))),
            None => color(name),
        },
        Some(RoundState::AskingName) if let Some(name) = text_field(exchange, "step1", "name")? => {
            color(name)
        }
        _ => {
            let requested = field("Step 1: What is your name?", "name", "string");
            ask_with(exchange, [("step1", requested)], &RoundState::AskingName)
        }
    }
}

fn ask_what_is_possible(exchange: &Exchange) -> Result<Step<Outcome>, ErrorData> {
    let capabilities = exchange.capabilities();
    let mut open = input_requests([])?;
    if capabilities.sampling.is_some() && exchange.sampled("greeting").is_none() {
        open.append(&mut input_requests([("greeting", prompt("Generate a greeting"))])?);
    }
    if capabilities.elicitation.is_some() && exchange.elicited("user_name").is_none() {
        open.append(&mut input_requests([("user_name", field("What is your name?", "name", "string"))])?);
    }
    if open.is_empty() {
        return done(text_content("Everything that you can be asked is answered"));
    }
    Ok(Step::Ask(InputRequiredResult::from_input_requests(open)))
}
