//! Many concurrent callers: connections move to I/O threads and back when the load drops, without visible effects.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::json;
use toolhub_testkit::scripted::{HttpServer, Script};

use crate::serving::{Serving, TEST_TIMEOUT, hub};
use crate::wire::{Wire, call, chunked, echoed, message, meta};

const CALLERS: usize = 12;

/// A slow tool, so that calls overlap, and a fast one.
fn script() -> Script {
    Script::both().plain_tool("echo").plain_tool("slow").on("tools/call:slow", json!([{"delay_ms": 10}]))
}

fn slow(echoed: &str) -> String {
    message("slow", &json!({"name": "slow", "arguments": {"said": echoed}, "_meta": meta()}), "")
}

/// The number of connections on I/O threads.
fn on_io_threads(serving: &Serving) -> usize {
    let mut wire = Wire::to(serving);
    wire.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let response = wire.receive();
    let value = |name: &str| {
        let line = response.body.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name}: {response:?}")).trim().parse().unwrap()
    };
    let count = value("toolhub_http_io_thread_connections ");
    // The earlier name stays available.
    assert_eq!(value("toolhub_http_worker_connections "), count);
    count
}

/// Waits until that number satisfies `condition`.
fn await_on_io_threads(serving: &Serving, condition: impl Fn(usize) -> bool) {
    let until = Instant::now() + TEST_TIMEOUT;
    while !condition(on_io_threads(serving)) {
        assert!(Instant::now() < until, "{} are on I/O threads", on_io_threads(serving));
    }
}

/// With one processor there are no I/O threads.
fn has_io_threads() -> bool {
    std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1)
}

fn check_concurrent_callers(serving: &Serving) {
    let (stop, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|threads| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let (stop, calls) = (&stop, &calls);
                threads.spawn(move || {
                    let mut wire = Wire::to(serving);
                    while !stop.load(Ordering::Relaxed) {
                        let turn = format!("{caller}: {}", calls.fetch_add(1, Ordering::Relaxed));
                        wire.send(&slow(&turn));
                        assert_eq!(wire.receive().text(), echoed(&turn));
                    }
                    wire
                })
            })
            .collect();
        // Stops the callers even if an assertion fails.
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let stopping = Stop(&stop);
        if has_io_threads() {
            await_on_io_threads(serving, |count| count == CALLERS);
        }
        drop(stopping);
        let mut wires: Vec<Wire> = callers.into_iter().map(|caller| caller.join().unwrap()).collect();
        // On an I/O thread, too, an unusual message is handled by the general path, with all bytes that were read.
        let mut wire = wires.pop().unwrap();
        wire.send(&[call("a", ""), chunked(&call("b", "")), call("c", "")].concat());
        for turn in ["a", "b", "c"] {
            assert_eq!(wire.receive().text(), echoed(turn));
        }
        wire.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(wire.receive().status, 200);
        if has_io_threads() {
            await_on_io_threads(serving, |count| count == CALLERS - 1);
        }
        // Without concurrent calls a connection moves back.
        let mut wire = wires.pop().unwrap();
        for turn in 0..600 {
            wire.send(&call(&turn.to_string(), ""));
            assert_eq!(wire.receive().text(), echoed(&turn.to_string()));
        }
        if has_io_threads() {
            await_on_io_threads(serving, |count| count == CALLERS - 2);
        }
        // A connection that is closed while on an I/O thread no longer counts.
        drop(wires);
        await_on_io_threads(serving, |count| count == 0);
    });
}

#[test]
fn many_concurrent_callers_with_stdio_server() {
    check_concurrent_callers(&Serving::before(&script(), ""));
}

#[test]
fn many_concurrent_callers_with_http_server() {
    let server = HttpServer::start(&script());
    let mut cli = hub("");
    cli.entry("s", json!({"url": server.url}));
    check_concurrent_callers(&Serving::start(cli));
}
