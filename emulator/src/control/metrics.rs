//! `/metrics`: counters in Prometheus' text form.

use std::fmt::Write as _;

use crate::core::Core;

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
    text
}
