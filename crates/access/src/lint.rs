//! Warns about valid rules that probably permit more than their author meant.

use serde_json::Value;
use toolhub_core::lang::{Lang, Localize, LocalizedText};

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

fn warn(spec: &RuleSpec) -> Vec<(&'static str, LocalizedText)> {
    let mut found = Vec::new();
    if spec.effect == RuleEffect::Forbid && spec.scope.is_some() {
        let text = LocalizedText::new(
            "has no effect on a rule that forbids: use `ask` or `allow`",
            "对 forbid 规则不起作用：请改用 `ask` 或 `allow`",
        );
        found.push(("scope", text));
    }
    let schema = spec.arguments.as_ref().filter(|_| spec.effect == RuleEffect::Allow);
    let Some(properties) = schema.and_then(|schema| schema["properties"].as_object()) else { return found };
    for (name, property) in properties {
        let required = schema.and_then(|schema| schema["required"].as_array());
        if !required.is_some_and(|names| names.iter().any(|required| required == name)) {
            let text = LocalizedText::new(
                format!(
                    "allows calls without `{name}`: add it to `required`, or the server's default is used"
                ),
                format!("允许不带 `{name}` 的调用：请把它加入 `required`，否则会使用服务器的默认值"),
            );
            found.push(("arguments", text));
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
            found.push(("arguments", text));
        }
    }
    found
}
