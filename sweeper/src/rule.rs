//! Rules: times to live for blobs that carry none, by place, age, size and index tag. Pure.

use std::fmt;
use std::time::Duration;

use smalt_sleeve::port::{BlobProperties, metadata_value};
use smalt_worker::span;

use crate::decide::Policy;
use crate::plan::bytes;

/// A time to live for blobs that carry none. All that it asks for must fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Container name.
    pub container: String,
    /// Only names with this prefix.
    pub prefix: String,
    /// Due this long after Last-Modified; at once when zero.
    pub older_than: Duration,
    /// Only blobs with this index tag: key and value, compared exactly.
    pub tag: Option<(String, String)>,
    /// Only blobs of more bytes.
    pub larger_than: Option<u64>,
    /// Only blobs of fewer bytes.
    pub smaller_than: Option<u64>,
    /// Except these, as patterns over `name` and `container/name`.
    pub exclude: Vec<String>,
    /// Where the dead blob goes, in the grammar of `DeadBlobContainer`; deleted when absent.
    pub dead: Option<String>,
}

impl Rule {
    /// Whether it fits, its exclusions aside; `None` when that hangs on tags that are not known.
    pub(crate) fn fits(&self, container: &str, name: &str, seen: &BlobProperties) -> Option<bool> {
        let is_here = self.container == container && name.starts_with(&self.prefix);
        let is_large = self.larger_than.is_none_or(|bound| seen.length > bound);
        let is_small = self.smaller_than.is_none_or(|bound| seen.length < bound);
        if !(is_here && is_large && is_small) {
            return Some(false);
        }
        let Some((key, value)) = &self.tag else {
            return Some(true);
        };
        match &seen.tags {
            Some(tags) => Some(tags.get(key) == Some(value)),
            None if seen.tag_count == 0 => Some(false),
            None => None,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.container, self.prefix)?;
        if !self.older_than.is_zero() {
            write!(f, " older than {}", span::format(self.older_than))?;
        }
        if let Some((key, value)) = &self.tag {
            write!(f, " tagged {key}={value}")?;
        }
        if let Some(bound) = self.larger_than {
            write!(f, " larger than {}", bytes(bound))?;
        }
        if let Some(bound) = self.smaller_than {
            write!(f, " smaller than {}", bytes(bound))?;
        }
        Ok(())
    }
}

/// What a blob that goes must still be tagged with, as `x-ms-if-tags` asks: the tag of the rule
/// that lets it go. Tags change without the ETag, and may have changed since they were read.
pub(crate) fn tag_condition(
    policy: &Policy,
    container: &str,
    name: &str,
    seen: &BlobProperties,
) -> Option<String> {
    if metadata_value(&seen.metadata, &policy.ttl_key).is_some() {
        return None;
    }
    let at = first(&policy.rules, container, name, seen).ok()??;
    let (key, value) = policy.rules[at].tag.as_ref()?;
    Some(format!("\"{key}\" = '{value}'"))
}

/// Whether a listing has to bring the index tags along.
pub(crate) fn asks_for_tags(rules: &[Rule]) -> bool {
    rules.iter().any(|rule| rule.tag.is_some())
}

/// The first rule that fits.
///
/// # Errors
/// The rule that cannot be judged before any that fits: what comes after it does not count then.
pub(crate) fn first(
    rules: &[Rule],
    container: &str,
    name: &str,
    seen: &BlobProperties,
) -> Result<Option<usize>, usize> {
    for (at, rule) in rules.iter().enumerate() {
        match rule.fits(container, name, seen) {
            Some(true) => return Ok(Some(at)),
            Some(false) => {}
            None => return Err(at),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::tests::blob;

    /// The delete asks again for the tag that a rule let the blob go by, and for none else.
    #[test]
    fn the_tag_of_the_rule_is_asked_for_again() {
        let rule = |tag: Option<&str>, prefix: &str| Rule {
            container: "events".to_owned(),
            prefix: prefix.to_owned(),
            tag: tag.map(|value| ("kind".to_owned(), value.to_owned())),
            ..Rule::default()
        };
        let policy = Policy {
            rules: vec![rule(None, "a/"), rule(Some("tmp"), ""), rule(None, "")],
            ..Policy::default()
        };
        for (name, tag, ttl, expected) in [
            ("b", "tmp", false, Some("\"kind\" = 'tmp'")),
            ("b", "log", false, None),
            ("a/b", "tmp", false, None),
            ("b", "tmp", true, None),
        ] {
            let own = [("TimeToLive", "2026-11-21T10:00:00Z")];
            let mut seen = blob(if ttl { &own } else { &[] });
            seen.tag_count = 1;
            seen.tags = Some([("kind".to_owned(), tag.to_owned())].into());
            let found = tag_condition(&policy, "events", name, &seen);
            assert_eq!(found.as_deref(), expected, "{name} {tag} {ttl}");
        }
    }
}
