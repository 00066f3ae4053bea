//! Decides which principal may see and call which tool. Pure: rules in, decision out; no I/O.
//!
//! [`Permissions::decide_for`] is the only place that decides. Listing, search, calls, resources, prompts, skills, the JSON API
//! and the command line use it with an [`Action`] and an [`AccessResource`].
//!
//! - The principal's roles come first, then its profiles, then the rules.
//! - `forbid` beats `ask`, which beats `allow`; the order of the rules has no influence. If there is any rule, an item
//!   that no rule grants is forbidden.
//! - The local user owns the machine: only rules that name `local` apply to it, and it needs no grant.
//! - Uncertainty never grants: see [`RuleSpec`] for letter case, missing hints and unreadable arguments.
//!
//! ```
//! use toolhub_access::{Action, Decision, AccessResource, RuleSet, RuleSpec};
//! use toolhub_core::{Principal, Role, Source};
//!
//! let spec: RuleSpec = serde_json::from_str(r#"{"effect": "allow", "tools": ["excel__*"]}"#).unwrap();
//! let rules = RuleSet::compile(vec![spec]).unwrap();
//! let mut ci = Principal::of_key("ci");
//! ci.roles = Role::Caller.into();
//! let permissions = rules.for_principal(&ci);
//! let source = Source::from_name("excel");
//! let write = AccessResource::tool(&source, &["write_cell"]);
//! let decision = permissions.decide_for(ci.id(), Action::Call, &write);
//! assert!(matches!(decision, Decision::Allow { rule: Some(_) }));
//! let source = Source::from_name("mail");
//! let send = AccessResource::tool(&source, &["send"]);
//! assert_eq!(permissions.decide_for(ci.id(), Action::See, &send), Decision::Forbid { rule: None });
//! ```

mod abilities;
mod argument_schema;
mod cache;
mod decision;
mod explain;
mod index;
mod lint;
mod narrow;
mod number_text;
mod pattern;
mod permissions;
mod request;
mod rule;
mod rule_bits;
mod rule_set;
mod schema_subset;
mod spec;
mod spellings;

pub use self::abilities::{DECIDERS, may_decide_changed_tools, may_decide_held_calls};
pub use self::cache::PermissionCache;
pub use self::decision::{Decision, RuleId};
pub use self::explain::{Explanation, RuleExplanation, explain};
pub use self::lint::{KnownNames, RuleWarning};
pub use self::permissions::Permissions;
pub use self::request::{AccessResource, Action, ItemKind, tool_names};
pub use self::rule::Mismatch;
pub use self::rule_set::RuleSet;
pub use self::spec::{HintSpec, RuleEffect, RuleError, RuleSpec};
