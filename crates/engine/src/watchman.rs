//! One timer for all that wait: whoever does is woken when its time may be up. How much time it has is its own to say,
//! and nearly everybody is gone long before.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use tokio::runtime::{Handle, Id};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use toolhub_core::lane::{self, PerLane};

/// The watchmen of an engine: one for each runtime that somebody waits in, and only while somebody does. They go when
/// this goes.
#[derive(Default)]
pub(crate) struct Watchmen {
    rounds: Arc<Rounds>,
    tasks: Mutex<JoinSet<()>>,
}

/// Where somebody waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Post {
    lane: usize,
    round: u64,
    place: usize,
}

/// The round of each watchman, where it began. Held for well under a microsecond, and never while anybody is woken.
#[derive(Default)]
struct Rounds(PerLane<Mutex<Vec<Round>>>);

struct Round {
    /// No two have the same: who waited in one that is over has no place in the next.
    number: u64,
    runtime: Id,
    posts: Vec<Waiting>,
    free: Vec<usize>,
    /// When the watchman looks again.
    next: Instant,
    /// Tells him that he has to look sooner than that.
    sooner: Arc<Notify>,
}

enum Waiting {
    Nobody,
    Until(Instant, Waker),
    /// Was woken.
    Called,
}

impl Watchmen {
    /// Lets `waker` be woken at that moment, or a little later.
    pub(crate) fn wait(&self, due: Instant, waker: &Waker) -> Post {
        let runtime = Handle::current().id();
        let waiting = Waiting::Until(due, waker.clone());
        let lane = lane::number();
        let mut rounds = self.rounds.of(lane);
        if let Some(round) = rounds.iter_mut().find(|round| round.runtime == runtime) {
            let (round, place) = round.add(due, waiting);
            return Post { lane, round, place };
        }
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let (posts, free, sooner) = (vec![waiting], Vec::new(), Arc::new(Notify::new()));
        rounds.push(Round { number, runtime, posts, free, next: due, sooner: Arc::clone(&sooner) });
        drop(rounds);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        let walk = Walk { rounds: Arc::clone(&self.rounds), lane, number };
        tasks.spawn(async move { walk.on(&sooner).await });
        Post { lane, round: number, place: 0 }
    }

    /// Whether who waits there was woken; where not, `waker` is the one to wake.
    pub(crate) fn called(&self, post: Post, waker: &Waker) -> bool {
        let mut rounds = self.rounds.of(post.lane);
        // Where the watchman is gone, nobody else would call.
        let round = numbered(&mut rounds, post.round);
        let Some(waiting) = round.and_then(|round| round.posts.get_mut(post.place)) else { return true };
        let Waiting::Until(_, known) = waiting else { return true };
        // What is let go may end in anything, this lock included.
        let before = (!known.will_wake(waker)).then(|| std::mem::replace(known, waker.clone()));
        drop(rounds);
        drop(before);
        false
    }

    /// Who waits there does no longer.
    pub(crate) fn leave(&self, post: Post) {
        let mut rounds = self.rounds.of(post.lane);
        let left = numbered(&mut rounds, post.round).and_then(|round| {
            let left = round.posts.get_mut(post.place)?;
            round.free.push(post.place);
            Some(std::mem::replace(left, Waiting::Nobody))
        });
        drop(rounds);
        drop(left);
    }
}

impl Rounds {
    fn of(&self, lane: usize) -> MutexGuard<'_, Vec<Round>> {
        self.0.at(lane).lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn numbered(rounds: &mut [Round], number: u64) -> Option<&mut Round> {
    rounds.iter_mut().find(|round| round.number == number)
}

impl Round {
    fn add(&mut self, due: Instant, waiting: Waiting) -> (u64, usize) {
        if due < self.next {
            self.next = due;
            self.sooner.notify_one();
        }
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                self.posts.push(Waiting::Nobody);
                self.posts.len() - 1
            }
        };
        if let Some(post) = self.posts.get_mut(place) {
            *post = waiting;
        }
        (self.number, place)
    }

    /// Those whose time has come; and when the next one's will, if anybody is left.
    fn look(&mut self, now: Instant) -> (Vec<Waiting>, Option<Instant>) {
        let (mut called, mut next) = (Vec::new(), None::<Instant>);
        for post in &mut self.posts {
            match post {
                Waiting::Until(due, _) if *due <= now => {
                    called.push(std::mem::replace(post, Waiting::Called));
                }
                Waiting::Until(due, _) => next = Some(next.map_or(*due, |next| next.min(*due))),
                Waiting::Nobody | Waiting::Called => {}
            }
        }
        (called, next)
    }
}

