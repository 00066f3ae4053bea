//! Cached tool lists are read back unchanged, also after a restart.

use std::time::{Duration, UNIX_EPOCH};

use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::{CachedList, CachedOffers};
use toolhub_core::{RawJson, ServerId};

use crate::database::Database;

const ODD: &str = r#"{"x":{"b":1,"a":1234567890123456789012345678901234567890}, "name":"奇"}"#;

fn list(tools: &[&str]) -> CachedList {
    CachedList {
        fingerprint: "f".to_owned(),
        era: "legacy".to_owned(),
        peer: "peer 1".to_owned(),
        listed_at: Some(UNIX_EPOCH + Duration::from_millis(4_000_000_000_123)),
        ttl: Some(Duration::from_secs(60)),
        tools: tools.iter().map(|text| RawJson::parse(*text).unwrap()).collect(),
        skipped: vec![LocalizedText::new("`bad`: no", "`bad`：不行")],
        failure: Some((UNIX_EPOCH + Duration::from_secs(5), LocalizedText::new("refused", "被拒绝"))),
        failures: 7,
        late_at: Some(UNIX_EPOCH + Duration::from_millis(4_000_000_000_456)),
        late_after: Some(Duration::from_millis(5001)),
    }
}

/// The entry of a server that has never listed its tools: it only records that a call could not wait for it.
fn late() -> CachedList {
    CachedList { listed_at: None, failure: None, failures: 0, ..list(&[]) }
}

pub(crate) async fn tool_lists_survive_a_restart(database: Database) {
    let server = ServerId::new("服务");
    {
        let store = database.open().await;
        store.save(&ServerId::new("late"), &late()).await.unwrap();
        store.save(&server, &list(&[r#"{"name":"old"}"#, ODD])).await.unwrap();
        store.save(&server, &list(&[ODD, r#"{"name":"second"}"#])).await.unwrap();
        store.save(&ServerId::new("gone"), &list(&[])).await.unwrap();
        store.forget(&ServerId::new("gone"), "f").await.unwrap();
    }
    let store = database.open().await;
    let loaded = store.load().await.unwrap();
    let expected = [(ServerId::new("late"), late()), (server, list(&[ODD, r#"{"name":"second"}"#]))];
    assert_eq!(format!("{loaded:?}"), format!("{expected:?}"));
}

pub(crate) async fn offers_survive_a_restart(database: Database) {
    let server = ServerId::new("服务");
    let offers = |kind: &str, items: &[&str]| CachedOffers {
        fingerprint: "f".to_owned(),
        kind: kind.to_owned(),
        listed_at: UNIX_EPOCH + Duration::from_millis(4_000_000_000_123),
        items: items.iter().map(|text| RawJson::parse(*text).unwrap()).collect(),
    };
    {
        let store = database.open().await;
        store.save_offers(&server, &offers("prompts", &[r#"{"name":"old"}"#])).await.unwrap();
        store.save_offers(&server, &offers("prompts", &[ODD, ODD])).await.unwrap();
        store.save_offers(&server, &offers("resources", &[])).await.unwrap();
        store.save_offers(&ServerId::new("gone"), &offers("prompts", &[ODD])).await.unwrap();
        store.forget(&ServerId::new("gone"), "f").await.unwrap();
        // Saving the tool list leaves the cached prompts and resources unchanged.
        store.save(&server, &list(&[ODD])).await.unwrap();
    }
    let store = database.open().await;
    let loaded = store.load_offers().await.unwrap();
    let expected =
        [(server.clone(), offers("prompts", &[ODD, ODD])), (server.clone(), offers("resources", &[]))];
    assert_eq!(format!("{loaded:?}"), format!("{expected:?}"));
    store.forget(&server, "f").await.unwrap();
    assert!(store.load_offers().await.unwrap().is_empty());
}

pub(crate) async fn changed_definition_creates_a_new_version(database: Database) {
    let store = database.open().await;
    let server = ServerId::new("s");
    let at = |hours: u64| Some(UNIX_EPOCH + Duration::from_secs(4_000_000_000 + hours * 3600));
    let listed = |text: &str, hours| CachedList { listed_at: at(hours), failure: None, ..list(&[text]) };
    store.save(&server, &listed(r#"{"name":"t","description":"old"}"#, 1)).await.unwrap();
    store.save(&server, &listed(r#"{"description":"old","name":"t"}"#, 2)).await.unwrap();
    store.save(&server, &listed(r#"{"name":"t","description":"new"}"#, 3)).await.unwrap();
    let history = store.history(&server, "t").await.unwrap();
    let seen: Vec<_> =
        history.iter().map(|one| (one.definition.get(), Some(one.first_seen), Some(one.last_seen))).collect();
    assert_eq!(
        seen,
        [
            (r#"{"name":"t","description":"new"}"#, at(3), at(3)),
            (r#"{"name":"t","description":"old"}"#, at(1), at(2)),
        ]
    );
}
