//! The next step after errors that models often make: TypeScript, modules, and functions of browsers and Node.js.

/// Words after a colon that show a type annotation.
const TYPES: &[&str] = &[
    "string",
    "number",
    "boolean",
    "any",
    "void",
    "unknown",
    "never",
    "object",
    "bigint",
    "null",
    "undefined",
    "Promise<",
    "Record<",
    "Array<",
    "Map<",
    "Set<",
    "Partial<",
    "Date",
    "{",
    "[",
    "(",
];
/// Words at the start of a line that only TypeScript has.
const DECLARATIONS: &[&str] = &[
    "interface ",
    "type ",
    "enum ",
    "declare ",
    "namespace ",
    "abstract ",
    "export type ",
    "export interface ",
];

const TYPESCRIPT: &str = "scripts are plain JavaScript: write no types (`: string`), `interface`, `type`, `enum`, `as`, `!` or generics (`<T>`)";
const IMPORT: &str =
    "there are no modules in a script: all tools are in `tools`, and no other library can be loaded";
const EXPORT: &str =
    "a script exports nothing: end it with `return value`, or with the value as the last expression";
pub(crate) const FENCE: &str = "send only the code, without ``` around it";
const AWAIT: &str = "`await` works at the top level and in `async` functions: mark the function as `async`";

/// A hint for code that the engine rejects; `line` is that of the error.
pub(crate) fn for_syntax(code: &str, line: Option<u32>) -> Option<&'static str> {
    let line = usize::try_from(line?).ok()?.checked_sub(1)?;
    // The engine reports the first token that does not fit, which may be on the next line.
    let near: Vec<&str> = code.lines().skip(line.saturating_sub(1)).take(2).map(str::trim_start).collect();
    let any = |test: &dyn Fn(&str) -> bool| near.iter().any(|line| test(line));
    if any(&|line| DECLARATIONS.iter().any(|word| line.starts_with(word)) || has_types(line)) {
        return Some(TYPESCRIPT);
    }
    if any(&|line| line.starts_with("import ") || line.starts_with("import{")) {
        return Some(IMPORT);
    }
    if any(&|line| line.starts_with("export ")) {
        return Some(EXPORT);
    }
    any(&|line| line.contains("await ")).then_some(AWAIT)
}

/// Whether the code is fenced as in Markdown. As JavaScript it would be text that is called as a function.
pub(crate) fn is_fenced(code: &str) -> bool {
    code.trim_start().starts_with("```")
}

/// Whether a line has a type annotation, a cast or a non-null assertion.
fn has_types(line: &str) -> bool {
    let annotated = line.match_indices(':').any(|(at, _)| {
        let after = line.get(at + 1..).unwrap_or_default();
        let named = line.get(..at).is_some_and(|before| {
            before
                .trim_end()
                .ends_with(|last: char| last.is_alphanumeric() || matches!(last, '_' | '?' | ')' | '}' | ']'))
        });
        let typed = TYPES.iter().any(|word| after.trim_start().starts_with(word))
            || after.trim_start().starts_with(|first: char| first.is_ascii_uppercase());
        named && typed
    });
    let cast = [" as ", "!.", "!;", "![", " satisfies ", "readonly ", "private ", "public "];
    let generic = line.contains(">(") && line.contains('<');
    let padded = format!("{line} ");
    annotated || generic || cast.iter().any(|word| padded.contains(word))
}

