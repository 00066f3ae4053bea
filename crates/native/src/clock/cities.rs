//! Cities and countries by name, in English and Chinese. The tables are parsed on first use.

use std::collections::HashMap;
use std::sync::LazyLock;

use toolhub_core::name_tables::{CITIES, COUNTRIES};

use super::plain::plain;
use crate::suggest;

/// Suffixes that are ignored after a place name.
const SUFFIXES: [&str; 10] = [
    "localtime",
    "standardtime",
    "daylighttime",
    "time",
    "city",
    "当地时间",
    "本地时间",
    "标准时间",
    "时间",
    "市",
];

static TABLE: LazyLock<Table> = LazyLock::new(Table::read);

/// The zones of places, by normalized name.
#[derive(Default)]
struct Table {
    cities: HashMap<String, Vec<&'static str>>,
    countries: HashMap<String, Country>,
}

/// The zones of a country: the distinct ones, and all.
#[derive(Clone, Default)]
struct Country {
    differing: Vec<&'static str>,
    all: Vec<&'static str>,
}

/// The possible zones of a place: empty if unknown, several if the name is ambiguous.
pub(super) fn zones(name: &str) -> Vec<&'static str> {
    let key = key(name);
    let found = TABLE.zones(&key);
    if !found.is_empty() {
        return found;
    }
    if let Some((city, region)) = name.split_once([',', '，']) {
        return TABLE.zones_in(&self::key(city), region);
    }
    for suffix in SUFFIXES {
        if let Some(city) = key.strip_suffix(suffix).filter(|city| !city.is_empty()) {
            let found = TABLE.zones(city);
            if !found.is_empty() {
                return found;
            }
        }
    }
    TABLE.zones_of_compound(&key)
}

/// Similar place names.
pub(super) fn nearest(name: &str) -> Vec<&'static str> {
    let names = rows(CITIES).chain(rows(COUNTRIES)).flat_map(|row| row.names().chain(row.zones()));
    suggest::nearest(&plain(name), names)
}

impl Table {
    fn read() -> Self {
        let mut table = Self::default();
        for row in rows(CITIES) {
            for name in row.names() {
                let zones = table.cities.entry(key(name)).or_default();
                zones.extend(row.zones());
                zones.sort_unstable();
                zones.dedup();
            }
        }
        for row in rows(COUNTRIES) {
            let differing: Vec<_> = row.zones().collect();
            let all = differing.iter().copied().chain(row.more_zones()).collect();
            let country = Country { differing, all };
            for name in row.names() {
                table.countries.insert(key(name), country.clone());
            }
        }
        table
    }

    fn zones(&self, key: &str) -> Vec<&'static str> {
        let city = self.cities.get(key);
        city.or_else(|| self.countries.get(key).map(|country| &country.differing))
            .cloned()
            .unwrap_or_default()
    }

    /// `Munich, Germany` and `Austin, TX`: the region selects among places of the same name.
    fn zones_in(&self, city: &str, region: &str) -> Vec<&'static str> {
        let zones = self.zones(city);
        let within = match self.countries.get(&key(region)) {
            Some(country) => country.all.clone(),
            // A state or province by its two letters; the table has no list of them, so all zones of both countries are
            // allowed.
            None if region.trim().len() == 2
                && region.trim().bytes().all(|byte| byte.is_ascii_uppercase()) =>
            {
                let all = |name: &str| self.countries.get(name).map(|country| country.all.clone());
                [all("unitedstates"), all("canada")].into_iter().flatten().flatten().collect()
            }
            None => self.zones(&key(region)),
        };
        zones.into_iter().filter(|zone| within.contains(zone)).collect()
    }

    /// `美国纽约`: a country followed by a city in it.
    fn zones_of_compound(&self, key: &str) -> Vec<&'static str> {
        let splits = key.char_indices().map(|(at, _)| key.split_at(at));
        let found = splits.into_iter().find_map(|(country, city)| {
            let country = self.countries.get(country)?;
            let city = self.cities.get(city).or_else(|| self.cities.get(city.strip_suffix('市')?))?;
            let zones: Vec<_> = city.iter().copied().filter(|zone| country.all.contains(zone)).collect();
            (!zones.is_empty()).then_some(zones)
        });
        found.unwrap_or_default()
    }
}

/// A row of a table.
struct Row([&'static str; 4]);

fn rows(table: &'static str) -> impl Iterator<Item = Row> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut columns = line.split('\t');
        Row(std::array::from_fn(|_| columns.next().unwrap_or_default()))
    })
}

fn parts(column: &'static str) -> impl Iterator<Item = &'static str> {
    column.split('|').filter(|part| !part.is_empty())
}

impl Row {
    fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        parts(self.0[0]).chain(parts(self.0[1]))
    }

    fn zones(&self) -> impl Iterator<Item = &'static str> + use<> {
        parts(self.0[2])
    }

    fn more_zones(&self) -> impl Iterator<Item = &'static str> + use<> {
        parts(self.0[3])
    }
}

/// Normalizes a name: letters and digits without accents.
fn key(name: &str) -> String {
    let mut key = String::with_capacity(name.len());
    for c in plain(name).chars().filter(|c| c.is_alphanumeric()) {
        match c {
            'à'..='å' | 'ā' | 'ă' | 'ą' => key.push('a'),
            'æ' => key.push_str("ae"),
            'ç' | 'ć' | 'č' => key.push('c'),
            'ď' | 'đ' => key.push('d'),
            'è'..='ë' | 'ē' | 'ę' | 'ě' => key.push('e'),
            'ğ' => key.push('g'),
            'ì'..='ï' | 'ī' | 'ı' => key.push('i'),
            'ł' => key.push('l'),
            'ñ' | 'ń' | 'ň' => key.push('n'),
            'ò'..='ö' | 'ø' | 'ō' | 'ő' => key.push('o'),
            'œ' => key.push_str("oe"),
            'ř' => key.push('r'),
            'ś' | 'š' | 'ş' | 'ș' => key.push('s'),
            'ß' => key.push_str("ss"),
            'ť' | 'ț' | 'ţ' => key.push('t'),
            'ù'..='ü' | 'ū' | 'ů' | 'ű' => key.push('u'),
            'ý' | 'ÿ' => key.push('y'),
            'ź' | 'ż' | 'ž' => key.push('z'),
            // Combining accents are not alphanumeric and have been removed.
            _ => key.push(c),
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;

    #[test]
    fn every_zone_exists() {
        let zones = rows(CITIES).chain(rows(COUNTRIES)).flat_map(|row| row.zones().chain(row.more_zones()));
        let unknown: Vec<_> = zones.filter(|zone| TimeZone::get(zone).is_err()).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn every_city_row_is_complete() {
        for row in rows(CITIES).chain(rows(COUNTRIES)) {
            assert!(row.names().count() > 0 && row.zones().count() > 0, "{:?}", row.0);
            let bare = |text: &str| text.trim() == text && !key(text).is_empty();
            assert!(row.names().all(bare), "{:?}", row.0);
        }
        assert!(rows(CITIES).count() > 800);
    }
}
