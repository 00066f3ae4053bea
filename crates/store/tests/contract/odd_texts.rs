//! Texts that expose faulty encoding, quoting or escaping.

use toolhub_core::call_log::CallQuery;
use toolhub_core::conversation::{ConversationTurn, TurnQuery, TurnRole};
use toolhub_core::{CallId, RawJson};

use crate::database::{Database, find, hour, start, success};

const ODD: [&str; 7] = [
    "京都的天气 🌦️👩‍👩‍👧",
    "O'Reilly; DROP TABLE calls;--",
    "\"\\\" \\u0000 %s {}",
    "",
    " \t\r\n",
    "e\u{301} ﷽",
    "$1 ?1 :a",
];

pub(crate) async fn stores_unusual_texts_verbatim(database: Database) {
    let store = database.open().await;
    for unusual in ODD {
        let mut call = start(unusual, &RawJson::of(&[unusual]).to_string());
        call.request = Some(unusual.to_owned());
        call.conversation = Some(unusual.to_owned());
        call.authorization.principal = unusual.into();
        call.authorization.rule = Some(unusual.into());
        (call.call, call.parent) = (CallId::new(unusual), Some(CallId::new(unusual)));
        unusual.clone_into(&mut call.strategy);
        let end = success(&call, &format!("s{unusual}"), &RawJson::of(unusual).to_string());
        store.begin(call.clone()).await.unwrap();
        store.finish(end.clone()).await.unwrap();
        let found = find(&*store, &call.record).await.unwrap();
        assert_eq!(format!("{:?}", found.start), format!("{call:?}"));
        assert_eq!(found.sources, end.sources);
        assert_eq!(format!("{:?}", found.attempts), format!("{:?}", end.attempts));
        let same = CallQuery {
            tool: Some(unusual.to_owned()),
            conversation: Some(unusual.to_owned()),
            principal: Some(unusual.to_owned()),
            call: Some(unusual.to_owned()),
            parent: Some(unusual.to_owned()),
            source: Some(format!("s{unusual}")),
            arguments: Some(RawJson::of(&[unusual]).to_string()),
            ..CallQuery::default()
        };
        assert_eq!(store.calls(same).await.unwrap().len(), 1, "{unusual:?}");
        assert_eq!(store.output(&call.record).await.unwrap().unwrap().decode::<String>().unwrap(), unusual);
    }
    let mut tools: Vec<String> =
        store.statistics().await.unwrap().iter().map(|one| one.tool.to_string()).collect();
    let mut expect = ODD.map(str::to_owned).to_vec();
    tools.sort_unstable();
    expect.sort_unstable();
    assert_eq!(tools, expect);
}

pub(crate) async fn searches_case_insensitively(database: Database) {
    let store = database.open().await;
    for text in ["Straße ÉCOLE Ёлка ΣΊΣΥΦΟΣ", "查找：天气"] {
        let mut call = start("t", "{}");
        call.request = Some(text.to_owned());
        store.record_finished(call.clone(), success(&call, "native", "1"));
    }
    for (needle, expect) in [("école", 1), ("ёЛКА", 1), ("天气", 1), ("STRASSE", 0), ("ίσυφ", 1), ("天氣", 0)]
    {
        let query = CallQuery { text: Some(needle.to_owned()), ..CallQuery::default() };
        assert_eq!(store.calls(query).await.unwrap().len(), expect, "{needle}");
    }
}

/// PostgreSQL text cannot contain NUL, so that it is stored as `␀` (U+2400) there. JSON columns keep it on both databases,
/// because JSON escapes it as `\u0000`.
pub(crate) async fn stores_nul_characters(database: Database) {
    let store = database.open().await;
    let stored = match &database {
        Database::Sqlite(_) => "a\0b",
        Database::Postgres(_) => "a␀b",
    };
    let unusual = "a\0b".to_owned();
    let mut call = start(&unusual, r#"["\u0000"]"#);
    call.request = Some(unusual.clone());
    call.conversation = Some(unusual.clone());
    call.authorization.principal = unusual.as_str().into();
    call.parent = Some(CallId::new(unusual.as_str()));
    store.begin(call.clone()).await.unwrap();
    let output = RawJson::of(&unusual);
    store.finish(success(&call, &unusual, output.get())).await.unwrap();
    let found = find(&*store, &call.record).await.unwrap();
    assert_eq!(found.start.tool.as_str(), stored);
    assert_eq!(found.start.request.as_deref(), Some(stored));
    assert_eq!(&*found.start.authorization.principal, stored);
    assert_eq!(found.start.parent, Some(CallId::new(stored)));
    assert_eq!(found.start.arguments.get(), r#"["\u0000"]"#);
    assert_eq!(found.sources[0].to_string(), unusual);
    assert_eq!(found.attempts[0].tool.as_str(), unusual);
    assert_eq!(store.output(&call.record).await.unwrap().unwrap().get(), output.get());
    let same = CallQuery {
        tool: Some(unusual.clone()),
        conversation: Some(unusual.clone()),
        source: Some(unusual.clone()),
        principal: Some(unusual.clone()),
        parent: Some(unusual.clone()),
        text: Some(unusual.clone()),
        ..CallQuery::default()
    };
    assert_eq!(store.calls(same).await.unwrap().len(), 1);
    store
        .append_turn(ConversationTurn {
            conversation: unusual.clone(),
            role: TurnRole::User,
            text: unusual.clone(),
            at: hour(0),
        })
        .await
        .unwrap();
    let turns = store.turns(TurnQuery { conversation: Some(unusual), ..TurnQuery::default() }).await.unwrap();
    assert_eq!(turns[0].text, stored);
}

pub(crate) async fn stores_long_numbers_verbatim(database: Database) {
    let store = database.open().await;
    let text = r#"{"n":1234567890123456789012345678901234567890,"e":1E+2,"z":-0.0}"#;
    let call = start("t", text);
    store.record_finished(call.clone(), success(&call, "native", text));
    let found = find(&*store, &call.record).await.unwrap();
    assert_eq!(found.start.arguments.get(), text);
    assert_eq!(store.output(&call.record).await.unwrap().unwrap().get(), text);
}

pub(crate) async fn stores_large_texts(database: Database) {
    let store = database.open().await;
    let text = RawJson::of(&"界a\"".repeat(1 << 18)).to_string();
    assert!(text.len() > 1 << 20);
    let (noted, begun) = (start("t", &text), start("t", "{}"));
    store.record_finished(noted.clone(), success(&noted, "native", &text));
    store.begin(begun.clone()).await.unwrap();
    store.finish(success(&begun, "native", &text)).await.unwrap();
    for record in [&noted.record, &begun.record] {
        assert_eq!(store.output(record).await.unwrap().unwrap().get(), text);
    }
    assert_eq!(find(&*store, &noted.record).await.unwrap().start.arguments.get(), text);
}
