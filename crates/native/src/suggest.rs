//! Similar names, for error messages.

/// Returns up to three names most similar to `requested`, best first. Ignores case.
pub(crate) fn nearest<'a>(requested: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let requested = requested.to_lowercase();
    // Chinese names are shorter, so a lower threshold applies.
    let enough = if requested.is_ascii() { 0.885 } else { 0.8 };
    let mut matches: Vec<(u32, &str)> = names
        .into_iter()
        .filter_map(|name| {
            let likeness = strsim::jaro_winkler(&requested, &name.to_lowercase());
            (likeness > enough).then_some(((likeness * 1e6) as u32, name))
        })
        .collect();
    matches.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    matches.dedup_by_key(|(_, name)| *name);
    matches.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Formats names in backticks, separated by commas.
pub(crate) fn list<T: std::fmt::Display>(names: impl IntoIterator<Item = T>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
