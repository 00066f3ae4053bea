//! Export as events of the Open Cybersecurity Schema Framework (OCSF) 1.3: logins as Authentication (3002), all other
//! records as API Activity (6003).
//!
//! | attribute | content |
//! |---|---|
//! | `class_uid`, `category_uid`, `activity_id`, `type_uid` | the class; Authentication: 1 (Logon); API Activity: 1 Create, 2 Read, 3 Update, 4 Delete, 99 Other |
//! | `time` | milliseconds since 1970 |
//! | `severity_id` | 1 (informational); 3 (medium) for refusals and rejected logins |
//! | `status_id` | 1 success, 2 failure, 0 unknown |
//! | `status_detail` | why a login was rejected; which decision was made about a held call |
//! | `metadata.sequence`, `metadata.uid`, `metadata.log_name` | the number and the hash of the record; the id of the log |
//! | `metadata.event_code` | the kind of the record |
//! | `actor.user.uid`, `user.uid` | the principal |
//! | `api.operation` | the tool, the refused operation, or the change, such as `key.created` |
//! | `api.service.name` | the sources of a call, or `toolhub` |
//! | `api.request.uid` | the record id of a call, or the reference of a refusal or of a held call |
//! | `src_endpoint` | the address of a login, or the name `unknown` |
//! | `resources` | the name of what was refused or changed |
//! | `unmapped` | `arguments_sha256`, `may_change`, `rule`, `approver`, `caller`, `sha256`, `detail` |

use serde_json::{Value, json};
use toolhub_core::audit::{AuditAction, ChangeKind, ChangedObject, HeldCallDecision};
use toolhub_core::call_log::CallStatus;
use toolhub_core::hex;

use crate::chain::{Hash, LogId};
use crate::record::AuditRecord;

const SCHEMA_VERSION: &str = "1.3.0";
const AUTHENTICATION: u64 = 3002;
const API_ACTIVITY: u64 = 6003;

const SUCCESS: u64 = 1;
const FAILURE: u64 = 2;
const UNKNOWN: u64 = 0;

/// The parts in which records differ.
struct OcsfParts {
    class: u64,
    activity: u64,
    severity: u64,
    status: u64,
    fields: Value,
}

/// The OCSF event of a record with this hash.
pub fn ocsf_event(log: &LogId, record: &AuditRecord, hash: &Hash) -> Value {
    let event = &record.event;
    let OcsfParts { class, activity, severity, status, fields } = parts(&event.action, &event.principal);
    let mut all = json!({
        "class_uid": class,
        "category_uid": class / 1_000,
        "activity_id": activity,
        "type_uid": class * 100 + activity,
        "time": record.micros() / 1_000,
        "severity_id": severity,
        "status_id": status,
        "metadata": {
            "version": SCHEMA_VERSION,
            "product": { "name": "toolhub", "vendor_name": "toolhub" },
            "log_name": log.to_string(),
            "uid": hash.to_string(),
            "sequence": record.sequence,
            "event_code": event.action.kind().name(),
        },
        "actor": { "user": { "uid": &*event.principal } },
    });
    if let (Value::Object(all), Value::Object(fields)) = (&mut all, fields) {
        all.extend(fields);
    }
    all
}

