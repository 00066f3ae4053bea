//! Warns about valid rules that probably do not do what their author meant.

use std::borrow::Cow;

use serde_json::Value;
use toolhub_core::lang::{Lang, Localize, LocalizedText};

use crate::pattern::{FoldedName, Pattern};
use crate::request::ItemKind;
use crate::rule_set::RuleSet;
use crate::spec::{RuleEffect, RuleSpec};

/// A rule that is valid, and may not do what it seems to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleWarning {
    /// Position of the rule in the list, from 0.
    pub index: usize,
    /// The key of the rule.
    pub key: &'static str,
    /// The effect, and what to write.
    pub text: LocalizedText,
}

impl Localize for RuleWarning {
    fn localize(&self, lang: Lang) -> String {
        let (number, key, text) = (self.index + 1, self.key, self.text.localize(lang));
        lang.choose(
            format!("`[[auth.rules]]` {number}, `{key}`: {text}"),
            format!("第 {number} 条 `[[auth.rules]]` 的 `{key}`：{text}"),
        )
    }
}

/// Keywords that constrain strings only.
const OF_STRINGS: [&str; 4] = ["pattern", "format", "minLength", "maxLength"];

impl RuleSet {
    /// Warnings about the rules, for `doctor` and for checks of the configuration.
    pub fn warnings(&self) -> Vec<RuleWarning> {
        let of_rule = |(index, spec): (usize, &RuleSpec)| {
            warn(spec).into_iter().map(move |(key, text)| RuleWarning { index, key, text })
        };
        self.specs().iter().enumerate().flat_map(of_rule).collect()
    }
}

/// The names that exist, as far as they are known.
#[derive(Debug, Clone, Default)]
pub struct KnownNames {
    /// The names of the keys.
    pub keys: Vec<String>,
    /// The names of the profiles.
    pub profiles: Vec<String>,
    /// The ids of the servers.
    pub servers: Vec<String>,
    /// Every name of every tool, and each also as `SERVER__NAME`; `None` unless all servers have been listed.
    pub tools: Option<Vec<String>>,
}

impl RuleSet {
    /// Warnings about names in the rules that do not exist, probably because they are misspelled. Principals of identity
    /// providers, and prompts, resources and skills, are not known in advance.
    pub fn unknown_names(&self, known: &KnownNames) -> Vec<RuleWarning> {
        let keys: Vec<String> = known.keys.iter().map(|name| format!("key:{name}")).collect();
        let mut servers = known.servers.clone();
        servers.extend(["native".to_owned(), "skill".to_owned()]);
        let mut warnings = Vec::new();
        for (index, rule) in self.rules().iter().enumerate() {
            let mut check = |key: &'static str, patterns: &[Pattern], names: &[String]| {
                // Other principals than keys are not known in advance.
                let is_checked =
                    |pattern: &&Pattern| key != "principals" || pattern.text().starts_with("key:");
                let unmatched = |pattern: &&Pattern| !matches_any(pattern, names);
                for pattern in patterns.iter().filter(is_checked).filter(unmatched) {
                    warnings.push(RuleWarning { index, key, text: unknown(key, pattern.text()) });
                }
            };
            check("principals", &rule.principals, &keys);
            check("profiles", &rule.profiles, &known.profiles);
            check("servers", &rule.servers, &servers);
            if let Some(tools) = known.tools.as_ref().filter(|_| rule.kinds == [ItemKind::Tool]) {
                check("tools", &rule.tools, tools);
            }
        }
        warnings
    }
}

fn matches_any(pattern: &Pattern, names: &[String]) -> bool {
    names.iter().any(|name| pattern.matches(&FoldedName::new(Cow::Borrowed(name))).is_some())
}

