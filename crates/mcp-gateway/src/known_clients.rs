//! The clients that have sent their `clientInfo`: name and version as they state them, with the principal that was authenticated.
//! For people who look at the hub; nothing is decided by it.

use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use toolhub_core::{Principal, RawJson};
use toolhub_mcp_wire::Era;

/// Maximum number of recorded clients of one principal.
const MAX_PER_PRINCIPAL: usize = 16;
/// Maximum number of recorded clients.
const MAX_CLIENTS: usize = 512;
/// Maximum length of a name, a title, a version and a revision, in characters.
const MAX_CHARS: usize = 80;

/// A client that has sent its `clientInfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownClient {
    /// The id of its principal.
    pub principal: String,
    /// Its name, as it states it.
    pub name: String,
    /// Its name for people, if it states one.
    pub title: Option<String>,
    /// Its version, as it states it.
    pub version: String,
    /// The generation of the protocol that it speaks.
    pub era: Era,
    /// The revision of the protocol.
    pub revision: String,
    /// When it sent its `clientInfo` last: a legacy client with `initialize`, a modern one when it reads the list of tools.
    pub seen_at: SystemTime,
}

impl KnownClient {
    fn is_same(&self, other: &Self) -> bool {
        self.principal == other.principal
            && self.name == other.name
            && self.version == other.version
            && self.era == other.era
    }
}

/// The protocol that a client speaks.
pub(crate) struct ClientProtocol<'a> {
    pub(crate) era: Era,
    pub(crate) revision: &'a str,
}

/// The clients of a gateway, the latest one last.
#[derive(Debug, Default)]
pub(crate) struct KnownClients(Mutex<Vec<KnownClient>>);

impl KnownClients {
    /// Records a client by its `clientInfo`. One without a name is not recorded.
    pub(crate) fn record(
        &self,
        info: Option<&RawJson>,
        principal: &Principal,
        protocol: &ClientProtocol<'_>,
    ) {
        let Some(info) = info.and_then(RawJson::object) else { return };
        let text = |key: &str| info.get(key).and_then(|value| value.text()).map(|text| shortened(&text));
        let Some(name) = text("name").filter(|name| !name.is_empty()) else { return };
        self.insert(KnownClient {
            principal: principal.id().to_string(),
            name,
            title: text("title").filter(|title| !title.is_empty()),
            version: text("version").unwrap_or_default(),
            era: protocol.era,
            revision: shortened(protocol.revision),
            seen_at: SystemTime::now(),
        });
    }

    fn insert(&self, client: KnownClient) {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|other| !other.is_same(&client));
        let is_own = |other: &KnownClient| other.principal == client.principal;
        if clients.iter().filter(|other| is_own(other)).count() >= MAX_PER_PRINCIPAL
            && let Some(oldest) = clients.iter().position(is_own)
        {
            clients.remove(oldest);
        }
        if clients.len() >= MAX_CLIENTS {
            clients.remove(0);
        }
        clients.push(client);
    }

    /// All clients, the latest one first.
    pub(crate) fn all(&self) -> Vec<KnownClient> {
        let clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        clients.iter().rev().cloned().collect()
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use toolhub_core::principal::{PrincipalKind, PrincipalOrigin};

    use super::*;

    fn key(name: &str) -> Principal {
        Principal::new(PrincipalOrigin::Key { name: name.to_owned() }, PrincipalKind::Program)
    }

    fn record(clients: &KnownClients, principal: &Principal, info: &str) {
        let info = RawJson::parse(info).unwrap();
        clients.record(Some(&info), principal, &ClientProtocol { era: Era::Legacy, revision: "2025-06-18" });
    }

    fn names(clients: &KnownClients) -> Vec<String> {
        clients.all().into_iter().map(|client| client.name).collect()
    }

    #[test]
    fn remembers_each_client_once_and_the_latest_first() {
        let (clients, ann) = (KnownClients::default(), key("ann"));
        record(&clients, &ann, r#"{"name": "cursor", "version": "1"}"#);
        record(&clients, &ann, r#"{"name": "claude", "title": "Claude", "version": "2"}"#);
        record(&clients, &ann, r#"{"name": "cursor", "version": "1"}"#);
        record(&clients, &key("bob"), r#"{"name": "cursor", "version": "1"}"#);
        assert_eq!(names(&clients), ["cursor", "cursor", "claude"]);
        assert_eq!(clients.all()[2].title.as_deref(), Some("Claude"));
    }

    #[test]
    fn ignores_what_has_no_name() {
        let clients = KnownClients::default();
        for info in ["{}", r#"{"name": ""}"#, r#"{"name": 7}"#, "[]", r#""cursor""#] {
            record(&clients, &key("ann"), info);
        }
        clients.record(None, &key("ann"), &ClientProtocol { era: Era::Modern, revision: "2026-07-28" });
        assert_eq!(names(&clients), Vec::<String>::new());
    }

    #[test]
    fn a_principal_with_many_names_removes_its_own_clients_only() {
        let clients = KnownClients::default();
        record(&clients, &key("ann"), r#"{"name": "cursor"}"#);
        for number in 0..100 {
            record(&clients, &key("bob"), &format!(r#"{{"name": "client {number}"}}"#));
        }
        let all = clients.all();
        assert_eq!(all.iter().filter(|client| client.principal == "key:bob").count(), MAX_PER_PRINCIPAL);
        assert!(all.iter().any(|client| client.name == "cursor"));
        for number in 0..1_000 {
            record(&clients, &key(&format!("key{number}")), r#"{"name": "x"}"#);
        }
        assert_eq!(clients.all().len(), MAX_CLIENTS);
        let long = format!(r#"{{"name": "{}"}}"#, "名".repeat(5_000));
        record(&clients, &key("long"), &long);
        assert_eq!(clients.all()[0].name.chars().count(), MAX_CHARS);
    }
}
