//! Finds the known name with the smallest edit distance to a mistyped one.

pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known.into_iter().min_by_key(|name| edits(word, name))
}

/// Levenshtein distance, computed row by row.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let substituted = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits() {
        for (from, to, expect) in
            [("", "", 0), ("", "tidy", 4), ("tidy", "", 4), ("tdiy", "tidy", 2), ("peer", "peers", 1)]
        {
            assert_eq!(edits(from, to), expect, "{from} → {to}");
        }
    }

    #[test]
    fn picks_the_nearest() {
        let known = ["test", "lint", "tidy", "peers", "bench"];
        for (word, expect) in [("tests", "test"), ("lnt", "lint"), ("benhc", "bench"), ("peer", "peers")] {
            assert_eq!(nearest(word, known), Some(expect), "{word}");
        }
        assert_eq!(nearest("x", []), None);
    }
}
