//! The texts of a scenario: what stands in braces is replaced.
//!
//! | form | becomes |
//! | --- | --- |
//! | `{name}` | a value that a step kept, or one that every scenario has ([`super::play`]) |
//! | `{rfc1123+60}`, `{iso-60}` | the service's time, so many seconds later or earlier |
//! | `{repeat:N:text}`, `{count:N:text}`, `{hex:00ff}` | as in [malformed requests](template) |
//!
//! [template]: crate::malformed::template

use smalt_protocol::Timestamp;

use crate::malformed::template::{self, TemplateError};
use crate::wire::url;

/// A value was never kept, or a form is unknown.
pub type ValuesError = TemplateError;

/// Values by name, and the service's time.
#[derive(Clone, Debug, Default)]
pub struct Values {
    named: template::Values,
    now: Option<Timestamp>,
}

impl Values {
    /// Keeps a value.
    pub fn keep(&mut self, name: &str, value: impl Into<String>) {
        self.named.insert(name.to_owned(), value.into());
    }

    /// A value that was kept; empty when it was not.
    pub fn get(&self, name: &str) -> &str {
        self.named.get(name).map_or("", String::as_str)
    }

    /// Takes the service's time: the date of an answer.
    pub fn see(&mut self, now: Timestamp) {
        self.now = Some(now);
    }

    /// The service's time as far as it is known.
    pub fn now(&self) -> Option<Timestamp> {
        self.now
    }

    /// Expands a text.
    ///
    /// # Errors
    /// For a form that is none of the above, and a value that was never kept.
    pub fn text(&self, text: &str) -> Result<String, ValuesError> {
        self.bytes(text)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Expands a path with its query: what was kept is escaped, as clients do.
    ///
    /// # Errors
    /// As [`Values::text`].
    pub fn path(&self, text: &str) -> Result<String, ValuesError> {
        let escaped = self.named.iter();
        let escaped = Values {
            named: escaped
                .map(|(name, value)| (name.clone(), url::encode(value)))
                .collect(),
            now: self.now,
        };
        escaped.text(text)
    }

    /// Expands a text that may stand for any bytes.
    ///
    /// # Errors
    /// As [`Values::text`].
    pub fn bytes(&self, text: &str) -> Result<Vec<u8>, ValuesError> {
        let dates = self.dates(text);
        if dates.is_empty() {
            return template::expand(text, &self.named);
        }
        let mut named = self.named.clone();
        named.extend(dates);
        template::expand(text, &named)
    }

    /// The times that a text asks for.
    fn dates(&self, text: &str) -> Vec<(String, String)> {
        let Some(now) = self.now else {
            return Vec::new();
        };
        let forms = text.split('{').skip(1);
        forms
            .filter_map(|form| form.split_once('}'))
            .filter_map(|(form, _)| Some((form.to_owned(), date(form, now)?)))
            .collect()
    }
}

fn date(form: &str, now: Timestamp) -> Option<String> {
    let written: fn(Timestamp) -> String = if form.starts_with("rfc1123") {
        Timestamp::rfc1123
    } else if form.starts_with("iso") {
        Timestamp::iso_s
    } else {
        return None;
    };
    let shift: i64 = form
        .trim_start_matches("rfc1123")
        .trim_start_matches("iso")
        .parse()
        .ok()?;
    let span = std::time::Duration::from_secs(shift.unsigned_abs());
    Some(written(if shift < 0 {
        now.minus(span)
    } else {
        now.plus(span)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_times_are_put_in() {
        let mut values = Values::default();
        values.keep("c", "box");
        values.see(Timestamp::from_unix_s(1_800_000_000));
        let text = |text| values.text(text).unwrap();
        assert_eq!(text("{c}/b"), "box/b");
        assert_eq!(text("{rfc1123+60}"), "Fri, 15 Jan 2027 08:01:00 GMT");
        assert_eq!(text("{iso-60}"), "2027-01-15T07:59:00Z");
        assert_eq!(text("{repeat:3:a}"), "aaa");
        assert!(values.text("{d}").is_err());
        values.keep("receipt", "a+/=");
        assert_eq!(values.path("q?r={receipt}").unwrap(), "q?r=a%2B%2F%3D");
    }
}
