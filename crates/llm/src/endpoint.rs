//! A model endpoint: URL, wire format and options. `discover` selects it.

use std::time::Duration;

use serde::Deserialize;
use toolhub_core::lang::LocalizedText;
use url::Url;

use crate::key::ApiKey;

/// Default timeout of a response.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// The wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WireFormat {
    /// `POST {base}/chat/completions`: OpenAI and compatible servers.
    OpenAi,
    /// `POST {base}/v1/messages`.
    Anthropic,
}

impl WireFormat {
    /// The name in the config.
    pub fn id(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}

/// How tools are offered to a model, and how it calls them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolCalls {
    /// In the fields of the wire format.
    #[default]
    Native,
    /// In the prompt and in the text of the response.
    Text,
}

/// A model endpoint.
#[derive(Clone)]
pub struct Endpoint {
    /// The wire format.
    pub api: WireFormat,
    /// The base URL, to which the paths of the wire format are appended.
    base: Url,
    /// The name of the model.
    pub model: String,
    /// The API key.
    pub key: Option<ApiKey>,
    /// How the model calls tools.
    pub tool_calls: ToolCalls,
    /// Default timeout of a response.
    pub timeout: Duration,
    /// Default maximum of output tokens.
    pub max_tokens: Option<u32>,
    /// Default sampling temperature.
    pub temperature: Option<f32>,
}

// Omits the URL, which may contain a password.
impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("api", &self.api)
            .field("origin", &self.origin())
            .field("model", &self.model)
            .field("key", &self.key.is_some())
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Creates the endpoint of `url`, which may include the path of the chat request.
    pub fn new(api: WireFormat, url: &str, model: impl Into<String>) -> Result<Self, LocalizedText> {
        Ok(Self {
            api,
            base: base(api, url)?,
            model: model.into(),
            key: None,
            tool_calls: ToolCalls::Native,
            timeout: DEFAULT_TIMEOUT,
            max_tokens: None,
            temperature: None,
        })
    }

    /// Replaces the model.
    #[must_use]
    pub fn with_model(self, model: impl Into<String>) -> Self {
        Self { model: model.into(), ..self }
    }

    /// Scheme, host and port for messages, without a password in the URL.
    pub fn origin(&self) -> String {
        let host = self.base.host_str().unwrap_or_default();
        match self.base.port() {
            Some(port) => format!("{}://{host}:{port}", self.base.scheme()),
            None => format!("{}://{host}", self.base.scheme()),
        }
    }

    /// Model and place, for messages.
    pub fn name(&self) -> String {
        format!("{} at {}", self.model, self.origin())
    }

    /// Whether it is on this machine; then no proxy is used.
    pub(crate) fn is_local(&self) -> bool {
        match self.base.host() {
            Some(url::Host::Domain(name)) => name == "localhost",
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
    }

    /// The URL of chat requests.
    pub(crate) fn chat_url(&self) -> Url {
        self.join(chat_path(self.api))
    }

    /// The URL of the model list.
    pub(crate) fn models_url(&self) -> Url {
        self.join("models")
    }

    fn join(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{path}", self.base.path().trim_end_matches('/')));
        url
    }

    /// Removes secrets from `text`.
    pub(crate) fn redact(&self, text: &str) -> String {
        let text = self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.redact(text));
        match self.base.password() {
            Some(password) if !password.is_empty() => text.replace(password, "…"),
            _ => text,
        }
    }
}

fn chat_path(api: WireFormat) -> &'static str {
    match api {
        WireFormat::OpenAi => "chat/completions",
        WireFormat::Anthropic => "messages",
    }
}

/// Returns the base URL. Adds `/v1` if the URL has no path.
fn base(api: WireFormat, text: &str) -> Result<Url, LocalizedText> {
    // The message omits the URL, which may contain a password.
    let wrong = |en: &str, zh: &str| {
        LocalizedText::new(
            format!("the model's `url` is wrong: {en}; write it like `http://127.0.0.1:11434/v1`"),
            format!("模型的 `url` 不对：{zh}；请写成 `http://127.0.0.1:11434/v1` 这样"),
        )
    };
    let mut url = Url::parse(text.trim()).map_err(|error| wrong(&error.to_string(), &error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(wrong("it is neither http nor https", "它既不是 http 也不是 https"));
    }
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/');
    let path = path.strip_suffix(chat_path(api)).unwrap_or(path).trim_end_matches('/').to_owned();
    let versioned = path.rsplit('/').next().is_some_and(is_version);
    match api {
        // Gateways serve Anthropic's paths below their own: `/anthropic` becomes `/anthropic/v1/messages`.
        WireFormat::Anthropic if !versioned => url.set_path(&format!("{path}/v1")),
        WireFormat::OpenAi if path.is_empty() => url.set_path("/v1"),
        _ => url.set_path(&path),
    }
    Ok(url)
}

fn is_version(part: &str) -> bool {
    part.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_common_spellings_of_urls() {
        let check = |api: WireFormat, url: &str, expect: &str| {
            let endpoint = Endpoint::new(api, url, "m").unwrap();
            assert_eq!(endpoint.chat_url().as_str(), expect, "{url}");
        };
        check(WireFormat::OpenAi, "http://localhost:11434", "http://localhost:11434/v1/chat/completions");
        check(WireFormat::OpenAi, "http://localhost:11434/v1/", "http://localhost:11434/v1/chat/completions");
        check(WireFormat::OpenAi, " https://a.b/x/v4 ", "https://a.b/x/v4/chat/completions");
        check(WireFormat::OpenAi, "https://a.b/openai", "https://a.b/openai/chat/completions");
        check(
            WireFormat::OpenAi,
            "https://a.b/v1/chat/completions?v=2",
            "https://a.b/v1/chat/completions?v=2",
        );
        check(WireFormat::Anthropic, "https://a.b", "https://a.b/v1/messages");
        check(WireFormat::Anthropic, "https://a.b/v1/messages", "https://a.b/v1/messages");
        check(WireFormat::Anthropic, "https://a.b/anthropic", "https://a.b/anthropic/v1/messages");
    }

    #[test]
    fn does_not_print_invalid_url() {
        for url in ["ftp://u:hunter2@host", "http://u:hunter2@", "hunter2"] {
            let error = Endpoint::new(WireFormat::OpenAi, url, "m").unwrap_err().to_string();
            assert!(!error.contains("hunter2") && error.contains("11434"), "{error}");
        }
    }

    #[test]
    fn does_not_print_secrets() {
        let mut endpoint = Endpoint::new(WireFormat::OpenAi, "http://u:hunter2@host:1/v1", "m").unwrap();
        endpoint.key = ApiKey::new("sk-hunter3");
        let rendered = format!("{endpoint:?} {:?} {}", endpoint.key, endpoint.name());
        assert!(!rendered.contains("hunter") && rendered.contains("host:1"), "{rendered}");
        assert_eq!(endpoint.redact("a hunter2 b sk-hunter3"), "a … b …");
    }
}
