//! Finds the effects that trusting a folder would have: reads its settings, servers and skills into a [`FolderReview`].

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, TableLike, Value};
use toolhub_client_config::{ConfigError, StdioSpec, TransportSpec, variable_references};
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_mcp_client::config::{ServerSpec, parse_servers};

use super::{FolderReview, ReviewedAddress, ReviewedProgram, ReviewedSkill, calling_skills, suspicious};
use crate::settings::Settings;
use crate::trust::TrustStatus;
use crate::trust::launch_form::LaunchScope;
use crate::trust::launch_form::assignments::{Assignment, launch_assignments};
use crate::trust::record::consent_binding::starts_same_process;
use crate::trust::scan::{CONFIG, FolderScan, SERVERS, SHARED_SERVERS, WorkspacePart};
use crate::trust::user_servers::binding::UserServerLaunch;
use crate::trust::user_servers::steering;

/// The maximum number of characters of a value that are shown.
const MAX_SHOWN: usize = 4_000;
/// Keys whose values are not shown.
const SECRET_KEYS: [&str; 5] = ["key", "secret", "password", "token", "sha256"];

/// The review of a scanned folder, and of what the owner's own servers load from it.
pub(in crate::trust) fn review(
    scan: &FolderScan,
    status: &TrustStatus,
    launches: &[UserServerLaunch],
) -> FolderReview {
    let mut problems = scan.problems.clone();
    let mut keep = |error: ConfigError| {
        problems.push(LocalizedText::new(error.localize(Lang::En), error.localize(Lang::Zh)));
    };
    let settings = scan.configs.contains_key(CONFIG).then(|| scan.text(CONFIG).unwrap_or("\0"));
    let settings = settings.map(|text| Settings::parse(Path::new(CONFIG), text).map_err(&mut keep).ok());
    let settings = settings.flatten().unwrap_or_default();
    let mut servers = Vec::new();
    for name in [SERVERS, SHARED_SERVERS].into_iter().filter(|name| scan.configs.contains_key(name)) {
        match parse_servers(Path::new(name), scan.text(name).unwrap_or("\0")) {
            Ok(found) => servers.extend(found),
            Err(error) => keep(error),
        }
    }
    let mut review = FolderReview {
        folder: scan.location.folder.clone(),
        status: status.clone(),
        is_here: true,
        changes: Vec::new(),
        brings: scan.names(),
        programs: Vec::new(),
        user_programs: launches.iter().filter_map(|launch| user_server_program(launch, scan)).collect(),
        user_program_problems: launches.iter().filter_map(UserServerLaunch::problem).collect(),
        are_user_servers_current: true,
        addresses: Vec::new(),
        reading_settings: Vec::new(),
        settings: scan.text(CONFIG).map(flattened).unwrap_or_default(),
        capabilities: capabilities(&settings, scan),
        steering: steering::find_in(&scan.location.folder, None).into_iter().collect(),
        skills: skills(scan),
        suspicious: Vec::new(),
        problems,
    };
    servers.sort_by(|one, other| one.id.as_str().cmp(other.id.as_str()));
    for spec in &servers {
        entry(&mut review, spec, scan, &settings);
    }
    if let Some(python) = &settings.skills.python {
        let spec = StdioSpec { command: python.clone(), ..StdioSpec::default() };
        review.programs.push(program("[skills] python", &spec, scan, &settings));
    }
    addresses_of_settings(&mut review, &settings);
    texts_of_settings(&mut review, scan);
    // Both files may contain the same entry.
    review.programs.dedup();
    review.addresses.dedup();
    review.suspicious = suspicious::find_suspicious(scan, &review);
    review
}

fn entry(review: &mut FolderReview, spec: &ServerSpec, scan: &FolderScan, settings: &Settings) {
    match &spec.transport {
        TransportSpec::Stdio(stdio) => {
            review.programs.push(program(spec.id.as_str(), stdio, scan, settings));
        }
        TransportSpec::Http(http) | TransportSpec::Sse(http) => {
            let texts = http.headers.iter().map(|(_, value)| value).chain([&http.url]);
            let reads = names(texts.map(String::as_str));
            let (purpose, url, headers) = (spec.id.to_string(), http.url.clone(), http.headers.clone());
            review.addresses.push(ReviewedAddress { purpose, url, headers, reads });
        }
    }
}

