//! All methods that the gateway supports: era, handler, and the object that the params name. A request with any other
//! method is answered with -32601 and never forwarded.

use toolhub_core::RawObject;
use toolhub_mcp_wire::Era;

use crate::rpc_error::RpcError;

/// Maximum length of the JSON text that names the object of a request. Names and URIs are compared in many spellings, and
/// repeated in errors.
const MAX_TARGET_NAME_BYTES: usize = 8 << 10;

/// A request method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    CallTool,
    ListTools,
    DescribeTools,
    ListResources,
    ListTemplates,
    ListPrompts,
    Discover,
    Listen,
    Initialize,
    Ping,
    SetLevel,
    Subscribe,
    Unsubscribe,
    /// Forwarded to a server, or handled by the hub in place of a server.
    Forward(BackendMethod),
}

/// A method that is passed to the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendMethod {
    /// `resources/read`
    ReadResource,
    /// `resources/directory/read`
    ReadDirectory,
    /// `prompts/get`
    GetPrompt,
    /// `completion/complete`
    Complete,
    /// `skills/list`
    ListSkills,
    /// `skills/get`
    GetSkill,
    /// `tasks/get`
    GetTask,
    /// `tasks/update`
    UpdateTask,
    /// `tasks/cancel`
    CancelTask,
    /// `tasks/result`
    TaskResult,
    /// `tasks/list`
    ListTasks,
}

/// The object that the params of a request name, and hence the check that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParamsSubject {
    /// Nothing that belongs to a single caller.
    Nothing,
    /// A tool or prompt, in `name`: one that the caller's profile offers.
    Name,
    /// The subject of a completion, in `ref`: a prompt or resource of the caller's profile.
    Reference,
    /// A resource or skill, in `uri`: one of a server of the caller's profile.
    Uri,
    /// A subscription of the caller's own session or stream.
    Subscription,
    /// The caller's own session.
    Session,
    /// A task, in `taskId`: one that the caller's principal created.
    Task,
    /// Tasks, of which only those of the caller's principal are listed.
    PrincipalTasks,
}

impl ParamsSubject {
    /// Returns the member of the params that names the object.
    fn key(self) -> Option<&'static str> {
        match self {
            Self::Name => Some("name"),
            Self::Reference => Some("ref"),
            Self::Uri => Some("uri"),
            Self::Task => Some("taskId"),
            Self::Nothing | Self::Subscription | Self::Session | Self::PrincipalTasks => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Eras {
    Both,
    Legacy,
    Modern,
}

struct MethodRow {
    name: &'static str,
    method: Method,
    eras: Eras,
    subject: ParamsSubject,
}

const fn row(name: &'static str, method: Method, eras: Eras, subject: ParamsSubject) -> MethodRow {
    MethodRow { name, method, eras, subject }
}

const fn backend_method(
    name: &'static str,
    method: BackendMethod,
    eras: Eras,
    subject: ParamsSubject,
) -> MethodRow {
    MethodRow { name, method: Method::Forward(method), eras, subject }
}

/// The most frequent first.
static METHODS: [MethodRow; 24] = [
    row("tools/call", Method::CallTool, Eras::Both, ParamsSubject::Name),
    row("tools/list", Method::ListTools, Eras::Both, ParamsSubject::Nothing),
    row("tools/describe", Method::DescribeTools, Eras::Both, ParamsSubject::Name),
    row("resources/list", Method::ListResources, Eras::Both, ParamsSubject::Nothing),
    row("resources/templates/list", Method::ListTemplates, Eras::Both, ParamsSubject::Nothing),
    row("prompts/list", Method::ListPrompts, Eras::Both, ParamsSubject::Nothing),
    backend_method("resources/read", BackendMethod::ReadResource, Eras::Both, ParamsSubject::Uri),
    backend_method("prompts/get", BackendMethod::GetPrompt, Eras::Both, ParamsSubject::Name),
    backend_method("completion/complete", BackendMethod::Complete, Eras::Both, ParamsSubject::Reference),
    backend_method("skills/list", BackendMethod::ListSkills, Eras::Both, ParamsSubject::Nothing),
    backend_method("skills/get", BackendMethod::GetSkill, Eras::Both, ParamsSubject::Uri),
    backend_method("resources/directory/read", BackendMethod::ReadDirectory, Eras::Both, ParamsSubject::Uri),
    row("server/discover", Method::Discover, Eras::Modern, ParamsSubject::Nothing),
    row("subscriptions/listen", Method::Listen, Eras::Modern, ParamsSubject::Subscription),
    row("initialize", Method::Initialize, Eras::Legacy, ParamsSubject::Session),
    row("ping", Method::Ping, Eras::Legacy, ParamsSubject::Nothing),
    row("logging/setLevel", Method::SetLevel, Eras::Legacy, ParamsSubject::Session),
    row("resources/subscribe", Method::Subscribe, Eras::Legacy, ParamsSubject::Uri),
    row("resources/unsubscribe", Method::Unsubscribe, Eras::Legacy, ParamsSubject::Uri),
    backend_method("tasks/get", BackendMethod::GetTask, Eras::Both, ParamsSubject::Task),
    backend_method("tasks/cancel", BackendMethod::CancelTask, Eras::Both, ParamsSubject::Task),
    backend_method("tasks/update", BackendMethod::UpdateTask, Eras::Modern, ParamsSubject::Task),
    backend_method("tasks/result", BackendMethod::TaskResult, Eras::Legacy, ParamsSubject::Task),
    backend_method("tasks/list", BackendMethod::ListTasks, Eras::Legacy, ParamsSubject::PrincipalTasks),
];

impl Method {
    /// Returns the method of that name if the era has it.
    pub(crate) fn named(name: &str, era: Era) -> Option<Self> {
        let expected = if era == Era::Legacy { Eras::Legacy } else { Eras::Modern };
        let has = |row: &&MethodRow| row.eras == Eras::Both || row.eras == expected;
        METHODS.iter().find(|row| row.name == name).filter(has).map(|row| row.method)
    }
}

/// Returns the names of all methods that the gateway serves in an era.
pub fn method_names(era: Era) -> impl Iterator<Item = &'static str> {
    METHODS.iter().map(|row| row.name).filter(move |name| Method::named(name, era).is_some())
}

/// Returns the names of the methods of an era whose params name a resource or skill by its URI.
pub fn uri_methods(era: Era) -> impl Iterator<Item = &'static str> {
    let has_uri = |name: &&str| {
        METHODS.iter().any(|row| {
            row.name == *name
                && matches!(
                    row.subject,
                    ParamsSubject::Uri | ParamsSubject::Reference | ParamsSubject::Subscription
                )
        })
    };
    method_names(era).filter(has_uri)
}

