//! Runs the one script of this process with QuickJS: evaluates it, and settles its promises by the messages of the hub.

use std::cell::{Cell, RefCell};
use std::io::BufRead;
use std::rc::Rc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::promise::PromiseState;
use rquickjs::{
    Array, CatchResultExt as _, CaughtError, Context, Ctx, Error, Function, Object, Persistent, Promise,
    Runtime, Value,
};
use toolhub_script::protocol::{
    CallError, HostError, HostErrorKind, HostLimits, NotAwaited, ScriptRun, ToHost, ToolPath,
};

use crate::bindings::{HostState, MemoryFailures, host_object};
use crate::position::{self, FILE_NAME};
use crate::state::{self, ScriptState};
use crate::{cpu_time, hints};

/// The script's part of the stack of its thread; the rest is for the engine's own functions.
const SCRIPT_STACK_BYTES: usize = 4 << 20;
/// Share of the memory limit that shows a lack of memory if the script ends in no other way.
const FULL_PERCENT: i64 = 80;
/// Jobs between two checks of the CPU time. The engine checks it inside of jobs, too.
const JOBS_PER_CHECK: u32 = 64;
/// Jobs that run after the end of the script: those that handle the errors of calls without an end.
const MAX_JOBS_AFTER_END: u32 = 10_000;
/// CPU time for them.
const CPU_AFTER_END: Duration = Duration::from_millis(100);

const PRELUDE: &str = include_str!("prelude.js");
/// Makes `return` possible. The script begins on the next line.
const WRAPPER: (&str, &str) = ("(async function () {\n", "\n})");

/// What a script has of the language: no `Performance`, `WeakRef` or `DOMException`.
type Intrinsics = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
);

/// How a script ended that did not send its end itself.
enum ScriptEnd {
    /// The end was sent, or the hub is gone.
    Done,
    /// It used up its CPU time.
    Cpu,
    /// It used up its memory.
    Memory,
    /// It waits for nothing.
    Stalled,
    /// The engine failed.
    Failed(String),
}

/// The promise of the script.
struct ScriptPromise {
    promise: Persistent<Promise<'static>>,
    /// Whether its value is inside an object.
    is_completion: bool,
}

/// What became of the promise of the script.
enum PromiseOutcome {
    Pending,
    /// Its value is another promise, or `None` if the end is on its way.
    Next(Option<ScriptPromise>),
}

/// The functions of `prelude.js`.
struct Controls<'js> {
    prepare: Function<'js>,
    settle: Function<'js>,
    fail: Function<'js>,
    rejected: Function<'js>,
    not_awaited: Function<'js>,
    answer: Function<'js>,
    wake: Function<'js>,
}

/// The CPU time at which the script is stopped, and whether it was.
#[derive(Clone, Debug)]
struct CpuLimit {
    deadline: Rc<Cell<Duration>>,
    is_exceeded: Rc<Cell<bool>>,
}

impl CpuLimit {
    fn check(&self) -> bool {
        if !self.is_exceeded.get() && cpu_time::used() > self.deadline.get() {
            self.is_exceeded.set(true);
        }
        self.is_exceeded.get()
    }
}

