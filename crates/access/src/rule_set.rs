//! Compiles the rules of the configuration into an immutable snapshot.

use std::collections::HashSet;
use std::sync::Arc;

use toolhub_core::json::{canonical_json, fold_key};
use toolhub_core::lang::LocalizedText;
use toolhub_core::principal::LOCAL;
use toolhub_core::{RawJson, Role, Roles};

use crate::argument_schema::ArgumentSchemas;
use crate::decision::RuleId;
use crate::index::Index;
use crate::pattern::Pattern;
use crate::rule::Rule;
use crate::spec::{RuleEffect, RuleError, RuleSpec};

/// An immutable snapshot of all rules. A clone shares the memory.
#[derive(Debug, Clone)]
pub struct RuleSet(Arc<Snapshot>);

#[derive(Debug)]
struct Snapshot {
    specs: Vec<RuleSpec>,
    rules: Vec<Rule>,
    /// The effect of each rule, in less memory than the rules.
    effects: Vec<RuleEffect>,
    index: Index,
    digest: u64,
}

impl RuleSet {
    /// Compiles rules, in the order of the configuration.
    pub fn compile(specs: Vec<RuleSpec>) -> Result<Self, RuleError> {
        let mut names = HashSet::new();
        let mut schemas = ArgumentSchemas::default();
        let mut rules = Vec::with_capacity(specs.len());
        for (index, spec) in specs.iter().enumerate() {
            let error = |problem: Problem| RuleError { index, key: problem.key, text: problem.text };
            let rule = compile_rule(index, spec, &mut schemas).map_err(error)?;
            if !names.insert(Arc::clone(&rule.id.name)) {
                let name = &rule.id.name;
                return Err(error(Problem::new(
                    "name",
                    format!("`{name}` is the name of another rule: names are unique"),
                    format!("`{name}` 已是另一条规则的名称：名称不能重复"),
                )));
            }
            rules.push(rule);
        }
        Ok(Self::new(specs, rules))
    }

    fn new(specs: Vec<RuleSpec>, rules: Vec<Rule>) -> Self {
        let effects = rules.iter().map(|rule| rule.effect).collect();
        let (index, digest) = (Index::new(&rules), digest(&specs));
        Self(Arc::new(Snapshot { specs, rules, effects, index, digest }))
    }

    /// The number of rules.
    pub fn len(&self) -> usize {
        self.0.rules.len()
    }

    /// Whether there is no rule: then roles alone decide.
    pub fn is_empty(&self) -> bool {
        self.0.rules.is_empty()
    }

    /// The rules as configured.
    pub fn specs(&self) -> &[RuleSpec] {
        &self.0.specs
    }

    /// A hash of the content, equal for equal rules in the same order, also in another process. It ties a stored
    /// decision to the rules that it was made with.
    pub fn digest(&self) -> u64 {
        self.0.digest
    }

    pub(crate) fn rules(&self) -> &[Rule] {
        &self.0.rules
    }

    /// The effect of the rule at a position.
    pub(crate) fn effect(&self, position: usize) -> Option<RuleEffect> {
        self.0.effects.get(position).copied()
    }

    pub(crate) fn index(&self) -> &Index {
        &self.0.index
    }
}

impl Default for RuleSet {
    /// No rules.
    fn default() -> Self {
        Self::new(Vec::new(), Vec::new())
    }
}

impl PartialEq for RuleSet {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.specs == other.0.specs
    }
}

/// An error in one key of a rule.
struct Problem {
    key: &'static str,
    text: LocalizedText,
}

impl Problem {
    fn new(key: &'static str, en: impl Into<String>, zh: impl Into<String>) -> Self {
        Self { key, text: LocalizedText::new(en, zh) }
    }
}

fn compile_rule(index: usize, spec: &RuleSpec, schemas: &mut ArgumentSchemas) -> Result<Rule, Problem> {
    let name = match &spec.name {
        None => format!("rule {}", index + 1),
        Some(name) if name.trim().is_empty() => {
            return Err(Problem::new(
                "name",
                "an empty name: remove it or write one",
                "名称为空：请删除该项或填写名称",
            ));
        }
        Some(name) => name.clone(),
    };
    let arguments = match &spec.arguments {
        None => None,
        Some(schema) => {
            let of_key = |text: LocalizedText| Problem { key: "arguments", text };
            Some(schemas.compile(schema).map_err(of_key)?)
        }
    };
    Ok(Rule {
        id: RuleId { index, name: name.into() },
        effect: spec.effect,
        roles: spec.roles.iter().map(|name| compile_role(name)).collect::<Result<Roles, _>>()?,
        groups: compile_literals("groups", &spec.groups)?,
        principals: spec.principals.iter().map(|name| compile_principal(name)).collect::<Result<_, _>>()?,
        profiles: compile_literals("profiles", &spec.profiles)?,
        servers: compile_globs("servers", &spec.servers)?,
        tools: compile_globs("tools", &spec.tools)?,
        tags: compile_literals("tags", &spec.tags)?,
        hints: spec.hints,
        kinds: spec.concerned_kinds(),
        arguments,
        scopes: compile_scopes(spec.scope.as_deref())?,
    })
}

