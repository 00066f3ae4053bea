//! What is counted as Prometheus reads it: each name with what it means, then its values.

use std::fmt::{Display, Write as _};

/// How the values of a name go on.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// They only grow.
    Counter,
    /// They go up and down.
    Gauge,
    /// Counts by steps, a sum and a count.
    Histogram,
}

/// A text in Prometheus' format, as it grows.
#[derive(Debug, Default)]
pub struct MetricsText(String);

/// The values of one name.
#[derive(Debug)]
pub struct Family<'a> {
    out: &'a mut String,
    name: &'a str,
}

impl MetricsText {
    /// Begins a name, with what it counts in a few words.
    pub fn family<'a>(&'a mut self, name: &'a str, kind: Kind, help: &str) -> Family<'a> {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { out: &mut self.0, name }
    }

    /// The whole text.
    pub fn into_text(self) -> String {
        self.0
    }
}

impl Family<'_> {
    /// Its one value.
    pub fn value(&mut self, value: impl Display) {
        self.part("", value);
    }

    /// Its value for what a label names.
    pub fn labelled(&mut self, label: (&str, &str), value: impl Display) {
        self.part_labelled("", label, value);
    }

    /// A value of a histogram that is no step.
    pub(crate) fn part(&mut self, part: &str, value: impl Display) {
        let _ = writeln!(self.out, "{}{part} {value}", self.name);
    }

    pub(crate) fn part_labelled(&mut self, part: &str, (label, of): (&str, &str), value: impl Display) {
        let of = of.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n");
        let _ = writeln!(self.out, "{}{part}{{{label}=\"{of}\"}} {value}", self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_with_what_they_mean_and_labels_stay_one_line() {
        let mut out = MetricsText::default();
        out.family("tools", Kind::Gauge, "Tools there are.").value(3);
        let mut sessions = out.family("sessions", Kind::Counter, "Sessions, by profile.");
        sessions.labelled(("profile", "a\"b\\c\nd"), 1);
        sessions.labelled(("profile", "办公"), 2);
        assert_eq!(
            out.into_text(),
            "# HELP tools Tools there are.\n# TYPE tools gauge\ntools 3\n\
             # HELP sessions Sessions, by profile.\n# TYPE sessions counter\n\
             sessions{profile=\"a\\\"b\\\\c\\nd\"} 1\nsessions{profile=\"办公\"} 2\n"
        );
    }
}
