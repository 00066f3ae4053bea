//! What a script can do: values, calls, parallel calls, the log, the clock.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::json;
use toolhub_core::RawJson;
use toolhub_script::protocol::LogLevel;
use toolhub_script::{CallStatus, FailureKind, Script, ScriptLimits};

use super::harness::{TestTools, check, failed, run, run_within, runner, value};

#[tokio::test]
async fn returns_the_last_value_or_that_of_return() {
    check("1 + 1", json!(2)).await;
    check("return 3", json!(3)).await;
    check("const a = [1, 2]; a.map((x) => x * 2)", json!([2, 4])).await;
    check("if (true) { return { a: 1 } }\nthrow new Error('not here')", json!({ "a": 1 })).await;
    check("await Promise.resolve(5)", json!(5)).await;
    check("const x = await Promise.resolve(5); return x + 1", json!(6)).await;
    check("async function main() { return 'done' }\nmain()", json!("done")).await;
    check("(async () => { return [await Promise.resolve(1)] })()", json!([1])).await;
    check("", json!(null)).await;
    check("undefined", json!(null)).await;
    check("// only a comment", json!(null)).await;
    check("return 1 // with a comment", json!(1)).await;
    check("let a = 1\n'use strict'\na", json!(1)).await;
    check("for (i = 0; i < 3; i++);\ni", json!(3)).await;
    check("const tools = 1, input = 2, console = 3; tools + input + console", json!(6)).await;
}

#[tokio::test]
async fn writes_values_without_a_json_form() {
    check("new Map([['a', new Set([1, 2])], [3, null]])", json!({ "a": [1, 2], "3": null })).await;
    check("[10n, 12345678901234567890n]", json!([10, "12345678901234567890"])).await;
    check("[NaN, Infinity, undefined, () => 1, Symbol('a')]", json!([null, null, null, null, null])).await;
    check("({ a: undefined, b: new Date(0) })", json!({ "b": "1970-01-01T00:00:00.000Z" })).await;
    check("['\\ud800 中文 \\u2028'][0]", json!("\u{fffd} 中文 \u{2028}")).await;
}

#[tokio::test]
async fn calls_tools_by_member_and_by_name() {
    check("await tools.test.echo({ a: [1, '中'] })", json!({ "a": [1, "中"] })).await;
    check("await tools['test_echo']({ b: 2 })", json!({ "b": 2 })).await;
    check("await tools['my-server']['get-item']({ id: 1 })", json!({ "id": 1 })).await;
    check("await tools.test.echo()", json!({})).await;
    check("await tools.calculate({ expression: '6*7' })", json!(42)).await;
    check("await tools.test.text()", json!("plain text\nwith \"lines\"\u{2028}")).await;
    check("const { echo } = tools.test; await echo({ a: 1 })", json!({ "a": 1 })).await;
    check("const f = tools.test; await f.echo.call(null, { a: 1 })", json!({ "a": 1 })).await;
    check("await tools.test.echo({ m: new Map([['k', 1n]]) })", json!({ "m": { "k": 1 } })).await;
    check("typeof tools.test.echo + typeof tools.test + ('test' in tools)", json!("functionobjecttrue"))
        .await;
    check("await tools; Object.keys(tools)", json!(["calculate", "my-server", "test"])).await;
    let listed = json!(["big", "deep", "echo", "fail", "never", "panic", "slow", "text"]);
    check("JSON.parse(JSON.stringify(tools.test)).sort()", listed).await;
}

#[tokio::test]
async fn gives_the_input() {
    let script =
        Script { input: RawJson::parse("{\n \"rows\": [1, 2]}").unwrap(), ..Script::new("input.rows[1]") };
    let report = runner().run(&script, &TestTools::default(), None).await;
    assert_eq!(value(&report), json!(2));
}

#[tokio::test]
async fn throws_errors_of_tools_with_kind_and_hint() {
    let code = "try { await tools.test.fail({}) } catch (e) {
        return [e instanceof ToolError, e instanceof Error, e.name, e.kind, e.message, e.hint]
    }";
    check(code, json!([true, true, "ToolError", "timeout", "the tool did not work", "try later"])).await;
    check(
        "(await Promise.allSettled([tools.test.fail({}), tools.test.echo({})])).map((x) => x.status)",
        json!(["rejected", "fulfilled"]),
    )
    .await;
    check("try { await tools.test.panic({}) } catch (e) { return e.kind }", json!("internal")).await;
    check(
        "try { await tools.test.fail({ kind: 'invalid_arguments' }) } catch (e) { return e.signature }",
        json!("tools.test.fail(args: { value?: string }): Promise<unknown>"),
    )
    .await;
}

