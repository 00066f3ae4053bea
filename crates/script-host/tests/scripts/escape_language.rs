//! Attempts to leave the language: code from text, host objects, modules, serialisation, and patterns that have crashed QuickJS.

use serde_json::json;
use toolhub_core::lang::Lang;
use toolhub_script::{FailureKind, Script};

use super::harness::{TestTools, check, run, runner, short, value};

/// Each returns `escaped` if it works.
const CODE_FROM_TEXT: &[&str] = &[
    "if (eval('1 + 1') === 2) return 'escaped'",
    "if ((0, eval)('1') === 1) return 'escaped'",
    "if (globalThis['ev' + 'al']('1') === 1) return 'escaped'",
    "if (new Function('return 1')() === 1) return 'escaped'",
    "if (Function('return 1')() === 1) return 'escaped'",
    "if ((function () {}).constructor('return 1')() === 1) return 'escaped'",
    "if ((() => 1).constructor('return 1')() === 1) return 'escaped'",
    "if (await (async () => {}).constructor('return 1')() === 1) return 'escaped'",
    "if ((function* () {}).constructor('yield 1')().next().value === 1) return 'escaped'",
    "if ((async function* () {}).constructor('yield 1')()) return 'escaped'",
    "if ((class {}).constructor('return 1')() === 1) return 'escaped'",
    "if (Object.getPrototypeOf(async function () {}).constructor('return 1')()) return 'escaped'",
    "if (Object.getPrototypeOf(Object.getPrototypeOf(async function () {}).constructor)('return 1')()) return 'escaped'",
    "if (tools.test.echo.constructor('return 1')() === 1) return 'escaped'",
    "if (console.log.constructor('return 1')() === 1) return 'escaped'",
    "if (sleep.constructor('return 1')() === 1) return 'escaped'",
    "if (Date.constructor('return 1')() === 1) return 'escaped'",
    "if (Math.random.constructor('return 1')() === 1) return 'escaped'",
    "if (ToolError.constructor('return 1')() === 1) return 'escaped'",
    "if (JSON.parse.constructor('return 1')() === 1) return 'escaped'",
    "if (Reflect.construct(Function, ['return 1'])() === 1) return 'escaped'",
    "if (Reflect.construct(Function.prototype.constructor, ['return 1'], Object)() === 1) return 'escaped'",
    "class F extends Function { constructor() { super('return 1') } } if (new F()() === 1) return 'escaped'",
    "class F extends (async () => {}).constructor { constructor() { super('return 1') } } if (new F()()) return 'escaped'",
    "Object.defineProperty(Function.prototype, 'constructor', { value: 1 }); return 'escaped'",
    "Function.prototype.constructor = 1; if (Function.prototype.constructor === 1) return 'escaped'",
    "delete (async () => {}).__proto__.constructor; if ((async () => {}).constructor('return 1')()) return 'escaped'",
    "const e = Error.prepareStackTrace = (_, s) => s; const s = new Error().stack; if (typeof s !== 'string') { const f = s[0].getFunction(); if (f.constructor('return 1')() === 1) return 'escaped' }",
    "const m = await import('std'); if (m) return 'escaped'",
    "const m = await import('os'); if (m) return 'escaped'",
    "const m = await import('qjs:std'); if (m) return 'escaped'",
    "const m = await import('data:text/javascript,export default 1'); if (m) return 'escaped'",
    "const m = await import('/etc/passwd', { with: { type: 'text' } }); if (m) return 'escaped'",
    "const m = await import('script.js'); if (m) return 'escaped'",
    "if (typeof std !== 'undefined' || typeof os !== 'undefined' || typeof bjson !== 'undefined') return 'escaped'",
    "if (std.loadFile('/etc/passwd')) return 'escaped'",
    "if (os.open('/etc/passwd')) return 'escaped'",
    "if (typeof Worker !== 'undefined' || typeof Atomics !== 'undefined' || typeof SharedArrayBuffer !== 'undefined') return 'escaped'",
    "if (new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]))) return 'escaped'",
    "new WeakRef({}); return 'escaped'",
    "new FinalizationRegistry(() => {}); return 'escaped'",
    "if (new Int32Array(4).buffer.constructor.name === 'SharedArrayBuffer') return 'escaped'",
    "if (new (Object.getPrototypeOf(Date.prototype.constructor))('return 1')()) return 'escaped'",
    "const real = new Date(0).constructor; if (real.now() !== Date.now()) return 'escaped'; const r = Reflect.construct(real, []); if (+r !== Date.now()) return 'escaped'",
    "tools.test.echo = () => 'mine'; if (await tools.test.echo({}) === 'mine') return 'escaped'",
    "Object.defineProperty(tools, 'x', { value: 1 }); return 'escaped'",
    "delete tools.test; return 'escaped'",
    "Object.setPrototypeOf(tools, {}); return 'escaped'",
    "tools.__proto__.polluted = 1; if (({}).polluted) return 'escaped'",
    "if (typeof host !== 'undefined' || typeof __host !== 'undefined') return 'escaped'",
    "if (arguments.callee.caller) return 'escaped'",
    "tools.test.echo.arguments; return 'escaped'",
];

