//! Prompts, resources and resource templates that every client accepts: as with tools, one invalid item would empty the
//! list.

use toolhub_core::{RawJson, RawObject};
use toolhub_mcp_wire::Offer;
use url::Url;

use super::{are_icons, remove_unless, text};

/// The values of `audience` (2025-11-25, schema: Role).
const ROLES: [&str; 2] = ["user", "assistant"];

/// Returns the item in a form that every client accepts, or `None` if a required member is missing or has the wrong type.
/// Optional members of the wrong type are removed.
pub fn portable_offer(offer: Offer, item: &RawJson) -> Option<RawJson> {
    let sanitized = text::sanitized(item).ok()?;
    let item = sanitized.as_ref().unwrap_or(item);
    let mut members = item.object()?;
    let required: &[&str] = match offer {
        Offer::Prompts => &["name"],
        Offer::Resources => &["name", "uri"],
        Offer::ResourceTemplates => &["name", "uriTemplate"],
    };
    if !required.iter().all(|key| members.get(key).is_some_and(is_text)) {
        return None;
    }
    let mut changed = false;
    for key in ["title", "description", "mimeType"] {
        changed |= remove_unless(&mut members, key, is_text);
    }
    match offer {
        Offer::Prompts => changed |= repair_arguments(&mut members)?,
        Offer::Resources if !members.get("uri").is_some_and(is_url) => return None,
        Offer::Resources => {
            changed |= remove_unless(&mut members, "size", |size| size.decode::<u64>().is_ok());
        }
        Offer::ResourceTemplates => {}
    }
    changed |= remove_unless(&mut members, "annotations", are_annotations);
    changed |= remove_unless(&mut members, "icons", are_icons);
    changed |= remove_unless(&mut members, "_meta", RawJson::is_object);
    Some(if changed { members.into_raw() } else { item.clone() })
}

fn is_text(value: &RawJson) -> bool {
    value.text().is_some()
}

fn is_url(value: &RawJson) -> bool {
    value.text().is_some_and(|text| Url::parse(&text).is_ok())
}

fn are_annotations(annotations: &RawJson) -> bool {
    annotations.object().is_some_and(|notes| {
        let is_role = |role: &String| ROLES.contains(&role.as_str());
        let audience = notes.get("audience").map(RawJson::decode::<Vec<String>>);
        let priority = notes.get("priority").map(RawJson::decode::<f64>);
        audience.is_none_or(|roles| roles.is_ok_and(|roles| roles.iter().all(is_role)))
            && priority.is_none_or(|priority| priority.is_ok_and(|priority| (0.0..=1.0).contains(&priority)))
            && notes.get("lastModified").is_none_or(is_text)
    })
}

/// Repairs the arguments of a prompt. Returns `None` if they are invalid, since a client could not fill them in.
fn repair_arguments(members: &mut RawObject) -> Option<bool> {
    let Some(listed) = members.get("arguments") else { return Some(false) };
    if listed.get() == "null" {
        members.remove("arguments");
        return Some(true);
    }
    let mut changed = false;
    let mut arguments = Vec::new();
    for argument in listed.decode::<Vec<RawJson>>().ok()? {
        let mut argument = argument.object().filter(|one| one.get("name").is_some_and(is_text))?;
        for key in ["title", "description"] {
            changed |= remove_unless(&mut argument, key, is_text);
        }
        changed |= remove_unless(&mut argument, "required", |value| value.decode::<bool>().is_ok());
        arguments.push(argument);
    }
    if changed {
        members.set("arguments", RawJson::of(&arguments));
    }
    Some(changed)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn offered(offer: Offer, item: &Value) -> Option<Value> {
        portable_offer(offer, &RawJson::from(item.clone())).map(|item| item.value())
    }

    #[test]
    fn removes_optional_members_of_wrong_type() {
        let prompt = json!({"name": "p", "description": 5, "title": null, "icons": "x", "_meta": 1,
            "arguments": [{"name": "a", "required": "yes", "description": []}]});
        assert_eq!(
            offered(Offer::Prompts, &prompt),
            Some(json!({"name": "p", "arguments": [{"name": "a"}]}))
        );
        let resource = json!({"name": "r", "uri": "memo://r", "size": "big", "mimeType": 1,
            "annotations": {"priority": "high"}});
        let plain = json!({"name": "r", "uri": "memo://r"});
        assert_eq!(offered(Offer::Resources, &resource), Some(plain));
        let good = json!({"name": "r", "uri": "memo://r", "size": 3, "annotations": {"audience": ["user"], "priority": 0.5}});
        assert_eq!(offered(Offer::Resources, &good), Some(good.clone()));
        let template = json!({"name": "t", "uriTemplate": "memo://{x}", "description": {}});
        assert_eq!(
            offered(Offer::ResourceTemplates, &template),
            Some(json!({"name": "t", "uriTemplate": "memo://{x}"}))
        );
    }

    #[test]
    fn drops_items_without_required_members() {
        for (offer, item) in [
            (Offer::Prompts, json!({"name": 1})),
            (Offer::Prompts, json!({"name": "p", "arguments": "no"})),
            (Offer::Prompts, json!({"name": "p", "arguments": [{"description": "no name"}]})),
            (Offer::Resources, json!({"uri": "memo://r"})),
            (Offer::Resources, json!({"uri": "not a url", "name": "r"})),
            (Offer::ResourceTemplates, json!({"uriTemplate": "memo://{x}"})),
            (Offer::ResourceTemplates, json!("memo://{x}")),
        ] {
            assert_eq!(offered(offer, &item), None, "{item}");
        }
    }
}
