//! The case of metadata names, which Azure keeps and HTTP libraries lose.
//!
//! Header names ignore case, so the libraries lowercase them; but Azure returns
//! `x-ms-meta-TimeToLive` as it was sent (recorded). Names with capitals are kept in an extension
//! of request and response; the sockets read them from the wire and write them back.

use http::HeaderMap;
use smalt_protocol::Metadata;
use smalt_protocol::metadata::HEADER_PREFIX;

/// Metadata header names with capitals, as the client wrote them, such as `x-ms-meta-TimeToLive`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderCase(Vec<String>);

impl HeaderCase {
    /// Collects the metadata names with capitals from header names as they are on the wire.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let with_capitals = |name: &&str| {
            let (prefix, rest) = name
                .split_at_checked(HEADER_PREFIX.len())
                .unwrap_or_default();
            prefix.eq_ignore_ascii_case(HEADER_PREFIX)
                && rest.bytes().any(|byte| byte.is_ascii_uppercase())
        };
        HeaderCase(
            names
                .into_iter()
                .filter(with_capitals)
                .map(str::to_owned)
                .collect(),
        )
    }

    /// Returns the names that a response with this metadata must restore.
    pub fn of_metadata(metadata: &Metadata) -> Self {
        let capitals = metadata
            .iter()
            .filter(|(name, _)| name.bytes().any(|b| b.is_ascii_uppercase()));
        HeaderCase(
            capitals
                .map(|(name, _)| format!("{HEADER_PREFIX}{name}"))
                .collect(),
        )
    }

    /// Returns whether there are no names to restore.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns the original form of a lowercased name, or the name itself.
    pub fn restore<'a>(&'a self, folded: &'a str) -> &'a str {
        let written = self.0.iter().find(|name| name.eq_ignore_ascii_case(folded));
        written.map_or(folded, String::as_str)
    }

    /// Returns the names that are headers of this request.
    pub fn within(&self, headers: &HeaderMap) -> Self {
        let present = |name: &&String| headers.contains_key(name.as_str());
        HeaderCase(self.0.iter().filter(present).cloned().collect())
    }

    /// Adds a name unless it is present.
    pub fn add(&mut self, name: &str) {
        self.0.retain(|known| !known.eq_ignore_ascii_case(name));
        self.0.push(name.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_metadata_names_with_capitals_are_kept() {
        let case = HeaderCase::of([
            "x-ms-meta-TimeToLive",
            "X-Ms-Meta-a",
            "X-Ms-Date",
            "x-ms-meta-b",
        ]);
        assert_eq!(case.iter().collect::<Vec<_>>(), ["x-ms-meta-TimeToLive"]);
        assert_eq!(case.restore("x-ms-meta-timetolive"), "x-ms-meta-TimeToLive");
        assert_eq!(case.restore("x-ms-meta-b"), "x-ms-meta-b");
    }
}