fn program(purpose: &str, spec: &StdioSpec, scan: &FolderScan, settings: &Settings) -> ReviewedProgram {
    let extras = settings.servers.iter().find(|extras| extras.id == purpose);
    let cwd = spec.cwd.as_ref().map(|cwd| cwd.to_string_lossy().into_owned());
    let values = spec.env.iter().map(|(_, value)| value);
    let texts = [&spec.command].into_iter().chain(&spec.args).chain(values).chain(cwd.as_ref());
    let mut reads = names(texts.map(String::as_str));
    reads.extend(extras.iter().flat_map(|extras| extras.env_pass.clone()));
    reads.sort();
    reads.dedup();
    let launch =
        scan.launches.iter().find(|known| starts_same_process(&known.spec, spec)).map(|known| &known.loaded);
    ReviewedProgram {
        purpose: purpose.to_owned(),
        command: [&spec.command].into_iter().chain(&spec.args).cloned().collect(),
        resolved: scan.site().program(spec),
        folder: cwd.map_or_else(|| scan.location.folder.clone(), |cwd| scan.location.folder.join(cwd)),
        reads,
        sets: launch
            .map_or_else(|| shown(&launch_assignments(spec, &[])), |launch| shown(&launch.assignments)),
        files: launch.map(|launch| launch.files.keys().cloned().collect()).unwrap_or_default(),
        scope: launch.map_or(LaunchScope::Project, |launch| launch.scope),
        sandboxed: extras.is_some_and(|extras| extras.sandbox.policy(Path::new(CONFIG)).is_some()),
    }
}

/// The variables that a review shows, with their values before expansion, each once.
fn shown(assignments: &[Assignment]) -> Vec<(String, String)> {
    let mut sets: Vec<(String, String)> = Vec::new();
    for assignment in assignments.iter().filter(|assignment| assignment.is_shown) {
        let pair = (assignment.name.clone(), assignment.written.clone());
        if !sets.contains(&pair) {
            sets.push(pair);
        }
    }
    sets
}

/// A server of the owner; `None` if what it loads cannot be bound.
fn user_server_program(launch: &UserServerLaunch, scan: &FolderScan) -> Option<ReviewedProgram> {
    let loaded = launch.loaded.as_ref().ok()?;
    let program = program(launch.id.as_str(), &launch.spec, scan, &Settings::default());
    let files = loaded.files.keys().cloned().collect();
    Some(ReviewedProgram { files, scope: loaded.scope, sets: shown(&loaded.assignments), ..program })
}

/// The variables that these texts refer to, each once.
fn names<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    texts.flat_map(variable_references).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Adds the URLs of the settings.
fn addresses_of_settings(review: &mut FolderReview, settings: &Settings) {
    let mut add = |purpose: &str, url: Option<&String>, secret: Option<&str>| {
        let Some(url) = url else { return };
        let reads = names([url.as_str()].into_iter().chain(secret));
        let (purpose, url) = (purpose.to_owned(), url.clone());
        review.addresses.push(ReviewedAddress { purpose, url, headers: Vec::new(), reads });
    };
    if let Some(llm) = &settings.llm {
        add("[llm] url", llm.url.as_ref(), llm.key.as_ref().map(|key| key.expose()));
    }
    add("[store] url", settings.store.url.as_ref(), None);
    add("[telemetry] otlp", settings.telemetry.otlp.as_ref(), None);
    if let Some(web) = &settings.web_search {
        add("[web_search] url", web.url.as_ref(), web.api_key.as_ref().map(|key| key.expose()));
    }
}

/// Adds every URL and every variable in a text of the settings, whatever its key is and wherever it is nested.
fn texts_of_settings(review: &mut FolderReview, scan: &FolderScan) {
    let Some(document) = scan.text(CONFIG).and_then(|text| text.parse::<DocumentMut>().ok()) else { return };
    let mut texts = Vec::new();
    add_texts(document.as_item(), "", &mut texts);
    for (key, text) in texts {
        let reads = names([text.as_str()].into_iter());
        let is_address = text.contains("://") && !text.contains(char::is_whitespace);
        if is_address && !review.addresses.iter().any(|known| known.url == text) {
            let (purpose, url) = (key.clone(), text);
            review.addresses.push(ReviewedAddress {
                purpose,
                url,
                headers: Vec::new(),
                reads: reads.clone(),
            });
        }
        if !reads.is_empty() {
            review.reading_settings.push((key, reads));
        }
    }
}

