//! Metrics in the text format of Prometheus, version 0.0.4.

use std::fmt::Write;

/// Kind of a metric family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A value that only increases.
    Counter,
    /// A current value.
    Gauge,
    /// A sum and a count, as samples that end in `_sum` and `_count`.
    Summary,
}

/// Builds the text of all metrics.
#[derive(Debug, Default)]
pub struct Exposition(String);

/// A metric family of an [`Exposition`], without samples yet.
#[derive(Debug)]
pub struct Family<'a> {
    text: &'a mut String,
    name: &'a str,
}

impl Exposition {
    /// Starts a family with its help and type.
    pub fn family<'a>(&'a mut self, name: &'a str, kind: Kind, help: &str) -> Family<'a> {
        let text = &mut self.0;
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Summary => "summary",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { text, name }
    }

    /// Adds a family with one sample and no labels.
    pub fn value(&mut self, name: &str, kind: Kind, help: &str, value: f64) {
        self.family(name, kind, help).sample(&[], value);
    }

    /// Returns the text.
    pub fn finish(self) -> String {
        self.0
    }
}

impl Family<'_> {
    /// Adds a sample with these labels; their values may be untrusted.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: f64) {
        let mut shown = String::new();
        for (name, value) in labels {
            let separator = if shown.is_empty() { '{' } else { ',' };
            let _ = write!(shown, "{separator}{name}=\"{}\"", escaped(value));
        }
        if !shown.is_empty() {
            shown.push('}');
        }
        let _ = writeln!(self.text, "{}{shown} {value}", self.name);
    }

    /// Adds the two samples of a summary.
    pub fn sum(&mut self, sum: f64, count: u64) {
        let name = self.name;
        let _ = writeln!(self.text, "{name}_sum {sum}\n{name}_count {count}");
    }
}

fn escaped(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_help_type_and_samples() {
        let mut text = Exposition::default();
        text.value("a_up", Kind::Gauge, "Whether it runs.", 1.0);
        let mut blobs = text.family("a_blobs_total", Kind::Counter, "Blobs.");
        blobs.sample(&[("container", "a\"\\\n"), ("outcome", "gone")], 2.0);
        let mut times = text.family("a_s", Kind::Summary, "Times.");
        times.sum(0.5, 3);
        assert_eq!(
            text.finish(),
            "# HELP a_up Whether it runs.\n# TYPE a_up gauge\na_up 1\n\
             # HELP a_blobs_total Blobs.\n# TYPE a_blobs_total counter\n\
             a_blobs_total{container=\"a\\\"\\\\\\n\",outcome=\"gone\"} 2\n\
             # HELP a_s Times.\n# TYPE a_s summary\na_s_sum 0.5\na_s_count 3\n"
        );
    }
}
