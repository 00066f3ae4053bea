//! Names of places and holidays in English and Chinese, as tables: the clock looks them up, and the planner recognises them.
//! Parsing the rows is left to both; each file begins with the meaning of its columns.

/// Cities and their time zones.
pub const CITIES: &str = include_str!("../data/cities.tsv");
/// Countries, territories and their time zones.
pub const COUNTRIES: &str = include_str!("../data/countries.tsv");
/// Holidays and the rule for the date of each.
pub const HOLIDAYS: &str = include_str!("../data/holidays.tsv");
