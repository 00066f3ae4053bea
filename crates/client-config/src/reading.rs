//! Reads one entry of a client: converts its variables into our syntax, and its relative paths into absolute ones.

use std::path::{Path, PathBuf};

use serde_json::Value;
use toolhub_core::lang::LocalizedText;
use toolhub_core::{OAuthSpec, Secret};

use crate::entry::{ClientServer, Extras, ReadResult, UnusableEntry};
use crate::environment::{ClientEnvironment, FileScope, OperatingSystem};
use crate::fields::Fields;
use crate::transport::TransportSpec;
use crate::variables::{Variable, format_variable, is_variable_name, map_bare, map_braced, to_variable_name};

/// The location of a file, as far as its values depend on it.
#[derive(Debug, Clone)]
pub(crate) struct ReadContext {
    /// The folder of the project that the file belongs to.
    pub(crate) workspace: Option<PathBuf>,
    /// The current folder.
    pub(crate) folder: PathBuf,
    /// The input prompts of VS Code: id and default.
    pub(crate) inputs: Vec<(String, Option<String>)>,
    pub(crate) windows: bool,
}

/// The variable syntax of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VariableSyntax {
    /// `${VAR}` and `${VAR:-default}`, as in toolhub.
    Toolhub,
    /// The same, and `$VAR`.
    Shell,
    /// `${env:VAR}`, `${workspaceFolder}` and others.
    Editor,
    /// None: the client expands no variables.
    Unsupported,
}

/// The result of a client's own reader for an entry.
pub(crate) struct ParsedEntry {
    pub(crate) transport: TransportSpec,
    pub(crate) variable_syntax: VariableSyntax,
    pub(crate) enabled: bool,
    pub(crate) extras: Extras,
    pub(crate) notes: Vec<LocalizedText>,
}

impl ParsedEntry {
    pub(crate) fn new(transport: TransportSpec, variable_syntax: VariableSyntax) -> Self {
        Self { transport, variable_syntax, enabled: true, extras: Extras::default(), notes: Vec::new() }
    }

    /// Reads `type`, `command`, `url` and their related fields, and the common `enabled` and `disabled` flags.
    pub(crate) fn common(
        fields: &mut Fields<'_>,
        variable_syntax: VariableSyntax,
    ) -> Result<Self, LocalizedText> {
        let mut read = Self::new(fields.transport()?, variable_syntax);
        read.enabled = fields.flag("enabled").unwrap_or(true) && !fields.flag("disabled").unwrap_or(false);
        Ok(read)
    }
}

impl ReadContext {
    pub(crate) fn new(scope: &FileScope, environment: &ClientEnvironment) -> Self {
        let workspace = match scope {
            FileScope::User => None,
            FileScope::Project(folder) => Some(folder.clone()),
        };
        let windows = environment.system == OperatingSystem::Windows;
        Self { workspace, folder: environment.folder.clone(), inputs: Vec::new(), windows }
    }

    /// Reads one entry with the client's reader `read`.
    pub(crate) fn entry(
        &self,
        id: &str,
        value: &Value,
        read: impl FnOnce(&mut Fields<'_>) -> Result<ParsedEntry, LocalizedText>,
    ) -> ReadResult {
        let unusable = |why| UnusableEntry { id: id.to_owned(), why };
        let mut fields = Fields::of(value).map_err(unusable)?;
        let ParsedEntry { mut transport, variable_syntax, enabled, mut extras, notes } =
            read(&mut fields).map_err(unusable)?;
        let mut translator =
            Translator { context: self, variable_syntax, left_out: fields.left_out(), notes };
        translator.transport(&mut transport);
        translator.login(&mut extras.oauth);
        translator.make_paths_absolute(&mut transport);
        let Translator { left_out, notes, .. } = translator;
        Ok(ClientServer { id: id.to_owned(), transport, enabled, extras, left_out, notes })
    }
}

/// Converts the values of one entry into our syntax.
struct Translator<'a> {
    context: &'a ReadContext,
    variable_syntax: VariableSyntax,
    left_out: Vec<String>,
    notes: Vec<LocalizedText>,
}