fn compile_role(name: &str) -> Result<Role, Problem> {
    Role::from_name(name).ok_or_else(|| {
        let role_names = Role::ALL.map(|role| format!("`{}`", role.name()));
        Problem::new(
            "roles",
            format!("unknown role `{name}`: use {}", role_names.join(", ")),
            format!("未知角色 `{name}`：可用 {}", role_names.join("、")),
        )
    })
}

/// The pattern of a principal's id. A text that can never be an id is an error, because a rule that forbids would have
/// no effect.
fn compile_principal(name: &str) -> Result<Pattern, Problem> {
    const KEY: &str = "principals";
    check_text(KEY, name)?;
    check_literal(KEY, name)?;
    if fold_key(name) == LOCAL {
        return Ok(Pattern::literal(LOCAL));
    }
    let is_id = match name.split_once(':') {
        None => return Ok(Pattern::literal(&format!("key:{name}"))),
        Some(("key", key)) => !key.is_empty(),
        Some(("oidc", id)) => {
            id.split_once('#').is_some_and(|(issuer, subject)| !issuer.is_empty() && !subject.is_empty())
        }
        Some(_) => false,
    };
    if is_id {
        return Ok(Pattern::literal(name));
    }
    Err(Problem::new(
        KEY,
        format!("`{name}` is not a principal: write `local`, `key:NAME` or `oidc:ISSUER#SUBJECT`"),
        format!("`{name}` 不是主体：请写 `local`、`key:名称` 或 `oidc:签发方#subject`"),
    ))
}

fn compile_literals(key: &'static str, texts: &[String]) -> Result<Vec<Pattern>, Problem> {
    let compile = |text: &String| {
        check_text(key, text)?;
        check_literal(key, text)?;
        Ok(Pattern::literal(text))
    };
    texts.iter().map(compile).collect()
}

fn compile_globs(key: &'static str, texts: &[String]) -> Result<Vec<Pattern>, Problem> {
    let compile = |text: &String| check_text(key, text).map(|()| Pattern::glob(text));
    texts.iter().map(compile).collect()
}

/// Rejects texts that match nothing by mistake.
fn check_text(key: &'static str, text: &str) -> Result<(), Problem> {
    if text.is_empty() {
        return Err(Problem::new(
            key,
            "an empty text: remove it, or leave the list out to match everything",
            "内容为空：请删除该项；省略整个列表表示匹配全部",
        ));
    }
    if text.trim() != text {
        return Err(Problem::new(
            key,
            format!("`{text}` starts or ends with white space"),
            format!("`{text}` 首尾有空白字符"),
        ));
    }
    Ok(())
}

fn check_literal(key: &'static str, text: &str) -> Result<(), Problem> {
    if !text.contains('*') {
        return Ok(());
    }
    Err(Problem::new(
        key,
        format!(
            "`{text}`: `*` has a meaning in `servers` and `tools` only; leave `{key}` out to match everything"
        ),
        format!("`{text}`：`*` 只在 `servers` 和 `tools` 中有效；省略 `{key}` 表示匹配全部"),
    ))
}

fn compile_scopes(scope: Option<&str>) -> Result<Vec<Arc<str>>, Problem> {
    let Some(scope) = scope else { return Ok(Vec::new()) };
    let scopes: Vec<Arc<str>> = scope.split_whitespace().map(Arc::from).collect();
    // The characters of a scope in RFC 6749, section 3.3. Others could not be sent in a challenge.
    let is_valid = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    if scopes.is_empty() || !scopes.iter().all(|scope| scope.bytes().all(is_valid)) {
        return Err(Problem::new(
            "scope",
            format!("`{scope}` is not a scope: use printable ASCII without quotes and backslashes"),
            format!("`{scope}` 不是 scope：只能使用可打印的 ASCII 字符，不含引号和反斜杠"),
        ));
    }
    Ok(scopes)
}

/// FNV-1a over the canonical JSON of each rule. Rules come from the owner, so that no collision is constructed.
fn digest(specs: &[RuleSpec]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    specs.iter().fold(OFFSET, |hash, spec| {
        let raw = RawJson::of(spec);
        let text = canonical_json(raw.get()).unwrap_or_else(|| raw.get().to_owned());
        let bytes = text.bytes().chain([b'\n']);
        bytes.fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
    })
}
