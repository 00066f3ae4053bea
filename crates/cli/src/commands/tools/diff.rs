//! `toolhub tools diff`: changes of a tool's definition since it was approved or previously listed.

use similar::TextDiff;
use toolhub_core::approval::Approval;
use toolhub_core::millis::unix_millis;
use toolhub_core::ports::ToolVersion;
use toolhub_core::tool::ApprovalStatus;
use toolhub_core::{Localize as _, RawJson, RawObject, Source, ToolDefinition, json};
use toolhub_engine::definition_scan::escape_invisible;

use crate::app::App;
use crate::args::ShowArgs;
use crate::commands::servers::report::ago;
use crate::commands::tools::find_tools;
use crate::exit::Exit;
use crate::render::screen::{BAD, BOLD, DIM, GOOD};

pub(crate) async fn run(app: &App, args: ShowArgs) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    let found = match find_tools(app, hub, &args).await? {
        Ok(found) => found,
        Err(error) => {
            app.screen.error(&error.localize(app.lang()));
            return Ok(Exit::from(&error));
        }
    };
    // Prefers a changed tool, even if a call would use another one.
    let changed = |trust| matches!(trust, ApprovalStatus::Changed | ApprovalStatus::Quarantined);
    let one = found.iter().find(|entry| changed(entry.tool.approval)).or(found.first());
    let Some(entry) = one else { return Ok(Exit::Failed) };
    let tool = &entry.tool;
    let mut history = Vec::new();
    if let Source::Server(server) = &tool.source {
        history = hub.history_of(server, &args.tool).await?;
    }
    let approval = hub.approval_of(tool).filter(|_| changed(tool.approval));
    let change = Change { definition: &tool.definition, approval, history: &history };
    if app.screen.json {
        app.screen.json(&change.as_json(tool.source.to_string()));
    } else {
        change.show(app, &tool.source);
    }
    Ok(Exit::Done)
}

/// The unified diff of two definitions, with three lines of context.
pub(crate) fn unified_diff(old: &RawJson, new: &RawJson) -> String {
    let (old, new) = (json::pretty_json(old.get()), json::pretty_json(new.get()));
    TextDiff::from_lines(&old, &new).unified_diff().context_radius(3).to_string()
}

/// Prints a diff.
pub(crate) fn show_difference(app: &App, difference: &str, indent: &str) {
    for line in difference.lines() {
        let style = match line.as_bytes().first() {
            Some(b'+') => GOOD,
            Some(b'-') => BAD,
            _ => DIM,
        };
        app.screen.line(&format!("{indent}{style}{}{style:#}", escape_invisible(line)));
    }
}

/// A tool's definition and its previous versions.
struct Change<'a> {
    definition: &'a ToolDefinition,
    /// The approved definition, if it differs.
    approval: Option<Approval>,
    history: &'a [ToolVersion],
}

impl Change<'_> {
    fn difference(&self) -> String {
        match (&self.approval, self.history) {
            (Some(approval), _) => unified_diff(&approval.definition, self.definition.raw()),
            (None, [new, old, ..]) => unified_diff(&old.definition, &new.definition),
            (None, _) => String::new(),
        }
    }

    fn as_json(&self, source: String) -> RawJson {
        let versions: Vec<RawObject> = self
            .history
            .iter()
            .map(|one| {
                RawObject::default()
                    .with("version", one.version.as_str())
                    .with("first_seen_ms", unix_millis(one.first_seen))
                    .with("last_seen_ms", unix_millis(one.last_seen))
                    .with("definition", one.definition.clone())
            })
            .collect();
        let approved = self.approval.as_ref().map(|approval| {
            RawObject::default()
                .with("digest", approval.version.as_str())
                .with("approved_at_ms", unix_millis(approval.at))
                .with("definition", approval.definition.clone())
        });
        RawObject::default()
            .with("tool", self.definition.name().as_str())
            .with("source", source)
            .with("versions", RawJson::of(&versions))
            .with("approved", RawJson::of(&approved))
            .with("diff", self.difference())
            .into_raw()
    }

    fn show(&self, app: &App, source: &Source) {
        let (lang, tool) = (app.lang(), escape_invisible(self.definition.name().as_str()));
        let head = match (&self.approval, self.history) {
            (Some(approval), _) => {
                let ago = ago(approval.at, lang);
                lang.choose(format!("approved {ago} ago → now"), format!("{ago}前批准的 → 现在的"))
            }
            (None, [new, old, ..]) => format!("{} → {}", old.version, new.version),
            (None, _) => {
                app.screen.line(&lang.choose(
                    format!("`{tool}` ({source}) has had one definition since it was first listed"),
                    format!("`{tool}`（{source}）自首次列出以来定义没有变化"),
                ));
                return;
            }
        };
        app.screen.line(&format!("{BOLD}{tool}{BOLD:#} {DIM}({source}){DIM:#}  {head}"));
        show_difference(app, &self.difference(), "");
    }
}