/// All texts of the settings, by their full key.
fn add_texts(item: &Item, key: &str, texts: &mut Vec<(String, String)>) {
    let below = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    if let Some(text) = item.as_str() {
        texts.push((key.to_owned(), text.to_owned()));
    } else if let Some(table) = item.as_table_like() {
        table.iter().for_each(|(name, item)| add_texts(item, &below(name), texts));
    } else if let Some(tables) = item.as_array_of_tables() {
        for (at, table) in tables.iter().enumerate() {
            table.iter().for_each(|(name, item)| add_texts(item, &format!("{key}[{at}].{name}"), texts));
        }
    } else if let Some(values) = item.as_array() {
        for (at, value) in values.iter().enumerate() {
            add_texts(&Item::Value(value.clone()), &format!("{key}[{at}]"), texts);
        }
    }
}

/// Settings that give tools, scripts or clients additional permissions.
fn capabilities(settings: &Settings, scan: &FolderScan) -> Vec<LocalizedText> {
    let mut capabilities = Vec::new();
    let mut add = |en: String, zh: String| capabilities.push(LocalizedText::new(en, zh));
    for folder in settings.native.folders.iter().flatten() {
        if !scan.location.folder.join(folder).starts_with(&scan.location.folder) || folder.starts_with("~") {
            let folder = folder.display();
            add(format!("file tools may read `{folder}`"), format!("文件工具可以读取 `{folder}`"));
        }
    }
    if !settings.skills.grants.is_empty() {
        let names: Vec<&str> = settings.skills.grants.keys().map(String::as_str).collect();
        let names = names.join(", ");
        add(
            format!("scripts of these skills get files, variables or the network: {names}"),
            format!("这些技能的脚本可获得文件、变量或网络权限：{names}"),
        );
    }
    let calling = settings.skills.grants.iter().filter(|(_, grants)| grants.tools);
    let calling: Vec<&str> = calling.map(|(name, _)| name.as_str()).collect();
    if !calling.is_empty() {
        let names = calling.join(", ");
        add(
            format!(
                "scripts of these skills call tools of the hub, without your approval of the skill: {names}"
            ),
            format!("这些技能的脚本会调用 hub 的工具，且无需你批准技能：{names}"),
        );
    }
    if !settings.skills.allow_missing.is_empty() {
        add(
            "scripts of skills may run with a weaker sandbox".to_owned(),
            "技能的脚本可在较弱的沙箱中运行".to_owned(),
        );
    }
    if let Some(bind) = settings.serve.bind.filter(|bind| !bind.0.ip().is_loopback()) {
        let bind = bind.0;
        add(
            format!("`toolhub serve` would listen to other machines, at {bind}"),
            format!("`toolhub serve` 会接受其他机器的连接（{bind}）"),
        );
    }
    if !settings.serve.hosts.is_empty() || !settings.serve.origins.is_empty() {
        add(
            "`toolhub serve` would accept more hosts or web pages".to_owned(),
            "`toolhub serve` 会接受更多主机名或网页来源".to_owned(),
        );
    }
    for token in &settings.auth.tokens {
        let name = &token.name;
        add(
            format!("`toolhub serve` would accept the token of `{name}`"),
            format!("`toolhub serve` 会接受 `{name}` 的令牌"),
        );
    }
    if let Some(file) =
        settings.serve.access_log.as_ref().filter(|file| !["off", "stderr", ""].contains(&file.trim()))
    {
        add(format!("requests would be written to `{file}`"), format!("请求会写入 `{file}`"));
    }
    if settings.store.required == Some(false) {
        add(
            "calls that change something would run without a record".to_owned(),
            "会改动数据的调用可在没有记录的情况下运行".to_owned(),
        );
    }
    for extras in settings.servers.iter().filter(|extras| !extras.hints.is_empty()) {
        let id = &extras.id;
        add(
            format!("tools of `{id}` would count as harmless (`hints`), and run without a question"),
            format!("`{id}` 的工具会被视为无害（`hints`），运行前不再询问"),
        );
    }
    for (name, agent) in settings.agents.iter().filter(|(_, agent)| agent.instructions.is_some()) {
        let text = with_length(agent.instructions.as_deref().unwrap_or_default());
        add(format!("the model would be told ({name}): {text}"), format!("会告诉模型（{name}）：{text}"));
    }
    let folders = manifests(scan).filter_map(|file| file.parent());
    let sha256 =
        |file: &Path| scan.parts.get(&(WorkspacePart::Skill, file.to_owned())).map(|state| state.sha256);
    capabilities.extend(folders.filter_map(|folder| calling_skills::calls_of(folder, &sha256)));
    capabilities
}

