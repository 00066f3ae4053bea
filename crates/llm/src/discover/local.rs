//! Finds model servers on this machine, and selects one of their models.

use std::time::Duration;

use futures_util::future::join_all;
use toolhub_core::lang::LocalizedText;

use super::{DiscoveredModel, NoModel};
use crate::client::ModelClient;
use crate::endpoint::{Endpoint, WireFormat};

/// Timeout of a probe; a running local server responds well within it.
const PROBE_TIMEOUT: Duration = Duration::from_millis(300);
/// Name parts of models without chat.
const NON_CHAT_MODELS: [&str; 12] = [
    "embed",
    "bge-",
    "minilm",
    "rerank",
    "whisper",
    "tts",
    "dall-e",
    "moderation",
    "image",
    "audio",
    "realtime",
    "clip",
];

/// A possible model server on this machine.
#[derive(Debug, Clone)]
pub(super) struct LocalServer {
    program: &'static str,
    url: String,
}

impl LocalServer {
    /// The known servers; `ollama` is the value of `OLLAMA_HOST`.
    pub(super) fn all(ollama: Option<String>) -> Vec<Self> {
        let ollama = ollama.map_or_else(|| "http://127.0.0.1:11434".to_owned(), |host| address_of(&host));
        vec![
            Self { program: "Ollama", url: ollama },
            Self { program: "llama.cpp", url: "http://127.0.0.1:8080".to_owned() },
        ]
    }
}

/// Normalizes `OLLAMA_HOST`: a host, a port, both, or a URL. The wildcard address becomes the loopback address.
fn address_of(host: &str) -> String {
    let host = host.trim().trim_end_matches('/');
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let (name, port) = match rest.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => (name, port),
        _ => (rest, "11434"),
    };
    let name = if name.is_empty() || name == "0.0.0.0" { "127.0.0.1" } else { name };
    format!("{scheme}://{name}:{port}")
}

/// Probes all servers concurrently; the first in order with a model is used.
pub(super) async fn probe(
    locals: &[LocalServer],
    requested: Option<&str>,
) -> Result<DiscoveredModel, NoModel> {
    let ask = |local: &LocalServer| {
        let endpoint = Endpoint::new(WireFormat::OpenAi, &local.url, String::new());
        async move {
            let endpoint = endpoint.ok()?;
            let listed = ModelClient::new(endpoint.clone()).models(PROBE_TIMEOUT).await.ok()?;
            Some((endpoint, listed))
        }
    };
    let answers = join_all(locals.iter().map(ask)).await;
    let responding: Vec<_> =
        locals.iter().zip(answers).filter_map(|(local, answer)| Some((local, answer?))).collect();
    for (local, (endpoint, listed)) in &responding {
        if let Some(model) = pick(listed, requested) {
            let (program, origin) = (local.program, endpoint.origin());
            let why = LocalizedText::new(
                format!("{program} runs at {origin}"),
                format!("{program} 运行在 {origin}"),
            );
            return Ok(DiscoveredModel { endpoint: endpoint.clone().with_model(model), why });
        }
    }
    let names: Vec<String> = responding.iter().map(|(local, _)| local.program.to_owned()).collect();
    Err(match (requested, names.is_empty()) {
        (Some(model), false) => NoModel::Wrong { why: model_not_listed(model, &names.join(", ")) },
        (Some(model), true) => NoModel::Wrong { why: model_not_found(model) },
        (None, false) => NoModel::NotSetUp { why: no_models(&names.join(", ")) },
        (None, true) => NoModel::NotSetUp { why: nothing_configured() },
    })
}

/// Returns the wanted model, with or without its tag; otherwise the first chat model.
pub(super) fn pick<'a>(listed: &'a [String], requested: Option<&str>) -> Option<&'a str> {
    let same = |name: &&String, requested: &str| {
        *name == requested || name.strip_prefix(requested).is_some_and(|tag| tag.starts_with(':'))
    };
    let talks = |name: &&String| {
        let name = name.to_lowercase();
        !NON_CHAT_MODELS.iter().any(|word| name.contains(word))
    };
    let found = match requested {
        Some(requested) => listed.iter().find(|name| same(name, requested)),
        None => listed.iter().find(talks),
    };
    found.map(String::as_str)
}

const HOW: (&str, &str) = (
    "set `OPENAI_API_KEY`, `OPENAI_BASE_URL` or `ANTHROPIC_API_KEY`, write `url` and `model` in `[llm]` of the config, or start Ollama",
    "请设置 `OPENAI_API_KEY`、`OPENAI_BASE_URL` 或 `ANTHROPIC_API_KEY`，或在配置的 `[llm]` 中写 `url` 和 `model`，或启动 Ollama",
);

fn nothing_configured() -> LocalizedText {
    LocalizedText::new(
        format!("nothing is configured, and neither Ollama nor llama.cpp runs here; to use one, {}", HOW.0),
        format!("没有配置，本机也没有运行 Ollama 或 llama.cpp；如需使用，{}", HOW.1),
    )
}

fn no_models(programs: &str) -> LocalizedText {
    LocalizedText::new(
        format!(
            "{programs} runs here and has no model that talks; get one, for example with `ollama pull qwen3`"
        ),
        format!("本机运行着 {programs}，但没有可以对话的模型；请先下载一个，例如 `ollama pull qwen3`"),
    )
}

fn model_not_listed(model: &str, programs: &str) -> LocalizedText {
    LocalizedText::new(
        format!(
            "`{model}` is not among the models of {programs}; get it, for example with `ollama pull {model}`, or write another in `[llm] model`"
        ),
        format!(
            "{programs} 的模型中没有 `{model}`；请先下载，例如 `ollama pull {model}`，或在 `[llm] model` 中换一个"
        ),
    )
}

fn model_not_found(model: &str) -> LocalizedText {
    LocalizedText::new(
        format!("`[llm] model` names `{model}`, and no endpoint for it is known: {}", HOW.0),
        format!("`[llm] model` 指定了 `{model}`，但不知道在哪里能找到它：{}", HOW.1),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_common_spellings_of_hosts() {
        let check = |host: &str, expect: &str| assert_eq!(address_of(host), expect, "{host}");
        check("0.0.0.0", "http://127.0.0.1:11434");
        check("0.0.0.0:9", "http://127.0.0.1:9");
        check(":9", "http://127.0.0.1:9");
        check("box", "http://box:11434");
        check("https://box:443/", "https://box:443");
    }

    #[test]
    fn picks_requested_model_or_first_chat_model() {
        let listed: Vec<String> =
            ["nomic-embed-text:latest", "qwen3:8b", "qwen3:1b"].iter().map(ToString::to_string).collect();
        let check = |requested: Option<&str>, expect: Option<&str>| {
            assert_eq!(pick(&listed, requested), expect, "{requested:?}");
        };
        check(None, Some("qwen3:8b"));
        check(Some("qwen3:1b"), Some("qwen3:1b"));
        check(Some("qwen3"), Some("qwen3:8b"));
        check(Some("qwen"), None);
        check(Some("nomic-embed-text"), Some("nomic-embed-text:latest"));
        assert_eq!(pick(&listed[..1], None), None);
    }
}
