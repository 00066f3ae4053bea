//! Names of places and holidays in English and Chinese, as tables for the clock and the planner. Both parse the rows
//! themselves; each file starts with a description of its columns.

/// Cities and their time zones.
pub const CITIES: &str = include_str!("../data/cities.tsv");
/// Countries, territories and their time zones.
pub const COUNTRIES: &str = include_str!("../data/countries.tsv");
/// Holidays and the rule for the date of each.
pub const HOLIDAYS: &str = include_str!("../data/holidays.tsv");
