//! Errors as models see them: place, excerpt, hint, signature, similar names, and the calls before them.

use serde_json::json;
use toolhub_core::lang::Lang;
use toolhub_script::{FailureKind, Position, ScriptReport};

use super::harness::{check, failed, run};

fn place(report: &ScriptReport) -> (u32, u32) {
    let Some(Position { line, column }) = report.failure().and_then(|failure| failure.position) else {
        panic!("no place: {}", report.notes(Lang::En))
    };
    (line, column)
}

#[tokio::test]
async fn names_line_and_column_of_the_script() {
    let report = run("const a = 1;\n\nconst b = a.x.y;\n").await;
    let text = failed(&report, FailureKind::Thrown);
    assert_eq!(place(&report).0, 3, "{text}");
    assert!(text.starts_with("TypeError: ") && text.contains("3 | const b = a.x.y;\n"), "{text}");
    assert!(text.lines().any(|line| line.trim_start().starts_with('|') && line.ends_with('^')), "{text}");

    // The same script as the body of a function.
    let report = run("const a = 1;\n\nconst b = a.x.y;\nreturn b").await;
    assert_eq!(place(&report).0, 3);

    let report =
        run("function inner() {\n  throw new RangeError('too far');\n}\nawait sleep(0);\ninner();").await;
    let text = failed(&report, FailureKind::Thrown);
    assert_eq!(place(&report).0, 2, "{text}");
    assert!(text.starts_with("RangeError: too far (line 2"), "{text}");
}

#[tokio::test]
async fn points_to_syntax_errors() {
    for (code, line) in [
        ("let a = 1;\nlet b = = 2;\n", 2),
        ("if (true) {\n  1\n", 2),
        ("const x = 1;\nconst y = 2;\nconst x = 3;\n", 3),
        ("return 1;\nlet b = = 2;", 2),
    ] {
        let report = run(code).await;
        let text = failed(&report, FailureKind::Syntax);
        let found = place(&report).0;
        assert!(found == line || found == line + 1, "{code}: {text}");
        assert!(text.contains("SyntaxError"), "{text}");
    }
}

#[tokio::test]
async fn explains_typescript_modules_and_fences() {
    for (code, expect) in [
        ("const rows: string[] = [];", "plain JavaScript"),
        ("interface Row { a: string }\nreturn 1", "plain JavaScript"),
        ("const x = input as any;\nreturn x", "plain JavaScript"),
        ("function f(a: number): number { return a }\nf(1)", "plain JavaScript"),
        ("const f = async (x): Promise<number> => 1;", "plain JavaScript"),
        ("import fs from 'fs';", "no modules"),
        ("export default 1;", "return value"),
        ("```js\n1\n```", "without ```"),
    ] {
        let text = failed(&run(code).await, FailureKind::Syntax);
        assert!(text.contains(expect), "{code}: {text}");
    }
    for (code, expect) in [
        ("await fetch('http://localhost')", "no network"),
        ("setTimeout(() => 1, 10)", "await sleep(ms)"),
        ("const fs = require('fs')", "no modules"),
        ("process.env.HOME", "no files, environment or processes"),
        ("document.title", "not a browser"),
    ] {
        let text = failed(&run(code).await, FailureKind::Thrown);
        assert!(text.contains(expect) && text.contains("is not defined"), "{code}: {text}");
    }
}

#[tokio::test]
async fn names_similar_tools() {
    for (code, expect) in [
        ("await tools.test.ecoh({})", "`tools.test.ecoh` does not exist; did you mean `tools.test.echo`?"),
        ("await tools.tset.echo({})", "did you mean `tools.test`?"),
        ("await tools.echo({})", "`tools.test.echo`"),
        ("await tools['test_ecoh']({})", "`tools.test_echo`"),
        ("await tools['my-server'].get_item({})", "`tools.my-server[\"get-item\"]`"),
        ("await tools.test.zzzzzzzz({})", "there are `tools.test.big`"),
    ] {
        let report = run(code).await;
        let text = failed(&report, FailureKind::Tool);
        assert!(text.contains(expect), "{code}: {text}");
        assert_eq!(place(&report).0, 1, "{text}");
        assert!(report.calls.is_empty());
    }
}

