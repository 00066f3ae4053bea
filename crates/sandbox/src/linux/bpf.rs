//! Builds classic BPF programs for seccomp.

use libc::{c_long, sock_filter};

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const IF_ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// The action for a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FilterAction {
    Allow,
    Fail(i32),
    Kill,
    /// Suspends the call until the holder of the listener responds (`SECCOMP_RET_USER_NOTIF`).
    Notify,
}

impl FilterAction {
    pub(super) fn code(self) -> u32 {
        match self {
            Self::Allow => libc::SECCOMP_RET_ALLOW,
            Self::Fail(error) => libc::SECCOMP_RET_ERRNO | (error as u32 & libc::SECCOMP_RET_DATA),
            Self::Kill => libc::SECCOMP_RET_KILL_PROCESS,
            Self::Notify => libc::SECCOMP_RET_USER_NOTIF,
        }
    }
}

/// A condition on an argument. Only the lower 32 bits are compared, as the kernel reads flags and numbers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Test {
    Is(u8, u32),
    IsNot(u8, u32),
    HasAny(u8, u32),
    /// The bits under the mask (second value) equal the third.
    Masked(u8, u32, u32),
}

/// A filter under construction. The first matching rule applies.
#[derive(Debug, Default)]
pub(super) struct Filter(Vec<sock_filter>);

impl Filter {
    /// Kills the process on calls with the convention of another architecture.
    pub(super) fn only_architecture(&mut self, audit: u32) {
        self.load(ARCHITECTURE);
        self.0.push(sock_filter { code: IF_EQUAL, jt: 1, jf: 0, k: audit });
        self.end(FilterAction::Kill);
        self.load(NUMBER);
    }

    /// Applies `action` to call numbers from `first` on.
    pub(super) fn numbers_from(&mut self, first: u32, action: FilterAction) {
        self.unless_skip(IF_AT_LEAST, first, 1);
        self.end(action);
    }

    /// Applies `action` to a call with any arguments.
    pub(super) fn call(&mut self, number: c_long, action: FilterAction) {
        self.unless_skip(IF_EQUAL, number as u32, 1);
        self.end(action);
    }

    /// Applies `action` to a call if its arguments pass all `tests`.
    pub(super) fn call_if(&mut self, number: c_long, tests: &[Test], action: FilterAction) {
        let mut body = Self::default();
        // Jump distances count from the end of the body, so the tests are built in reverse order.
        let mut parts: Vec<Vec<sock_filter>> = Vec::new();
        let mut after = 1_u8;
        for test in tests.iter().rev() {
            let part = test_part(*test, after);
            after = after.saturating_add(part.len() as u8);
            parts.push(part);
        }
        body.0.extend(parts.into_iter().rev().flatten());
        body.end(action);
        // The following rules expect the call number in the accumulator.
        let length = u8::try_from(body.0.len()).unwrap_or(u8::MAX);
        self.unless_skip(IF_EQUAL, number as u32, length.saturating_add(1));
        self.0.append(&mut body.0);
        self.load(NUMBER);
    }

    /// Allows all calls that match no rule.
    pub(super) fn finish(self) -> Vec<sock_filter> {
        self.finish_with(FilterAction::Allow)
    }

    /// Applies `action` to all calls that match no rule.
    pub(super) fn finish_with(mut self, action: FilterAction) -> Vec<sock_filter> {
        self.end(action);
        self.0
    }

    fn load(&mut self, offset: u32) {
        self.0.push(instruction(LOAD, offset));
    }

    fn end(&mut self, action: FilterAction) {
        self.0.push(instruction(RETURN, action.code()));
    }

    /// Skips `skip` instructions if the comparison is false.
    fn unless_skip(&mut self, code: u16, value: u32, skip: u8) {
        self.0.push(sock_filter { code, jt: 0, jf: skip, k: value });
    }
}

/// Loads the argument and, if the test fails, skips the rest of the body, which is `after` instructions.
fn test_part(test: Test, after: u8) -> Vec<sock_filter> {
    let (argument, mask, code, value, passes) = match test {
        Test::Is(argument, value) => (argument, None, IF_EQUAL, value, true),
        Test::IsNot(argument, value) => (argument, None, IF_EQUAL, value, false),
        Test::HasAny(argument, bits) => (argument, None, IF_ANY_BIT, bits, true),
        Test::Masked(argument, mask, value) => (argument, Some(mask), IF_EQUAL, value, true),
    };
    let lower_half = if cfg!(target_endian = "little") { 0 } else { 4 };
    let mut part = vec![instruction(LOAD, ARGUMENTS + 8 * u32::from(argument) + lower_half)];
    part.extend(mask.map(|mask| instruction(AND, mask)));
    let (jt, jf) = if passes { (0, after) } else { (after, 0) };
    part.push(sock_filter { code, jt, jf, k: value });
    part
}

fn instruction(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Interprets a program as the kernel does.
    pub(in super::super) fn run(program: &[sock_filter], data: &[u32]) -> u32 {
        let (mut at, mut value) = (0, 0_u32);
        loop {
            let step = program[at];
            at += 1;
            let mut branch = |yes: bool| at += usize::from(if yes { step.jt } else { step.jf });
            match step.code {
                LOAD => value = data[step.k as usize / 4],
                AND => value &= step.k,
                IF_EQUAL => branch(value == step.k),
                IF_AT_LEAST => branch(value >= step.k),
                IF_ANY_BIT => branch(value & step.k != 0),
                RETURN => return step.k,
                other => panic!("instruction {other}"),
            }
        }
    }

    #[test]
    fn filter_returns_action_of_matching_rule() {
        let mut filter = Filter::default();
        filter.only_architecture(7);
        filter.numbers_from(500, FilterAction::Fail(38));
        filter.call(10, FilterAction::Fail(1));
        filter.call_if(11, &[Test::Is(0, 2), Test::IsNot(1, 3)], FilterAction::Fail(2));
        filter.call_if(12, &[Test::HasAny(2, 0b110)], FilterAction::Kill);
        filter.call_if(13, &[Test::Masked(1, 0xf, 2)], FilterAction::Fail(3));
        filter.call(14, FilterAction::Fail(4));
        let program = filter.finish();
        let allow = FilterAction::Allow.code();
        let fail = |error| FilterAction::Fail(error).code();
        for (number, architecture, arguments, expect) in [
            (1, 7, [0, 0, 0], allow),
            (1, 8, [0, 0, 0], FilterAction::Kill.code()),
            (500, 7, [0, 0, 0], fail(38)),
            (10, 7, [9, 9, 9], fail(1)),
            (11, 7, [2, 0, 0], fail(2)),
            (11, 7, [2, 3, 0], allow),
            (11, 7, [1, 0, 0], allow),
            (12, 7, [0, 0, 4], FilterAction::Kill.code()),
            (12, 7, [6, 6, 1], allow),
            (13, 7, [0, 0x8_0002, 0], fail(3)),
            (13, 7, [0, 0x8_0001, 0], allow),
            (14, 7, [0, 0, 0], fail(4)),
        ] {
            let [a, b, c] = arguments;
            let data = [number, architecture, 0, 0, a, 0, b, 0, c, 0];
            assert_eq!(run(&program, &data), expect, "{number} {architecture} {arguments:?}");
        }
    }
}
