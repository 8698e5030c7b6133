//! Numbers and texts in the page.

/// Returns `99.5 %`, or a dash when there is nothing to count. Only complete success gives 100.
pub(super) fn percent(percent: Option<f64>) -> String {
    match percent {
        None => "-".to_owned(),
        Some(percent) if percent < 100.0 => format!("{:.1} %", percent.min(99.9)),
        Some(_) => "100 %".to_owned(),
    }
}

/// Escapes a string for an element and for a quoted attribute.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // HTML documents must not contain control characters.
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
