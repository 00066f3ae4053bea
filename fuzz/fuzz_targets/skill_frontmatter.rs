//! Parses the frontmatter of a `SKILL.md`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolhub_skills::fuzzing::skill_frontmatter(data));
