//! Scripts that use up time, memory or output: each ends within its limits as one failed run.

use std::time::{Duration, Instant};

use serde_json::json;
use toolhub_core::lang::Lang;
use toolhub_script::FailureKind::{
    self, CpuLimit, MemoryLimit, OutputLimit, Stalled, Thrown, Tool, WallLimit,
};
use toolhub_script::{Script, ScriptLimits};

use super::harness::{TestTools, failed, run_within, runner, short, value};

/// Code, and the kinds of failure that may end it.
const BOMBS: &[(&str, &[FailureKind])] = &[
    ("while (true);", &[CpuLimit]),
    ("for (;;) { try { while (true); } catch {} finally { while (true); } }", &[CpuLimit]),
    ("await (async () => { while (true) await null })()", &[CpuLimit]),
    // Every promise waits for the next; the engine drops the chain when the memory is full.
    (
        "const f = () => Promise.resolve().then(f); f(); await new Promise(() => {})",
        &[CpuLimit, MemoryLimit, Stalled],
    ),
    ("const f = () => queueMicrotask(f); f(); return new Promise(() => {})", &[CpuLimit]),
    ("async function f() { await Promise.all([f(), f()]) } await f()", &[CpuLimit, MemoryLimit, Thrown]),
    ("function* g() { yield* g() } [...g()]", &[CpuLimit, MemoryLimit, Thrown]),
    ("/(a+)+$/.test('a'.repeat(40) + 'b')", &[CpuLimit]),
    ("/^(([a-z])+.)+[A-Z]([a-z])+$/.test('a'.repeat(60))", &[CpuLimit]),
    ("'a'.repeat(30000).match(/(.*)(.*)(.*)(.*)(.*)x/)", &[CpuLimit, MemoryLimit, Thrown]),
    ("let x = 3n; while (true) x = x * x", &[CpuLimit, MemoryLimit, Thrown]),
    ("2n ** 100000000n % 7n", &[CpuLimit, MemoryLimit, Thrown]),
    ("(10n ** 3000000n).toString()", &[CpuLimit, MemoryLimit, OutputLimit, Thrown]),
    ("let s = 'x'; while (true) s += s", &[MemoryLimit, Thrown]),
    ("'x'.repeat(2 ** 28)", &[MemoryLimit, Thrown]),
    ("'x'.padEnd(2 ** 29, 'abc').length", &[MemoryLimit, Thrown]),
    ("const a = []; while (true) a.push(a.length)", &[MemoryLimit, Thrown]),
    ("const a = []; while (true) a.push({ a: [], b: {} })", &[MemoryLimit, Thrown]),
    ("new Array(1e9).fill(0)", &[MemoryLimit, Thrown, CpuLimit]),
    ("Array.from({ length: 1e9 })", &[MemoryLimit, Thrown]),
    ("new Uint8Array(1e9)", &[MemoryLimit, Thrown]),
    ("const all = []; while (true) all.push(new ArrayBuffer(1 << 20))", &[MemoryLimit, Thrown]),
    ("const m = new Map(); for (let i = 0; ; i++) m.set(i, 'v' + i)", &[MemoryLimit, Thrown]),
    ("const o = {}; for (let i = 0; ; i++) o['k' + i] = i", &[MemoryLimit, Thrown]),
    ("for (let i = 0; ; i++) Symbol.for('k' + i)", &[CpuLimit, MemoryLimit, Thrown]),
    ("function f() { f() } f()", &[Thrown]),
    ("function f(n) { return f(n + 1) + f(n + 2) } f(0)", &[Thrown]),
    ("const f = (...a) => f(...a, 1); f()", &[Thrown, MemoryLimit]),
    ("let a = []; for (let i = 0; i < 1e6; i++) a = [a]; JSON.stringify(a)", &[Thrown, MemoryLimit]),
    ("JSON.parse('['.repeat(1e6))", &[Thrown, MemoryLimit]),
    ("const o = { get a() { return this.a } }; o.a", &[Thrown]),
    ("const p = new Proxy({}, { get(t, k, r) { return r[k] } }); p.x", &[Thrown]),
    ("new RegExp('('.repeat(1e5) + ')'.repeat(1e5))", &[Thrown, MemoryLimit]),
    ("class A { static [Symbol.hasInstance](x) { return x instanceof A } } 1 instanceof A", &[Thrown]),
    ("while (true) console.log('flood')", &[CpuLimit]),
    ("while (true) console.log('x'.repeat(100000))", &[CpuLimit]),
    ("const all = []; while (true) all.push(new Promise(() => {}))", &[MemoryLimit, Thrown]),
    ("const all = []; while (true) all.push(Promise.resolve(1).then(() => 1))", &[MemoryLimit, Thrown]),
    ("while (true) tools.test.never({})", &[CpuLimit, MemoryLimit, Thrown]),
    ("while (true) sleep(1e9)", &[CpuLimit, MemoryLimit, Thrown]),
    ("await Promise.all(Array.from({ length: 1000 }, () => sleep(1)))", &[Thrown]),
    (
        "const r = await Promise.all(Array.from({ length: 60 }, (_, i) => tools.test.big({ bytes: 4000000 }))); r.length",
        &[MemoryLimit, Tool, Thrown],
    ),
    ("return Array.from({ length: 100000 }, (_, i) => 'item ' + i)", &[OutputLimit]),
    ("return 'x'.repeat(1 << 20)", &[OutputLimit]),
    ("return { toJSON() { while (true); } }", &[CpuLimit]),
    ("await { then(f) { while (true); } }", &[CpuLimit]),
    ("throw { get message() { while (true); } }", &[CpuLimit]),
    ("throw new Error('x'.repeat(1 << 22))", &[Thrown]),
    ("const e = new Error('a'); e.name = 'n'.repeat(1 << 22); throw e", &[Thrown]),
    ("[1, 2].sort(() => { while (true); })", &[CpuLimit]),
    ("Array(1e7).fill(1).sort(() => Math.random() - 0.5)", &[CpuLimit, MemoryLimit, Thrown]),
    (
        "'x'.repeat(1 << 20).split('').map((c) => c + 'y').join('').replace(/x/g, 'z'.repeat(1000))",
        &[CpuLimit, MemoryLimit, Thrown],
    ),
    ("await new Promise(() => {})", &[Stalled]),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_bomb_ends_within_its_limits() {
    let runner = runner();
    let mut wrong = Vec::new();
    for (code, kinds) in BOMBS {
        let script = Script { limits: Some(short()), ..Script::new(*code) };
        let began = Instant::now();
        let report = runner.run(&script, &TestTools::default(), None).await;
        let took = began.elapsed();
        let kind = report.failure().map(|failure| failure.kind);
        let notes = report.notes(Lang::En);
        // A slow machine uses up the CPU time before the memory is full.
        let is_slow = kind == Some(CpuLimit) && kinds.contains(&MemoryLimit);
        let is_expected = is_slow || kind.is_some_and(|kind| kinds.contains(&kind));
        if !is_expected || took > Duration::from_secs(30) || notes.len() > 300_000 {
            let start: String = notes.chars().take(300).collect();
            wrong.push(format!("{code}: {kind:?} after {took:?}: {start}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let after = runner.run(&Script::new("1 + 1"), &TestTools::default(), None).await;
    assert_eq!(value(&after), json!(2));
}

#[tokio::test]
async fn ends_at_the_wall_limit() {
    let limits = ScriptLimits { wall: Duration::from_millis(700), ..short() };
    for code in ["await tools.test.never({})", "await sleep(1e9)", "await sleep(1e300)"] {
        let began = Instant::now();
        let report = run_within(code, limits).await;
        let text = failed(&report, WallLimit);
        assert!(text.contains("more than 0.7 s"), "{text}");
        assert!(began.elapsed() < Duration::from_secs(10));
    }
    // Enough time for the start of a host on a busy machine.
    let limits = ScriptLimits { wall: Duration::from_secs(5), ..short() };
    let report = run_within("await tools.test.never({})", limits).await;
    assert!(report.notes(Lang::En).contains("1. `test_never` (cancelled, may have run)"));
}

#[tokio::test]
async fn rejects_scripts_and_inputs_that_are_too_long() {
    let limits = ScriptLimits { code: 100, ..short() };
    failed(&run_within(&"1;".repeat(100), limits).await, FailureKind::Rejected);
    let script = Script {
        input: toolhub_core::RawJson::of(&"x".repeat(200)),
        limits: Some(limits),
        ..Script::new("input")
    };
    failed(&runner().run(&script, &TestTools::default(), None).await, FailureKind::Rejected);
    let report = run_within("a\0b", short()).await;
    failed(&report, FailureKind::Syntax);
}
