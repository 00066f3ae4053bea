//! Writes metrics in the text exposition format of Prometheus.

use std::fmt::{Display, Write as _};

/// The type of a metric.
#[derive(Debug, Clone, Copy)]
pub enum MetricKind {
    /// A value that only increases.
    Counter,
    /// A value that may increase and decrease.
    Gauge,
    /// Buckets, a sum and a count.
    Histogram,
}

/// A text in the exposition format.
#[derive(Debug, Default)]
pub struct MetricsText(String);

/// A metric family: the samples of one name.
#[derive(Debug)]
pub struct MetricFamily<'a> {
    out: &'a mut String,
    name: &'a str,
}

impl MetricsText {
    /// Starts a metric family, with its help text.
    pub fn family<'a>(&'a mut self, name: &'a str, kind: MetricKind, help: &str) -> MetricFamily<'a> {
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        MetricFamily { out: &mut self.0, name }
    }

    /// Returns the complete text.
    pub fn into_text(self) -> String {
        self.0
    }
}

impl MetricFamily<'_> {
    /// Writes the only sample.
    pub fn value(&mut self, value: impl Display) {
        self.part("", value);
    }

    /// Writes the sample of a label value.
    pub fn labelled(&mut self, label: &str, of: &str, value: impl Display) {
        self.part_labelled("", label, of, value);
    }

    /// Writes the sample of several label values.
    pub fn labelled_by(&mut self, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> =
            labels.iter().map(|(label, of)| format!("{label}=\"{}\"", escape(of))).collect();
        let _ = writeln!(self.out, "{}{{{}}} {value}", self.name, labels.join(","));
    }

    /// Writes the sum or the count of a histogram.
    pub(crate) fn part(&mut self, part: &str, value: impl Display) {
        let _ = writeln!(self.out, "{}{part} {value}", self.name);
    }

    pub(crate) fn part_labelled(&mut self, part: &str, label: &str, of: &str, value: impl Display) {
        let of = escape(of);
        let _ = writeln!(self.out, "{}{part}{{{label}=\"{of}\"}} {value}", self.name);
    }
}

/// The value of a label in the exposition format.
fn escape(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_help_text_and_escapes_labels() {
        let mut out = MetricsText::default();
        out.family("tools", MetricKind::Gauge, "Tools there are.").value(3);
        let mut sessions = out.family("sessions", MetricKind::Counter, "Sessions, by profile.");
        sessions.labelled("profile", "a\"b\\c\nd", 1);
        sessions.labelled("profile", "办公", 2);
        sessions.labelled_by(&[("profile", "a\"b"), ("era", "modern")], 3);
        assert_eq!(
            out.into_text(),
            "# HELP tools Tools there are.\n# TYPE tools gauge\ntools 3\n\
             # HELP sessions Sessions, by profile.\n# TYPE sessions counter\n\
             sessions{profile=\"a\\\"b\\\\c\\nd\"} 1\nsessions{profile=\"办公\"} 2\n\
             sessions{profile=\"a\\\"b\",era=\"modern\"} 3\n"
        );
    }
}
