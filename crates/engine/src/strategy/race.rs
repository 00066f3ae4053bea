//! Side by side: the first success wins and the others are cancelled at once.

use super::batch::Batch;
use super::{Ran, Run};
use crate::router::Route;

/// Races the first batch; where all of it fails, the rest are tried one by one.
pub(crate) async fn run(run: Run<'_>, route: &Route) -> Ran {
    let mut batch = Batch::start(run, route);
    // A failure says nothing while somebody else may still succeed.
    while !batch.any_success() && batch.next().await {}
    let mut ended = batch.end();
    if ended.successes.is_empty() {
        return ended.rest().await;
    }
    // Two that were done at the same moment: the one that stands first counts.
    let (winner, output) = ended.successes.swap_remove(0);
    Ran::from(winner, output, ended.attempts)
}
