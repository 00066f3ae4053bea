//! Scripts that run out of memory, at many different moments: the report names the memory, and is never a value that the
//! script does not have.

use std::time::Duration;

use serde_json::json;
use toolhub_core::lang::Lang;
use toolhub_script::FailureKind::{MemoryLimit, Thrown};
use toolhub_script::{Script, ScriptLimits};

use super::harness::{TestTools, failed, run_within, runner, short};

/// The list grows by small objects until not even an error fits.
const SHAPES: &[&str] = &[
    // Arrays, strings and lists.
    "const a = []; while (true) a.push([a.length])",
    "const a = []; while (true) a.push('x'.repeat(100) + a.length); return a.length",
    "let s = ''; for (;;) s += 'abcdefgh' + s.length; return s.length",
    "let head = null; while (true) head = { head }",
    "let head = null; while (true) head = { head }; return 1",
    // In functions and promises.
    "const f = async () => { const a = []; while (true) a.push([a.length]) }; await f(); return 'no'",
    "const f = async () => { const a = []; while (true) a.push([a.length]) }; f()",
    "return Promise.resolve().then(() => { const a = []; while (true) a.push([a.length]) })",
    "let head = null; while (true) { head = { head }; await null }",
    "let head = null; while (true) { head = { head }; await null } return 1",
    "let head = null; await Promise.all([1, 2, 3].map(async () => { while (true) { head = { head }; await null } })); return 1",
    "let head = null; const step = () => { head = { head }; return Promise.resolve().then(step) }; await step()",
    "let head = null; const step = async () => { head = { head }; await null; return step() }; return step()",
    // In handlers of errors, which may have no memory either.
    "const a = []; try { while (true) a.push([a.length]) } catch (e) { throw e }",
    "const a = []; try { while (true) a.push([a.length]) } catch (e) { while (true) a.push([1]) }",
    "let head = null; try { while (true) { head = { head }; await null } } finally { head = { head } }",
    "let head = null; try { while (true) head = { head } } catch { } return { value: 1 }",
    "let head = null; try { while (true) head = { head } } catch { } await null; 'ok'",
    "let head = null; try { while (true) head = { head } } catch { } await tools.test.echo({}); return 'ok'",
    "let head = null; try { while (true) head = { head } } catch { } return 'ok'",
    "let head = null; const f = async () => { try { while (true) head = { head } } catch { } return 'ok' }; return await f()",
    "let head = null; try { while (true) { head = { head }; await null } } catch (e) { return 'ok' }",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lack_of_memory_is_reported_as_such() {
    let runner = runner();
    let mut wrong = Vec::new();
    for code in SHAPES {
        // The limits differ, so that the memory ends at different moments.
        for step in 0..5 {
            let limits = ScriptLimits { memory: (2 << 20) + step * 56, ..short() };
            let script = Script { limits: Some(limits), ..Script::new(*code) };
            let report = runner.run(&script, &TestTools::default(), None).await;
            let is_right = match report.failure() {
                Some(failure) => failure.kind == MemoryLimit,
                // A script that handles the error may go on.
                None => code.contains("'ok'") && report.value().unwrap().get() == "\"ok\"",
            };
            if !is_right {
                wrong.push(format!("{code} {step}: {:?} {}", report.outcome, report.notes(Lang::En)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn null_is_an_error_and_a_value_like_any_other() {
    for code in ["throw null", "await Promise.reject(null)", "return (() => { throw (null) })()"] {
        failed(&run_within(code, short()).await, Thrown);
    }
    for code in ["null", "return null", "undefined", "const a = null; a"] {
        assert_eq!(super::harness::value(&run_within(code, short()).await), json!(null), "{code}");
    }
}

/// A script that makes calls with long arguments faster than they run is not read further: the hub holds few of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arguments_of_waiting_calls_are_bounded() {
    let code = "const value = 'x'.repeat(200_000); console.log('begun');
        for (let i = 0; i < 90; i++) { console.log('call ' + i); tools.test.slow({ ms: 60_000, value }) }
        console.log('all made'); await sleep(1); return 'end'";
    // Eight calls run, and arguments of eight more may wait; the host blocks at its pipe after that.
    let limits = ScriptLimits { arguments: 256 << 10, wall: Duration::from_secs(4), ..short() };
    let script = Script { limits: Some(limits), ..Script::new(code) };
    let tools = TestTools::default();
    let report = runner().run(&script, &tools, None).await;
    let made = report.log.iter().filter(|line| line.text.starts_with("call ")).count();
    assert!((8..20).contains(&made), "{made} calls were read: {}", report.notes(Lang::En));
    // Shorter calls need no such limit.
    let short_ones =
        "for (let i = 0; i < 90; i++) tools.test.slow({ ms: 1, value: 'x' }); await sleep(500); return 'end'";
    let report =
        runner().run(&Script { limits: Some(limits), ..Script::new(short_ones) }, &tools, None).await;
    assert_eq!(report.value().unwrap().get(), "\"end\"", "{}", report.notes(Lang::En));
    // Calls with long arguments end, too, if they run.
    let all = "const value = 'x'.repeat(200_000); let n = 0;
        await Promise.all(Array.from({ length: 60 }, async () => { await tools.test.text({ value }); n++ })); return n";
    let limits = ScriptLimits { wall: Duration::from_secs(30), memory: 64 << 20, ..limits };
    let report = runner().run(&Script { limits: Some(limits), ..Script::new(all) }, &tools, None).await;
    assert_eq!(report.value().unwrap().get(), "60", "{}", report.notes(Lang::En));
}