/// Serves one script. Everything that needs a system call happens before the first message. `started` gets the CPU time at
/// which the script must have ended.
pub(crate) fn serve(mut input: impl BufRead, started: &SyncSender<Duration>) {
    let limits = HostLimits { cpu_ms: 0, memory: 0, calls: 0, output: 0, log: 0, arguments: 0 };
    let shared = HostState {
        state: Rc::new(RefCell::new(ScriptState::new(limits, Vec::new(), 0, 0))),
        skipped_lines: Rc::new(Cell::new(0)),
        memory: MemoryFailures::default(),
    };
    let cpu =
        CpuLimit { deadline: Rc::new(Cell::new(Duration::MAX)), is_exceeded: Rc::new(Cell::new(false)) };
    let Ok(runtime) = Runtime::new() else { return };
    runtime.set_max_stack_size(SCRIPT_STACK_BYTES);
    let interrupt = cpu.clone();
    runtime.set_interrupt_handler(Some(Box::new(move || interrupt.check())));
    let Ok(context) = Context::custom::<Intrinsics>(&runtime) else { return };
    let Ok(controls) = context.with(|ctx| controls(&ctx, &shared).map(|all| all.save(&ctx))) else { return };
    let rejected = controls.0[REJECTED].clone();
    runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, _, reason, is_handled| {
        // Without memory for it, a call is not named.
        let noted = rejected.clone().restore(&ctx).and_then(|note| note.call::<_, ()>((reason, is_handled)));
        if noted.is_err() {
            drop(ctx.catch());
        }
    })));

    let restricted = toolhub_sandbox::restrict_to_computation().is_ok();
    state::send_ready(restricted);
    let Some(ToHost::Run(run)) = receive(&mut input) else { return };
    state::send_started();

    runtime.set_memory_limit(usize::try_from(run.limits.memory).unwrap_or(usize::MAX));
    cpu.deadline.set(cpu_time::used().saturating_add(Duration::from_millis(run.limits.cpu_ms)));
    let _ = started.send(cpu.deadline.get());
    let script = Script { runtime, context, controls, shared, cpu };
    let end = script.run(*run, &mut input);
    let error = match end {
        ScriptEnd::Done => None,
        ScriptEnd::Cpu => Some(HostError { kind: HostErrorKind::Cpu, ..HostError::default() }),
        ScriptEnd::Memory => Some(HostError { kind: HostErrorKind::Memory, ..HostError::default() }),
        ScriptEnd::Stalled => Some(HostError { kind: HostErrorKind::Stalled, ..HostError::default() }),
        ScriptEnd::Failed(message) => Some(HostError { message, ..HostError::default() }),
    };
    if let Some(error) = error {
        script.shared.state.borrow_mut().fail(error);
    }
    // The process ends: freeing the script's values one by one is not needed.
    std::mem::forget(script);
}

/// The next message of the hub; `None` at the end of stdin.
fn receive(input: &mut impl BufRead) -> Option<ToHost> {
    let mut line = Vec::new();
    input.read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}

fn controls<'js>(ctx: &Ctx<'js>, shared: &HostState) -> rquickjs::Result<Controls<'js>> {
    let prelude: Function = ctx.eval_with_options(PRELUDE, options("host.js", false))?;
    let all: Object = prelude.call((host_object(ctx, shared)?,))?;
    Ok(Controls {
        prepare: all.get("prepare")?,
        settle: all.get("settle")?,
        fail: all.get("fail")?,
        rejected: all.get("rejected")?,
        not_awaited: all.get("notAwaited")?,
        answer: all.get("answer")?,
        wake: all.get("wake")?,
    })
}

