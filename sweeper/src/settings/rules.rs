//! Rules as they appear in the configuration file.

use std::time::Duration;

use serde::Deserialize;
use smalt_protocol::Size;
use smalt_worker::span::Span;

use super::fault::{SettingsError, wrong};
use crate::decide::Rule;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleEntry {
    container: String,
    #[serde(default)]
    prefix: String,
    older_than: Option<Span>,
    #[serde(default)]
    tag: Option<String>,
    larger_than: Option<Size>,
    smaller_than: Option<Size>,
    #[serde(default)]
    exclude: Vec<String>,
    #[serde(default)]
    dead: Option<String>,
}

impl RuleEntry {
    /// Converts the entry to a rule, rejecting one that matches every blob or none.
    pub(super) fn rule(&self) -> Result<Rule, SettingsError> {
        let of = |what: &str| format!("the rule for {}/{} {what}", self.container, self.prefix);
        let tag = |text: &String| {
            let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty())?;
            Some((key.to_owned(), value.to_owned()))
        };
        let tag = match &self.tag {
            Some(text) => Some(tag(text).ok_or_else(|| {
                wrong(of(&format!("has an invalid tag `{text}`: use key=value")))
            })?),
            None => None,
        };
        let bytes = |size: Option<Size>| size.map(|Size(bytes)| bytes);
        let (larger_than, smaller_than) = (bytes(self.larger_than), bytes(self.smaller_than));
        let is_bounded = self.older_than.is_some() || tag.is_some();
        if !is_bounded && larger_than.is_none() && smaller_than.is_none() {
            let what = "matches every blob; give older_than, tag, larger_than or smaller_than";
            return Err(wrong(of(what)));
        }
        if let (Some(larger), Some(smaller)) = (larger_than, smaller_than)
            && larger.saturating_add(1) >= smaller
        {
            return Err(wrong(of(
                "matches no blob: larger_than excludes what smaller_than allows",
            )));
        }
        Ok(Rule {
            container: self.container.clone(),
            prefix: self.prefix.clone(),
            older_than: self.older_than.map_or(Duration::ZERO, |Span(span)| span),
            tag,
            larger_than,
            smaller_than,
            exclude: self.exclude.clone(),
            dead: self.dead.clone(),
        })
    }
}
