//! A host that sends given lines, as one that a script has taken over could.

use std::io::{BufRead as _, Write as _, stdin, stdout};

/// Sends `ready`, waits for the script, sends `started`, and then the lines. Words that begin with `@` are actions.
pub(crate) fn run(lines: &[&str]) {
    let mut out = stdout().lock();
    let mut input = stdin().lock();
    let mut line = |text: &str| out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok();
    if !lines.contains(&"@not-ready") {
        line("{\"ready\":{\"version\":2,\"restricted\":true}}\n");
    }
    let mut run = String::new();
    let _ = input.read_line(&mut run);
    if !lines.contains(&"@not-started") {
        line("{\"started\":{}}\n");
    }
    for text in lines {
        match *text {
            "@not-ready" | "@not-started" => {}
            // Without a line break, until the hub ends this process.
            "@endless-line" => while line(&"x".repeat(1 << 16)) {},
            "@endless-log" => while line("{\"log\":{\"level\":\"log\",\"text\":\"flood\"}}\n") {},
            "@endless-idle" => while line("{\"idle\":{}}\n") {},
            "@endless-calls" => {
                let mut id = 0_u64;
                let mut sent = true;
                while sent {
                    id += 1;
                    sent = line(&format!(
                        "{{\"call\":{{\"id\":{id},\"tool\":\"test_big\",\"arguments\":{{\"bytes\":4000000}}}}}}\n"
                    ));
                }
            }
            "@endless-stderr" => while std::io::stderr().write_all(&[b'e'; 1 << 16]).is_ok() {},
            "@abort" => std::process::abort(),
            // The handler of the standard library resets itself at the first one.
            "@segv" => (0..2).for_each(|_| signal(rustix::process::Signal::SEGV)),
            "@kill" => signal(rustix::process::Signal::KILL),
            "@wait" => {
                // Until the hub closes stdin or ends this process.
                let mut rest = Vec::new();
                let _ = std::io::Read::read_to_end(&mut input, &mut rest);
            }
            "@spin" => loop {
                std::hint::spin_loop();
            },
            "@close" => return,
            text => drop(line(&format!("{text}\n"))),
        }
    }
    let mut rest = Vec::new();
    let _ = std::io::Read::read_to_end(&mut input, &mut rest);
}

fn signal(signal: rustix::process::Signal) {
    let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
}
