//! The table, as text and as JSON.

use std::fmt::Write as _;

use super::lines::{IN_PROCESS, IN_PROCESS_MIN, Rate, Scale};
use super::scale::Scaled;

/// One line of the table.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Name of the line.
    pub line: String,
    /// Unit of the values.
    pub unit: &'static str,
    /// Smalt's value.
    pub smalt: Option<f64>,
    /// Reference value: bare hyper's, or a page of 10,000.
    pub reference: Option<f64>,
    /// Azurite's value.
    pub azurite: Option<f64>,
    /// The target, as text.
    pub target: String,
    /// Whether the target is reached; `None` without a measurement.
    pub reached: Option<bool>,
    /// Why there is no value.
    pub problem: Option<String>,
}

impl Row {
    /// Returns a row about a rate.
    pub fn of_rate(rate: Rate, smalt: f64, bare: f64, azurite: Option<f64>) -> Row {
        let of_azurite = rate.of_azurite_min();
        let mut target = format!(">= {:.0} % of hyper", rate.of_hyper_min() * 100.0);
        if let Some(times) = of_azurite {
            target.push_str(&format!(", >= {times:.0} x Azurite"));
        }
        let beats_azurite = match (of_azurite, azurite) {
            (Some(times), Some(azurite)) => smalt >= times * azurite,
            _ => true,
        };
        Row {
            line: rate.name().to_owned(),
            unit: rate.unit(),
            smalt: Some(smalt),
            reference: Some(bare),
            azurite,
            target,
            reached: Some(smalt >= rate.of_hyper_min() * bare && beats_azurite),
            problem: None,
        }
    }

    /// Returns a row about scale.
    pub fn of_scale(scale: Scale, blobs: u64, smalt: &Scaled, azurite: Option<&Scaled>) -> Row {
        let value = |scaled: &Scaled| match scale {
            Scale::ListPage => Some(scaled.page_of_many_ms),
            Scale::StartEmpty => Some(scaled.start_empty_ms),
            Scale::StartFull => Some(scaled.start_full_ms),
            Scale::MemoryIdle => scaled.idle_mib,
            Scale::MemoryFull => scaled.full_mib,
        };
        let own = value(smalt);
        let is_page = scale == Scale::ListPage;
        let reference = is_page.then_some(smalt.page_of_few_ms);
        let (most, target) = match reference {
            Some(few) => (
                scale.most() * few,
                format!("<= {} x that of 10,000", scale.most()),
            ),
            None => (scale.most(), format!("< {} {}", scale.most(), scale.unit())),
        };
        Row {
            line: scale.name(blobs),
            unit: scale.unit(),
            smalt: own,
            reference,
            azurite: azurite.and_then(value),
            target,
            reached: own.map(|own| own <= most),
            problem: None,
        }
    }

    /// Returns the row about in-process calls.
    pub fn of_in_process(smalt: f64) -> Row {
        Row {
            line: IN_PROCESS.to_owned(),
            unit: "op/s",
            smalt: Some(smalt),
            target: format!(">= {IN_PROCESS_MIN} op/s"),
            reached: Some(smalt >= IN_PROCESS_MIN),
            ..Row::default()
        }
    }

    /// Returns a row without a value.
    pub fn failed(line: String, problem: String) -> Row {
        Row {
            line,
            reached: Some(false),
            problem: Some(problem),
            ..Row::default()
        }
    }

    fn ratio(&self) -> Option<f64> {
        Some(self.smalt? / self.reference?)
    }
}

/// Returns the heading of the table.
pub fn heading() -> String {
    format!(
        "{:<38} {:>10} {:>10} {:>6} {:>10} {:<5}  {:<38} reached\n",
        "", "smalt", "hyper*", "ratio", "Azurite", "unit", "target"
    )
}

/// Renders one row.
pub fn line(row: &Row) -> String {
    let number = |value: Option<f64>| match value {
        None => "-".to_owned(),
        Some(value) if value >= 100.0 => format!("{value:.0}"),
        Some(value) => format!("{value:.1}"),
    };
    let reached = match row.reached {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "-",
    };
    let ratio = row
        .ratio()
        .map_or_else(|| "-".to_owned(), |r| format!("{r:.2}"));
    let mut text = format!(
        "{:<38} {:>10} {:>10} {ratio:>6} {:>10} {:<5}  {:<38} {reached}\n",
        row.line,
        number(row.smalt),
        number(row.reference),
        number(row.azurite),
        row.unit,
        row.target,
    );
    if let Some(problem) = &row.problem {
        // Writing to a string does not fail.
        let _ = writeln!(text, "    {problem}");
    }
    text
}

/// Summarizes how many targets are reached. Values that the system does not report count as neither
/// reached nor missed.
pub fn summary(rows: &[Row]) -> String {
    let count = |reached| rows.iter().filter(|row| row.reached == reached).count();
    let mut text = format!("{} of {} targets reached", count(Some(true)), rows.len());
    let unknown = count(None);
    if unknown > 0 {
        text.push_str(&format!(", {unknown} not measured"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmeasured_target_is_not_reached() {
        let row = |reached| Row {
            reached,
            ..Row::default()
        };
        let mut rows = vec![row(Some(true)), row(Some(false))];
        assert_eq!(summary(&rows), "1 of 2 targets reached");
        rows.push(row(None));
        assert_eq!(summary(&rows), "1 of 3 targets reached, 1 not measured");
    }

    #[test]
    fn rows_reach_or_miss_their_targets() {
        let reached = |rate, smalt, azurite| Row::of_rate(rate, smalt, 100.0, azurite).reached;
        assert_eq!(reached(Rate::Get, 60.0, None), Some(true));
        assert_eq!(reached(Rate::Get, 59.0, None), Some(false));
        assert_eq!(reached(Rate::Put, 35.0, Some(1.0)), Some(true));
        assert_eq!(reached(Rate::Put, 35.0, Some(2.0)), Some(false));
        let scaled = Scaled {
            page_of_few_ms: 10.0,
            page_of_many_ms: 13.1,
            start_empty_ms: 5.0,
            ..Scaled::default()
        };
        let of = |scale| Row::of_scale(scale, 100, &scaled, None);
        assert_eq!(of(Scale::ListPage).reached, Some(false));
        assert_eq!(of(Scale::StartEmpty).reached, Some(true));
        assert_eq!(of(Scale::MemoryIdle).reached, None);
        assert!(line(&of(Scale::ListPage)).contains("1.31"));
    }
}
