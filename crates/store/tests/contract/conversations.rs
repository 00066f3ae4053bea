//! Conversations: turns are read back in order.

use toolhub_core::conversation::{ConversationTurn, TurnQuery, TurnRole};
use toolhub_core::ports::HubStore;

use crate::database::{Database, hour};

fn turn(conversation: &str, role: TurnRole, text: &str, hours: u64) -> ConversationTurn {
    ConversationTurn { conversation: conversation.to_owned(), role, text: text.to_owned(), at: hour(hours) }
}

async fn fill(store: &dyn HubStore) -> Vec<ConversationTurn> {
    let turns = vec![
        turn("a", TurnRole::User, "How is the weather in 京都?", 1),
        turn("a", TurnRole::Assistant, "I look.", 1),
        turn("b", TurnRole::User, "Hello", 2),
        turn("a", TurnRole::Tool, "Sunny", 3),
        turn("b", TurnRole::Assistant, "hello yourself", 4),
    ];
    for turn in &turns {
        store.append_turn(turn.clone()).await.unwrap();
    }
    turns
}

pub(crate) async fn returns_turns_in_order(database: Database) {
    let turns = fill(&*database.open().await).await;
    // An identical turn is stored again, not deduplicated.
    let store = database.open().await;
    store.append_turn(turns[4].clone()).await.unwrap();
    let found = store.turns(TurnQuery::default()).await.unwrap();
    assert_eq!(found[..5], turns[..]);
    assert_eq!(found[5], turns[4]);
}

pub(crate) async fn filters_turns(database: Database) {
    let store = database.open().await;
    let turns = fill(&*store).await;
    let any = TurnQuery::default;
    let text = |text: &str| Some(text.to_owned());
    for (query, expect) in [
        (TurnQuery { conversation: text("a"), ..any() }, vec![0, 1, 3]),
        (TurnQuery { role: Some(TurnRole::User), ..any() }, vec![0, 2]),
        (TurnQuery { text: text("HELLO"), ..any() }, vec![2, 4]),
        (TurnQuery { text: text("京都"), ..any() }, vec![0]),
        (TurnQuery { limit: Some(2), ..any() }, vec![3, 4]),
        (TurnQuery { conversation: text("a"), limit: Some(1), ..any() }, vec![3]),
        (TurnQuery { conversation: text("c"), ..any() }, vec![]),
    ] {
        let expect: Vec<ConversationTurn> =
            expect.into_iter().map(|index: usize| turns[index].clone()).collect();
        assert_eq!(store.turns(query.clone()).await.unwrap(), expect, "{query:?}");
    }
}

pub(crate) async fn lists_conversations(database: Database) {
    let store = database.open().await;
    assert!(store.conversations(None).await.unwrap().is_empty());
    fill(&*store).await;
    let found = store.conversations(None).await.unwrap();
    let summaries: Vec<_> = found
        .iter()
        .map(|one| (one.id.as_str(), one.opening.as_str(), one.turns, one.first, one.last))
        .collect();
    assert_eq!(
        summaries,
        [("b", "Hello", 2, hour(2), hour(4)), ("a", "How is the weather in 京都?", 3, hour(1), hour(3))]
    );
    assert_eq!(store.conversations(Some(1)).await.unwrap()[..], found[..1]);
}