/// The `SKILL.md` files of the folder.
fn manifests(scan: &FolderScan) -> impl Iterator<Item = &PathBuf> {
    let files = scan.parts.keys().filter(|(part, _)| *part == WorkspacePart::Skill).map(|(_, file)| file);
    files.filter(|file| file.file_name().is_some_and(|name| name == toolhub_skills::MANIFEST))
}

/// The skills of the folder, each with its scripts.
fn skills(scan: &FolderScan) -> Vec<ReviewedSkill> {
    let files: Vec<&PathBuf> =
        scan.parts.keys().filter(|(part, _)| *part == WorkspacePart::Skill).map(|(_, file)| file).collect();
    let mut skills = Vec::new();
    for folder in manifests(scan).filter_map(|file| file.parent()) {
        let script = |file: &&&PathBuf| {
            let executable = scan
                .parts
                .get(&(WorkspacePart::Skill, (**file).clone()))
                .is_some_and(|state| state.executable);
            file.starts_with(folder) && (executable || file.starts_with(folder.join("scripts")))
        };
        let scripts = files.iter().filter(script).map(|file| scan.relative(file)).collect();
        skills.push(ReviewedSkill { path: scan.relative(folder), scripts });
    }
    // A single Python file in a folder of skills is a skill, too.
    for root in &scan.skill_folders {
        let single =
            |file: &&&PathBuf| file.parent() == Some(root) && file.extension().is_some_and(|end| end == "py");
        for file in files.iter().filter(single) {
            skills.push(ReviewedSkill { path: scan.relative(file), scripts: vec![scan.relative(file)] });
        }
    }
    skills
}

/// All settings of a TOML text, by their full key.
fn flattened(text: &str) -> Vec<(String, String)> {
    let Ok(document) = text.parse::<DocumentMut>() else { return Vec::new() };
    let mut all = Vec::new();
    add_table(document.as_table(), "", &mut all);
    all
}

fn add_table(table: &dyn TableLike, prefix: &str, all: &mut Vec<(String, String)>) {
    for (key, item) in table.iter() {
        let key = if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") };
        match item {
            Item::Value(Value::InlineTable(inner)) => add_table(inner, &key, all),
            Item::Value(value) => all.push((key.clone(), redacted(&key, value))),
            Item::Table(inner) => add_table(inner, &key, all),
            Item::ArrayOfTables(tables) => {
                for (at, inner) in tables.iter().enumerate() {
                    add_table(inner, &format!("{key}[{at}]"), all);
                }
            }
            Item::None => {}
        }
    }
}

fn redacted(key: &str, value: &Value) -> String {
    let text = value.clone().decorated("", "").to_string();
    let last = key.rsplit('.').next().unwrap_or(key).to_lowercase();
    let secret = SECRET_KEYS.iter().any(|word| last.contains(word)) && value.is_str();
    if secret && !text.contains("${") && !text.contains("://") {
        "\"…\"".to_owned()
    } else {
        with_length(&text)
    }
}

/// The start of a long text, with `…` and the number of its characters.
fn with_length(text: &str) -> String {
    let count = text.chars().count();
    if count <= MAX_SHOWN {
        return text.to_owned();
    }
    let start: String = text.chars().take(MAX_SHOWN).collect();
    format!("{start}… ({count})")
}