#[tokio::test]
async fn runs_calls_in_parallel_within_the_limit() {
    let tools = TestTools::default();
    let code = "const all = Array.from({ length: 20 }, (_, i) => tools.test.slow({ ms: 300, i }));
        return (await Promise.all(all)).length";
    let began = Instant::now();
    let report = runner().run(&Script::new(code), &tools, None).await;
    assert_eq!(value(&report), json!(20));
    assert_eq!(tools.most_running.load(Ordering::SeqCst), ScriptLimits::default().concurrent_calls);
    assert!(began.elapsed() >= Duration::from_millis(900), "20 calls of 300 ms, 8 at once");
    assert!(report.calls.iter().all(|call| call.status == CallStatus::Succeeded));
}

#[tokio::test]
async fn collects_the_log() {
    let report = run("console.log('a', 1, { b: [2] }, null, undefined);
        console.info(new Error('x')); console.warn(() => 1); console.error(Symbol('s'), 1n);
        const loop = {}; loop.self = loop; console.log(loop); console.log(tools.test); console.table([1]);
        console.log('\\ud800', new Map([[1, 2]]))")
    .await;
    let lines: Vec<(LogLevel, &str)> =
        report.log.iter().map(|line| (line.level, line.text.as_str())).collect();
    assert_eq!(lines[0], (LogLevel::Log, "a 1 {\"b\":[2]} null undefined"));
    assert_eq!(lines[1], (LogLevel::Info, "Error: x"));
    assert_eq!(lines[2].0, LogLevel::Warn);
    assert_eq!(lines[3], (LogLevel::Error, "Symbol(s) 1"));
    assert!(lines[4].1.starts_with("[not shown: "), "{}", lines[4].1);
    assert!(lines[5].1.contains("\"echo\""), "{}", lines[5].1);
    assert_eq!(lines[7].1, "\u{fffd} {\"1\":2}");
}

#[tokio::test]
async fn drops_lines_beyond_the_limit_of_the_log() {
    let limits = ScriptLimits { output: 1000, ..ScriptLimits::default() };
    let report = run_within("for (let i = 0; i < 200; i++) console.log('line ' + i); 'kept'", limits).await;
    assert_eq!(value(&report), json!("kept"));
    assert!(report.dropped_lines > 100 && report.log.len() < 100, "{}", report.log.len());
    let report = run_within("'x'.repeat(1001)", limits).await;
    failed(&report, FailureKind::OutputLimit);
}

#[tokio::test]
async fn clock_and_random_numbers_depend_on_the_start_alone() {
    check("const a = Date.now(); for (let i = 0; i < 3e5; i++); Date.now() - a", json!(0)).await;
    check("const a = new Date(); await sleep(30); new Date() - a", json!(30)).await;
    check(
        "const a = Date.now(); await Promise.all([sleep(5), sleep(20), sleep(1)]); Date.now() - a",
        json!(20),
    )
    .await;
    check("Math.abs(Date.parse(Date()) - Date.now()) < 1000", json!(true)).await;
    check("[new Date(0).getTimezoneOffset(), Date.length, new Date(2020, 1, 2).toISOString(), Date.UTC(1970, 0)]",
        json!([0, 7, "2020-02-02T00:00:00.000Z", 0])).await;
    check(
        "class D extends Date {}; new D() instanceof Date && new D().getTime() === Date.now()",
        json!(true),
    )
    .await;
    check("const r = Array.from({ length: 99 }, Math.random); new Set(r).size === 99 && r.every((x) => x >= 0 && x < 1)",
        json!(true)).await;
}

#[tokio::test]
async fn sleeps_in_parallel_and_in_order() {
    let began = Instant::now();
    check("const order = []; await Promise.all([60, 20, 40].map(async (ms) => { await sleep(ms); order.push(ms) })); order",
        json!([20, 40, 60])).await;
    assert!(began.elapsed() >= Duration::from_millis(60));
    for bad in ["-1", "NaN", "Infinity", "'x'"] {
        check(&format!("try {{ await sleep({bad}) }} catch (e) {{ return e.name }}"), json!("TypeError"))
            .await;
    }
}

#[tokio::test]
async fn cancels_and_names_calls_that_are_not_awaited() {
    let tools = TestTools::default();
    let code = "for (let i = 0; i < 10; i++) tools.test.never({ i }); await tools.test.echo.call; 'early'";
    let report = runner().run(&Script::new(code), &tools, None).await;
    let text = failed(&report, FailureKind::NotAwaited);
    assert!(text.contains("10 calls were not awaited: `test_never` at line 1"), "{text}");
    assert!(text.contains("the script returned: \"early\""), "{text}");
    assert_eq!(report.unfinished_calls().count(), 10);
    let sent = tools.calls.lock().unwrap().len();
    assert_eq!(tools.dropped.load(Ordering::SeqCst), sent, "calls that were sent are cancelled");
}

/// A script succeeds only if it has looked at the end of each of its calls.
#[tokio::test]
async fn calls_whose_end_is_lost_fail_the_script() {
    for (code, line) in [
        ("tools.test.never({});\nreturn 1", 1),
        ("1;\ntools.test.never({}).then(() => {});\n2", 2),
        ("async function work() {\n  await tools.test.never({});\n}\nwork();\nreturn 1", 2),
        ("Promise.all([tools.test.echo({}), tools.test.never({})]); return 1", 1),
        ("[1].forEach(async n => {\n  await tools.test.never({ n })\n}); return 1", 2),
        // It failed before the end, and nothing looked at its error.
        ("tools.test.fail({});\nawait tools.test.slow({ ms: 300 });\nreturn 1", 1),
        ("const p = tools.test.fail({}).then(x => x);\nawait sleep(300);\nreturn 1", 1),
    ] {
        let report = run(code).await;
        let text = failed(&report, FailureKind::NotAwaited);
        assert!(text.contains(&format!("line {line}")) && text.contains("was not awaited"), "{code}: {text}");
        assert!(text.contains("calls of the script: 1. `test_"), "{code}: {text}");
    }
    // Calls that the script has decided not to wait for.
    for code in [
        "await Promise.race([tools.test.never({}), tools.test.echo({})]); return 1",
        "await Promise.any([tools.test.never({}), tools.test.echo({})]); return 1",
        "await Promise.race([tools.test.never({}), sleep(10)]); return 1",
        "tools.test.never({}).catch(() => {}); return 1",
        "await Promise.allSettled([tools.test.fail({}), tools.test.echo({})]); return 1",
        "const p = tools.test.fail({}); await sleep(50); try { await p } catch {} return 1",
        "const p = tools.test.echo({}); await p; return 1",
    ] {
        let report = run(code).await;
        assert_eq!(value(&report), json!(1), "{code}");
    }
    let report = run("await Promise.race([tools.test.never({}), sleep(10)]); return 1").await;
    assert!(report.notes(toolhub_core::Lang::En).contains("had not ended when the script ended"));
    // A handler that goes on for ever delays nothing, and calls nothing.
    let tools = TestTools::default();
    let code = "const again = () => tools.test.never({}).catch(again); again(); return 1";
    let report = runner().run(&Script::new(code), &tools, None).await;
    assert_eq!((value(&report), report.calls.len()), (json!(1), 1));
    let code = "tools.test.never({}).catch(() => { while (true); }); return 1";
    assert_eq!(value(&run(code).await), json!(1));
}

#[tokio::test]
async fn globals_are_those_of_the_list() {
    let report = run("return Object.getOwnPropertyNames(globalThis).sort()").await;
    let names = value(&report);
    let names: Vec<&str> = names.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    for name in ["tools", "input", "console", "sleep", "ToolError", "JSON", "Promise", "Map", "Date", "Math"]
    {
        assert!(names.contains(&name), "{name} is missing: {names:?}");
    }
    for name in [
        "Atomics",
        "SharedArrayBuffer",
        "WeakRef",
        "FinalizationRegistry",
        "performance",
        "gc",
        "print",
        "std",
        "os",
        "scriptArgs",
        "navigator",
        "DOMException",
        "setTimeout",
        "process",
        "require",
        "fetch",
    ] {
        assert!(!names.contains(&name), "{name} exists");
    }
}

#[tokio::test]
async fn answers_of_every_size_reach_the_script() {
    check("(await tools.test.big({ bytes: 2000000 })).length", json!(2_000_000)).await;
    // More than the hub keeps for a host at once.
    let many = "const sizes = await Promise.all(Array.from({ length: 12 }, async () => (await tools.test.big({ bytes: 4000000 })).length));
        return sizes.reduce((a, b) => a + b)";
    check(many, json!(48_000_000)).await;
    check("try { await tools.test.big({ bytes: 9000000 }) } catch (e) { return e.kind }", json!("too_large"))
        .await;
    check("try { await tools.test.deep({ depth: 500 }) } catch (e) { return e.kind }", json!("too_large"))
        .await;
    check("JSON.stringify(await tools.test.deep({ depth: 100 })).length", json!(200)).await;
}