#[tokio::test]
async fn shows_the_signature_and_the_calls_before_a_failure() {
    let report =
        run("await tools.test.echo({ a: 1 });\nconst x = 1;\n  await tools.test.fail({ x });\n").await;
    let text = failed(&report, FailureKind::Tool);
    assert_eq!(place(&report).0, 3, "{text}");
    for expect in [
        "the call of `test_fail` failed (timeout): the tool did not work (line 3",
        "3 |   await tools.test.fail({ x });",
        "try later",
        "signature: tools.test.fail(args: { value?: string }): Promise<unknown>",
        "calls before the failure: 1. `test_echo` (succeeded), 2. `test_fail` (failed: timeout)",
    ] {
        assert!(text.contains(expect), "{expect}\n{text}");
    }
    let zh = report.notes(Lang::Zh);
    assert!(zh.contains("调用 `test_fail` 失败") && zh.contains("失败前的调用"), "{zh}");
}

#[tokio::test]
async fn rejects_arguments_that_are_no_object() {
    for arguments in ["1", "'a'", "[1]", "null", "{}, {}", "true", "() => 1", "Symbol()"] {
        let code = format!("1;\nawait tools.test.echo({arguments})");
        let report = run(&code).await;
        let text = failed(&report, FailureKind::Tool);
        assert!(text.contains("takes one object with named arguments"), "{text}");
        assert!(text.contains("signature: tools.test.echo("), "{text}");
        assert_eq!(place(&report).0, 2, "{text}");
        assert!(report.calls.is_empty());
    }
    let loops = "const a = {}; a.a = a; await tools.test.echo(a)";
    assert!(failed(&run(loops).await, FailureKind::Tool).contains("cannot be written as JSON"));
}

#[tokio::test]
async fn reports_values_that_are_thrown_and_are_no_errors() {
    for (code, expect) in [
        ("throw 'a text'", "a text"),
        ("throw { code: 7 }", "{\"code\":7}"),
        ("throw null", "null"),
        ("throw undefined", "undefined"),
        (
            "throw new (class Custom extends Error { constructor() { super('mine'); this.name = 'Custom' } })",
            "Custom: mine",
        ),
        (
            "throw new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 2 } })",
            "an error without a message",
        ),
        ("throw Object.create(null, { message: { get() { throw 1 } } })", "an error without a message"),
    ] {
        let text = failed(&run(code).await, FailureKind::Thrown);
        assert!(text.contains(expect), "{code}: {text}");
    }
}

#[tokio::test]
async fn recognises_a_script_that_waits_for_nothing() {
    let text = failed(&run("await new Promise(() => {})").await, FailureKind::Stalled);
    assert!(text.contains("promise that nothing will settle"), "{text}");
    failed(&run("return new Promise(() => {})").await, FailureKind::Stalled);
    failed(&run("({ then() {} })").await, FailureKind::Stalled);
}

#[tokio::test]
async fn reports_results_that_cannot_be_written() {
    failed(&run("const a = []; a.push(a); a").await, FailureKind::Result);
    failed(&run("({ toJSON() { throw new Error('no') } })").await, FailureKind::Result);
    let deep = "let a = []; for (let i = 0; i < 1000; i++) a = [a]; a";
    failed(&run(deep).await, FailureKind::Result);
}

#[tokio::test]
async fn refuses_more_calls_than_allowed_with_a_hint() {
    let code = "for (let i = 0; i < 100; i++) await tools.calculate({});\nawait tools.calculate({})";
    let report = run(code).await;
    let text = failed(&report, FailureKind::Tool);
    assert!(text.contains("a script may make 100 calls") && text.contains("(line 2"), "{text}");
    assert_eq!(report.calls.len(), 100);
    check(
        "const r = await Promise.allSettled(Array.from({ length: 150 }, () => tools.calculate({})));
        return r.filter((x) => x.status === 'rejected').length",
        json!(50),
    )
    .await;
}