impl Translator<'_> {
    fn transport(&mut self, transport: &mut TransportSpec) {
        match transport {
            TransportSpec::Stdio(spec) => {
                spec.command = self.text(&spec.command);
                spec.args.iter_mut().for_each(|arg| *arg = self.text(arg));
                spec.env.iter_mut().for_each(|(_, value)| *value = self.text(value));
                spec.cwd = spec.cwd.take().map(|folder| self.text(&folder.to_string_lossy()).into());
            }
            TransportSpec::Http(spec) | TransportSpec::Sse(spec) => {
                spec.url = self.text(&spec.url);
                spec.headers.iter_mut().for_each(|(_, value)| *value = self.text(value));
            }
        }
    }

    fn login(&mut self, login: &mut OAuthSpec) {
        login.client_id = login.client_id.take().map(|id| self.text(&id));
        let secret = login.client_secret.take();
        login.client_secret = secret.map(|secret| Secret::new(self.text(secret.expose())));
    }

    fn text(&mut self, text: &str) -> String {
        match self.variable_syntax {
            VariableSyntax::Toolhub => text.to_owned(),
            VariableSyntax::Shell => {
                map_bare(text, &mut |name| is_variable_name(name).then(|| format_variable(name, None)))
            }
            VariableSyntax::Editor => map_braced(text, &mut |inner| self.editor(inner)),
            VariableSyntax::Unsupported => map_braced(text, &mut |inner| self.note_literal(inner)),
        }
    }

    /// Converts a variable of VS Code and Cursor.
    fn editor(&mut self, inner: &str) -> Option<String> {
        let workspace = self.context.workspace.as_deref();
        match inner.split_once(':') {
            Some(("env", name)) if is_variable_name(name) => return Some(format_variable(name, None)),
            Some(("input", id)) => return Some(self.input(id)),
            _ => {}
        }
        match (inner, workspace) {
            ("userHome", _) => {
                Some(format_variable(if self.context.windows { "USERPROFILE" } else { "HOME" }, None))
            }
            ("pathSeparator" | "/", _) => Some(if self.context.windows { "\\" } else { "/" }.to_owned()),
            ("workspaceFolder", Some(folder)) => Some(folder.to_string_lossy().into_owned()),
            ("workspaceFolder", None) => {
                self.note(LocalizedText::new(
                    "the workspace's folder became the one that toolhub is run in: it starts only in folders that you trust, unless you write an absolute path instead",
                    "工作区目录改为运行 toolhub 时所在的目录：除非改写为绝对路径，否则只在受信任的目录中启动",
                ));
                Some(format_variable("PWD", Some(".")))
            }
            ("workspaceFolderBasename", Some(folder)) => {
                Some(folder.file_name().unwrap_or_default().to_string_lossy().into_owned())
            }
            _ if Variable::inner(inner).is_some() && !EDITOR_ONLY.contains(&inner) => {
                self.note_literal(inner)
            }
            _ => {
                self.left_out.push(format!("${{{inner}}}"));
                None
            }
        }
    }

    fn input(&mut self, id: &str) -> String {
        let known = self.context.inputs.iter().find(|(input, _)| input == id);
        let default = known.and_then(|(_, default)| default.as_deref());
        let name = to_variable_name(id);
        if default.is_none() {
            self.note(LocalizedText::new(
                format!("set the variable `{name}`: VS Code asked you for it (input `{id}`)"),
                format!("请设置环境变量 `{name}`：VS Code 会向你询问它（输入 `{id}`）"),
            ));
        }
        format_variable(&name, default)
    }

    /// Adds a note for text that is a variable in toolhub, but not for the client.
    fn note_literal(&mut self, inner: &str) -> Option<String> {
        if let Some(Variable { name, .. }) = Variable::inner(inner) {
            self.note(LocalizedText::new(
                format!("`${{{name}}}` was text there, and is a variable here"),
                format!("`${{{name}}}` 在原处是普通文本，在此是变量"),
            ));
        }
        None
    }

    fn note(&mut self, note: LocalizedText) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Adds a note for a working directory that is another one in each current folder.
    fn note_relative_folder(&mut self, cwd: Option<&Path>) {
        let Some(cwd) = cwd.filter(|cwd| cwd.is_relative() && !cwd.to_string_lossy().starts_with("${"))
        else {
            return;
        };
        let cwd = cwd.display();
        self.note(LocalizedText::new(
            format!("its folder `{cwd}` counts from the one that toolhub is run in: it starts only in folders that you trust, unless you write an absolute path instead"),
            format!("其工作目录 `{cwd}` 从运行 toolhub 时所在的目录算起：除非改写为绝对路径，否则只在受信任的目录中启动"),
        ));
    }

    /// Makes paths absolute: project files use paths relative to the project, while `mcp.json` is used from any folder.
    fn make_paths_absolute(&mut self, transport: &mut TransportSpec) {
        let TransportSpec::Stdio(spec) = transport else { return };
        let Some(workspace) = &self.context.workspace else {
            self.note_relative_folder(spec.cwd.as_deref());
            return;
        };
        let relative = |text: &str| ["./", "../", ".\\", "..\\"].iter().any(|head| text.starts_with(head));
        match &spec.cwd {
            Some(folder) if folder.is_relative() && !folder.to_string_lossy().contains("${") => {
                let folder = folder.strip_prefix("./").unwrap_or(folder);
                spec.cwd =
                    Some(if folder == Path::new(".") { workspace.clone() } else { workspace.join(folder) });
            }
            None if relative(&spec.command) || spec.args.iter().any(|arg| relative(arg)) => {
                spec.cwd = Some(workspace.clone());
                let folder = workspace.display();
                self.note(LocalizedText::new(
                    format!("it is started in `{folder}`, from where its paths count"),
                    format!("将在 `{folder}` 中启动，其路径由此算起"),
                ));
            }
            _ => {}
        }
    }
}

/// Variables of VS Code that toolhub cannot replace here.
const EDITOR_ONLY: [&str; 15] = [
    "file",
    "fileWorkspaceFolder",
    "relativeFile",
    "relativeFileDirname",
    "fileBasename",
    "fileBasenameNoExtension",
    "fileExtname",
    "fileDirname",
    "fileDirnameBasename",
    "cwd",
    "lineNumber",
    "columnNumber",
    "selectedText",
    "execPath",
    "workspaceFolderBasename",
];
