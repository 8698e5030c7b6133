//! User metadata: the `x-ms-meta-*` headers of a resource.
//!
//! Source: *Setting and Retrieving Properties and Metadata for Blob Resources*. Names keep their
//! case and are compared without regard to it; the order of the headers is kept.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::error::{ErrorCode, StorageError};
use crate::limits::METADATA_BYTES_MAX;
use crate::names::validate_metadata_name;

/// The prefix of a metadata header.
pub const HEADER_PREFIX: &str = "x-ms-meta-";
/// Name of the metadata by which the Blob service shows that a blob is a directory. Its value is
/// `true`.
pub const FOLDER_MARKER: &str = "hdi_isfolder";

/// Names and values of a resource's metadata, valid by construction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Metadata(Vec<(String, String)>);

impl Metadata {
    /// Parses the metadata from a request's headers and ignores all other headers.
    ///
    /// # Errors
    /// 400 `EmptyMetadataKey` (with the value, as recorded) for a bare `x-ms-meta-`, 400
    /// `InvalidMetadata` for a name that is not an identifier, a repeated name, or a value that is
    /// not printable ASCII, 400 `MetadataTooLarge` beyond 8 KiB of names and values.
    pub fn from_headers<'a>(
        headers: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, StorageError> {
        let mut metadata = Metadata::default();
        let mut bytes = 0;
        for (header, value) in headers {
            let Some(name) = metadata_name(header) else {
                continue;
            };
            let value = value.trim_matches([' ', '\t']);
            bytes += name.len() + value.len();
            metadata.add(name, value)?;
        }
        if bytes > METADATA_BYTES_MAX {
            return Err(ErrorCode::MetadataTooLarge.into());
        }
        Ok(metadata)
    }

    /// Creates metadata from names and values.
    ///
    /// # Errors
    /// As [`Metadata::from_headers`].
    pub fn from_named<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, StorageError> {
        let mut metadata = Metadata::default();
        for (name, value) in pairs {
            metadata.add(name, value)?;
        }
        Ok(metadata)
    }

    /// Parses `x-ms-properties` of the Data Lake interface: `name=value` with the value in Base64,
    /// separated by commas. *Path - Create*.
    ///
    /// # Errors
    /// 400 `InvalidHeaderValue` for a malformed list, else as [`Metadata::from_headers`].
    pub fn from_properties(text: &str) -> Result<Self, StorageError> {
        const NAME: &str = "x-ms-properties";
        let refused = || StorageError::invalid_header(NAME, text);
        let (mut pairs, mut bytes) = (Vec::new(), 0);
        for property in text.split(',').filter(|part| !part.trim().is_empty()) {
            let (name, value) = property.split_once('=').ok_or_else(refused)?;
            let value = STANDARD.decode(value.trim()).map_err(|_| refused())?;
            let value = String::from_utf8(value).map_err(|_| refused())?;
            bytes += name.trim().len() + value.len();
            pairs.push((name.trim(), value));
        }
        if bytes > METADATA_BYTES_MAX {
            return Err(ErrorCode::MetadataTooLarge.into());
        }
        Self::from_named(pairs.iter().map(|(name, value)| (*name, value.as_str())))
    }

    /// Returns the metadata as the Blob service shows those of a directory: with [`FOLDER_MARKER`].
    #[must_use]
    pub fn of_directory(&self) -> Self {
        let own = self.0.iter();
        let own = own.filter(|(name, _)| !name.eq_ignore_ascii_case(FOLDER_MARKER));
        let marker = (FOLDER_MARKER.to_owned(), "true".to_owned());
        Metadata(own.cloned().chain([marker]).collect())
    }

    /// Returns the value of `x-ms-properties`.
    pub fn properties(&self) -> String {
        let pairs = self.iter();
        let texts = pairs.map(|(name, value)| format!("{name}={}", STANDARD.encode(value)));
        texts.collect::<Vec<_>>().join(",")
    }

