//! Related words: stems of similar meaning, from a precomputed table that is decompressed on first use.

use std::io::Read as _;
use std::sync::LazyLock;

use flate2::read::GzDecoder;

use crate::text::{Term, TermMap};

/// `data/README.md` documents its origin and format.
const COMPRESSED: &[u8] = include_bytes!("../data/related.bin.gz");

static RELATED: LazyLock<Related> = LazyLock::new(|| {
    let mut bytes = Vec::new();
    // The data is part of the program; a test decompresses it completely.
    GzDecoder::new(COMPRESSED)
        .read_to_end(&mut bytes)
        .ok()
        .and_then(|_| Related::read(&bytes))
        .unwrap_or_default()
});

/// Stems with their neighbours.
#[derive(Debug, Default)]
pub(crate) struct Related {
    stems: Vec<Box<str>>,
    places: TermMap<u16>,
    /// The start of each stem's neighbours; one more entry than there are stems.
    begins: Vec<u32>,
    neighbours: Vec<(u16, u8)>,
}

impl Related {
    /// The shared table; the first call takes a few milliseconds.
    pub(crate) fn get() -> &'static Self {
        &RELATED
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (count, mut rest) = bytes.split_first_chunk::<4>()?;
        let count = u32::from_le_bytes(*count);
        let mut related = Self::default();
        for number in 0..count {
            let end = rest.iter().position(|byte| *byte == b'\n')?;
            let stem = std::str::from_utf8(rest.get(..end)?).ok()?;
            related.places.insert(Term::of(stem), u16::try_from(number).ok()?);
            related.stems.push(stem.into());
            rest = rest.get(end + 1..)?;
        }
        related.begins.push(0);
        for _ in 0..count {
            let (size, mut tail) = rest.split_first()?;
            for _ in 0..*size {
                let ([low, high, closeness], after) = tail.split_first_chunk::<3>()?;
                related.neighbours.push((u16::from_le_bytes([*low, *high]), *closeness));
                tail = after;
            }
            rest = tail;
            related.begins.push(u32::try_from(related.neighbours.len()).ok()?);
        }
        Some(related)
    }

    /// Whether the table contains a stem.
    pub(crate) fn knows(&self, stem: Term) -> bool {
        self.places.contains_key(&stem)
    }

    /// The neighbours of a stem, with their closeness from 0 to 1.
    pub(crate) fn of(&self, stem: Term) -> impl Iterator<Item = (&str, f32)> {
        let index = self.places.get(&stem).map(|index| usize::from(*index));
        let range = index
            .and_then(|index| Some(*self.begins.get(index)? as usize..*self.begins.get(index + 1)? as usize));
        let neighbours = range.and_then(|range| self.neighbours.get(range)).unwrap_or_default();
        neighbours.iter().filter_map(|(index, closeness)| {
            let stem = self.stems.get(usize::from(*index))?;
            Some((&**stem, f32::from(*closeness) / 255.0))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decompresses_whole_table() {
        let related = Related::get();
        assert!(related.stems.len() > 15_000);
        assert_eq!(related.begins.len(), related.stems.len() + 1);
        assert!(related.stems.iter().all(|stem| related.knows(Term::of(stem))));
    }

    #[test]
    fn finds_related_words() {
        let check = |stem: &str, expect: &str| {
            let found: Vec<&str> = Related::get().of(Term::of(stem)).map(|(text, _)| text).collect();
            assert!(found.contains(&expect), "{stem}: {found:?}");
        };
        check("hous", "home");
        check("weather", "climat");
        check("file", "document");
        check("studi", "research");
        assert_eq!(Related::get().of(Term::of("xyzzyqq")).count(), 0);
    }

    #[test]
    fn rejects_truncated_table() {
        assert!(Related::read(&[3, 0, 0, 0, b'a', b'\n']).is_none());
        assert!(Related::read(&[]).is_none());
    }
}