/// A watchman on his round. However he ends, the round ends with him, and who comes after begins another.
struct Walk {
    rounds: Arc<Rounds>,
    lane: usize,
    number: u64,
}

impl Walk {
    async fn on(self, sooner: &Notify) {
        while let Some(next) = self.look() {
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                () = sooner.notified() => {}
            }
        }
    }

    /// Wakes those whose time has come, and tells when to look again. Where nobody waits, the round is over.
    fn look(&self) -> Option<Instant> {
        let mut rounds = self.rounds.of(self.lane);
        let place = rounds.iter().position(|round| round.number == self.number)?;
        let (called, next) = rounds[place].look(Instant::now());
        match next {
            Some(next) => rounds[place].next = next,
            // Who was just called finds nobody any more, and asks again.
            None => drop(rounds.swap_remove(place)),
        }
        drop(rounds);
        for waiting in called {
            if let Waiting::Until(_, waker) = waiting {
                waker.wake();
            }
        }
        next
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        let mut rounds = self.rounds.of(self.lane);
        let round = rounds.iter().position(|round| round.number == self.number);
        let round = round.map(|place| rounds.swap_remove(place));
        drop(rounds);
        drop(round);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;
    use std::time::Duration;

    use super::*;

    /// Waits until it is called, as an attempt does.
    async fn wait_for(watchmen: &Watchmen, span: Duration) -> Duration {
        let (started, mut post) = (Instant::now(), None);
        poll_fn(|context| match post {
            None => {
                post = Some(watchmen.wait(started + span, context.waker()));
                Poll::Pending
            }
            Some(post) if watchmen.called(post, context.waker()) => {
                watchmen.leave(post);
                Poll::Ready(())
            }
            Some(_) => Poll::Pending,
        })
        .await;
        started.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn each_is_woken_in_its_time() {
        let watchmen = Watchmen::default();
        let spans = [30, 2, 5, 300, 1, 30].map(Duration::from_secs);
        let woken = futures_util::future::join_all(spans.map(|span| wait_for(&watchmen, span))).await;
        for (span, woken) in spans.into_iter().zip(woken) {
            assert!((span..span + Duration::from_millis(5)).contains(&woken), "{span:?} {woken:?}");
        }
        // Nobody waits any more, so nobody watches; and the next one finds a watchman again.
        tokio::task::yield_now().await;
        assert!(watchmen.rounds.of(0).is_empty());
        assert_eq!(wait_for(&watchmen, Duration::from_secs(7)).await.as_secs(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn who_leaves_makes_room_and_is_not_woken() {
        let watchmen = Watchmen::default();
        for _ in 0..1_000 {
            let post = watchmen.wait(Instant::now() + Duration::from_secs(30), Waker::noop());
            watchmen.leave(post);
        }
        assert_eq!(watchmen.rounds.of(0)[0].posts.len(), 1);
        assert_eq!(watchmen.tasks.lock().unwrap().len(), 1);
        tokio::time::sleep(Duration::from_secs(31)).await;
        assert!(watchmen.rounds.of(0).is_empty());
    }

    /// Who comes from a round that is over takes nobody's place in the next one.
    #[tokio::test(start_paused = true)]
    async fn an_old_post_means_nothing_in_a_new_round() {
        let watchmen = Watchmen::default();
        let old = watchmen.wait(Instant::now() + Duration::from_secs(1), Waker::noop());
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(watchmen.called(old, Waker::noop()));
        let new = watchmen.wait(Instant::now() + Duration::from_secs(1), Waker::noop());
        watchmen.leave(old);
        assert!(!watchmen.called(new, Waker::noop()));
    }

    #[test]
    fn runtimes_come_and_go() {
        let watchmen = Watchmen::default();
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let still = runtime();
        let short = Duration::from_millis(20);
        // One that waits in a runtime which nobody drives keeps nobody else from being woken.
        let post = still.block_on(async { watchmen.wait(Instant::now() + short, Waker::noop()) });
        for _ in 0..3 {
            let woken = runtime().block_on(wait_for(&watchmen, short));
            assert!((short..Duration::from_secs(5)).contains(&woken), "{woken:?}");
            // One that goes with its watchman still walking.
            let left = runtime().block_on(async { watchmen.wait(Instant::now() + short, Waker::noop()) });
            assert!(watchmen.called(left, Waker::noop()));
        }
        assert!(!watchmen.called(post, Waker::noop()));
        drop(still);
        assert!(watchmen.rounds.of(0).is_empty());
    }
}
