//! The contract of the store ports of toolhub-core: each test runs on SQLite and on PostgreSQL.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

mod approvals;
mod calls;
mod concurrency;
mod conversations;
mod database;
mod filters;
mod odd_texts;
mod owners;
mod retention;
mod sqlite_file;
mod statistics;
mod tool_lists;

use database::Database;

/// Generates one test per database for each function `module::check`.
macro_rules! contract {
    ($($module:ident: $($check:ident)*;)*) => {
        mod sqlite {
            $(mod $module {
                $(#[tokio::test(flavor = "multi_thread")]
                async fn $check() {
                    crate::$module::$check(crate::Database::sqlite()).await;
                })*
            })*
        }
        mod postgres {
            $(mod $module {
                $(#[tokio::test(flavor = "multi_thread")]
                async fn $check() {
                    crate::$module::$check(crate::Database::postgres()).await;
                })*
            })*
        }
    };
}

contract! {
    approvals: one_for_each_tool;
    calls: begun_then_finished noted begun_then_noted finished_twice_counts_once never_begun begun_twice outputs_by_handle;
    conversations: in_order filtered listed;
    filters: rows_and_blocks_answer_alike single_filters combined_filters newest_first follow long_arguments_by_their_whole_text;
    odd_texts: kept_as_given searched_whatever_their_case nul long_numbers large;
    owners: running_while_the_owner_lives finished_after_all;
    retention: old_calls_go old_results_go_before_their_calls results_are_kept_no_longer_than_their_calls too_many_results_go
        too_many_results_in_blocks_go old_blocks_go;
    statistics: counted_by_day cancelled_attempts_are_not_counted the_same_over_many_stores;
    concurrency: a_hundred_tasks a_flood two_stores closed_store_keeps_all;
    tool_lists: survive_a_restart offers_survive_a_restart a_changed_definition_is_a_new_version;
}