    fn add(&mut self, name: &str, value: &str) -> Result<(), StorageError> {
        validate_metadata_name(name).map_err(|error| match error.code() {
            ErrorCode::EmptyMetadataKey => error.with_element("MetadataValue", value),
            _ => error,
        })?;
        let printable = value
            .bytes()
            .all(|b| (b' '..0x7f).contains(&b) || b == b'\t');
        if !printable || self.get(name).is_some() {
            return Err(ErrorCode::InvalidMetadata.into());
        }
        self.0.push((name.to_owned(), value.to_owned()));
        Ok(())
    }

    /// Returns the value of a name, compared without regard to case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter()
            .find(|(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// Iterates over names and values in the order given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns whether there is no metadata.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of names.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether both have the same names (ignoring case) with the same values, in any order.
    /// Create Queue of an existing queue succeeds if this holds.
    pub fn same_as(&self, other: &Metadata) -> bool {
        self.len() == other.len()
            && self
                .iter()
                .all(|(name, value)| other.get(name) == Some(value))
    }
}

/// Returns the part of a header's name after `x-ms-meta-`.
fn metadata_name(header: &str) -> Option<&str> {
    let (prefix, name) = header.split_at_checked(HEADER_PREFIX.len())?;
    prefix.eq_ignore_ascii_case(HEADER_PREFIX).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn code(headers: &[(&str, &str)]) -> Option<ErrorCode> {
        Metadata::from_headers(headers.iter().copied())
            .err()
            .map(|error| error.code())
    }

    #[test]
    fn keeps_order_and_case_but_ignores_case_in_comparisons() {
        let headers = [
            ("X-Ms-Meta-Zeta", " 1 "),
            ("Content-Type", "a/b"),
            ("x-ms-meta-alpha", ""),
        ];
        let metadata = Metadata::from_headers(headers).unwrap();
        assert_eq!(
            metadata.iter().collect::<Vec<_>>(),
            [("Zeta", "1"), ("alpha", "")]
        );
        assert_eq!(metadata.get("ZETA"), Some("1"));
        let other =
            Metadata::from_headers([("x-ms-meta-ALPHA", ""), ("x-ms-meta-zeta", "1")]).unwrap();
        assert!(metadata.same_as(&other));
        assert!(!metadata.same_as(&Metadata::default()));
        let json = serde_json::to_string(&metadata).unwrap();
        assert_eq!(serde_json::from_str::<Metadata>(&json).unwrap(), metadata);
    }

    #[test]
    fn rejects_as_azure_does() {
        use ErrorCode::{EmptyMetadataKey, InvalidMetadata, MetadataTooLarge};
        let fits = "v".repeat(METADATA_BYTES_MAX - 1);
        let large = "v".repeat(METADATA_BYTES_MAX);
        for (headers, expected) in [
            (&[("x-ms-meta-", "v")][..], Some(EmptyMetadataKey)),
            (&[("x-ms-meta-a-b", "v")], Some(InvalidMetadata)),
            (&[("x-ms-meta-1", "v")], Some(InvalidMetadata)),
            (&[("x-ms-meta-a", "ü")], Some(InvalidMetadata)),
            (
                &[("x-ms-meta-a", "1"), ("x-ms-meta-A", "1")],
                Some(InvalidMetadata),
            ),
            (&[("x-ms-meta-a", fits.as_str())], None),
            (&[("x-ms-meta-a", large.as_str())], Some(MetadataTooLarge)),
            (&[], None),
        ] {
            assert_eq!(code(headers), expected);
        }
        let error = Metadata::from_headers([("x-ms-meta-", "v")]).unwrap_err();
        assert_eq!(error.elements(), [("MetadataValue", "v".to_owned())]);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_rejected(name in ".{0,20}", value in ".{0,20}") {
            let header = format!("x-ms-meta-{name}");
            let _ = Metadata::from_headers([(header.as_str(), value.as_str()), (&name, &value)]);
        }
    }
}
