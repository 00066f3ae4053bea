//! Removes what only the hub may state from results of servers.

use toolhub_core::{RawJson, RawObject, meta_keys};

/// A result of a server without the members `toolhub/*` of its `_meta`. Other results are unchanged.
pub(crate) fn without_hub_members(result: RawJson) -> RawJson {
    // Most results have no such member. A name can also be written with escapes.
    let text = result.get();
    let may_name_one =
        text.contains("toolhub") || text.contains("\\u") || (text.contains("_meta") && text.contains('\\'));
    if !may_name_one {
        return result;
    }
    let Some(mut members) = result.object() else { return result };
    let Some(mut meta) = members.get("_meta").and_then(RawJson::object) else { return result };
    let is_of_hub = |name: &str| name.starts_with(meta_keys::PREFIX);
    if !meta.iter().any(|(name, _): (&str, _)| is_of_hub(name)) {
        return result;
    }
    meta.retain(|name| !is_of_hub(name));
    let meta: RawObject = meta;
    members.set("_meta", meta);
    members.into_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_members_of_the_hub_only() {
        for (result, expected) in [
            (
                r#"{"content":[],"_meta":{"toolhub/state":"waiting","own/state":1}}"#,
                r#"{"content":[],"_meta":{"own/state":1}}"#,
            ),
            (
                r#"{"content":[],"_meta":{"\u0074oolhub\/state":"waiting","a":1}}"#,
                r#"{"content":[],"_meta":{"a":1}}"#,
            ),
            (r#"{"content":[],"\u005fmeta":{"toolhub/state":"waiting"}}"#, r#"{"content":[],"_meta":{}}"#),
            (r#"{ "content": [{"text":"toolhub/state \u0041"}], "_meta": {"a": 1} }"#, ""),
            (r#"{"content":[],"_meta":"toolhub/state"}"#, ""),
            (r#"["toolhub/state"]"#, ""),
        ] {
            let stripped = without_hub_members(RawJson::parse(result).unwrap());
            let expected = if expected.is_empty() { result } else { expected };
            assert_eq!(stripped.value(), RawJson::parse(expected).unwrap().value(), "{result}");
            assert!(expected != result || stripped.get() == result, "an unchanged result keeps its spelling");
        }
    }
}
