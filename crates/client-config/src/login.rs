//! Conversion of OAuth settings, which clients write under different names.

use serde_json::{Map, Value};
use toolhub_core::{GrantType, OAuthSpec, Secret};

use crate::entry_builder::EntryBuilder;
use crate::fields::Fields;
use crate::reading::VariableSyntax;

/// A client's names for the OAuth settings; `None` if it does not support one.
#[derive(Debug)]
pub(crate) struct OAuthFieldNames {
    /// The field that contains the others.
    pub(crate) holder: &'static str,
    pub(crate) client_id: &'static str,
    pub(crate) client_secret: Option<&'static str>,
    pub(crate) port: Option<&'static str>,
    pub(crate) scopes: ScopeFormat,
}

/// How the scopes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScopeFormat {
    /// As one string in the holder.
    Joined,
    /// As a list in the holder.
    Listed,
    /// As a list beside the holder.
    Beside,
    Unsupported,
}

/// Reads the OAuth settings of an entry; fields without a counterpart are recorded as left out.
pub(crate) fn read(fields: &mut Fields<'_>, names: &OAuthFieldNames) -> OAuthSpec {
    let mut login = OAuthSpec::default();
    if names.scopes == ScopeFormat::Beside {
        login.scopes = fields.string_list("scopes").unwrap_or_default();
    }
    for (key, value) in fields.object(names.holder).into_iter().flatten() {
        let text = value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let port = value.as_u64().and_then(|port| u16::try_from(port).ok());
        match (key.as_str(), text) {
            (key, Some(text)) if key == names.client_id => login.client_id = Some(text),
            (key, Some(text)) if Some(key) == names.client_secret => {
                login.client_secret = Some(Secret::new(text));
            }
            (key, _) if Some(key) == names.port && port.is_some() => login.redirect_port = port,
            ("scopes", Some(text)) => login.scopes = text.split_whitespace().map(str::to_owned).collect(),
            ("scopes", None) if value.is_array() => {
                let scopes = value.as_array().into_iter().flatten().filter_map(Value::as_str);
                login.scopes = scopes.map(str::to_owned).collect();
            }
            // Whether a login is required is detected from the server.
            ("enabled", _) => {}
            (key, _) => fields.leave_out(format!("{}.{key}", names.holder)),
        }
    }
    login
}

/// Writes the OAuth settings that the client supports.
pub(crate) fn write(
    entry: &mut EntryBuilder,
    login: &OAuthSpec,
    names: Option<&OAuthFieldNames>,
    variable_syntax: VariableSyntax,
) {
    if *login == OAuthSpec::default() {
        return;
    }
    let Some(names) = names else { return entry.leave_out("oauth") };
    let mut holder = Map::new();
    let mut put =
        |entry: &mut EntryBuilder, key: Option<&str>, value: Option<Value>, ours: &str| match (key, value) {
            (Some(key), Some(value)) => drop(holder.insert(key.to_owned(), value)),
            (None, Some(_)) => entry.leave_out(format!("oauth.{ours}")),
            (_, None) => {}
        };
    let id = login.client_id.as_deref().and_then(|id| entry.value(id, variable_syntax)).map(Value::from);
    put(entry, Some(names.client_id), id, "client_id");
    let secret =
        login.client_secret.as_ref().and_then(|secret| entry.value(secret.expose(), variable_syntax));
    put(entry, names.client_secret, secret.map(Value::from), "client_secret");
    put(entry, names.port, login.redirect_port.map(Value::from), "redirect_port");
    let scopes = (!login.scopes.is_empty()).then(|| match names.scopes {
        ScopeFormat::Joined => Value::from(login.scopes.join(" ")),
        _ => Value::from(login.scopes.clone()),
    });
    match names.scopes {
        ScopeFormat::Joined | ScopeFormat::Listed => put(entry, Some("scopes"), scopes, "scopes"),
        ScopeFormat::Unsupported => put(entry, None, scopes, "scopes"),
        ScopeFormat::Beside => scopes.into_iter().for_each(|scopes| entry.put("scopes", scopes)),
    }
    put(entry, None, login.issuer.as_deref().map(Value::from), "issuer");
    put(entry, None, login.client_metadata_url.as_deref().map(Value::from), "client_metadata_url");
    entry.leave_out_if(login.grant != GrantType::AuthorizationCode, "oauth.grant");
    if !holder.is_empty() {
        entry.put(names.holder, holder);
    }
}
