//! The members of a request. Each is read once; what was not read in the end is refused by its name.

use serde_json::{Map, Value};
use url::form_urlencoded;

use crate::error::ApiError;

/// The members of a request that have not been read yet.
pub(crate) struct Parameters(Map<String, Value>);

impl Parameters {
    /// Parses a body.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let parsed: Result<Value, _> = serde_json::from_slice(body);
        match parsed {
            Ok(Value::Object(members)) => Ok(Self(members)),
            Ok(_) => Err(ApiError::invalid("body", "the body must be a JSON object")),
            Err(error) => Err(ApiError::invalid("body", format!("the body is not valid JSON: {error}"))),
        }
    }

    /// Parses a query. All values are texts; of repeated names, the last one counts.
    pub(crate) fn of_query(query: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self(pairs.map(|(name, value)| (name.into_owned(), Value::String(value.into_owned()))).collect())
    }

    /// The value of a member; `None` if it is missing or null.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(ApiError::invalid(name, format!("`{name}` must be a string"))),
        }
    }

    pub(crate) fn required_text(&mut self, name: &str) -> Result<String, ApiError> {
        self.text(name)?.ok_or_else(|| missing_parameter(name))
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(ApiError::invalid(name, format!("`{name}` must be true or false"))),
        }
    }

    /// A whole number of at least `min`.
    pub(crate) fn count(&mut self, name: &str, min: u32) -> Result<Option<u32>, ApiError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let count = value.as_u64().and_then(|count| u32::try_from(count).ok()).filter(|count| *count >= min);
        count.map(Some).ok_or_else(|| {
            ApiError::invalid(name, format!("`{name}` must be a whole number of at least {min}"))
        })
    }

    pub(crate) fn number(&mut self, name: &str, min: f64, max: f64) -> Result<Option<f64>, ApiError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = value.as_f64().filter(|number| (min..=max).contains(number));
        number
            .map(Some)
            .ok_or_else(|| ApiError::invalid(name, format!("`{name}` must be a number from {min} to {max}")))
    }

    pub(crate) fn list(&mut self, name: &str) -> Result<Vec<Value>, ApiError> {
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(values)) => Ok(values),
            Some(_) => Err(ApiError::invalid(name, format!("`{name}` must be an array"))),
        }
    }

    pub(crate) fn object(&mut self, name: &str) -> Result<Option<Self>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Object(members)) => Ok(Some(Self(members))),
            Some(_) => Err(ApiError::invalid(name, format!("`{name}` must be an object"))),
        }
    }

    /// Accepts members that change nothing here, whatever their value.
    pub(crate) fn accept(&mut self, names: &[&str]) {
        for name in names {
            self.0.remove(*name);
        }
    }

    /// Accepts a member that is not supported if it has one of the values that change nothing.
    pub(crate) fn neutral(&mut self, name: &str, values: &[Value]) -> Result<(), ApiError> {
        let Some(value) = self.take(name) else { return Ok(()) };
        let equals = |neutral: &Value| {
            *neutral == value || neutral.as_f64().zip(value.as_f64()).is_some_and(|(a, b)| a == b)
        };
        if values.iter().any(equals) {
            return Ok(());
        }
        Err(ApiError::unsupported(name, "the agent decides this itself; leave it out"))
    }

    /// Refuses what is left.
    pub(crate) fn finish(self, prefix: &str) -> Result<(), ApiError> {
        match self.0.into_iter().find(|(_, value)| !value.is_null()) {
            None => Ok(()),
            Some((name, _)) => {
                let name = format!("{prefix}{name}");
                let message = format!("unknown parameter: `{name}` (未知参数)");
                Err(ApiError { code: Some("unknown_parameter"), ..ApiError::invalid(name, message) })
            }
        }
    }
}

pub(crate) fn missing_parameter(name: &str) -> ApiError {
    let message = format!("`{name}` is required (缺少 `{name}`)");
    ApiError { code: Some("missing_required_parameter"), ..ApiError::invalid(name, message) }
}
