//! Tool calls in arbitrary text: the parser does not panic, streaming finds as many calls as parsing the whole text,
//! arguments are JSON objects, and the time is bounded by the length of the text.
#![no_main]

use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use toolhub_llm::formats::{KnownTool, KnownTools, StreamReader, parse_output};

/// Maximum time of the parser per kilobyte, with a margin for a busy machine.
const PER_KILOBYTE: Duration = Duration::from_millis(20);

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    for known in [KnownTools::default(), KnownTools::new([KnownTool::new("f", None)])] {
        let started = Instant::now();
        let whole = parse_output(&text, &known);
        let took = started.elapsed();
        let most = Duration::from_millis(200) + PER_KILOBYTE * (text.len() / 1024) as u32;
        assert!(took < most, "{took:?} for {} bytes", text.len());
        for call in &whole.calls {
            assert!(call.arguments.is_object(), "{:?}", call.arguments);
        }
        let mut reader = StreamReader::new(&known);
        let step = usize::from(data.first().copied().unwrap_or(0) % 7) + 1;
        let characters: Vec<char> = text.chars().collect();
        for piece in characters.chunks(step) {
            reader.feed(&piece.iter().collect::<String>());
        }
        let (streamed, _) = reader.finish();
        assert_eq!(streamed.calls.len(), whole.calls.len());
    }
    toolhub_llm::repair::repair_json(&text);
});
