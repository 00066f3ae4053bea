//! The `on` table of a script: selects the action list of a request.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde::{Deserialize, Deserializer, de::Error};
use serde_json::value::RawValue;

use super::action::Action;

/// An action list, shared by the requests that take it.
pub(super) type Actions = Arc<[Action]>;

/// The plans of a script by key.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Plans(HashMap<String, Plan>);

impl Plans {
    /// The most specific key that matches a request.
    pub(super) fn key<'a>(&'a self, method: &str, tool: Option<&str>) -> Option<&'a str> {
        let exact = tool.filter(|_| method == "tools/call").map(|tool| format!("tools/call:{tool}"));
        let keys = exact.iter().map(String::as_str).chain([method, "*"]);
        keys.filter_map(|key| self.0.get_key_value(key)).map(|(key, _)| key.as_str()).next()
    }

    /// The next list of this key.
    pub(super) fn take(&self, key: &str) -> Option<Actions> {
        self.0.get(key).map(Plan::take)
    }
}

/// The lists of a key: the first request takes the first, the last repeats.
#[derive(Debug)]
struct Plan {
    lists: Vec<Actions>,
    taken: AtomicUsize,
}

impl Plan {
    fn take(&self) -> Actions {
        let turn = self.taken.fetch_add(1, Ordering::Relaxed);
        self.lists.get(turn).or(self.lists.last()).cloned().unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Plan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // An untagged enum would buffer the input, which raw values do not support.
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let elements: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        let nested = elements.first().is_some_and(|first| first.get().starts_with('['));
        let parse = |list: &RawValue| serde_json::from_str::<Vec<Action>>(list.get()).map(Actions::from);
        let lists: Result<Vec<Actions>, _> = if nested {
            elements.into_iter().map(parse).collect()
        } else {
            parse(&raw).map(|list| vec![list])
        };
        Ok(Self { lists: lists.map_err(D::Error::custom)?, taken: AtomicUsize::new(0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(plans: &Plans, key: &str, times: usize) -> Vec<usize> {
        (0..times).map(|_| plans.take(key).unwrap().len()).collect()
    }

    #[test]
    fn returns_lists_in_order_and_repeats_the_last() {
        let plans: Plans = serde_json::from_str(
            r#"{"a": [[{"exit":1}], [], [{"text":"x"},{"exit":2}]], "b": [{"exit":1}], "c": []}"#,
        )
        .unwrap();
        assert_eq!(lengths(&plans, "a", 4), [1, 0, 2, 2]);
        assert_eq!(lengths(&plans, "b", 2), [1, 1]);
        assert_eq!(lengths(&plans, "c", 1), [0]);
    }

    #[test]
    fn prefers_most_specific_key() {
        let plans: Plans =
            serde_json::from_str(r#"{"tools/call:a": [], "tools/call": [], "*": []}"#).unwrap();
        assert_eq!(plans.key("tools/call", Some("a")), Some("tools/call:a"));
        assert_eq!(plans.key("tools/call", Some("b")), Some("tools/call"));
        assert_eq!(plans.key("prompts/get", Some("a")), Some("*"));
        assert_eq!(Plans::default().key("ping", None), None);
    }
}