impl Method {
    /// Refuses a name or URI that is longer than any object has.
    pub(crate) fn check_name_length(self, params: &RawObject) -> Result<(), RpcError> {
        let row = METHODS.iter().find(|row| row.method == self);
        let Some(key) = row.and_then(|row| row.subject.key()) else { return Ok(()) };
        match params.get(key) {
            Some(name) if name.get().len() > MAX_TARGET_NAME_BYTES => Err(RpcError::invalid_params(format!(
                "`{key}` is {} bytes long; at most {MAX_TARGET_NAME_BYTES} are allowed",
                name.get().len()
            ))),
            _ => Ok(()),
        }
    }
}

impl BackendMethod {
    fn row(self) -> Option<&'static MethodRow> {
        METHODS.iter().find(|row| row.method == Method::Forward(self))
    }

    /// Returns the protocol name of the method.
    pub fn name(self) -> &'static str {
        self.row().map_or("", |row| row.name)
    }

    /// Returns the member of the params that names the object of the request.
    pub fn key(self) -> Option<&'static str> {
        self.row().and_then(|row| row.subject.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_limited_to_their_eras() {
        let check = |name: &str, legacy: bool, modern: bool| {
            let known = [Era::Legacy, Era::Modern].map(|era| Method::named(name, era).is_some());
            assert_eq!(known, [legacy, modern], "{name}");
        };
        check("tools/call", true, true);
        check("initialize", true, false);
        check("server/discover", false, true);
        check("tasks/list", true, false);
        check("tasks/update", false, true);
        for unknown in
            ["", "tools/Call", "tools/call ", "vendor/anything", "roots/list", "notifications/cancelled"]
        {
            check(unknown, false, false);
        }
    }

    #[test]
    fn long_names_are_refused_by_every_method_that_names_an_object() {
        let long = toolhub_core::RawJson::of(&"x".repeat(MAX_TARGET_NAME_BYTES));
        for row in &METHODS {
            let Some(key) = row.subject.key() else { continue };
            let refused = row.method.check_name_length(&RawObject::default().with(key, long.clone()));
            assert!(refused.is_err_and(|error| error.message.len() < 100), "{}", row.name);
            assert!(row.method.check_name_length(&RawObject::default().with(key, "x")).is_ok());
        }
    }

    #[test]
    fn each_method_has_one_row() {
        for (index, row) in METHODS.iter().enumerate() {
            assert!(METHODS[..index].iter().all(|other| other.name != row.name), "{}", row.name);
            if let Method::Forward(backend_method) = row.method {
                assert_eq!((backend_method.name(), backend_method.key()), (row.name, row.subject.key()));
            }
        }
        assert!(
            METHODS
                .iter()
                .filter(|row| row.name.starts_with("tasks/"))
                .all(|row| { matches!(row.subject, ParamsSubject::Task | ParamsSubject::PrincipalTasks) })
        );
    }
}
