//! The selection by config and environment. Models on this machine are tested over HTTP in `tests/talk`.

use toolhub_core::{Lang, Localize as _};

use super::*;

struct Case<'a> {
    choice: ModelChoice,
    environment: &'a [(&'a str, &'a str)],
    expect: &'a str,
}

fn check(case: &Case<'_>) {
    let lookup = |name: &str| {
        case.environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    let found = |kind: &str, found: &DiscoveredModel| {
        let (endpoint, why) = (&found.endpoint, found.why.localize(Lang::En));
        let key = if endpoint.key.is_some() { "key" } else { "no key" };
        format!("{kind} {} {}, {key}: {why}", endpoint.api.id(), endpoint.name())
    };
    let decided = match select_model(&case.choice, &lookup) {
        ModelDecision::Use(it) => found("use", &it),
        ModelDecision::ListModels(it) => found("ask", &it),
        ModelDecision::ProbeLocal { ollama, model } => format!("look {ollama:?} {model:?}"),
        ModelDecision::Wrong(why) => format!("wrong: {}", why.localize(Lang::En)),
    };
    assert_eq!(decided, case.expect);
    assert!(!format!("{decided} {:?}", case.choice).contains("hunter"));
}

fn at(url: &str) -> ModelChoice {
    ModelChoice { url: Some(EndpointUrl(url.to_owned())), ..ModelChoice::default() }
}

fn named(model: &str) -> ModelChoice {
    ModelChoice { model: Some(model.to_owned()), ..ModelChoice::default() }
}

#[test]
fn prefers_config_over_environment_over_local_servers() {
    let both = [("ANTHROPIC_API_KEY", "sk-hunter1"), ("OPENAI_API_KEY", "sk-hunter2")];
    let own = [("OPENAI_BASE_URL", "http://10.0.0.1:8000/v1"), ("OPENAI_API_KEY", "sk-hunter3")];
    let none = ModelChoice::default;
    check(&Case { choice: none(), environment: &[], expect: "look None None" });
    check(&Case {
        choice: none(),
        environment: &[("OLLAMA_HOST", "box")],
        expect: "look Some(\"box\") None",
    });
    check(&Case { choice: named("qwen3"), environment: &[], expect: "look None Some(\"qwen3\")" });
    check(&Case {
        choice: none(),
        environment: &both,
        expect: "use anthropic claude-sonnet-4-5 at https://api.anthropic.com, key: `ANTHROPIC_API_KEY` in the environment",
    });
    check(&Case {
        choice: named("gpt-x"),
        environment: &both[1..],
        expect: "use openai gpt-x at https://api.openai.com, key: `OPENAI_API_KEY` in the environment",
    });
    check(&Case {
        choice: none(),
        environment: &own,
        expect: "ask openai  at http://10.0.0.1:8000, key: `OPENAI_API_KEY` in the environment",
    });
    check(&Case {
        choice: none(),
        environment: &[own[0], ("OPENAI_MODEL", "m")],
        expect: "use openai m at http://10.0.0.1:8000, no key: `OPENAI_BASE_URL` in the environment",
    });
    check(&Case {
        choice: ModelChoice { api: Some(WireFormat::OpenAi), ..none() },
        environment: &both,
        expect: "use openai gpt-5-mini at https://api.openai.com, key: `[llm] api` in the config",
    });
    check(&Case {
        choice: ModelChoice { key: ApiKey::new("sk-hunter4"), ..at("https://api.anthropic.com") },
        environment: &[],
        expect: "use anthropic claude-sonnet-4-5 at https://api.anthropic.com, key: `[llm] url` in the config",
    });
}

#[test]
fn sends_key_only_to_its_own_provider() {
    let keys = [("OPENAI_API_KEY", "sk-hunter2"), ("OPENAI_MODEL", "gpt-x")];
    check(&Case {
        choice: at("http://u:hunter3@elsewhere:8000"),
        environment: &keys,
        expect: "ask openai  at http://elsewhere:8000, no key: `[llm] url` in the config",
    });
    check(&Case {
        choice: at("https://api.openai.com/v1"),
        environment: &keys,
        expect: "use openai gpt-x at https://api.openai.com, key: `[llm] url` in the config",
    });
}

#[test]
fn reports_configuration_errors() {
    check(&Case {
        choice: ModelChoice { api: Some(WireFormat::Anthropic), ..ModelChoice::default() },
        environment: &[],
        expect: "wrong: https://api.anthropic.com needs a key: set `ANTHROPIC_API_KEY`, or write `key = \"${ANTHROPIC_API_KEY}\"` in `[llm]`",
    });
    check(&Case {
        choice: at("hunter2"),
        environment: &[],
        expect: "wrong: the model's `url` is wrong: relative URL without a base; write it like `http://127.0.0.1:11434/v1`",
    });
    check(&Case {
        choice: ModelChoice::default(),
        environment: &[("OPENAI_API_KEY", "sk-\u{1}hunter")],
        expect: "wrong: `OPENAI_API_KEY` contains characters that a key cannot have: copy the key again",
    });
}
