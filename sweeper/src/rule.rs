//! Rules: times to live for blobs that have none, by place, age, size and index tag. Pure.

use std::fmt;
use std::time::Duration;

use smalt_sleeve::port::{BlobProperties, metadata_value};
use smalt_worker::span;

use crate::decide::Policy;
use crate::plan::bytes;

/// A time to live for blobs that have none. All conditions must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Container name.
    pub container: String,
    /// Matches only names with this prefix.
    pub prefix: String,
    /// Time from Last-Modified until the blob is due; zero means at once.
    pub older_than: Duration,
    /// Matches only blobs with this index tag; key and value are compared exactly.
    pub tag: Option<(String, String)>,
    /// Matches only blobs larger than this many bytes.
    pub larger_than: Option<u64>,
    /// Matches only blobs smaller than this many bytes.
    pub smaller_than: Option<u64>,
    /// Excluded blobs, as patterns over `name` and `container/name`.
    pub exclude: Vec<String>,
    /// Destination in the grammar of `DeadBlobContainer`; if `None`, blobs are deleted.
    pub dead: Option<String>,
}

impl Rule {
    /// Returns whether the rule matches, without its exclusions; `None` if that depends on unknown
    /// tags.
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

/// Returns the `x-ms-if-tags` condition for the delete: the tag of the matching rule. Tags change
/// without the ETag, so they may have changed since they were read.
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

/// Returns whether the listing must include index tags.
pub(crate) fn asks_for_tags(rules: &[Rule]) -> bool {
    rules.iter().any(|rule| rule.tag.is_some())
}

/// Returns the index of the first matching rule.
///
/// # Errors
/// The index of a rule that cannot be evaluated, if no earlier rule matches.
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

    /// The delete is conditional on the tag of the matching rule and on no other.
    #[test]
    fn delete_is_conditional_on_the_tag_of_the_rule() {
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
