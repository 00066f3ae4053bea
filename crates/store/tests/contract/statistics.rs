//! Tool statistics do not depend on how a call was recorded (`note`, or `begin` and `finish`) or on the store that recorded it.

use std::time::Duration;

use toolhub_core::call_log::{AttemptStatus, StoredAttempt};
use toolhub_core::statistics::{CallTally, Day, StatisticsSummary, SummaryQuery, ToolStatistics};
use toolhub_core::{Source, ToolName};

use crate::database::{Database, attempt, hour, start, success};

pub(crate) async fn counts_calls_by_day(database: Database) {
    let store = database.open().await;
    let mut expect = ToolStatistics::new(Source::from_name("excel"), ToolName::new("read_sheet"));
    for (index, hours) in [0_u64, 1, 30, 31, 200].into_iter().enumerate() {
        let success_here = index % 3 != 2;
        let took = Duration::from_millis(1 << index);
        let status = if success_here { AttemptStatus::Succeeded } else { AttemptStatus::Failed };
        let mut call = start("any", "{}");
        call.at = hour(hours);
        let mut end = success(&call, "excel", "1");
        end.attempts = vec![StoredAttempt { took, ..attempt("excel", "read_sheet", status) }];
        if index % 2 == 0 {
            store.record_finished(call, end);
        } else {
            store.begin(call).await.unwrap();
            store.finish(end).await.unwrap();
        }
        expect.count(success_here, took, hour(hours));
    }
    let found = store.statistics().await.unwrap();
    assert_eq!(format!("{found:?}"), format!("{:?}", [&expect]));
    assert_eq!(found[0].days[&Day::of(hour(0))], CallTally { successes: 2, failures: 0 });
    assert_eq!(found[0].last_failure, Some(hour(30)));
}

pub(crate) async fn cancelled_attempts_are_not_counted(database: Database) {
    let store = database.open().await;
    let call = start("t", "{}");
    let mut end = success(&call, "native", "1");
    end.attempts.push(attempt("excel", "t", AttemptStatus::Cancelled));
    store.record_finished(call, end);
    let found = store.statistics().await.unwrap();
    assert_eq!(found.iter().map(|one| one.source.to_string()).collect::<Vec<_>>(), ["native"]);
}

pub(crate) async fn statistics_are_summed_over_stores(database: Database) {
    let mut expect = ToolStatistics::new(Source::Native, ToolName::new("t"));
    for round in 0..3_u64 {
        let (one, two) = (database.open().await, database.open().await);
        for store in [&one, &two] {
            for step in 0..20_u64 {
                let mut call = start("t", "{}");
                call.at = hour(round * 24 + step);
                let mut end = success(&call, "native", "1");
                end.attempts[0].took = Duration::from_micros(1 << (step % 13));
                expect.count(true, end.attempts[0].took, call.at);
                store.record_finished(call, end);
            }
        }
        tokio::try_join!(one.flush(), two.flush()).unwrap();
    }
    let found = database.open().await.statistics().await.unwrap();
    assert_eq!(format!("{found:?}"), format!("{:?}", [&expect]));
}

/// Sums made by the database equal those over the statistics of all tools.
pub(crate) async fn summaries_equal_sums_over_all_tools(database: Database) {
    let store = database.open().await;
    for _ in 0..300 {
        let mut call = start("any", "{}");
        call.at = hour(24 * fastrand::u64(..9));
        let source = ["excel", "native", "a.b"][fastrand::usize(..3)];
        let status = [AttemptStatus::Succeeded, AttemptStatus::Failed][fastrand::usize(..2)];
        let took = Duration::from_micros(1 << fastrand::u64(..20));
        let tool = format!("tool_{}", fastrand::u8(..12));
        let mut end = success(&call, source, "1");
        end.attempts = vec![StoredAttempt { took, ..attempt(source, &tool, status) }];
        store.record_finished(call, end);
    }
    let all = store.statistics().await.unwrap();
    assert!(all.len() > 20, "{}", all.len());
    for (days, tools) in [(0, 100), (4, 5), (8, 1), (30, 0)] {
        let query = SummaryQuery { since: Day::of(hour(24 * days)), tools };
        let found = store.statistics_summary(query).await.unwrap();
        assert_eq!(format!("{found:#?}"), format!("{:#?}", StatisticsSummary::of(all.clone(), query)));
    }
    for one in &all {
        let found = store.tool_statistics(&one.source, &one.tool).await.unwrap();
        assert_eq!(format!("{found:?}"), format!("{:?}", Some(one)));
    }
    let unused = store.tool_statistics(&Source::Native, &ToolName::new("unused")).await.unwrap();
    assert!(unused.is_none(), "{unused:?}");
}
