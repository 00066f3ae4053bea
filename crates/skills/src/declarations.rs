//! Tools that a skill declares in its metadata: scripts with a name, a description and a JSON Schema.

use std::borrow::Cow;
use std::path::{Component, Path};

use serde_json::{Map, Value, json};
use toolhub_core::lang::LocalizedText;
use toolhub_core::{Hints, RawJson};

use crate::diagnostic::{Diagnostic, Severity};
use crate::grants::{GRANT_KEYS, SkillGrants};
use crate::yaml::{self, NodeContent, YamlError, YamlMember, YamlNode};

/// The key of toolhub's section in `metadata`.
const METADATA_KEY: &str = "toolhub";
/// Maximum number of tools per skill.
const MAX_TOOLS: usize = 64;
/// Maximum length of a tool name.
const MAX_TOOL_NAME_CHARS: usize = 64;
const TOOL_KEYS: [&str; 7] = ["name", "description", "script", "runtime", "input", "hints", "tags"];
/// The `runtime` of scripts that call tools.
const CALLING_RUNTIME: &str = "toolhub";
const HINT_KEYS: [&str; 4] = ["read_only", "destructive", "idempotent", "open_world"];

/// How a tool's file is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Runner {
    /// An executable script.
    Script,
    /// A Python file with a class of this name.
    PythonClass(String),
    /// JavaScript that calls the tools of its caller, in a process without files and network.
    Calling,
}

/// A tool of a skill.
#[derive(Debug, Clone)]
pub struct SkillTool {
    /// The name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The file to run, relative to the skill's folder, with `/` as separator.
    pub file: String,
    /// How the file is run.
    pub runner: Runner,
    /// The JSON Schema of the arguments.
    pub schema: RawJson,
    /// The declared effects.
    pub hints: Hints,
    /// The declared capability tags.
    pub tags: Vec<String>,
}

/// The declarations of a skill's metadata.
#[derive(Debug, Default)]
pub(crate) struct Declarations {
    pub(crate) tools: Vec<SkillTool>,
    pub(crate) requested: SkillGrants,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Reads toolhub's section of the metadata of the skill in `folder`.
pub(crate) fn read(file: &Path, tree: &YamlNode, folder: &Path) -> Declarations {
    let mut reader = Reader { file, folder, declarations: Declarations::default() };
    match found(tree) {
        None => {}
        Some(Ok(node)) => reader.toolhub_metadata(&node),
        Some(Err((line, error))) => {
            let problem = &error.problem;
            reader.report_error(
                line,
                LocalizedText::new(
                    format!("`{METADATA_KEY}` cannot be read: {problem}"),
                    format!("无法读取 `{METADATA_KEY}`：{problem}"),
                ),
                LocalizedText::new("write it as YAML or JSON", "请写成 YAML 或 JSON"),
            );
        }
    }
    reader.declarations
}

/// Returns toolhub's section of the metadata if it can be parsed.
pub(crate) fn toolhub_metadata(tree: &YamlNode) -> Option<Cow<'_, YamlNode>> {
    found(tree)?.ok()
}

/// As `toolhub_metadata`, with the line number and the reason if the section cannot be parsed.
fn found(tree: &YamlNode) -> Option<Result<Cow<'_, YamlNode>, (usize, YamlError)>> {
    let toolhub_metadata = tree.get("metadata").and_then(|metadata| metadata.node.get(METADATA_KEY))?;
    // Some readers accept only strings as metadata values, so the section may also be a string that contains YAML.
    let Some(text) = toolhub_metadata.node.text() else {
        return Some(Ok(Cow::Borrowed(&toolhub_metadata.node)));
    };
    Some(match yaml::parse(text) {
        Ok(mut node) => {
            flatten(&mut node, toolhub_metadata.line);
            Ok(Cow::Owned(node))
        }
        Err(error) => Err((toolhub_metadata.line, error)),
    })
}

/// Sets all line numbers of an embedded YAML string to the line of that string.
fn flatten(node: &mut YamlNode, line: usize) {
    node.line = line;
    match &mut node.part {
        NodeContent::Scalar(_) => {}
        NodeContent::List(items) => items.iter_mut().for_each(|item| flatten(item, line)),
        NodeContent::Map(members) => {
            for member in members {
                member.line = line;
                flatten(&mut member.node, line);
            }
        }
    }
}

struct Reader<'a> {
    file: &'a Path,
    folder: &'a Path,
    declarations: Declarations,
}