fn unknown(key: &str, name: &str) -> LocalizedText {
    match key {
        "principals" => LocalizedText::new(
            format!("there is no key for `{name}`: `toolhub keys list` shows the keys"),
            format!("`{name}` 没有对应的密钥：可用 `toolhub keys list` 查看"),
        ),
        "profiles" => LocalizedText::new(
            format!("there is no profile `{name}`"),
            format!("没有名为 `{name}` 的配置方案"),
        ),
        "servers" => LocalizedText::new(
            format!("no server fits `{name}`: `toolhub servers` shows their ids"),
            format!("没有服务器与 `{name}` 匹配：可用 `toolhub servers` 查看"),
        ),
        _ => LocalizedText::new(
            format!("no tool fits `{name}`: `toolhub tools` shows them"),
            format!("没有工具与 `{name}` 匹配：可用 `toolhub tools` 查看"),
        ),
    }
}

fn warn(spec: &RuleSpec) -> Vec<(&'static str, LocalizedText)> {
    let mut warnings = Vec::new();
    if spec.effect == RuleEffect::Forbid && spec.scope.is_some() {
        let text = LocalizedText::new(
            "has no effect on a rule that forbids: use `ask` or `allow`",
            "对 forbid 规则不起作用：请改用 `ask` 或 `allow`",
        );
        warnings.push(("scope", text));
    }
    let schema = spec.arguments.as_ref().filter(|_| spec.effect == RuleEffect::Allow);
    let Some(properties) = schema.and_then(|schema| schema["properties"].as_object()) else {
        return warnings;
    };
    for (name, property) in properties {
        let required = schema.and_then(|schema| schema["required"].as_array());
        if !required.is_some_and(|names| names.iter().any(|required| required == name)) {
            let text = LocalizedText::new(
                format!(
                    "allows calls without `{name}`: add it to `required`, or the server's default is used"
                ),
                format!("允许不带 `{name}` 的调用：请把它加入 `required`，否则会使用服务器的默认值"),
            );
            warnings.push(("arguments", text));
        }
        let of_strings = OF_STRINGS.iter().find(|keyword| property.get(keyword).is_some());
        if let Some(keyword) = of_strings
            && property.get("type").and_then(Value::as_str) != Some("string")
        {
            let text = LocalizedText::new(
                format!(
                    "`{keyword}` of `{name}` accepts every value that is not a string: add `type = \"string\"`"
                ),
                format!("`{name}` 的 `{keyword}` 会接受任何非字符串的值：请加上 `type = \"string\"`"),
            );
            warnings.push(("arguments", text));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_not_exist_are_reported_and_unknowable_ones_are_not() {
        let texts = |list: &[&str]| -> Vec<String> { list.iter().map(|text| (*text).to_owned()).collect() };
        let known = KnownNames {
            keys: texts(&["ann"]),
            profiles: texts(&["default"]),
            servers: texts(&["stock"]),
            tools: Some(texts(&["get_stock", "stock__get_stock"])),
        };
        let rule = |change: &dyn Fn(&mut RuleSpec)| {
            let mut spec = RuleSpec::new(RuleEffect::Allow);
            change(&mut spec);
            spec
        };
        let rules = [
            rule(&|spec| spec.principals = texts(&["ann", "key:bob", "local", "oidc:https://idp#x", "cleo"])),
            rule(&|spec| spec.profiles = texts(&["default", "offce"])),
            rule(&|spec| spec.servers = texts(&["stock", "native", "s*", "stok"])),
            rule(&|spec| spec.tools = texts(&["*_stock", "stock__*", "GET_STOCK", "get_stok"])),
            rule(&|spec| {
                spec.tools = texts(&["note://x"]);
                spec.kinds = vec![ItemKind::Tool, ItemKind::Resource];
            }),
        ];
        let rules = RuleSet::compile(rules.to_vec()).unwrap();
        let found = |known: &KnownNames| -> Vec<(usize, &'static str)> {
            rules.unknown_names(known).iter().map(|warning| (warning.index, warning.key)).collect()
        };
        let expected = [(0, "principals"), (0, "principals"), (1, "profiles"), (2, "servers"), (3, "tools")];
        assert_eq!(found(&known), expected);
        assert_eq!(found(&KnownNames { tools: None, ..known }), expected[..4]);
    }
}