/// A hint for `NAME is not defined`.
pub(crate) fn for_missing(name: &str) -> Option<&'static str> {
    Some(match name {
        "setTimeout"
        | "setInterval"
        | "setImmediate"
        | "requestAnimationFrame"
        | "clearTimeout"
        | "clearInterval" => "the only timer is `await sleep(ms)`",
        "fetch" | "XMLHttpRequest" | "WebSocket" | "axios" | "Request" | "Response" | "Headers" => {
            "a script has no network: call a tool for it"
        }
        "require" | "module" | "exports" | "importScripts" => IMPORT,
        "process" | "Buffer" | "fs" | "path" | "os" | "child_process" | "Deno" | "Bun" | "__dirname"
        | "__filename" => "a script has no files, environment or processes: call a tool for it",
        "window" | "document" | "navigator" | "location" | "localStorage" | "sessionStorage" | "alert" => {
            "this is not a browser: a script has the language, `tools`, `input`, `console` and `sleep`"
        }
        "performance" => "a script has a fixed clock: there is nothing to measure",
        "Atomics" | "SharedArrayBuffer" | "Worker" => "a script has no threads: use `Promise.all`",
        "WeakRef" | "FinalizationRegistry" => "a script cannot observe its memory",
        "Intl" => "a script has no locale data: format values yourself",
        "URL" | "URLSearchParams" => "use `encodeURIComponent` and string operations",
        "structuredClone" => "use `JSON.parse(JSON.stringify(value))`",
        "atob" | "btoa" | "TextEncoder" | "TextDecoder" | "crypto" => {
            "a script has only the language itself: use a tool for it"
        }
        _ => return None,
    })
}

/// The name in the engine's message about a variable that does not exist.
pub(crate) fn missing_name(message: &str) -> Option<&str> {
    message.strip_suffix(" is not defined").map(|name| name.trim_matches('\''))
}

/// Whether the code throws `null`, or rejects a promise with it, by itself.
pub(crate) fn throws_null(code: &str) -> bool {
    ["throw", "reject"].iter().any(|word| {
        let given = code.split(word).skip(1);
        given
            .map(|rest| rest.trim_start_matches(|c: char| c.is_whitespace() || c == '('))
            .any(|rest| rest.starts_with("null"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_typescript_and_modules() {
        for (code, line, expect) in [
            ("const a: string = 'x';", 1, Some(TYPESCRIPT)),
            ("function f(a: number, b?: string) {}", 1, Some(TYPESCRIPT)),
            ("const f = async (x): Promise<void> => {}", 1, Some(TYPESCRIPT)),
            ("interface Row {\n  a: string;\n}", 1, Some(TYPESCRIPT)),
            ("type A = { b: number };", 1, Some(TYPESCRIPT)),
            ("const r = x as any;", 1, Some(TYPESCRIPT)),
            ("const r = x!.y;", 1, Some(TYPESCRIPT)),
            ("const m = new Map<string, number>();", 1, Some(TYPESCRIPT)),
            ("const rows: Row[] = [];", 1, Some(TYPESCRIPT)),
            ("let a = 1;\nconst r = x as\nany", 3, Some(TYPESCRIPT)),
            ("import fs from 'fs';", 1, Some(IMPORT)),
            ("export default 1;", 1, Some(EXPORT)),
            ("[1].map((x) => { await f(x) })", 1, Some(AWAIT)),
            ("const = 1;", 1, None),
            ("if (", 1, None),
        ] {
            assert_eq!(for_syntax(code, Some(line)), expect, "{code}");
        }
        assert_eq!(for_syntax("const a: string", None), None);
    }

    #[test]
    fn explains_functions_of_other_environments() {
        for name in ["fetch", "setTimeout", "require", "process", "window"] {
            let message = format!("{name} is not defined");
            assert_eq!(missing_name(&message), Some(name));
            assert!(for_missing(name).is_some(), "{name}");
        }
        assert_eq!(for_missing("rows"), None);
        assert_eq!(missing_name("cannot read property 'x' of undefined"), None);
    }

    #[test]
    fn recognizes_code_that_throws_null() {
        for (code, expect) in [
            ("throw null", true),
            ("if (a) throw(null);", true),
            ("Promise.reject( null )", true),
            ("reject(\n null)", true),
            ("throw e; const a = null", false),
            ("const a = null", false),
        ] {
            assert_eq!(throws_null(code), expect, "{code}");
        }
    }
}
