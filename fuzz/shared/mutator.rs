//! A few seconds of fuzzing in the test suite: the committed seeds of a target, and deterministic mutations of them.
//! `cargo xtask fuzz` runs longer, guided by coverage, with the same seeds and the same dictionary.

use std::fs;
use std::path::{Path, PathBuf};

/// Maximum size of a generated input.
const MAX_INPUT_BYTES: usize = 4 << 10;

/// Runs a check on the seeds of a target and on `mutations` mutations of them.
pub(crate) fn run(target: &str, mutations: usize, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let seeds = seeds(&folder.join("seeds").join(target));
    let tokens = dictionary(&folder.join("dictionaries").join(format!("{target}.dict")));
    assert!(!seeds.is_empty() && !tokens.is_empty(), "{target} has no seeds or no dictionary");
    let mut mutator = Mutator { random: 0x9e37_79b9_7f4a_7c15, tokens, seeds };
    for index in 0..mutator.seeds.len() {
        Guarded(&mutator.seeds[index]).run(check);
    }
    for _ in 0..mutations {
        Guarded(&mutator.next()).run(check);
    }
}

/// Prints the input if its check panics, so that it can be added as a seed.
struct Guarded<'a>(&'a [u8]);

impl Guarded<'_> {
    fn run(&self, check: fn(&[u8])) {
        check(self.0);
    }
}

impl Drop for Guarded<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the input: {}", self.0.escape_ascii());
        }
    }
}

fn seeds(folder: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| fs::read(path).ok()).collect()
}

/// The tokens of a libFuzzer dictionary: a quoted string on each line, with the escapes `\\`, `\"` and `\xAB`.
fn dictionary(file: &Path) -> Vec<Vec<u8>> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let quoted = |line: &str| Some(line.trim().strip_prefix('"')?.strip_suffix('"')?.to_owned());
    text.lines().filter_map(quoted).map(|token| unescaped(&token)).collect()
}

fn unescaped(token: &str) -> Vec<u8> {
    let (mut rest, mut bytes) = (token.as_bytes(), Vec::new());
    while let Some((first, more)) = rest.split_first() {
        (bytes, rest) = match (first, more) {
            (b'\\', [b'x', high, low, more @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or_default() as u8;
                bytes.push(digit(high) << 4 | digit(low));
                (bytes, more)
            }
            (b'\\', [escaped, more @ ..]) => {
                bytes.push(*escaped);
                (bytes, more)
            }
            (plain, more) => {
                bytes.push(*plain);
                (bytes, more)
            }
        };
    }
    bytes
}

struct Mutator {
    random: u64,
    tokens: Vec<Vec<u8>>,
    seeds: Vec<Vec<u8>>,
}

impl Mutator {
    /// A pseudorandom number below `limit`, which must not be zero (xorshift64*).
    fn below(&mut self, limit: usize) -> usize {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    fn next(&mut self) -> Vec<u8> {
        let seed = self.below(self.seeds.len());
        let mut input = self.seeds[seed].clone();
        for _ in 0..=self.below(5) {
            self.change(&mut input);
        }
        input.truncate(MAX_INPUT_BYTES);
        input
    }

    fn range(&mut self, length: usize, longest: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        start..(start + self.below(longest + 1)).min(length)
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        match self.below(9) {
            // Insert a token of the dictionary, or overwrite a range with it.
            0..=2 => {
                let token = self.below(self.tokens.len());
                let range = self.range(input.len(), 8);
                let range = if self.below(2) == 0 { range.start..range.start } else { range };
                input.splice(range, self.tokens[token].iter().copied());
            }
            3 if !input.is_empty() => {
                let place = self.below(input.len());
                input[place] = self.below(256) as u8;
            }
            4 if !input.is_empty() => {
                let place = self.below(input.len());
                input[place] ^= 1 << self.below(8);
            }
            // Duplicate a part of the input, such as a header.
            5 => {
                let range = self.range(input.len(), 64);
                let (copy, place) = (input[range].to_vec(), self.below(input.len() + 1));
                input.splice(place..place, copy);
            }
            6 => {
                let range = self.range(input.len(), 16);
                input.drain(range);
            }
            // Join the beginning of the input with the end of another seed.
            7 => {
                let other = self.below(self.seeds.len());
                let (cut, from) = (self.below(input.len() + 1), self.below(self.seeds[other].len() + 1));
                input.truncate(cut);
                input.extend_from_slice(&self.seeds[other][from..]);
            }
            // Repeat one token, for depth and length.
            _ => {
                let (token, times) = (self.below(self.tokens.len()), self.below(200));
                let place = self.below(input.len() + 1);
                input.splice(place..place, self.tokens[token].repeat(times));
            }
        }
    }
}
