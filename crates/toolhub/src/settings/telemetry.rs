//! `[telemetry]` of `toolhub.toml`: whether traces are sent to an OpenTelemetry collector, and its address. The standard
//! OpenTelemetry variables provide values that the file omits; they never enable telemetry by themselves.

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use toolhub_core::lang::LocalizedText;
use toolhub_server::TelemetryOptions;
use url::Url;

/// The default address of a collector.
const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:4318";

/// `[telemetry]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct TelemetrySettings {
    /// Whether traces are sent; by default if a collector is set.
    pub enabled: Option<bool>,
    /// The URL of the collector (OTLP over HTTP).
    pub otlp: Option<String>,
    /// The service name in traces.
    pub service: Option<String>,
    /// The fraction of recorded traces, among those that start here: 0 to 1.
    pub sampling: Option<f64>,
}

impl TelemetrySettings {
    fn is_on(&self) -> bool {
        self.enabled.unwrap_or(self.otlp.is_some())
    }

    /// The first invalid setting: its key in the file, and the error.
    pub(super) fn problem(&self) -> Option<(&'static str, LocalizedText)> {
        if let Some(share) = self.sampling.filter(|share| !(0.0..=1.0).contains(share)) {
            let what = LocalizedText::new(
                format!("`sampling` is a share between 0 and 1, and {share} is none"),
                format!("`sampling` 是 0 到 1 之间的比例，{share} 不是"),
            );
            return Some(("sampling", what));
        }
        let endpoint_url = self.otlp.as_deref().filter(|endpoint_url| endpoint(endpoint_url).is_none())?;
        let what = LocalizedText::new(
            format!("`{endpoint_url}` is no address of a collector: write it like `{DEFAULT_ENDPOINT}`"),
            format!("`{endpoint_url}` 不是收集器地址：请写成 `{DEFAULT_ENDPOINT}` 的形式"),
        );
        Some(("otlp", what))
    }

    /// The options of the exporter, if it is enabled; `variable` reads the environment.
    pub fn options(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<TelemetryOptions>, LocalizedText> {
        if !self.is_on() {
            return Ok(None);
        }
        let non_empty = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let (name, endpoint_url) = match &self.otlp {
            Some(endpoint_url) => ("otlp", endpoint_url.clone()),
            None => match (
                non_empty("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
                non_empty("OTEL_EXPORTER_OTLP_ENDPOINT"),
            ) {
                (Some(endpoint_url), _) => ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", endpoint_url),
                (None, Some(endpoint_url)) => ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint_url),
                (None, None) => ("otlp", DEFAULT_ENDPOINT.to_owned()),
            },
        };
        // The variable for traces contains the full URL, the others the base URL.
        let url = match name {
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" => web_address(&endpoint_url),
            _ => endpoint(&endpoint_url),
        };
        let url = url.ok_or_else(|| {
            LocalizedText::new(
                format!("`{name}` is no address of a collector: write it like `{DEFAULT_ENDPOINT}`"),
                format!("`{name}` 不是收集器地址：请写成 `{DEFAULT_ENDPOINT}` 的形式"),
            )
        })?;
        let headers = headers(&non_empty("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default());
        let service = self.service.clone().or_else(|| non_empty("OTEL_SERVICE_NAME"));
        Ok(Some(TelemetryOptions {
            url,
            headers,
            service: service.unwrap_or_else(|| "toolhub".to_owned()),
            sampling: self.sampling.unwrap_or(1.0),
        }))
    }
}

fn web_address(endpoint_url: &str) -> Option<Url> {
    let url = Url::parse(endpoint_url.trim()).ok()?;
    (["http", "https"].contains(&url.scheme()) && url.has_host()).then_some(url)
}

/// The traces endpoint of a collector.
fn endpoint(endpoint_url: &str) -> Option<Url> {
    let mut url = web_address(endpoint_url)?;
    let path = url.path().trim_end_matches('/').to_owned();
    if !path.ends_with("/v1/traces") {
        url.set_path(&format!("{path}/v1/traces"));
    }
    Some(url)
}

/// Parses comma-separated `name=value` pairs. Skips invalid ones.
fn headers(text: &str) -> HeaderMap {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    let read = |(name, value): (&str, &str)| {
        let name: HeaderName = name.trim().parse().ok()?;
        let mut value: HeaderValue = value.trim().parse().ok()?;
        value.set_sensitive(true);
        Some((name, value))
    };
    pairs.filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use toolhub_core::{Lang, Localize as _};

    use super::*;

    fn settings(text: &str) -> TelemetrySettings {
        toml_edit::de::from_str(text).unwrap()
    }

    #[test]
    fn telemetry_is_off_by_default() {
        let all = |name: &str| match name {
            "OTEL_EXPORTER_OTLP_ENDPOINT" => Some("http://collector:4318/".to_owned()),
            "OTEL_EXPORTER_OTLP_HEADERS" => Some("x-key = abc,broken,other=1".to_owned()),
            _ => None,
        };
        let check = |text: &str, expect: Option<&str>| {
            let found = settings(text).options(all).unwrap();
            assert_eq!(found.map(|options| options.url.to_string()).as_deref(), expect, "{text}");
        };
        check("", None);
        check("enabled = false\notlp = \"http://here:1\"", None);
        check("otlp = \"http://here:1\"", Some("http://here:1/v1/traces"));
        check("otlp = \"https://here/prefix/v1/traces\"", Some("https://here/prefix/v1/traces"));
        check("enabled = true", Some("http://collector:4318/v1/traces"));
        let options = settings("enabled = true").options(all).unwrap().unwrap();
        assert_eq!((options.headers["x-key"].to_str().unwrap(), options.headers.len()), ("abc", 2));
        let defaults = settings("enabled = true").options(|_| None).unwrap().unwrap();
        assert_eq!(
            (defaults.url.as_str(), defaults.service.as_str()),
            ("http://127.0.0.1:4318/v1/traces", "toolhub")
        );
        let traces_endpoint =
            |name: &str| (name == "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").then(|| "http://t/x".to_owned());
        assert_eq!(
            settings("enabled = true").options(traces_endpoint).unwrap().unwrap().url.as_str(),
            "http://t/x"
        );
        let wrong = |name: &str| (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| "collector".to_owned());
        let message = settings("enabled = true").options(wrong).unwrap_err().localize(Lang::En);
        assert!(message.contains("OTEL_EXPORTER_OTLP_ENDPOINT"), "{message}");
    }

    #[test]
    fn reports_invalid_telemetry_settings() {
        let check = |text: &str, expect: Option<&str>| {
            let found = settings(text).problem().map(|(word, _)| word);
            assert_eq!(found, expect, "{text}");
        };
        check("otlp = \"http://127.0.0.1:4318\"\nsampling = 0.5", None);
        check("otlp = \"127.0.0.1:4318\"", Some("otlp"));
        check("otlp = \"grpc://here:4317\"", Some("otlp"));
        check("sampling = 2.0", Some("sampling"));
    }
}