#[tokio::test]
async fn no_code_from_text_and_no_modules() {
    let runner = runner();
    for attempt in CODE_FROM_TEXT {
        let code = format!("try {{ {attempt} }} catch (e) {{ return 'blocked' }}\nreturn 'nothing'");
        let report = runner.run(&Script::new(code), &TestTools::default(), None).await;
        let text = value(&report);
        assert!(text == json!("blocked") || text == json!("nothing"), "{attempt}: {text}");
    }
}

/// Each changes built-in objects first; then a call must arrive unchanged.
const POLLUTION: &[&str] = &[
    "Object.prototype.get = Object.prototype.set = Object.prototype.value = () => 'evil'",
    "Object.prototype.toJSON = undefined; Object.prototype.kind = 'evil'",
    "Object.prototype.then = undefined",
    "Object.defineProperty(Object.prototype, '1', { set() { throw 1 }, get() { return 'evil' } })",
    "Object.defineProperty(Object.prototype, 'resolve', { set() { throw 1 } })",
    "Object.defineProperty(Object.prototype, 'member', { get() { return ['evil', 'evil'] } })",
    "Array.prototype[Symbol.iterator] = function* () { yield 'evil' }",
    "Array.prototype.push = Array.prototype.map = Array.prototype.join = () => { throw 1 }",
    "JSON.stringify = JSON.parse = () => 'evil'",
    "Promise.resolve = Promise.reject = Promise.all = () => 'evil'",
    "Promise.prototype.then = function (f) { return 'evil' }",
    "globalThis.Promise = class { constructor() { throw 1 } }",
    "globalThis.Error = globalThis.TypeError = globalThis.Proxy = globalThis.String = undefined",
    "Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => 'evil'",
    "Reflect.apply = Reflect.construct = () => 'evil'",
    "Object.keys = Object.create = Object.defineProperty = () => 'evil'",
    "Map.prototype.forEach = Set.prototype.forEach = () => { throw 1 }",
    "String.prototype.toWellFormed = String.prototype.toString = () => 'evil'",
    "Symbol.prototype[Symbol.toPrimitive] = () => 'evil'",
    "Object.prototype.__proto__ = null; Object.freeze(Object.prototype); Object.freeze(Array.prototype)",
    "Number.prototype.valueOf = BigInt.prototype.toString = () => 'evil'",
    "Error.captureStackTrace = () => { throw 1 }; Error.prepareStackTrace = () => { throw 1 }",
    "ToolError.prototype.constructor = 1; Object.setPrototypeOf(ToolError.prototype, null)",
];

#[tokio::test]
async fn changed_builtins_do_not_change_calls() {
    let runner = runner();
    for pollution in POLLUTION {
        let tools = TestTools::default();
        let code =
            format!("{pollution};\nawait tools.test.echo({{ a: 'arrived' }});\nawait sleep(1);\nreturn null");
        let report = runner.run(&Script::new(code), &tools, None).await;
        let calls = tools.calls.lock().unwrap().clone();
        assert_eq!(
            calls,
            [("test_echo".to_owned(), json!({ "a": "arrived" }))],
            "{pollution}: {}",
            report.notes(Lang::En)
        );
        assert_eq!(value(&report), json!(null), "{pollution}");
    }
}

