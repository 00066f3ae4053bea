//! `Idempotency-Key`: a request that is repeated with the same key runs once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::StatusCode;
use toolhub_core::lang::LocalizedText;
use toolhub_server::hash_of;

use crate::problem::Problem;

/// How long results are kept.
pub(crate) const RETENTION: Duration = Duration::from_secs(24 * 3_600);
/// Maximum number of keys of one principal. The oldest one that is done makes room.
const MAX_IDEMPOTENCY_KEYS: usize = 1_024;
pub(crate) const MAX_KEY_BYTES: usize = 256;
/// Larger results are not kept: a repetition gets an error that names the list of calls.
pub(crate) const MAX_KEPT_BYTES: usize = 64 << 10;

/// The state of the first request with a key.
#[derive(Debug, Clone)]
enum RequestProgress {
    Running,
    /// The client disconnected before the response.
    Interrupted,
    Done(Option<Arc<str>>),
}

#[derive(Debug)]
struct KeyState {
    /// The SHA-256 of the request.
    request: String,
    began: Instant,
    progress: RequestProgress,
}

/// A key of a principal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct OwnedKey {
    principal: Arc<str>,
    key: String,
}

/// The keys that were used.
#[derive(Debug, Default)]
pub(crate) struct IdempotencyKeys(Mutex<HashMap<OwnedKey, KeyState>>);

/// What to do with a request.
pub(crate) enum KeyLookup<'a> {
    /// It is the first one: run it.
    First(FirstRequest<'a>),
    /// It was run before, with this result.
    Repeated(Arc<str>),
}

/// The first request with a key. If it is dropped before its result is known, repetitions are refused.
pub(crate) struct FirstRequest<'a> {
    keys: &'a IdempotencyKeys,
    id: Option<OwnedKey>,
}

impl FirstRequest<'_> {
    /// Keeps the result for repetitions.
    pub(crate) fn finish(mut self, result: &str) {
        if let Some(id) = self.id.take() {
            let kept = (result.len() <= MAX_KEPT_BYTES).then(|| Arc::from(result));
            self.keys.set(&id, RequestProgress::Done(kept));
        }
    }

    /// Forgets the key: nothing was run.
    pub(crate) fn abandon(mut self) {
        if let Some(id) = self.id.take() {
            self.keys.lock().remove(&id);
        }
    }
}

impl Drop for FirstRequest<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.keys.set(&id, RequestProgress::Interrupted);
        }
    }
}

impl IdempotencyKeys {
    /// Starts a request. Without a key every request is the first one.
    pub(crate) fn begin(
        &self,
        principal: &Arc<str>,
        key: Option<&str>,
        request: &str,
    ) -> Result<KeyLookup<'_>, Problem> {
        let Some(key) = key else { return Ok(KeyLookup::First(FirstRequest { keys: self, id: None })) };
        if key.is_empty() || key.len() > MAX_KEY_BYTES {
            return Err(Problem::bad_request(
                format!("`Idempotency-Key` has 1 to {MAX_KEY_BYTES} characters"),
                format!("`Idempotency-Key` 的长度应为 1 到 {MAX_KEY_BYTES} 个字符"),
            ));
        }
        let id = OwnedKey { principal: Arc::clone(principal), key: key.to_owned() };
        let request = hash_of(request);
        let mut keys = self.lock();
        keys.retain(|_, entry| entry.began.elapsed() < RETENTION);
        if let Some(entry) = keys.get(&id) {
            if entry.request != request {
                return Err(conflict(
                    "key-reused",
                    "this `Idempotency-Key` was used for another request: use a new one",
                    "此 `Idempotency-Key` 已用于另一请求：请换一个",
                ));
            }
            return match &entry.progress {
                RequestProgress::Running => Err(conflict(
                    "in-progress",
                    "the first request with this `Idempotency-Key` is still running",
                    "使用此 `Idempotency-Key` 的首个请求仍在执行",
                )),
                RequestProgress::Interrupted => Err(conflict(
                    "interrupted",
                    "the first request with this `Idempotency-Key` was cut off, and may have taken effect: look at its call",
                    "使用此 `Idempotency-Key` 的首个请求被中断，可能已生效：请查看其调用记录",
                )),
                RequestProgress::Done(Some(result)) => Ok(KeyLookup::Repeated(Arc::clone(result))),
                RequestProgress::Done(None) => Err(conflict(
                    "done",
                    "the first request with this `Idempotency-Key` is done; its result is in the list of calls",
                    "使用此 `Idempotency-Key` 的首个请求已完成；结果见调用列表",
                )),
            };
        }
        let own = || keys.iter().filter(|(id, _)| id.principal == *principal);
        if own().count() >= MAX_IDEMPOTENCY_KEYS {
            let done = own().filter(|(_, entry)| !matches!(entry.progress, RequestProgress::Running));
            let oldest = done.min_by_key(|(_, entry)| entry.began).map(|(id, _)| id.clone());
            let Some(oldest) = oldest else {
                let detail = LocalizedText::new(
                    "too many requests with idempotency keys are running: try again later",
                    "正在执行的带幂等键的请求过多：请稍后重试",
                );
                return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-keys", detail));
            };
            keys.remove(&oldest);
        }
        keys.insert(
            id.clone(),
            KeyState { request, began: Instant::now(), progress: RequestProgress::Running },
        );
        Ok(KeyLookup::First(FirstRequest { keys: self, id: Some(id) }))
    }

    fn set(&self, id: &OwnedKey, progress: RequestProgress) {
        if let Some(entry) = self.lock().get_mut(id) {
            entry.progress = progress;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<OwnedKey, KeyState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn conflict(kind: &'static str, en: &str, zh: &str) -> Problem {
    Problem::new(StatusCode::CONFLICT, kind, LocalizedText::new(en, zh))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_request_returns_the_first_result() {
        let (keys, ann) = (IdempotencyKeys::default(), Arc::from("ann"));
        let begin = |principal: &Arc<str>, request: &str| keys.begin(principal, Some("k"), request);
        let Ok(KeyLookup::First(first)) = begin(&ann, "a") else { panic!("not the first") };
        assert_eq!(begin(&ann, "a").err().unwrap().kind, "in-progress");
        first.finish("result");
        let Ok(KeyLookup::Repeated(result)) = begin(&ann, "a") else { panic!("not repeated") };
        assert_eq!(&*result, "result");
        assert_eq!(begin(&ann, "b").err().unwrap().kind, "key-reused");
        // The key of another principal is another key.
        let Ok(KeyLookup::First(first)) = begin(&Arc::from("bob"), "a") else { panic!("not the first") };
        drop(first);
        assert_eq!(begin(&Arc::from("bob"), "a").err().unwrap().kind, "interrupted");
        for _ in 0..2 {
            let Ok(KeyLookup::First(first)) = keys.begin(&ann, Some("n"), "a") else {
                panic!("not the first")
            };
            first.abandon();
        }
        // Many keys of one principal do not keep another one out.
        for number in 0..2 * MAX_IDEMPOTENCY_KEYS {
            let Ok(KeyLookup::First(first)) = keys.begin(&ann, Some(&format!("{number}")), "a") else {
                panic!("{number}")
            };
            first.finish("");
        }
        assert!(keys.lock().len() <= MAX_IDEMPOTENCY_KEYS + 1);
        for _ in 0..2 {
            assert!(matches!(keys.begin(&ann, None, "a"), Ok(KeyLookup::First(_))));
        }
    }
}
