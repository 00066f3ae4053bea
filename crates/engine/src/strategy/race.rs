//! Concurrent strategy: the first success wins, and the others are cancelled at once.

use super::batch::Batch;
use super::{CallResult, RunningCall};
use crate::router::Route;

/// Races the first batch. If all fail, the remaining candidates are tried sequentially.
pub(crate) async fn run(run: RunningCall<'_>, route: &Route) -> CallResult {
    let mut batch = Batch::start(run, route);
    // A failure is not final while another candidate may still succeed.
    while !batch.any_success() && batch.next().await {}
    let mut ended = batch.end();
    if ended.successes.is_empty() {
        return ended.rest().await;
    }
    // If several finished at the same moment, the first in route order wins.
    let (winner, output) = ended.successes.swap_remove(0);
    CallResult::from(winner, output, ended.attempts)
}