impl Reader<'_> {
    fn report_error(&mut self, line: usize, problem: LocalizedText, remedy: LocalizedText) {
        let diagnostic = Diagnostic::new(self.file, Severity::Error, problem, remedy);
        self.declarations.diagnostics.push(diagnostic.at(line));
    }

    fn report_missing(&mut self, line: usize, key: &str) {
        self.report_error(
            line,
            LocalizedText::new(format!("a tool without `{key}`"), format!("工具缺少 `{key}`")),
            LocalizedText::new(format!("write `{key}: …`"), format!("请写 `{key}: …`")),
        );
    }

    fn unknown(&mut self, node: &YamlNode, known: &[&str]) {
        for member in node.members().iter().filter(|member| !known.contains(&member.key.as_str())) {
            let (key, list) = (&member.key, known.join("`, `"));
            self.report_error(
                member.line,
                LocalizedText::new(format!("unknown key `{key}`"), format!("未知的键 `{key}`")),
                LocalizedText::new(format!("there are `{list}`"), format!("可用的有 `{list}`")),
            );
        }
    }

    fn toolhub_metadata(&mut self, node: &YamlNode) {
        self.unknown(node, &["tools", "grants"]);
        if let Some(grants) = node.get("grants") {
            self.grants(grants);
        }
        let Some(tools) = node.get("tools") else { return };
        let NodeContent::List(items) = &tools.node.part else {
            self.report_error(
                tools.line,
                LocalizedText::new("`tools` must be a list", "`tools` 应为列表"),
                LocalizedText::new(
                    "write each tool as `- name: …` with its other fields below",
                    "每个工具写成 `- name: …`，其余字段写在下面",
                ),
            );
            return;
        };
        for item in items.iter().take(MAX_TOOLS) {
            if let Some(tool) = self.tool(item) {
                self.declarations.tools.push(tool);
            }
        }
        if items.len() > MAX_TOOLS {
            self.report_error(
                tools.line,
                LocalizedText::new(
                    format!("all tools after the first {MAX_TOOLS} are left out"),
                    format!("前 {MAX_TOOLS} 个之后的工具被略过"),
                ),
                LocalizedText::new("make several skills of it", "请拆成多个技能"),
            );
        }
    }

    fn grants(&mut self, member: &YamlMember) {
        self.unknown(&member.node, &GRANT_KEYS);
        match serde_json::from_value(member.node.value()) {
            Ok(grants) => self.declarations.requested = grants,
            Err(error) => self.report_error(
                member.line,
                LocalizedText::new(
                    format!("`grants` cannot be read: {error}"),
                    format!("无法读取 `grants`：{error}"),
                ),
                LocalizedText::new(
                    "write `read: [\".\"]`, `write: []`, `network: true`, `environment: [NAME]`",
                    "请写 `read: [\".\"]`、`write: []`、`network: true`、`environment: [NAME]`",
                ),
            ),
        }
    }

    fn tool(&mut self, node: &YamlNode) -> Option<SkillTool> {
        self.unknown(node, &TOOL_KEYS);
        let text = |key: &str| {
            node.get(key).and_then(|member| member.node.text()).map(str::trim).filter(|text| !text.is_empty())
        };
        let Some(name) = text("name") else {
            self.report_missing(node.line, "name");
            return None;
        };
        if name.len() > MAX_TOOL_NAME_CHARS
            || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        {
            self.report_error(
                line_of(node, "name"),
                LocalizedText::new(
                    format!(
                        "`{}` is no name for a tool",
                        toolhub_core::text::truncate(name, 80).unwrap_or_else(|| name.to_owned())
                    ),
                    "工具名不合规则",
                ),
                LocalizedText::new(
                    "use up to 64 letters, digits, `_` and `-`",
                    "请用至多 64 个字母、数字、`_` 和 `-`",
                ),
            );
            return None;
        }
        if self.declarations.tools.iter().any(|tool| tool.name == name) {
            self.report_error(
                line_of(node, "name"),
                LocalizedText::new(
                    format!("two tools are called `{name}`"),
                    format!("有两个工具叫 `{name}`"),
                ),
                LocalizedText::new("give each a name of its own", "请各用不同的名称"),
            );
            return None;
        }
        let Some(description) = text("description") else {
            self.report_missing(node.line, "description");
            return None;
        };
        let Some(script) = text("script") else {
            self.report_missing(node.line, "script");
            return None;
        };
        self.script(line_of(node, "script"), script)?;
        let runner = self.runner(node, script)?;
        let schema = self.schema(node)?;
        let (hints, tags) = (self.hints(node), self.tags(node));
        Some(SkillTool {
            name: name.to_owned(),
            description: description.to_owned(),
            file: script.to_owned(),
            runner,
            schema,
            hints,
            tags,
        })
    }

    /// Checks that a script is a regular file in `scripts/`, not a symbolic link.
    fn script(&mut self, line: usize, script: &str) -> Option<()> {
        let path = Path::new(script);
        let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        if !plain || !path.starts_with("scripts") {
            self.report_error(
                line,
                LocalizedText::new(
                    format!("`{script}` is not in `scripts/`"),
                    format!("`{script}` 不在 `scripts/` 中"),
                ),
                LocalizedText::new(
                    "put it there, and write `script: scripts/NAME`",
                    "请放到那里，并写 `script: scripts/文件名`",
                ),
            );
            return None;
        }
        match std::fs::symlink_metadata(self.folder.join(path)) {
            Ok(found) if found.is_file() => Some(()),
            Ok(_) => {
                self.report_error(
                    line,
                    LocalizedText::new(format!("`{script}` is no file"), format!("`{script}` 不是文件")),
                    LocalizedText::new("name a file, not a folder or a link", "请指定文件，而不是目录或链接"),
                );
                None
            }
            Err(_) => {
                self.report_error(
                    line,
                    LocalizedText::new(format!("there is no `{script}`"), format!("没有 `{script}`")),
                    LocalizedText::new("write the script, or mend its name", "请写好脚本，或改正文件名"),
                );
                None
            }
        }
    }

    /// Reads `runtime`. Without it, the script is a program of its own.
    fn runner(&mut self, node: &YamlNode, script: &str) -> Option<Runner> {
        let Some(runtime) = node.get("runtime") else { return Some(Runner::Script) };
        let name = runtime.node.text().map(str::trim).unwrap_or_default();
        if name != CALLING_RUNTIME {
            self.report_error(
                runtime.line,
                LocalizedText::new(format!("unknown runtime `{name}`"), format!("未知的运行环境 `{name}`")),
                LocalizedText::new(
                    format!(
                        "write `runtime: {CALLING_RUNTIME}` for JavaScript that calls tools, or leave it out"
                    ),
                    format!("调用工具的 JavaScript 请写 `runtime: {CALLING_RUNTIME}`，否则请省略"),
                ),
            );
            return None;
        }
        if !script.ends_with(".js") {
            self.report_error(
                runtime.line,
                LocalizedText::new(
                    format!("`{script}` is not JavaScript, which `runtime: {CALLING_RUNTIME}` needs"),
                    format!("`runtime: {CALLING_RUNTIME}` 需要 JavaScript，而 `{script}` 不是"),
                ),
                LocalizedText::new("end its name in .js", "文件名请以 .js 结尾"),
            );
            return None;
        }
        // It reaches more than its own folder, so that even a skill of the user needs an approval.
        self.declarations.requested.tools = true;
        Some(Runner::Calling)
    }

    /// Reads the schema of an object. If only the properties are given, completes the rest.
    fn schema(&mut self, node: &YamlNode) -> Option<RawJson> {
        let Some(input) = node.get("input") else {
            return Some(RawJson::from(json!({"type": "object", "properties": {}})));
        };
        let Value::Object(mut schema) = input.node.value() else {
            self.report_error(
                input.line,
                LocalizedText::new(
                    "`input` must be a JSON Schema of an object",
                    "`input` 应为对象的 JSON Schema",
                ),
                LocalizedText::new(
                    "write `input: {type: object, properties: {…}, required: […]}`",
                    "请写 `input: {type: object, properties: {…}, required: […]}`",
                ),
            );
            return None;
        };
        match schema.get("type") {
            None => {
                let mut complete = Map::new();
                complete.insert("type".to_owned(), json!("object"));
                complete.extend(schema);
                schema = complete;
            }
            Some(kind) if kind == "object" => {}
            Some(kind) => {
                self.report_error(
                    input.line,
                    LocalizedText::new(
                        format!("`input` is a schema of {kind}, where an object is needed"),
                        format!("`input` 的类型是 {kind}，应为对象"),
                    ),
                    LocalizedText::new("write `type: object`", "请写 `type: object`"),
                );
                return None;
            }
        }
        Some(RawJson::from(Value::Object(schema)))
    }

    fn hints(&mut self, node: &YamlNode) -> Hints {
        let Some(hints) = node.get("hints") else { return Hints::default() };
        self.unknown(&hints.node, &HINT_KEYS);
        match serde_json::from_value(hints.node.value()) {
            Ok(hints) => hints,
            Err(error) => {
                self.report_error(
                    hints.line,
                    LocalizedText::new(
                        format!("`hints` cannot be read: {error}"),
                        format!("无法读取 `hints`：{error}"),
                    ),
                    LocalizedText::new("write `hints: {read_only: true}`", "请写 `hints: {read_only: true}`"),
                );
                Hints::default()
            }
        }
    }

    fn tags(&mut self, node: &YamlNode) -> Vec<String> {
        let Some(tags) = node.get("tags") else { return Vec::new() };
        match serde_json::from_value(tags.node.value()) {
            Ok(tags) => tags,
            Err(_) => {
                self.report_error(
                    tags.line,
                    LocalizedText::new("`tags` must be a list of words", "`tags` 应为词的列表"),
                    LocalizedText::new("write `tags: [table, read]`", "请写 `tags: [table, read]`"),
                );
                Vec::new()
            }
        }
    }
}

fn line_of(node: &YamlNode, key: &str) -> usize {
    node.get(key).map_or(node.line, |member| member.line)
}
