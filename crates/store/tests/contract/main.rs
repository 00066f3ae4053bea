//! The contract of the store ports of toolhub-core: each test runs on SQLite and on PostgreSQL.

#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod approvals;
mod audit;
mod calls;
mod concurrency;
mod conversations;
mod database;
mod filters;
mod odd_texts;
mod older_database;
mod owners;
mod parents;
mod principals;
mod responses;
mod retention;
mod shared_state;
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
    approvals: keeps_one_approval_per_tool;
    audit: every_call_enters_the_log_once events_of_every_kind_can_be_queried stores_share_one_log changed_tables_are_found
        records_without_a_log_are_found requested_checkpoint_confirms_all_records
        export_reads_back retention_keeps_the_log_verifiable flood_is_recorded_completely
        call_of_a_dead_store_is_recorded_as_unknown store_without_audit_log_records_nothing;
    calls: stores_begun_and_finished_call stores_finished_call record_finished_completes_begun_call finished_twice_counts_once rejects_end_of_unknown_call stores_call_begun_twice_once returns_output_by_handle;
    conversations: returns_turns_in_order filters_turns lists_conversations;
    filters: rows_and_blocks_return_the_same_calls single_filters combined_filters returns_newest_first follows_new_calls parts_have_each_call_once filters_long_arguments_by_their_full_text;
    odd_texts: stores_unusual_texts_verbatim searches_case_insensitively stores_nul_characters stores_long_numbers_verbatim stores_large_texts;
    owners: call_is_running_while_its_owner_is_alive orphaned_call_can_still_be_finished;
    parents: filter_finds_all_and_only_calls_of_a_parent filter_finds_one_of_very_many_parents filter_finds_call_by_its_id
        calls_of_an_older_database_have_no_parent;
    principals: filter_finds_all_and_only_calls_of_a_principal filter_finds_one_of_very_many_principals
        reads_calls_of_an_older_database_as_local;
    responses: returns_what_was_stored_last ended_responses_stay_as_they_are a_response_ends_once
        cancellations_reach_the_working_process responses_of_other_processes_are_not_replaced
        purge_takes_from_those_who_hold_most other_principals_have_no_access new_rows_replace_nothing
        names_with_nul_are_rejected deleted_responses_stay_deleted one_of_many_callers_takes_an_approval
        unfinished_responses_are_those_of_ended_processes expired_rows_do_not_exist purge_deletes_expired_rows
        purge_deletes_the_oldest_final_responses_beyond_the_limit concurrent_purges_delete_no_more_than_one
        older_database_stores_responses all_responses_of_a_principal_are_deleted;
    retention: deletes_old_calls deletes_old_results_before_their_calls deletes_results_with_their_calls deletes_excess_results
        deletes_excess_results_in_blocks deletes_old_blocks;
    shared_state: entries_are_stored_verbatim_and_change_by_revision
        one_of_many_callers_creates_changes_and_takes_an_entry slots_have_one_entry_until_they_are_freed
        entries_of_a_principal_are_listed_and_trimmed expired_entries_do_not_exist counters_never_exceed_their_limit
        every_store_notices_changes stores_are_alive_while_they_are_open entries_survive_a_restart;
    statistics: counts_calls_by_day cancelled_attempts_are_not_counted statistics_are_summed_over_stores summaries_equal_sums_over_all_tools;
    concurrency: records_calls_of_a_hundred_tasks records_flood_of_calls two_stores_share_a_database closed_store_keeps_all;
    tool_lists: tool_lists_survive_a_restart offers_survive_a_restart changed_definition_creates_a_new_version;
}
