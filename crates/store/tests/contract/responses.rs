//! Responses of the agent, and calls that wait for an approval: whose they are, how long they stay, and which process
//! works on them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::Barrier;
use tokio::task::JoinSet;
use toolhub_core::RawJson;
use toolhub_core::call_log::{CallQuery, RecordId};
use toolhub_core::ports::HubStore;
use toolhub_core::responses::{
    OwnedResponse, PendingApproval, ResponseLimits, ResponseStatus, ResponseUpdate, StoredResponse,
};

use crate::database::{Database, find, hour};
use crate::older_database::OlderDatabase;

const UNLIMITED: ResponseLimits = ResponseLimits { max_bytes: u64::MAX };

/// A time in whole microseconds, which both databases return unchanged.
fn in_an_hour() -> SystemTime {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    UNIX_EPOCH + Duration::from_micros(u64::try_from(now.as_micros()).unwrap()) + Duration::from_secs(3_600)
}

/// A response of `ann` that expires in an hour. Each is one second younger than the previous one.
pub(crate) fn response(status: ResponseStatus) -> StoredResponse {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let body = format!(r#"{{"n": 12345678901234567890.10, "text": "答案\u0000 {number}", "n": 2}}"#);
    StoredResponse {
        id: format!("resp_{number}"),
        principal: "key:ann".to_owned(),
        previous: None,
        status,
        request: RawJson::parse(r#"{"model": "toolhub", "background": true}"#).unwrap(),
        input: RawJson::parse(r#"[{"role": "user", "content": "问题"}]"#).unwrap(),
        body: RawJson::parse(body).unwrap(),
        created_at: hour(0) + Duration::from_secs(number),
        expires_at: in_an_hour(),
    }
}

/// A final response whose texts have 1,000 bytes.
fn response_of_a_kilobyte() -> StoredResponse {
    let mut response = response(ResponseStatus::Completed);
    (response.request, response.input) = (RawJson::parse("{}").unwrap(), RawJson::parse("[]").unwrap());
    response.body = RawJson::parse(format!("\"{}\"", "x".repeat(994))).unwrap();
    response
}

fn approval(id: &str) -> PendingApproval {
    PendingApproval {
        id: id.to_owned(),
        principal: "key:ann".to_owned(),
        call: RawJson::parse(r#"{"name": "删除", "arguments": "{\"a\": 1.0}"}"#).unwrap(),
        expires_at: in_an_hour(),
    }
}

/// The response with this id, as another program would have expired it.
async fn expire(database: &Database, table: &str, id: &str) {
    database.tamper(&format!("UPDATE {table} SET expires_at = 1 WHERE id = '{id}'")).await;
}

async fn stored(store: &dyn HubStore, response: &StoredResponse) -> Option<StoredResponse> {
    store.response(&response.id, &response.principal).await.unwrap()
}

async fn update(store: &dyn HubStore, response: &StoredResponse) -> ResponseUpdate {
    store.update_response(response.clone()).await.unwrap()
}

async fn are_stored(store: &dyn HubStore, responses: &[StoredResponse]) -> Vec<bool> {
    let mut found = Vec::new();
    for response in responses {
        found.push(stored(store, response).await.is_some());
    }
    found
}

fn assert_same(found: Option<&StoredResponse>, expected: &StoredResponse) {
    assert_eq!(format!("{:?}", found.unwrap()), format!("{expected:?}"));
}

/// Waits until the store takes over this many responses. PostgreSQL releases the locks of a closed connection with a short
/// delay.
async fn wait_for_unfinished(store: &dyn HubStore, count: usize) -> Vec<StoredResponse> {
    let started = Instant::now();
    loop {
        let found = store.unfinished_responses().await.unwrap();
        if found.len() == count {
            return found;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{found:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) async fn returns_what_was_stored_last(database: Database) {
    let store = database.open().await;
    for status in ResponseStatus::ALL {
        let mut one = response(status);
        store.add_response(one.clone()).await.unwrap();
        // Without a flush: an acknowledged write is visible to every other store.
        let other = database.open().await;
        assert_same(stored(&*other, &one).await.as_ref(), &one);
        if status.is_final() {
            continue;
        }
        for (status, previous) in
            [(ResponseStatus::InProgress, Some("resp_x".to_owned())), (ResponseStatus::Completed, None)]
        {
            (one.status, one.previous) = (status, previous);
            one.body = RawJson::of(&format!("{status:?}"));
            one.input = RawJson::of(&[status.name()]);
            one.request = RawJson::of(&status.name());
            one.expires_at += Duration::from_secs(60);
            assert_eq!(update(&*store, &one).await, ResponseUpdate::Written);
            assert_same(stored(&*other, &one).await.as_ref(), &one);
        }
    }
    let one = response(ResponseStatus::Completed);
    assert_eq!(update(&*store, &one).await, ResponseUpdate::Missing, "it was never added");
    assert!(stored(&*store, &one).await.is_none());
}

/// A late writer does not change a response that has ended; the write returns how it ended.
pub(crate) async fn ended_responses_stay_as_they_are(database: Database) {
    let (owner, other) = (database.open().await, database.open().await);
    for end in ResponseStatus::ALL.into_iter().filter(|status| status.is_final()) {
        let one = response(ResponseStatus::InProgress);
        owner.add_response(one.clone()).await.unwrap();
        let ended = StoredResponse { status: end, ..one.clone() };
        // The answer to a write may be lost; then it is repeated.
        for _ in 0..3 {
            assert_eq!(update(&*owner, &ended).await, ResponseUpdate::Written, "{end:?}");
        }
        for late in ResponseStatus::ALL {
            let late = StoredResponse { status: late, body: RawJson::of(&"late"), ..one.clone() };
            for store in [&owner, &other] {
                assert_eq!(update(&**store, &late).await, ResponseUpdate::Ended(end), "{late:?}");
            }
        }
        assert!(!other.request_cancellation(&one.id, &one.principal).await.unwrap(), "{end:?}");
        assert_same(stored(&*other, &one).await.as_ref(), &ended);
    }
}

/// Of many concurrent writers that end a response, one succeeds, and the others learn its status.
pub(crate) async fn a_response_ends_once(database: Database) {
    const WRITERS: usize = 16;
    let store = database.open().await;
    for _ in 0..10 {
        let one = response(ResponseStatus::InProgress);
        store.add_response(one.clone()).await.unwrap();
        let barrier = Arc::new(Barrier::new(WRITERS));
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let status = ResponseStatus::ALL[2 + writer % 4];
            let end = StoredResponse { status, body: RawJson::of(&writer), ..one.clone() };
            let (store, barrier) = (Arc::clone(&store), Arc::clone(&barrier));
            writers.spawn(async move {
                barrier.wait().await;
                (status, update(&*store, &end).await)
            });
        }
        let found = stored(&*store, &one);
        let updates = writers.join_all().await;
        let written = updates.iter().filter(|(_, update)| *update == ResponseUpdate::Written);
        assert_eq!(written.count(), 1, "{updates:?}");
        let end = found.await.unwrap().status;
        let expected = [ResponseUpdate::Written, ResponseUpdate::Ended(end)];
        assert!(updates.iter().all(|(_, update)| expected.contains(update)), "{end:?}: {updates:?}");
        assert!(updates.contains(&(end, ResponseUpdate::Written)), "{end:?}: {updates:?}");
    }
}

/// Any process requests a cancellation; the process that works on the response reads the request and ends the response.
pub(crate) async fn cancellations_reach_the_working_process(database: Database) {
    let (owner, other) = (database.open().await, database.open().await);
    let [cancelled, deleted, kept] = [(); 3].map(|()| response(ResponseStatus::InProgress));
    let finished = response(ResponseStatus::Completed);
    for one in [&cancelled, &deleted, &kept, &finished] {
        owner.add_response(one.clone()).await.unwrap();
    }
    let wanted = async |store: &dyn HubStore| {
        let own = store.owned_responses().await.unwrap().into_iter().filter(|one| !one.is_cancelled);
        let mut ids: Vec<String> = own.map(|one| one.id).collect();
        ids.sort();
        ids
    };
    let mut all = [&cancelled, &deleted, &kept].map(|one| one.id.clone());
    all.sort();
    assert_eq!(wanted(&*owner).await, all);
    assert!(wanted(&*other).await.is_empty());
    assert!(!other.request_cancellation(&cancelled.id, "key:bob").await.unwrap());
    assert!(!other.request_cancellation(&finished.id, &finished.principal).await.unwrap());
    assert!(!other.request_cancellation("resp_none", "key:ann").await.unwrap());
    assert_eq!(wanted(&*owner).await, all);
    for _ in 0..2 {
        assert!(other.request_cancellation(&cancelled.id, &cancelled.principal).await.unwrap());
    }
    assert!(other.delete_response(&deleted.id, &deleted.principal).await.unwrap());
    assert_eq!(wanted(&*owner).await, [kept.id.as_str()]);
    // Until then it is not cancelled, and only the working process ends it.
    assert_same(stored(&*other, &cancelled).await.as_ref(), &cancelled);
    let end = StoredResponse { status: ResponseStatus::Cancelled, ..cancelled.clone() };
    assert_eq!(update(&*other, &end).await, ResponseUpdate::OtherOwner);
    // Its progress does not undo the request.
    assert_eq!(update(&*owner, &cancelled).await, ResponseUpdate::Written);
    assert_eq!(wanted(&*owner).await, [kept.id.as_str()]);
    assert_eq!(update(&*owner, &end).await, ResponseUpdate::Written);
    assert_same(stored(&*other, &cancelled).await.as_ref(), &end);

    // The request survives the process that worked on it.
    assert!(other.request_cancellation(&kept.id, &kept.principal).await.unwrap());
    drop(owner);
    assert_same(wait_for_unfinished(&*other, 1).await.first(), &kept);
    let (id, principal) = (kept.id.clone(), kept.principal.clone());
    let adopted = OwnedResponse { id, principal, is_cancelled: true, is_adopted: true };
    assert_eq!(other.owned_responses().await.unwrap(), [adopted]);
}

/// Everything of one principal is deleted, however much it is, and nothing of others.
pub(crate) async fn all_responses_of_a_principal_are_deleted(database: Database) {
    let (store, other) = (database.open().await, database.open().await);
    let mut kept = Vec::new();
    for index in 0..130 {
        let status = ResponseStatus::ALL[index % 6];
        store.add_response(response(status)).await.unwrap();
        let principal = ["key:anna", "key:an", "KEY:ANN", "local"][index % 4].to_owned();
        kept.push(StoredResponse { principal, ..response(status) });
        store.add_response(kept[index].clone()).await.unwrap();
    }
    for index in 0..60 {
        store.put_approval(approval(&format!("mcpr_{index}"))).await.unwrap();
    }
    let foreign = PendingApproval { principal: "key:bob".to_owned(), ..approval("kept") };
    store.put_approval(foreign).await.unwrap();
    assert_eq!(other.delete_responses_of("key:ann\0").await.unwrap(), 0);
    assert_eq!(other.delete_responses_of("key:ann").await.unwrap(), 190);
    assert_eq!(other.delete_responses_of("key:ann").await.unwrap(), 0);
    assert!(store.owned_responses().await.unwrap().iter().all(|one| one.principal != "key:ann"));
    assert_eq!(are_stored(&*store, &kept).await, vec![true; 130]);
    assert!(store.take_approval("mcpr_7", "key:ann").await.unwrap().is_none());
    assert!(store.take_approval("kept", "key:bob").await.unwrap().is_some());
}

/// A process that was taken for dead does not write any more what another one has taken over.
pub(crate) async fn responses_of_other_processes_are_not_replaced(database: Database) {
    let (owner, other) = (database.open().await, database.open().await);
    let one = response(ResponseStatus::InProgress);
    owner.add_response(one.clone()).await.unwrap();
    for status in ResponseStatus::ALL {
        let late = StoredResponse { status, body: RawJson::of(&"late"), ..one.clone() };
        assert_eq!(update(&*other, &late).await, ResponseUpdate::OtherOwner, "{status:?}");
    }
    assert_same(stored(&*owner, &one).await.as_ref(), &one);
}

/// Neither a response nor an approval is read, replaced, deleted or taken with its id alone.
pub(crate) async fn other_principals_have_no_access(database: Database) {
    let store = database.open().await;
    let one = response(ResponseStatus::Completed);
    store.add_response(one.clone()).await.unwrap();
    store.put_approval(approval("mcpr_1")).await.unwrap();
    for principal in ["key:bob", "", "key:anna", "KEY:ANN", "key:ann ", "key:ann\0", "local", "%"] {
        let mut other = response(ResponseStatus::Failed);
        (other.id, other.principal) = (one.id.clone(), principal.to_owned());
        assert!(store.response(&one.id, principal).await.unwrap().is_none(), "{principal:?}");
        assert_eq!(update(&*store, &other).await, ResponseUpdate::Missing, "{principal:?}");
        assert!(!store.delete_response(&one.id, principal).await.unwrap(), "{principal:?}");
        assert!(store.add_response(other).await.is_err(), "{principal:?}");
        assert!(store.take_approval("mcpr_1", principal).await.unwrap().is_none(), "{principal:?}");
        let other = PendingApproval { principal: principal.to_owned(), ..approval("mcpr_1") };
        assert!(store.put_approval(other).await.is_err(), "{principal:?}");
    }
    assert_same(stored(&*store, &one).await.as_ref(), &one);
    let taken = store.take_approval("mcpr_1", "key:ann").await.unwrap();
    assert_eq!(taken.unwrap().principal, "key:ann");
}

/// A new response or call never replaces one with the same id, not even of its own principal.
pub(crate) async fn new_rows_replace_nothing(database: Database) {
    let store = database.open().await;
    let one = response(ResponseStatus::Completed);
    store.add_response(one.clone()).await.unwrap();
    let another = StoredResponse { id: one.id.clone(), ..response(ResponseStatus::Queued) };
    let error = store.add_response(another).await.unwrap_err();
    assert!(error.to_string().contains(&one.id), "{error}");
    assert_same(stored(&*store, &one).await.as_ref(), &one);

    store.put_approval(approval("mcpr_1")).await.unwrap();
    let another = PendingApproval { call: RawJson::null(), ..approval("mcpr_1") };
    assert!(store.put_approval(another).await.is_err());
    let taken = store.take_approval("mcpr_1", "key:ann").await.unwrap().unwrap();
    assert_eq!(taken.call.get(), approval("mcpr_1").call.get());
}

/// Names that PostgreSQL cannot tell apart.
pub(crate) async fn names_with_nul_are_rejected(database: Database) {
    let store = database.open().await;
    let plain = StoredResponse { principal: "key:␀".to_owned(), ..response(ResponseStatus::Completed) };
    store.add_response(plain.clone()).await.unwrap();
    let odd = StoredResponse { principal: "key:\0".to_owned(), ..response(ResponseStatus::Completed) };
    assert!(store.add_response(odd.clone()).await.is_err());
    assert!(store.response(&plain.id, "key:\0").await.unwrap().is_none());
    assert_eq!(update(&*store, &odd).await, ResponseUpdate::Missing);
    assert!(!store.request_cancellation(&plain.id, "key:\0").await.unwrap());
    assert!(!store.delete_response(&plain.id, "key:\0").await.unwrap());
    store.put_approval(PendingApproval { principal: "key:␀".to_owned(), ..approval("a") }).await.unwrap();
    assert!(store.take_approval("a", "key:\0").await.unwrap().is_none());
    assert!(store.put_approval(approval("a\0")).await.is_err());
}

pub(crate) async fn deleted_responses_stay_deleted(database: Database) {
    let store = database.open().await;
    let [deleted, expired, purged] = [(); 3].map(|()| response(ResponseStatus::InProgress));
    for one in [&deleted, &expired, &purged] {
        store.add_response(one.clone()).await.unwrap();
        assert_eq!(update(&*store, one).await, ResponseUpdate::Written);
    }
    assert!(store.delete_response(&deleted.id, &deleted.principal).await.unwrap());
    assert!(!store.delete_response(&deleted.id, &deleted.principal).await.unwrap());
    expire(&database, "responses", &expired.id).await;
    assert!(!store.delete_response(&expired.id, &expired.principal).await.unwrap());
    let finished = StoredResponse { status: ResponseStatus::Completed, ..purged.clone() };
    assert_eq!(update(&*store, &finished).await, ResponseUpdate::Written);
    expire(&database, "responses", &purged.id).await;
    assert_eq!(store.purge_responses(UNLIMITED).await.unwrap(), 1);
    for one in [deleted, expired, purged] {
        assert_eq!(update(&*store, &one).await, ResponseUpdate::Missing, "{}", one.id);
        assert!(stored(&*store, &one).await.is_none(), "{}", one.id);
    }
}

/// Many tasks of two stores take each approval at the same time.
pub(crate) async fn one_of_many_callers_takes_an_approval(database: Database) {
    const CALLERS: usize = 24;
    let stores = [database.open().await, database.open().await];
    for round in 0..20 {
        let id = format!("mcpr_{round}");
        stores[round % 2].put_approval(approval(&id)).await.unwrap();
        let barrier = Arc::new(Barrier::new(CALLERS));
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            let (store, barrier, id) = (Arc::clone(&stores[caller % 2]), Arc::clone(&barrier), id.clone());
            callers.spawn(async move {
                barrier.wait().await;
                store.take_approval(&id, "key:ann").await.unwrap()
            });
        }
        let taken: Vec<PendingApproval> = callers.join_all().await.into_iter().flatten().collect();
        assert_eq!(taken.len(), 1, "{id}");
        assert_eq!((&taken[0].id, taken[0].call.get()), (&id, approval(&id).call.get()));
        assert!(stores[0].take_approval(&id, "key:ann").await.unwrap().is_none(), "{id}");
    }
    // Nothing is left of them: what a caller took may be put back, even as another call.
    let again = PendingApproval { call: RawJson::null(), ..approval("mcpr_0") };
    stores[1].put_approval(again).await.unwrap();
    assert!(stores[0].take_approval("mcpr_0", "key:ann").await.unwrap().is_some());
}

/// While their process lives, unfinished responses are its own; then exactly one other process receives them.
pub(crate) async fn unfinished_responses_are_those_of_ended_processes(database: Database) {
    let (owner, first, second) = (database.open().await, database.open().await, database.open().await);
    let [queued, running, cancelled, expired, finished, living] = [
        ResponseStatus::Queued,
        ResponseStatus::InProgress,
        ResponseStatus::Queued,
        ResponseStatus::InProgress,
        ResponseStatus::Completed,
        ResponseStatus::InProgress,
    ]
    .map(response);
    // The newer ones first, so that their order is not that of insertion.
    for one in [&running, &finished, &expired, &cancelled, &queued] {
        owner.add_response(one.clone()).await.unwrap();
    }
    first.add_response(living.clone()).await.unwrap();
    let final_state = StoredResponse { status: ResponseStatus::Cancelled, ..cancelled };
    assert_eq!(update(&*owner, &final_state).await, ResponseUpdate::Written);
    expire(&database, "responses", &expired.id).await;
    for store in [&owner, &first, &second] {
        assert!(store.unfinished_responses().await.unwrap().is_empty());
    }
    drop(owner);

    let started = Instant::now();
    let (first_found, second_found) = loop {
        let (one, other) = tokio::join!(first.unfinished_responses(), second.unfinished_responses());
        let (one, other) = (one.unwrap(), other.unwrap());
        if one.len() + other.len() > 0 {
            break (one, other);
        }
        assert!(started.elapsed() < Duration::from_secs(10), "they still count as running");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(first_found.is_empty() || second_found.is_empty(), "{first_found:?}, {second_found:?}");
    let (adopter, other, found) = match first_found.is_empty() {
        false => (first, second, first_found),
        true => (second, first, second_found),
    };
    assert_eq!(found.len(), 2, "{found:?}");
    assert_same(Some(&found[0]), &queued);
    assert_same(Some(&found[1]), &running);

    // A process that asks again before it began to work receives them again.
    assert_eq!(adopter.unfinished_responses().await.unwrap().len(), 2);
    assert_eq!(update(&*adopter, &running).await, ResponseUpdate::Written);
    let found = adopter.unfinished_responses().await.unwrap();
    assert_eq!(found.len(), 1);
    assert_same(Some(&found[0]), &queued);
    assert!(other.unfinished_responses().await.unwrap().is_empty());

    // If that process ends too, the next one receives them.
    drop((adopter, other));
    let third = database.open().await;
    let found = wait_for_unfinished(&*third, 3).await;
    let ids: Vec<&String> = found.iter().map(|one| &one.id).collect();
    assert_eq!(ids, [&queued.id, &running.id, &living.id]);
    for mut one in found {
        one.status = ResponseStatus::Failed;
        assert_eq!(update(&*third, &one).await, ResponseUpdate::Written);
    }
    assert!(third.unfinished_responses().await.unwrap().is_empty());
}

pub(crate) async fn expired_rows_do_not_exist(database: Database) {
    let store = database.open().await;
    let past = SystemTime::now() - Duration::from_secs(1);
    let one = StoredResponse { expires_at: past, ..response(ResponseStatus::Completed) };
    store.add_response(one.clone()).await.unwrap();
    assert!(stored(&*store, &one).await.is_none());
    store.put_approval(PendingApproval { expires_at: past, ..approval("mcpr_1") }).await.unwrap();
    assert!(store.take_approval("mcpr_1", "key:ann").await.unwrap().is_none());
    let dead = database.open().await;
    let orphan = StoredResponse { expires_at: past, ..response(ResponseStatus::InProgress) };
    dead.add_response(orphan).await.unwrap();
    let mark = response(ResponseStatus::InProgress);
    dead.add_response(mark.clone()).await.unwrap();
    drop(dead);
    assert_same(wait_for_unfinished(&*store, 1).await.first(), &mark);
}

/// More rows than one write deletes.
pub(crate) async fn purge_deletes_expired_rows(database: Database) {
    let store = database.open().await;
    let dead = database.open().await;
    let past = SystemTime::now() - Duration::from_secs(1);
    let mut kept = Vec::new();
    for index in 0..130 {
        let status = ResponseStatus::ALL[2 + index % 4];
        store.add_response(StoredResponse { expires_at: past, ..response(status) }).await.unwrap();
        if index % 10 == 0 {
            kept.push(response(status));
            store.add_response(kept[kept.len() - 1].clone()).await.unwrap();
        }
    }
    for index in 0..60 {
        let one = PendingApproval { expires_at: past, ..approval(&format!("mcpr_{index}")) };
        store.put_approval(one).await.unwrap();
    }
    store.put_approval(approval("kept")).await.unwrap();
    // An unfinished response is kept while its process lives, even if it has expired.
    let living = StoredResponse { expires_at: past, ..response(ResponseStatus::InProgress) };
    store.add_response(living.clone()).await.unwrap();
    dead.add_response(StoredResponse { expires_at: past, ..response(ResponseStatus::Queued) }).await.unwrap();
    assert_eq!(store.purge_responses(UNLIMITED).await.unwrap(), 190, "both processes live");
    drop(dead);
    let started = Instant::now();
    while store.purge_responses(UNLIMITED).await.unwrap() != 1 {
        assert!(started.elapsed() < Duration::from_secs(10), "the response of an ended process stays");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(store.purge_responses(UNLIMITED).await.unwrap(), 0);
    assert_eq!(are_stored(&*store, &kept).await, vec![true; 13]);
    assert!(store.take_approval("kept", "key:ann").await.unwrap().is_some());
    // The row of the living process is still there: its id is in use.
    assert!(store.add_response(StoredResponse { body: RawJson::null(), ..living }).await.is_err());
}

pub(crate) async fn purge_deletes_the_oldest_final_responses_beyond_the_limit(database: Database) {
    let store = database.open().await;
    let mut responses: Vec<StoredResponse> = (0..130).map(|_| response_of_a_kilobyte()).collect();
    responses[1].status = ResponseStatus::InProgress;
    responses[2].status = ResponseStatus::Queued;
    responses[129].status = ResponseStatus::InProgress;
    // The newest first, so that their order is not that of insertion.
    for one in responses.iter().rev() {
        store.add_response(one.clone()).await.unwrap();
    }
    let limit = |max_bytes| ResponseLimits { max_bytes };
    assert_eq!(store.purge_responses(limit(130_000)).await.unwrap(), 0);
    assert_eq!(store.purge_responses(limit(129_999)).await.unwrap(), 1);
    assert_eq!(store.purge_responses(limit(10_500)).await.unwrap(), 119);
    let expected: Vec<bool> = (0..130).map(|index| index == 1 || index == 2 || index >= 122).collect();
    assert_eq!(are_stored(&*store, &responses).await, expected);
    // An update counts with its new size: of twelve kilobytes, two are too many.
    let (status, body) = (ResponseStatus::Completed, RawJson::of(&"x".repeat(2_994)));
    let last = StoredResponse { status, body, ..responses[129].clone() };
    assert_eq!(update(&*store, &last).await, ResponseUpdate::Written);
    assert_eq!(store.purge_responses(limit(10_000)).await.unwrap(), 2);
    assert_eq!(store.purge_responses(limit(0)).await.unwrap(), 6);
    let expected: Vec<bool> = (0..130).map(|index| index == 1 || index == 2).collect();
    assert_eq!(are_stored(&*store, &responses).await, expected, "unfinished ones are kept");
}

/// What one principal stores does not displace the responses of others.
pub(crate) async fn purge_takes_from_those_who_hold_most(database: Database) {
    let store = database.open().await;
    let of = |principal: &str| StoredResponse { principal: principal.to_owned(), ..response_of_a_kilobyte() };
    // The responses of others are the oldest.
    let quiet: Vec<StoredResponse> = ["key:bob", "local", "key:bob", "oidc:x#y"].map(of).to_vec();
    let busy: Vec<StoredResponse> = (0..20).map(|_| of("key:eve")).collect();
    let flood: Vec<StoredResponse> = (0..120).map(|_| of("key:ann")).collect();
    for one in quiet.iter().chain(&busy).chain(&flood) {
        store.add_response(one.clone()).await.unwrap();
    }
    let kept = |count: usize, of: usize| (0..of).map(|index| index >= of - count).collect::<Vec<bool>>();
    assert_eq!(store.purge_responses(ResponseLimits { max_bytes: 54_000 }).await.unwrap(), 90);
    assert_eq!(are_stored(&*store, &flood).await, kept(30, 120));
    assert_eq!(are_stored(&*store, &busy).await, kept(20, 20));
    // Below that, the two that hold most lose the same.
    assert_eq!(store.purge_responses(ResponseLimits { max_bytes: 14_000 }).await.unwrap(), 40);
    assert_eq!(are_stored(&*store, &flood).await, kept(5, 120));
    assert_eq!(are_stored(&*store, &busy).await, kept(5, 20));
    assert_eq!(are_stored(&*store, &quiet).await, kept(4, 4));
}

/// Two stores that purge at the same time delete together what one would have deleted.
pub(crate) async fn concurrent_purges_delete_no_more_than_one(database: Database) {
    let stores = [database.open().await, database.open().await];
    let mut responses = Vec::new();
    for round in 1..=5 {
        for _ in 0..20 {
            responses.push(response_of_a_kilobyte());
            stores[0].add_response(responses[responses.len() - 1].clone()).await.unwrap();
        }
        let limits = ResponseLimits { max_bytes: 10_000 };
        let (one, other) = tokio::join!(stores[0].purge_responses(limits), stores[1].purge_responses(limits));
        assert_eq!(one.unwrap() + other.unwrap(), if round == 1 { 10 } else { 20 });
        let expected: Vec<bool> = (0..responses.len()).map(|index| index + 10 >= responses.len()).collect();
        assert_eq!(are_stored(&*stores[1], &responses).await, expected);
    }
}

/// A database from before responses were stored.
const OLDER: OlderDatabase = OlderDatabase {
    sqlite_steps: 13,
    postgres_steps: 9,
    entry: b"\x02\x02r1\x02c1\x01t\x05first\x00\x03hi\x05local\x00\x00\x01\xe8\x07\x01\x05\x00\x01\x06native\x00\x00\x02{}\x00",
};

pub(crate) async fn older_database_stores_responses(database: Database) {
    OLDER.create_in(&database).await;
    let store = database.open().await;
    assert!(store.unfinished_responses().await.unwrap().is_empty());
    assert_eq!(store.purge_responses(UNLIMITED).await.unwrap(), 0);
    let one = response(ResponseStatus::Completed);
    store.add_response(one.clone()).await.unwrap();
    assert_same(stored(&*database.open().await, &one).await.as_ref(), &one);
    store.put_approval(approval("mcpr_1")).await.unwrap();
    assert!(store.take_approval("mcpr_1", "key:ann").await.unwrap().is_some());
    for record in ["r1", "r2"] {
        assert!(find(&*store, &RecordId::new(record)).await.is_some(), "{record}");
    }
    assert_eq!(store.calls(CallQuery::default()).await.unwrap().len(), 2);
}