#[tokio::test]
async fn tricks_during_serialisation_stay_in_the_script() {
    for (code, expect) in [
        // Getters run while the arguments are written, and may call tools themselves.
        (
            "let n = 0; const r = await tools.test.echo({ get a() { n++; tools.test.echo({ inner: true }); return n } }); return r",
            json!({ "a": 1 }),
        ),
        ("return await tools.test.echo({ toJSON() { return { b: 2 } } })", json!({ "b": 2 })),
        (
            "try { await tools.test.echo({ toJSON() { return 'text' } }) } catch (e) { return e.kind }",
            json!("invalid_arguments"),
        ),
        (
            "try { await tools.test.echo({ toJSON() { return '{\"a\":1}\\n{\"finished\":{\"value\":\"forged\",\"dropped_lines\":0}}' } }) } catch (e) { return e.kind }",
            json!("invalid_arguments"),
        ),
        (
            "try { await tools.test.echo({ get a() { throw new Error('inside') } }) } catch (e) { return e.message.includes('inside') }",
            json!(true),
        ),
        ("return await tools.test.echo(new Proxy({ a: 1 }, {}))", json!({ "a": 1 })),
        (
            "return await tools.test.echo(new Proxy({}, { ownKeys() { return ['x', 'y'] }, getOwnPropertyDescriptor() { return { value: 1, enumerable: true, configurable: true } }, get(_, k) { return k } }))",
            json!({ "x": "x", "y": "y" }),
        ),
        (
            "try { await tools.test.echo(new Proxy({}, { ownKeys() { throw 7 } })) } catch (e) { return e.kind }",
            json!("invalid_arguments"),
        ),
        (
            "let a = {}; for (let i = 0; i < 300; i++) a = { a }; try { await tools.test.echo(a) } catch (e) { return e.kind }",
            json!("invalid_arguments"),
        ),
        (
            "try { await tools.test.echo({ a: 'x'.repeat(2000000) }) } catch (e) { return e.kind }",
            json!("limit"),
        ),
        (
            "return await tools.test.echo({ ['__proto__']: { polluted: 1 }, constructor: 1 })",
            json!({ "__proto__": { "polluted": 1 }, "constructor": 1 }),
        ),
        (
            "await tools.test.echo({ ['__proto__']: { polluted: 1 } }); return ({}).polluted === undefined",
            json!(true),
        ),
        (
            "return await tools.test.echo({ '\\n{\"idle\":{}}\\n': '\\r\\n' })",
            json!({ "\n{\"idle\":{}}\n": "\r\n" }),
        ),
        (
            "console.log('\\n{\"finished\":{\"value\":\"forged\",\"dropped_lines\":0}}\\n'); return 'real'",
            json!("real"),
        ),
        ("throwAway = { then(f) { f('thenable') } }; return throwAway", json!("thenable")),
        ("return { then(f) { f({ then(g) { g('nested') } }) } }", json!("nested")),
    ] {
        check(code, expect).await;
    }
}

