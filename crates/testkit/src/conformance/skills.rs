//! The scenarios about skills of a server: when a host may fetch them, and what it must not use.

use anyhow::{Result, bail};
use serde_json::json;
use toolhub::{Hub, Lang, Localize as _, ToolCall};

use super::SERVER;
use super::setup::Scenario;

/// The name of the scenarios' skill.
const SKILL: &str = "pdf-processing";

pub(super) fn concerns(scenario: &Scenario) -> bool {
    scenario.name.starts_with("sep-2640-client-")
}

/// Lists the skill; then, unless the scenario tests only that, uses it and one of its files.
pub(super) async fn run_scenario(hub: &Hub, scenario: &Scenario) -> Result<()> {
    hub.refresh_server_skills().await;
    let skill = format!("{SERVER}:{SKILL}");
    if !hub.skills().remote.iter().any(|known| known.shown() == skill) {
        bail!("the server's skill is not known");
    }
    if scenario.name == "sep-2640-client-no-prefetch" {
        return Ok(());
    }
    use_skill(hub, json!({"skill": skill})).await?;
    let file = match scenario.name.as_str() {
        "sep-2640-client-verify-unlisted" => "scripts/extract.py",
        _ => "references/FORMS.md",
    };
    use_skill(hub, json!({"skill": skill, "file": file})).await
}

async fn use_skill(hub: &Hub, arguments: serde_json::Value) -> Result<()> {
    let outcome = hub.call(ToolCall::new("use_skill", arguments)).await;
    match outcome.result {
        Ok(_) => Ok(()),
        Err(error) => bail!("{}", error.localize(Lang::En)),
    }
}
