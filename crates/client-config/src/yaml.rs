//! YAML: entries are inserted and removed as whole lines, and every other line is unchanged. Edits that are not possible in
//! whole lines are refused; the caller verifies the result.

use std::path::Path;

use serde_json::{Map, Value};
use toolhub_core::lang::LocalizedText;

use crate::error::ConfigError;
use crate::source::{Entries, Obstacle, SourceFile, not_an_object};
use crate::yaml_text::serialize_entry;
use crate::yaml_tree::{Node, NodeContent, tree};

pub(crate) fn parse(file: &Path, text: &str) -> Result<Value, ConfigError> {
    match tree(file, text)?.map(|root| root.value()) {
        None | Some(Value::Null) => Ok(Value::Object(Map::new())),
        Some(document) if document.is_object() => Ok(document),
        Some(_) => Err(not_an_object(file, &[])),
    }
}

pub(crate) fn insert(source: SourceFile<'_>, path: &[&str], entries: &Entries) -> Result<String, Obstacle> {
    let [key] = path else {
        return Err(Obstacle::Unsafe(LocalizedText::new("no place for it", "没有合适的位置")));
    };
    let root = tree(source.file, source.text)?;
    let mut lines = Lines::of(source);
    match root.as_ref() {
        Some(root) if !root.is_null() => lines.put(root, key, entries)?,
        _ => lines.append(key, entries),
    }
    Ok(lines.to_text())
}

pub(crate) fn remove(source: SourceFile<'_>, path: &[&str], ids: &[&str]) -> Result<String, Obstacle> {
    let [key] = path else {
        return Err(Obstacle::Unsafe(LocalizedText::new("no place for it", "没有合适的位置")));
    };
    let root = tree(source.file, source.text)?;
    let block = root.as_ref().and_then(|root| root.get(key)).map(|(_, block)| block);
    let Some(block) = block else { return Err(not_an_object(source.file, &[key]).into()) };
    let NodeContent::Object { members, .. } = &block.content else {
        return Err(not_an_object(source.file, &[key]).into());
    };
    if block.flow || root.as_ref().is_some_and(|root| root.flow) {
        return Err(flow_style_error());
    }
    let mut lines = Lines::of(source);
    let removed = members
        .iter()
        .enumerate()
        .filter(|(_, (name, _))| name.text().is_some_and(|name| ids.contains(&name)));
    let ranges: Vec<_> = removed
        .map(|(at, (name, _))| {
            let end = lines.end_of(block, members.get(at + 1).map(|(next, _)| next.line));
            name.line..end.max(name.line)
        })
        .collect();
    for range in ranges.into_iter().rev() {
        lines.lines.drain(range);
    }
    Ok(lines.to_text())
}

fn flow_style_error() -> Obstacle {
    Obstacle::Unsafe(LocalizedText::new(
        "its servers are written in brackets on one line, which cannot be edited without rewriting them",
        "其中的服务器写在单行括号里，无法在不改写的情况下编辑",
    ))
}

/// The lines of a text, each with its line ending.
struct Lines<'a> {
    file: &'a Path,
    lines: Vec<String>,
    /// The line ending of new lines.
    end: &'static str,
}

impl<'a> Lines<'a> {
    fn of(source: SourceFile<'a>) -> Self {
        let SourceFile { file, text } = source;
        let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        if let Some(last) = lines.last_mut().filter(|last| !last.ends_with('\n')) {
            last.push_str(end);
        }
        Self { file, lines, end }
    }

    fn to_text(&self) -> String {
        self.lines.concat()
    }