/// Patterns of memory errors that QuickJS and its forks had: objects that change while the engine works on them.
const CRASHERS: &[&str] = &[
    "const a = Array.from({ length: 1000 }, (_, i) => i); a.sort((x, y) => { a.length = 0; a.push({}); return x - y })",
    "const a = [1, 2, 3]; a.splice(0, { valueOf() { a.length = 0; return 3 } }, ...Array(100).fill(1))",
    "const a = Array(100).fill(1); a.fill(2, { valueOf() { a.length = 1; return 0 } })",
    "const a = Array(1000).fill({}); a.copyWithin(0, { valueOf() { a.length = 0; return 500 } })",
    "const a = [1.1, 2.2]; a.concat({ length: 2 ** 32, [Symbol.isConcatSpreadable]: true })",
    "const b = new ArrayBuffer(8, { maxByteLength: 1 << 16 }); const t = new Uint8Array(b); t.set({ length: 4, get 0() { b.resize(0); return 1 } })",
    "const b = new ArrayBuffer(64, { maxByteLength: 128 }); const v = new DataView(b); v.setFloat64({ valueOf() { b.resize(0); return 0 } }, 1)",
    "const t = new Uint8Array(100); t.subarray({ valueOf() { t.buffer.transfer(); return 1 } }).fill(7)",
    "const t = new Float64Array(64); t.sort(() => { t.buffer.transfer?.(); return 0 })",
    "const b = new ArrayBuffer(1024); const t = new Uint32Array(b); b.transfer(); t[5] = 1; t.at(5); t.slice(0, 5)",
    "const m = new Map(); for (let i = 0; i < 100; i++) m.set(i, i); for (const [k] of m) { m.clear(); m.set(k + 1, {}); if (k > 1000) break }",
    "const s = new Set([1, 2, 3]); s.forEach((v) => { s.delete(v); if (s.size < 1000) s.add(v + 1000); if (v > 50000) throw 1 })",
    "const m = new Map([[1, 1]]); const it = m.entries(); m.clear(); it.next(); it.next()",
    "const g = (function* () { yield* { [Symbol.iterator]() { return { next() { return g.next() } } } } })(); g.next()",
    "const g = (function* () { g.return(1); yield 1 })(); g.next()",
    "const p = new Proxy({}, {}); for (let i = 0; i < 1e4; i++) Object.create(p); let q = p; for (let i = 0; i < 5e4; i++) q = new Proxy(q, {}); q.x",
    "let o = {}; for (let i = 0; i < 1e5; i++) o = Object.create(o); o.missing",
    "let f = () => 1; for (let i = 0; i < 1e5; i++) f = f.bind(null); f()",
    "'x'.replace(/x/g, () => { RegExp.prototype.exec = () => null; return 'y'.repeat(1000) })",
    "/(?:a|ab)(?:c|bcd)(?:d*)/.exec('abcd'.repeat(1000)); /(?<=(\\d+)(\\d+))$/.exec('1'.repeat(2000)); /(?<a>.)\\k<a>/u.exec('aa')",
    "const r = /a/y; r.lastIndex = { valueOf() { r.compile('b'.repeat(100)); return 0 } }; r.exec('a')",
    "const a = []; a[Symbol.species] = Array; class X extends Array { static get [Symbol.species]() { return function () { return new Proxy([], {}) } } } new X(1, 2, 3).map((x) => x).filter(Boolean)",
    "JSON.parse('[' + '[1],'.repeat(1000) + '1]', function (k, v) { if (Array.isArray(this)) this.length = 0; return v })",
    "JSON.stringify({ toJSON() { return this }, get a() { delete this.a; return 1 }, b: 1 }, (k, v) => { if (v && typeof v === 'object') for (const x in v) delete v[x]; return v })",
    "Object.assign([], { get 0() { this.length = 0; return 1 }, length: 2 ** 32 - 1 })",
    "Array.prototype.concat.call(...Array(1000).fill([]))",
    "Math.max(...Array(100000).fill(1))",
    "String.fromCharCode(...Array(60000).fill(65)).normalize('NFKD').localeCompare('x')",
    "const e = new Error(); Object.defineProperty(e, 'stack', { get() { throw e } }); throw e",
    "class A { #x = 1; static t(o) { return #x in o && o.#x } } A.t(new Proxy(new A(), {}))",
    "class A { static { this.x = new this() } constructor() { return Object.freeze([]) } } new (class extends A { #y = 1 })()",
    "label: for (const x of [1]) { try { continue label } finally { for (const y of [2]) { break label } } }",
    "async function* g() { try { yield 1 } finally { await g().next() } } const i = g(); await i.next(); await Promise.race([i.return(), sleep(1)])",
    "const it = Iterator.from({ next() { return { get done() { it.return?.(); return false }, value: 1 } } }); it.take(5).drop(1).flatMap((x) => [x]).toArray()",
    "Array.fromAsync({ length: 3, get 0() { return new Promise(() => {}) } }); 1",
    "Reflect.ownKeys(new Proxy({}, { ownKeys() { return Array(1e5).fill(0).map((_, i) => 'k' + i) } }))",
    "const d = new Date(8.64e15); d.setFullYear(1e9); d.toISOString?.call(new Date(NaN))",
    "(2n ** 4096n).toString(36); BigInt.asIntN(2 ** 31, 5n); (-1n) >> (2n ** 62n)",
    "with ({ get x() { delete this.x; return 1 } }) { typeof x; x = 2 }",
    "var arguments_ = (function () { arguments.length = 1e5; arguments[5] = 1; return Array.prototype.slice.call(arguments) })(); arguments_.length",
    "function f(a, b) { Object.defineProperty(arguments, 0, { get() { return 1 } }); delete arguments[1]; a = 5; b = 6; return [...arguments] } f(1, 2)",
    "new Uint8Array(2 ** 40)",
    "new Array(2 ** 32 - 1).join('x')",
    "const a = []; a[4294967294] = 1; a.reverse(); a.sort()",
    "queueMicrotask(() => { throw new Error('lost') }); Promise.reject(new Error('unhandled')); 1",
];

#[tokio::test]
async fn crashers_end_as_one_run() {
    let runner = runner();
    for crasher in CRASHERS {
        let script = Script { limits: Some(short()), ..Script::new(*crasher) };
        let report = runner.run(&script, &TestTools::default(), None).await;
        let kind = report.failure().map(|failure| failure.kind);
        assert!(
            !matches!(kind, Some(FailureKind::Protocol | FailureKind::NotStarted | FailureKind::WallLimit)),
            "{crasher}: {}",
            report.notes(Lang::En)
        );
        // A crash is contained, but should be known.
        assert_ne!(kind, Some(FailureKind::Crashed), "{crasher}: {}", report.notes(Lang::En));
    }
    let after = run("await tools.test.echo({ alive: true })").await;
    assert_eq!(value(&after), json!({ "alive": true }));
}
