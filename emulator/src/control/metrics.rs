//! `/metrics`: counters in Prometheus' text format.

use std::fmt::Write as _;

use crate::core::Core;
use crate::store::Trouble;

pub(super) fn render(core: &Core) -> String {
    let mut text = String::from(
        "# HELP smalt_requests_total Requests answered, by operation and status.\n\
         # TYPE smalt_requests_total counter\n",
    );
    for (service, operation, status, count) in core.metrics.snapshot() {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "smalt_requests_total{{service=\"{service}\",operation=\"{operation}\",\
             status=\"{status}\"}} {count}"
        );
    }
    store(core, &mut text);
    text
}

/// Writes the state that decides `/ready` as gauges.
fn store(core: &Core, text: &mut String) {
    let troubles = core.store.troubles();
    text.push_str(
        "# HELP smalt_trouble 1 if this keeps smalt from being ready, otherwise 0.\n\
         # TYPE smalt_trouble gauge\n",
    );
    for name in Trouble::NAMES {
        let is_so = u8::from(troubles.iter().any(|trouble| trouble.name() == name));
        let _ = writeln!(text, "smalt_trouble{{reason=\"{name}\"}} {is_so}");
    }
    let mut gauge = |name: &str, help: &str, value: u64| {
        let _ = writeln!(
            text,
            "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}"
        );
    };
    let behind_s = core.store.behind().as_secs();
    let help = "Seconds that the clock is behind the last commit.";
    gauge("smalt_clock_behind_seconds", help, behind_s);
    if let Some(available) = core.store.stats().available_bytes {
        let help = "Free bytes on the file system of the store.";
        gauge("smalt_disk_available_bytes", help, available);
    }
    let help = "1 if unused payload files are deleted, 0 while the store is not whole.";
    let collects = u64::from(core.store.unexplained().is_none());
    gauge("smalt_collecting", help, collects);
}