    /// Serializes entries as new lines.
    fn serialize_entry<'e>(
        &self,
        entries: impl IntoIterator<Item = &'e (String, Map<String, Value>)>,
        indent: usize,
    ) -> Vec<String> {
        let lines = entries.into_iter().flat_map(|(id, members)| serialize_entry(id, members, indent));
        lines.map(|line| line + self.end).collect()
    }

    /// Appends a new block at the end of the text.
    fn append(&mut self, key: &str, entries: &Entries) {
        let new = self.serialize_entry(entries, 2);
        self.lines.push(format!("{key}:{}", self.end));
        self.lines.extend(new);
    }

    fn put(&mut self, root: &Node, key: &str, entries: &Entries) -> Result<(), Obstacle> {
        if root.flow {
            return Err(flow_style_error());
        }
        let Some((name, block)) = root.get(key) else {
            self.append(key, entries);
            return Ok(());
        };
        let empty = match &block.content {
            NodeContent::Object { members, .. } => members.is_empty(),
            _ if block.is_null() => true,
            _ => return Err(not_an_object(self.file, &[key]).into()),
        };
        if empty {
            let indent = name.column + 2;
            self.open_block(name.line, key)?;
            let new = self.serialize_entry(entries, indent);
            self.lines.splice(name.line + 1..name.line + 1, new);
            return Ok(());
        }
        if block.flow {
            return Err(flow_style_error());
        }
        let NodeContent::Object { members, .. } = &block.content else { return Ok(()) };
        // In reverse order, so that earlier line numbers stay valid.
        let new =
            self.serialize_entry(entries.iter().filter(|(id, _)| block.get(id).is_none()), block.column);
        let end = self.end_of(block, None);
        let replaced = members.iter().enumerate().filter_map(|(at, (key, _))| {
            let entry = entries.iter().find(|(id, _)| key.text() == Some(id))?;
            let end = self.end_of(block, members.get(at + 1).map(|(next, _)| next.line));
            Some((key.line..end.max(key.line), self.serialize_entry([entry], block.column)))
        });
        let edits: Vec<_> = replaced.chain([(end..end, new)]).collect();
        for (range, lines) in edits.into_iter().rev() {
            self.lines.splice(range, lines);
        }
        Ok(())
    }

    /// The line after the last significant one before `next`, or before the end of the block.
    fn end_of(&self, block: &Node, next: Option<usize>) -> usize {
        let NodeContent::Object { end, .. } = &block.content else { return self.lines.len() };
        let mut end = next.unwrap_or(*end).min(self.lines.len());
        while end > 0 && self.lines.get(end - 1).is_some_and(|line| is_blank_or_comment(line)) {
            end -= 1;
        }
        end
    }

    /// Prepares an empty key for a block: `key:` or `key: {}`, with an optional comment.
    fn open_block(&mut self, line: usize, key: &str) -> Result<(), Obstacle> {
        let Some(text) = self.lines.get_mut(line) else { return Err(flow_style_error()) };
        let Some((head, tail)) = text.split_once(':') else { return Err(flow_style_error()) };
        let (value, comment) = match tail.find('#') {
            Some(at) => tail.split_at(at),
            None => (tail, ""),
        };
        let nothing = matches!(value.trim(), "" | "{}" | "~" | "null");
        if head.trim_matches(['"', '\'', ' ']) != key || !nothing {
            return Err(flow_style_error());
        }
        *text = format!("{head}: {comment}").trim_end().to_owned() + self.end;
        Ok(())
    }
}

