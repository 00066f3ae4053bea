//! Removes duplicates if a model repeats the same calls in a loop.

use std::collections::{HashMap, HashSet};

use super::scanner::{PieceKind, TextPiece};
use crate::repair::Repair;

/// Number of equal calls that count as a loop. Fewer may be intended: three dice are three calls.
const MIN_REPEATS: usize = 4;

/// If a call is repeated `MIN_REPEATS` times, keeps only the first of each.
pub(super) fn remove_duplicates(pieces: &mut [TextPiece]) {
    let mut counts: HashMap<(&str, &str), usize> = HashMap::new();
    for call in pieces.iter().filter_map(calls_of).flatten() {
        *counts.entry((&call.tool, call.arguments.get())).or_default() += 1;
    }
    if counts.values().all(|count| *count < MIN_REPEATS) {
        return;
    }
    let mut seen: HashSet<(String, String)> = HashSet::new();
    for piece in pieces {
        let PieceKind::Calls(calls) = &mut piece.kind else { continue };
        calls.retain(|call| seen.insert((call.tool.clone(), call.arguments.get().to_owned())));
        for call in calls {
            call.repairs.add(Repair::Repeated);
        }
    }
}

fn calls_of(piece: &TextPiece) -> Option<&Vec<super::parsed_call::ParsedCall>> {
    match &piece.kind {
        PieceKind::Calls(calls) => Some(calls),
        _ => None,
    }
}
