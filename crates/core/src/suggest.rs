//! Suggests similar names for an unknown name.

/// Number of names that a message about an unknown name suggests.
pub const MAX_SUGGESTIONS: usize = 3;
/// Longer names are not compared: the cost is the product of both lengths.
const MAX_COMPARED_NAME_BYTES: usize = 256;

/// The names most similar to `requested`, best first, at most `max_results`. Dissimilar names and `requested` itself are omitted.
pub fn similar_names<'a>(
    requested: &str,
    names: impl IntoIterator<Item = &'a str>,
    max_results: usize,
) -> Vec<String> {
    if requested.len() > MAX_COMPARED_NAME_BYTES {
        return Vec::new();
    }
    let original = requested;
    let requested = fold(requested);
    let mut scored: Vec<(f64, &str)> = names
        .into_iter()
        .filter(|name| name.len() <= MAX_COMPARED_NAME_BYTES && *name != original)
        .map(|name| (similarity(&requested, &fold(name)), name))
        .filter(|(score, _)| *score >= 0.6)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    // Beside a very good match, mediocre ones are noise.
    let best = scored.first().map_or(0.0, |(score, _)| *score);
    scored.retain(|(score, _)| *score >= best - 0.2);
    scored.into_iter().take(max_results).map(|(_, name)| name.to_owned()).collect()
}

fn similarity(requested: &str, name: &str) -> f64 {
    if requested.is_empty() || name.is_empty() {
        return 0.0;
    }
    let typo = strsim::normalized_damerau_levenshtein(requested, name);
    let same_start = requested.starts_with(name) || name.starts_with(requested);
    typo.max(words_shared(requested, name)).max(if same_start { 0.8 } else { 0.0 })
}

/// The share of words that two identifiers have in common; `read_excel_data` is similar to `read_data_from_excel`.
fn words_shared(a: &str, b: &str) -> f64 {
    let (a, b): (Vec<&str>, Vec<&str>) = (a.split('_').collect(), b.split('_').collect());
    if a.len() < 2 && b.len() < 2 {
        return 0.0;
    }
    let shared = a.iter().filter(|word| b.contains(word)).count();
    2.0 * shared as f64 / (a.len() + b.len()) as f64
}

/// Normalises a name: `readDataFromExcel`, `read-data-from-excel` and `read_data_from_excel` are equal.
fn fold(name: &str) -> String {
    let mut folded = String::with_capacity(name.len() + 4);
    let mut lower_before = false;
    for character in name.chars() {
        if !character.is_alphanumeric() {
            folded.push('_');
        } else {
            if character.is_uppercase() && lower_before {
                folded.push('_');
            }
            folded.extend(character.to_lowercase());
        }
        lower_before = character.is_lowercase() || character.is_numeric();
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_similar_names() {
        let names = ["read_data_from_excel", "write_data_to_excel", "calculate", "get_time", "读取文件"];
        let check = |requested: &str, expect: &[&str]| {
            assert_eq!(similar_names(requested, names, 2), expect, "{requested}");
        };
        check("readDataFromExcel", &["read_data_from_excel"]);
        check("read_excel_data", &["read_data_from_excel"]);
        check("calcualte", &["calculate"]);
        check("calc", &["calculate"]);
        check("calculate", &[]);
        check("Calculate", &["calculate"]);
        check("读取文档", &["读取文件"]);
        check("读取文", &["读取文件"]);
        check("zzz", &[]);
        check("", &[]);
    }
}