fn is_blank_or_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::only_these_changed;

    fn entries(list: &Value) -> Entries {
        let list = list.as_object().unwrap();
        list.iter().map(|(id, members)| (id.clone(), members.as_object().cloned().unwrap())).collect()
    }

    fn edit(text: &str, list: &Value) -> Result<String, String> {
        let file = Path::new("config.yaml");
        let entries = entries(list);
        let new = insert(SourceFile { file, text }, &["extensions"], &entries)
            .map_err(|obstacle| format!("{obstacle:?}"))?;
        let before = parse(file, text).map_err(|error| error.to_string())?;
        let after = parse(file, &new).map_err(|error| error.to_string())?;
        if only_these_changed(&before, &after, &["extensions"], &entries) {
            Ok(new)
        } else {
            Err(format!("not the same:\n{new}"))
        }
    }

    const TEXT: &str = "# mine\nGOOSE_MODEL: \"x\"   # spaced\nextensions:\n  # built in\n  developer:\n    enabled: true\n    type: builtin\n\n  # 表格\n  excel: # sheets\n    args:\n    - stdio\n    text: |\n      many\n      # lines\n    cmd: uvx\n\n# the end\nslash_commands:\n- command: a\n";

    #[test]
    fn adds_and_replaces_entries_and_keeps_the_rest() {
        let new = json!({"搜索": {"type": "stdio", "cmd": "node", "args": ["-y", "no", "a: b"], "envs": {}}});
        let after = edit(TEXT, &new).unwrap();
        let block = "    cmd: uvx\n  搜索:\n    type: stdio\n    cmd: node\n    args:\n      - \"-y\"\n      - \"no\"\n      - \"a: b\"\n    envs: {}\n\n# the end\n";
        assert!(after.contains(block), "{after}");
        let added = &block["    cmd: uvx\n".len()..block.len() - "\n# the end\n".len()];
        assert_eq!(after.replace(added, ""), TEXT);

        let after = edit(TEXT, &json!({"developer": {"cmd": "new"}, "excel": {"cmd": "other"}})).unwrap();
        let expect = "extensions:\n  # built in\n  developer:\n    cmd: new\n\n  # 表格\n  excel:\n    cmd: other\n\n# the end\n";
        assert!(after.contains(expect), "{after}");
        let after = edit(TEXT, &json!({"new": {"a": 1}, "excel": {"cmd": "other"}})).unwrap();
        assert!(after.contains("  excel:\n    cmd: other\n  new:\n    a: 1\n\n# the end\n"), "{after}");
    }

    #[test]
    fn creates_missing_block() {
        let new = json!({"a": {"cmd": "x"}});
        let check = |text: &str, expect: &str| assert_eq!(edit(text, &new).as_deref(), Ok(expect), "{text}");
        check("", "extensions:\n  a:\n    cmd: x\n");
        check("# only this\n", "# only this\nextensions:\n  a:\n    cmd: x\n");
        check("A: 1\r\nB: 2\n", "A: 1\r\nB: 2\nextensions:\r\n  a:\r\n    cmd: x\r\n");
        check("A: 1", "A: 1\nextensions:\n  a:\n    cmd: x\n");
        check("extensions:\nA: 1\n", "extensions:\n  a:\n    cmd: x\nA: 1\n");
        check("extensions: {} # none\n", "extensions: # none\n  a:\n    cmd: x\n");
        check("A: 1\r\nB: 2\r\n", "A: 1\r\nB: 2\r\nextensions:\r\n  a:\r\n    cmd: x\r\n");
        check(
            "extensions:\n    b:\n        c: 1\n",
            "extensions:\n    b:\n        c: 1\n    a:\n      cmd: x\n",
        );
    }

    #[test]
    fn rejects_files_that_cannot_be_edited() {
        let new = json!({"a": {"cmd": "x"}});
        for text in [
            "extensions: {b: {cmd: y}}\n",
            "{extensions: {}}\n",
            "extensions: [a]\n",
            "A: 1\n...\n",
            "x: &x {a: {}, b: {}}\nextensions: *x\n",
        ] {
            assert!(edit(text, &new).is_err(), "{text}: {:?}", edit(text, &new));
        }
        let error = parse(Path::new("config.yaml"), "a: [1\nb: 2\n").unwrap_err().to_string();
        assert!(error.starts_with("`config.yaml`, line 2, column 2: not valid YAML: "), "{error}");
        let deep = "[".repeat(500);
        assert!(parse(Path::new("config.yaml"), &deep).is_err());
    }

    #[test]
    fn resolves_scalars_by_the_core_schema() {
        let text =
            "a: 1\nb: 1.5\nc: 'true'\nd: yes\ne: ~\nf: !!str 5\ng: &x [1]\nh: *x\ni: 0.0.0.0\nj: 12:30\n";
        let expect = json!({"a": 1, "b": 1.5, "c": "true", "d": "yes", "e": null, "f": "5", "g": [1], "h": [1],
            "i": "0.0.0.0", "j": "12:30"});
        assert_eq!(parse(Path::new("x"), text).unwrap(), expect);
    }

    proptest::proptest! {
        #[test]
        fn does_not_panic_on_any_text(text in "(extensions|a|b|x|[:\\-#{}\\[\\],&*!|>'\"?~ \n\t]){0,40}") {
            for new in [json!({"a": {"cmd": "x"}}), json!({"b": {"cmd": "x"}, "a": {}})] {
                let _ = edit(&text, &new);
                let _ = edit(&format!("extensions:\n  a:\n    b: 1\n{text}"), &new);
            }
        }

        #[test]
        fn round_trips_any_text(text in "\\PC*", name in "\\PC+") {
            let new = json!({"a": {"cmd": text, "envs": {name: text}, "args": [text]}});
            proptest::prop_assert!(edit("A: 1\n", &new).is_ok(), "{:?}", edit("A: 1\n", &new));
        }
    }
}