fn parts(action: &AuditAction, principal: &str) -> OcsfParts {
    let unknown = || json!({ "name": "unknown" });
    match action {
        AuditAction::Login(login) => OcsfParts {
            class: AUTHENTICATION,
            activity: 1,
            severity: if login.accepted { 1 } else { 3 },
            status: if login.accepted { SUCCESS } else { FAILURE },
            fields: json!({
                "user": { "uid": principal },
                "service": { "name": "toolhub" },
                "auth_protocol": login.method,
                "auth_protocol_id": 99,
                "status_detail": login.reason,
                "src_endpoint": login.address.as_ref().map_or_else(unknown, |address| json!({ "ip": address })),
            }),
        },
        AuditAction::Refusal(refusal) => OcsfParts {
            class: API_ACTIVITY,
            activity: 99,
            severity: 3,
            status: FAILURE,
            fields: json!({
                "api": api(&refusal.operation, "toolhub", &refusal.reference),
                "src_endpoint": unknown(),
                "resources": [{ "name": refusal.resource }],
                "unmapped": { "rule": refusal.rule },
            }),
        },
        AuditAction::Call(call) => OcsfParts {
            class: API_ACTIVITY,
            // Whether a call creates, updates or deletes is not known.
            activity: if call.may_change { 99 } else { 2 },
            severity: 1,
            status: match call.status {
                CallStatus::Succeeded => SUCCESS,
                CallStatus::Failed => FAILURE,
                CallStatus::Unknown | CallStatus::Running => UNKNOWN,
            },
            fields: json!({
                "api": api(&call.tool, &call.sources.join(","), &call.record),
                "src_endpoint": unknown(),
                "unmapped": {
                    "arguments_sha256": hex::encode(&call.arguments_sha256),
                    "may_change": call.may_change,
                    "rule": call.rule,
                    "approver": call.approver,
                },
            }),
        },
        AuditAction::HeldCall(held) => OcsfParts {
            class: API_ACTIVITY,
            activity: 99,
            severity: 1,
            status: match held.decision {
                HeldCallDecision::Approved => SUCCESS,
                HeldCallDecision::Denied | HeldCallDecision::Expired | HeldCallDecision::Withdrawn => FAILURE,
                HeldCallDecision::Held => UNKNOWN,
            },
            fields: json!({
                "api": api(&held.tool, "toolhub", &held.reference),
                "src_endpoint": unknown(),
                "status_detail": held.decision.name(),
                "unmapped": {
                    "caller": held.caller,
                    "rule": held.rule,
                    "arguments_sha256": held.arguments_sha256.map(|digest| hex::encode(&digest)),
                },
            }),
        },
        AuditAction::Use(used) => OcsfParts {
            class: API_ACTIVITY,
            activity: 2,
            severity: 1,
            status: SUCCESS,
            fields: json!({
                "api": api(&used.operation, used.server.as_deref().unwrap_or("toolhub"), ""),
                "src_endpoint": unknown(),
                "resources": [{ "name": used.item }],
                "unmapped": { "rule": used.rule },
            }),
        },
        AuditAction::Change(change) => {
            let object = match change.object {
                ChangedObject::Key => "key",
                ChangedObject::Rule => "rule",
                ChangedObject::Config => "config",
                ChangedObject::Server => "server",
            };
            OcsfParts {
                class: API_ACTIVITY,
                activity: match change.change {
                    ChangeKind::Created => 1,
                    ChangeKind::Updated => 3,
                    ChangeKind::Deleted => 4,
                },
                severity: 1,
                status: SUCCESS,
                fields: json!({
                    "api": {
                        "operation": format!("{object}.{}", change.change.name()),
                        "service": { "name": "toolhub" },
                    },
                    "src_endpoint": unknown(),
                    "resources": [{ "name": change.name, "type": object }],
                    "unmapped": {
                        "sha256": change.sha256.map(|digest| hex::encode(&digest)),
                        "detail": change.detail,
                    },
                }),
            }
        }
    }
}

fn api(operation: &str, service: &str, request: &str) -> Value {
    json!({ "operation": operation, "service": { "name": service }, "request": { "uid": request } })
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::record::tests::events;

    /// The attributes that the classes require.
    #[test]
    fn events_have_the_required_attributes() {
        let log = LogId([7; 16]);
        for (index, event) in events().into_iter().enumerate() {
            let record = AuditRecord { sequence: index as u64 + 1, event };
            let ocsf = ocsf_event(&log, &record, &log.genesis());
            let class = ocsf["class_uid"].as_u64().unwrap();
            let required = match class {
                AUTHENTICATION => &["/user/uid", "/service/name"][..],
                API_ACTIVITY => &["/api/operation", "/src_endpoint/name", "/actor/user/uid"],
                other => panic!("{other}"),
            };
            let common = ["/time", "/severity_id", "/metadata/version", "/metadata/product/vendor_name"];
            for pointer in required.iter().chain(&common) {
                assert!(ocsf.pointer(pointer).is_some_and(|value| !value.is_null()), "{pointer}: {ocsf}");
            }
            let (category, activity) =
                (ocsf["category_uid"].as_u64().unwrap(), ocsf["activity_id"].as_u64().unwrap());
            assert_eq!((category, ocsf["type_uid"].as_u64()), (class / 1_000, Some(class * 100 + activity)));
            assert_eq!(ocsf["metadata"]["sequence"], index as u64 + 1);
            assert_eq!(ocsf["time"].as_u64().unwrap(), record.micros() / 1_000);
        }
    }
}
