//! All methods that the gateway supports: era, handler, and the object that the params name. A request with any other
//! method is answered with -32601 and never forwarded.

use toolhub_mcp_wire::Era;

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
    HandOver(Handed),
}

/// A method that is passed to the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handed {
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
pub(crate) enum Names {
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
    OwnTasks,
}

impl Names {
    /// Returns the member of the params that names the object.
    fn key(self) -> Option<&'static str> {
        match self {
            Self::Name => Some("name"),
            Self::Reference => Some("ref"),
            Self::Uri => Some("uri"),
            Self::Task => Some("taskId"),
            Self::Nothing | Self::Subscription | Self::Session | Self::OwnTasks => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Eras {
    Both,
    Legacy,
    Modern,
}

struct Row {
    name: &'static str,
    method: Method,
    eras: Eras,
    names: Names,
}

const fn row(name: &'static str, method: Method, eras: Eras, names: Names) -> Row {
    Row { name, method, eras, names }
}

const fn handed(name: &'static str, method: Handed, eras: Eras, names: Names) -> Row {
    Row { name, method: Method::HandOver(method), eras, names }
}

/// The most frequent first.
static METHODS: [Row; 24] = [
    row("tools/call", Method::CallTool, Eras::Both, Names::Name),
    row("tools/list", Method::ListTools, Eras::Both, Names::Nothing),
    row("tools/describe", Method::DescribeTools, Eras::Both, Names::Name),
    row("resources/list", Method::ListResources, Eras::Both, Names::Nothing),
    row("resources/templates/list", Method::ListTemplates, Eras::Both, Names::Nothing),
    row("prompts/list", Method::ListPrompts, Eras::Both, Names::Nothing),
    handed("resources/read", Handed::ReadResource, Eras::Both, Names::Uri),
    handed("prompts/get", Handed::GetPrompt, Eras::Both, Names::Name),
    handed("completion/complete", Handed::Complete, Eras::Both, Names::Reference),
    handed("skills/list", Handed::ListSkills, Eras::Both, Names::Nothing),
    handed("skills/get", Handed::GetSkill, Eras::Both, Names::Uri),
    handed("resources/directory/read", Handed::ReadDirectory, Eras::Both, Names::Uri),
    row("server/discover", Method::Discover, Eras::Modern, Names::Nothing),
    row("subscriptions/listen", Method::Listen, Eras::Modern, Names::Subscription),
    row("initialize", Method::Initialize, Eras::Legacy, Names::Session),
    row("ping", Method::Ping, Eras::Legacy, Names::Nothing),
    row("logging/setLevel", Method::SetLevel, Eras::Legacy, Names::Session),
    row("resources/subscribe", Method::Subscribe, Eras::Legacy, Names::Uri),
    row("resources/unsubscribe", Method::Unsubscribe, Eras::Legacy, Names::Uri),
    handed("tasks/get", Handed::GetTask, Eras::Both, Names::Task),
    handed("tasks/cancel", Handed::CancelTask, Eras::Both, Names::Task),
    handed("tasks/update", Handed::UpdateTask, Eras::Modern, Names::Task),
    handed("tasks/result", Handed::TaskResult, Eras::Legacy, Names::Task),
    handed("tasks/list", Handed::ListTasks, Eras::Legacy, Names::OwnTasks),
];

impl Method {
    /// Returns the method of that name if the era has it.
    pub(crate) fn named(name: &str, era: Era) -> Option<Self> {
        let wanted = if era == Era::Legacy { Eras::Legacy } else { Eras::Modern };
        let has = |row: &&Row| row.eras == Eras::Both || row.eras == wanted;
        METHODS.iter().find(|row| row.name == name).filter(has).map(|row| row.method)
    }
}

impl Handed {
    fn row(self) -> Option<&'static Row> {
        METHODS.iter().find(|row| row.method == Method::HandOver(self))
    }

    /// Returns the protocol name of the method.
    pub fn name(self) -> &'static str {
        self.row().map_or("", |row| row.name)
    }

    /// Returns the member of the params that names the object of the request.
    pub fn key(self) -> Option<&'static str> {
        self.row().and_then(|row| row.names.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_belong_to_their_eras() {
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
    fn each_method_has_one_row() {
        for (place, row) in METHODS.iter().enumerate() {
            assert!(METHODS[..place].iter().all(|other| other.name != row.name), "{}", row.name);
            if let Method::HandOver(handed) = row.method {
                assert_eq!((handed.name(), handed.key()), (row.name, row.names.key()));
            }
        }
        assert!(
            METHODS
                .iter()
                .filter(|row| row.name.starts_with("tasks/"))
                .all(|row| { matches!(row.names, Names::Task | Names::OwnTasks) })
        );
    }
}