/// [`Controls`] between two uses of the context.
#[derive(Clone)]
struct SavedControls([Persistent<Function<'static>>; 7]);

/// The index of `rejected` in [`SavedControls`].
const REJECTED: usize = 3;

impl<'js> Controls<'js> {
    fn save(self, ctx: &Ctx<'js>) -> SavedControls {
        let Self { prepare, settle, fail, rejected, not_awaited, answer, wake } = self;
        let all = [prepare, settle, fail, rejected, not_awaited, answer, wake];
        SavedControls(all.map(|function| Persistent::save(ctx, function)))
    }
}

impl SavedControls {
    fn restore<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<Controls<'js>> {
        let [prepare, settle, fail, rejected, not_awaited, answer, wake] = self.0.clone();
        Ok(Controls {
            prepare: prepare.restore(ctx)?,
            settle: settle.restore(ctx)?,
            fail: fail.restore(ctx)?,
            rejected: rejected.restore(ctx)?,
            not_awaited: not_awaited.restore(ctx)?,
            answer: answer.restore(ctx)?,
            wake: wake.restore(ctx)?,
        })
    }
}

fn options(file_name: &str, has_await: bool) -> EvalOptions {
    let mut options = EvalOptions::default();
    // Models forget declarations; what they forget is an error in strict mode.
    options.strict = false;
    options.promise = has_await;
    options.filename = Some(file_name.to_owned());
    options
}

/// The script with its engine.
struct Script {
    runtime: Runtime,
    context: Context,
    controls: SavedControls,
    shared: HostState,
    cpu: CpuLimit,
}

impl Script {
    fn run(&self, run: ScriptRun, input: &mut impl BufRead) -> ScriptEnd {
        let ScriptRun { code, input: given, limits, tools, seed, clock, report_idle } = run;
        self.shared.memory.begin(&code);
        let prepared =
            self.enter(|inside| inside.prepare(&tools, given.get()).map_err(|error| inside.failed(error)));
        *self.shared.state.borrow_mut() = ScriptState::new(limits, tools, seed, clock);
        let mut main = match prepared.and_then(|()| self.enter(|inside| inside.evaluate(&code))) {
            Ok(main) => Some(main),
            Err(end) => return end,
        };
        loop {
            if let Some(end) = self.run_jobs(main.as_ref()) {
                return end;
            }
            if let Some(awaited) = &main {
                match self.enter(|inside| inside.settle(awaited)) {
                    Ok(PromiseOutcome::Pending) => {}
                    Ok(PromiseOutcome::Next(next)) => {
                        main = next;
                        continue;
                    }
                    Err(end) => return end,
                }
            }
            if !self.shared.state.borrow().waits() {
                let is_lost = self.has_lost_memory() || self.is_memory_full();
                return if is_lost { ScriptEnd::Memory } else { ScriptEnd::Stalled };
            }
            if report_idle {
                state::send_idle();
            }
            let Some(message) = receive(input) else { return ScriptEnd::Done };
            let delivered =
                self.enter(|inside| inside.deliver(message).map_err(|error| inside.failed(error)));
            if let Err(end) = delivered {
                return end;
            }
        }
    }

    fn enter<T>(
        &self,
        work: impl FnOnce(&EngineScope<'_, '_>) -> Result<T, ScriptEnd>,
    ) -> Result<T, ScriptEnd> {
        self.context.with(|ctx| match self.controls.restore(&ctx) {
            Ok(controls) => work(&EngineScope { ctx, shared: &self.shared, controls, cpu: &self.cpu }),
            Err(error) => Err(ScriptEnd::Failed(error.to_string())),
        })
    }

    /// Runs the jobs that are ready, at least until the script has ended; returns the end, if there is one.
    fn run_jobs(&self, main: Option<&ScriptPromise>) -> Option<ScriptEnd> {
        let mut jobs = 0_u32;
        loop {
            jobs = jobs.wrapping_add(1);
            // Before the limit: a script whose last job used up its time has a value.
            if self.shared.state.borrow().is_finished {
                self.send_value();
                return Some(ScriptEnd::Done);
            }
            let is_check = jobs.is_multiple_of(JOBS_PER_CHECK);
            if self.cpu.is_exceeded.get() || (is_check && self.cpu.check()) {
                return Some(ScriptEnd::Cpu);
            }
            // Jobs of calls that the script does not await may never end.
            if is_check
                && main.is_some_and(|awaited| self.enter(|inside| inside.is_settled(awaited)).unwrap_or(true))
            {
                return None;
            }
            match self.runtime.execute_pending_job() {
                Ok(true) => drop(self.has_lost_memory()),
                Ok(false) => return None,
                // A callback of `queueMicrotask` has thrown, or the engine could not run the job.
                Err(error) => {
                    let is_memory = error.0.with(|ctx| self.shared.memory.explains(&ctx.catch()));
                    if is_memory {
                        return Some(ScriptEnd::Memory);
                    }
                }
            }
        }
    }

    /// Sends the value of a script that has one. Before, the errors of calls without an end reach what handles them.
    fn send_value(&self) {
        if !self.shared.state.borrow().has_value() {
            return;
        }
        self.cpu.deadline.set(self.cpu.deadline.get().min(cpu_time::used().saturating_add(CPU_AFTER_END)));
        for _ in 0..MAX_JOBS_AFTER_END {
            match self.runtime.execute_pending_job() {
                Ok(true) if !self.cpu.check() => {}
                Ok(_) => break,
                Err(error) => error.0.with(|ctx| drop(ctx.catch())),
            }
        }
        // The time for the errors may be used up.
        self.cpu.deadline.set(Duration::MAX);
        self.cpu.is_exceeded.set(false);
        let not_awaited = self.enter(|inside| inside.not_awaited().map_err(|error| inside.failed(error)));
        self.shared.state.borrow_mut().send_value(not_awaited.unwrap_or_default());
    }

    /// Whether the engine has lost something for a lack of memory without an error.
    fn has_lost_memory(&self) -> bool {
        self.context.with(|ctx| self.shared.memory.check(&ctx))
    }

    fn is_memory_full(&self) -> bool {
        let usage = self.runtime.memory_usage();
        usage.malloc_size >= usage.malloc_limit / 100 * FULL_PERCENT
    }
}

/// The script while the engine is in use.
struct EngineScope<'js, 'a> {
    ctx: Ctx<'js>,
    shared: &'a HostState,
    controls: Controls<'js>,
    cpu: &'a CpuLimit,
}

impl<'js> EngineScope<'js, '_> {
    fn prepare(&self, tools: &[ToolPath], input: &str) -> rquickjs::Result<()> {
        let ctx = &self.ctx;
        let list = Array::new(ctx.clone())?;
        for (index, tool) in tools.iter().enumerate() {
            let entry = Object::new(ctx.clone())?;
            entry.set("name", tool.name.as_str())?;
            if let Some((server, name)) = &tool.member {
                entry.set("member", vec![server.as_str(), name.as_str()])?;
            }
            list.set(index, entry)?;
        }
        self.controls.prepare.call((list, ctx.json_parse(input)?))
    }

    /// Starts the script. A script with `return` is the body of a function; any other is a script with a last value.
    fn evaluate(&self, code: &str) -> Result<ScriptPromise, ScriptEnd> {
        if hints::is_fenced(code) {
            let (name, message) = ("SyntaxError".to_owned(), "the code is fenced".to_owned());
            let hint = Some(hints::FENCE.to_owned());
            let kind = HostErrorKind::Syntax;
            let error = HostError { kind, name, message, line: Some(1), hint, ..HostError::default() };
            self.shared.state.borrow_mut().fail(error);
            return Err(ScriptEnd::Done);
        }
        let ctx = &self.ctx;
        let as_script = ctx.eval_with_options::<Promise, _>(code, options(FILE_NAME, true));
        match as_script.catch(ctx) {
            Ok(promise) => Ok(ScriptPromise { promise: Persistent::save(ctx, promise), is_completion: true }),
            Err(error) if is_return(&error) => {
                self.shared.skipped_lines.set(1);
                let wrapped = format!("{}{code}{}", WRAPPER.0, WRAPPER.1);
                let body = ctx.eval_with_options::<Function, _>(wrapped, options(FILE_NAME, false));
                let body = body.catch(ctx).map_err(|error| self.rejected(code, &error))?;
                let promise: Promise = body.call(()).map_err(|error| self.failed(error))?;
                Ok(ScriptPromise { promise: Persistent::save(ctx, promise), is_completion: false })
            }
            Err(error) => Err(self.rejected(code, &error)),
        }
    }

    fn is_settled(&self, awaited: &ScriptPromise) -> Result<bool, ScriptEnd> {
        let promise = awaited.promise.clone().restore(&self.ctx).map_err(|error| self.failed(error))?;
        Ok(promise.state() != PromiseState::Pending)
    }

    /// Looks at the promise of the script. That needs no memory, of which there may be none left.
    fn settle(&self, awaited: &ScriptPromise) -> Result<PromiseOutcome, ScriptEnd> {
        let failed = |error| self.failed(error);
        let promise = awaited.promise.clone().restore(&self.ctx).map_err(failed)?;
        self.shared.memory.check(&self.ctx);
        let value = match promise.result::<Value>() {
            None => return Ok(PromiseOutcome::Pending),
            Some(Err(_)) => {
                let thrown = self.ctx.catch();
                if self.shared.memory.explains(&thrown) {
                    return Err(ScriptEnd::Memory);
                }
                self.controls.fail.call::<_, ()>((thrown,)).map_err(failed)?;
                return Ok(PromiseOutcome::Next(None));
            }
            Some(Ok(value)) => value,
        };
        // The value of a script is inside an object, so that it may be a promise.
        let value = match value.as_object().filter(|_| awaited.is_completion) {
            Some(completion) => completion.get::<_, Value>("value").map_err(failed)?,
            None => value,
        };
        if let Some(promise) = value.as_promise() {
            let promise = Persistent::save(&self.ctx, promise.clone());
            return Ok(PromiseOutcome::Next(Some(ScriptPromise { promise, is_completion: false })));
        }
        self.controls.settle.call::<_, Value>((value,)).map_err(failed)?;
        Ok(PromiseOutcome::Next(None))
    }

    fn deliver(&self, message: ToHost) -> rquickjs::Result<()> {
        match message {
            ToHost::Run(_) => Ok(()),
            ToHost::Wake(wake) => {
                self.shared.state.borrow_mut().wake(wake.id);
                self.controls.wake.call::<_, bool>((wake.id,)).map(drop)
            }
            ToHost::Answer(answer) => {
                let inner = Duration::from_millis(answer.inner_cpu_ms);
                self.cpu.deadline.set(self.cpu.deadline.get().saturating_sub(inner));
                self.shared.state.borrow_mut().pending_calls -= 1;
                let value = match (&answer.value, &answer.error) {
                    (_, Some(error)) => Err(error.clone()),
                    (Some(value), None) => self.parsed(value.get()),
                    (None, None) => Ok(Value::new_null(self.ctx.clone())),
                };
                let undefined = || Value::new_undefined(self.ctx.clone());
                let answered = match value {
                    Ok(value) => self.controls.answer.call::<_, bool>((answer.id, value, undefined())),
                    Err(error) => {
                        let problem = self.problem(&error)?;
                        self.controls.answer.call::<_, bool>((answer.id, undefined(), problem))
                    }
                };
                answered.map(drop)
            }
        }
    }

    /// The calls whose error nothing in the script has handled, with their places.
    fn not_awaited(&self) -> rquickjs::Result<Vec<NotAwaited>> {
        let found: Array = self.controls.not_awaited.call(())?;
        let calls = found.iter::<Object>().map(|call| {
            let call = call?;
            let stack: String = call.get("stack")?;
            let (line, column) = position::of_stack(&stack, self.shared.skipped_lines.get()).unzip();
            Ok(NotAwaited { id: call.get("id")?, line, column })
        });
        calls.collect()
    }

    /// The value of an answer. An answer that does not fit into the memory is an error of its call.
    fn parsed(&self, text: &str) -> Result<Value<'js>, CallError> {
        self.ctx.json_parse(text).catch(&self.ctx).map_err(|_| CallError {
            kind: "too_large".to_owned(),
            message: "the result does not fit into the memory of the script".to_owned(),
            hint: Some("ask the tool for less, for example a page or a range".to_owned()),
            signature: None,
        })
    }

    fn problem(&self, error: &CallError) -> rquickjs::Result<Object<'js>> {
        let problem = Object::new(self.ctx.clone())?;
        problem.set("kind", error.kind.as_str())?;
        problem.set("message", error.message.as_str())?;
        if let Some(hint) = &error.hint {
            problem.set("hint", hint.as_str())?;
        }
        if let Some(signature) = &error.signature {
            problem.set("signature", signature.as_str())?;
        }
        Ok(problem)
    }

    /// An error of the engine outside of the script's promises: a limit, or an error that is thrown before the first
    /// promise exists.
    fn failed(&self, error: Error) -> ScriptEnd {
        let (text, is_memory) = match CaughtError::from_error(&self.ctx, error) {
            CaughtError::Exception(exception) => {
                let is_memory = self.shared.memory.explains(exception.as_object().as_value());
                (exception.message().unwrap_or_default(), is_memory)
            }
            CaughtError::Value(value) => (format!("{value:?}"), self.shared.memory.explains(&value)),
            CaughtError::Error(error) => (error.to_string(), matches!(error, Error::Allocation)),
        };
        if self.cpu.is_exceeded.get() {
            ScriptEnd::Cpu
        } else if is_memory {
            ScriptEnd::Memory
        } else {
            ScriptEnd::Failed(text)
        }
    }

    /// Code that the engine does not compile.
    fn rejected(&self, code: &str, error: &CaughtError<'js>) -> ScriptEnd {
        if self.cpu.is_exceeded.get() {
            return ScriptEnd::Cpu;
        }
        let (message, stack) = match error {
            CaughtError::Exception(exception) => (exception.message(), exception.stack()),
            other => (Some(other.to_string()), None),
        };
        let message = message.unwrap_or_default();
        let (line, column) =
            position::of_stack(&stack.unwrap_or_default(), self.shared.skipped_lines.get()).unzip();
        let kind = match message.contains("out of memory") {
            true => HostErrorKind::Memory,
            false => HostErrorKind::Syntax,
        };
        let hint = hints::for_syntax(code, line).map(str::to_owned);
        let name = "SyntaxError".to_owned();
        let error = HostError { kind, name, message, line, column, hint, ..HostError::default() };
        self.shared.state.borrow_mut().fail(error);
        ScriptEnd::Done
    }
}

/// Whether the engine rejects a `return` outside of functions.
fn is_return(error: &CaughtError<'_>) -> bool {
    match error {
        CaughtError::Exception(exception) => {
            exception.message().is_some_and(|message| message.contains("return not in a function"))
        }
        _ => false,
    }
}
