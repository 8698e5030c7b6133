//! Content negotiation for requests and answers: JSON at three levels, or Atom.
//!
//! Source: *Payload format for Table service operations*, *Setting the OData data service version
//! headers*; recordings: Atom for `*/*` and for no `Accept` at 2014-02-14, JSON at the minimal
//! level for `application/json` and for no `Accept` at later versions.

use crate::error::{ErrorCode, StorageError};
use crate::version::ApiVersion;

/// The first version that supports JSON.
const JSON_SINCE: ApiVersion = ApiVersion::V2013_08_15;
/// The first version that does not support Atom.
const NO_ATOM_SINCE: ApiVersion = ApiVersion::V2015_12_11;
/// The data service version that JSON requires.
const JSON_DATA_SERVICE_VERSION: u8 = 3;
/// Maximum alternatives of an `Accept` header that are considered: smalt's own limit.
const ALTERNATIVES_MAX: usize = 32;

/// The level of metadata in a JSON answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metadata {
    /// Only the properties.
    None,
    /// Also ETags and the types that JSON cannot express.
    Minimal,
    /// Also addresses and the type of the timestamp.
    Full,
}

/// The format of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Atom XML.
    Atom,
    /// JSON.
    Json(Metadata),
}

/// The format of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFormat {
    /// An Atom entry.
    Atom,
    /// A JSON object.
    Json,
}

/// The kind of document in an answer, as its content type says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One entity or table.
    Entry,
    /// A list of entities or tables.
    Feed,
    /// An error.
    Error,
}

/// The parts of a request that determine the answer's format.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// `Accept`.
    pub accept: Option<&'a str>,
    /// `$format`, which takes precedence over `Accept`.
    pub format: Option<&'a str>,
    /// `MaxDataServiceVersion`.
    pub max_data_service_version: Option<&'a str>,
    /// `DataServiceVersion`.
    pub data_service_version: Option<&'a str>,
    /// The service version.
    pub version: ApiVersion,
}

impl Format {
    /// Returns the default format of a version, also used for errors of the negotiation.
    pub fn of_version(version: ApiVersion) -> Self {
        if version < NO_ATOM_SINCE {
            Format::Atom
        } else {
            Format::Json(Metadata::Minimal)
        }
    }

    /// Chooses the format of an answer.
    ///
    /// # Errors
    /// 415 `AtomFormatNotSupported` and `JsonFormatNotSupported` if the version does not support
    /// the format, 415 `MediaTypeNotSupported` if no requested media type is known.
    pub fn negotiate(asked: &Asked<'_>) -> Result<Self, StorageError> {
        let wanted = asked.format.or(asked.accept).map(str::trim);
        let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) else {
            return Ok(Self::of_version(asked.version));
        };
        let mut refusal = ErrorCode::MediaTypeNotSupported;
        for media in alternatives(wanted) {
            match media_format(media, asked.version) {
                Some(Format::Atom) if asked.version >= NO_ATOM_SINCE => {
                    refusal = ErrorCode::AtomFormatNotSupported;
                }
                Some(Format::Json(_)) if !knows_json(asked) => {
                    refusal = ErrorCode::JsonFormatNotSupported;
                }
                Some(format) => return Ok(format),
                None => {}
            }
        }
        Err(refusal.into())
    }

    /// Returns the `Content-Type` of an answer.
    pub const fn content_type(self, kind: Kind) -> &'static str {
        match (self, kind) {
            (Format::Atom, Kind::Entry) => "application/atom+xml;type=entry;charset=utf-8",
            (Format::Atom, Kind::Feed) => "application/atom+xml;type=feed;charset=utf-8",
            (Format::Atom, Kind::Error) => "application/xml;charset=utf-8",
            (Format::Json(Metadata::None), _) => {
                "application/json;odata=nometadata;streaming=true;charset=utf-8"
            }
            (Format::Json(Metadata::Minimal), _) => {
                "application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
            }
            (Format::Json(Metadata::Full), _) => {
                "application/json;odata=fullmetadata;streaming=true;charset=utf-8"
            }
        }
    }
}

impl BodyFormat {
    /// Returns the format of a request's body by its content type, or by its version without one.
    ///
    /// # Errors
    /// 415 `AtomFormatNotSupported` and `JsonFormatNotSupported` if the version does not support
    /// the format, 415 `MediaTypeNotSupported` for anything else.
    pub fn of(content_type: Option<&str>, version: ApiVersion) -> Result<Self, StorageError> {
        let Some(given) = content_type.filter(|given| !given.trim().is_empty()) else {
            return Ok(match Format::of_version(version) {
                Format::Atom => BodyFormat::Atom,
                Format::Json(_) => BodyFormat::Json,
            });
        };
        let media = given.split(';').next().unwrap_or_default().trim();
        let is = |name: &str| media.eq_ignore_ascii_case(name);
        if is("application/json") {
            if version < JSON_SINCE {
                return Err(ErrorCode::JsonFormatNotSupported.into());
            }
            return Ok(BodyFormat::Json);
        }
        if is("application/atom+xml") || is("application/xml") {
            if version >= NO_ATOM_SINCE {
                return Err(ErrorCode::AtomFormatNotSupported.into());
            }
            return Ok(BodyFormat::Atom);
        }
        Err(ErrorCode::MediaTypeNotSupported.into())
    }
}

/// Returns the media types of an `Accept` header, the best first; equal ones in the order given.
fn alternatives(accept: &str) -> Vec<&str> {
    let mut media: Vec<&str> = accept.split(',').take(ALTERNATIVES_MAX).collect();
    media.sort_by_key(|media| std::cmp::Reverse(quality(media)));
    media.retain(|media| quality(media) > 0);
    media
}

/// Returns the quality of an alternative in thousandths.
fn quality(media: &str) -> u32 {
    let given = parameter(media, "q").and_then(|q| q.parse::<f32>().ok());
    (given.unwrap_or(1.0).clamp(0.0, 1.0) * 1_000.0) as u32
}

/// Returns a parameter of a media type.
fn parameter<'a>(media: &'a str, name: &str) -> Option<&'a str> {
    media.split(';').skip(1).find_map(|parameter| {
        let (key, value) = parameter.split_once('=')?;
        key.trim().eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

fn media_format(media: &str, version: ApiVersion) -> Option<Format> {
    let name = media.split(';').next().unwrap_or_default().trim();
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    if is("application/json") || is("json") {
        let level = parameter(media, "odata").unwrap_or("minimalmetadata");
        return Some(Format::Json(level_of(level)?));
    }
    if is("*/*") || is("application/*") {
        return Some(Format::of_version(version));
    }
    let atom = is("application/atom+xml") || is("application/xml") || is("atom");
    atom.then_some(Format::Atom)
}

fn level_of(level: &str) -> Option<Metadata> {
    let is = |other: &str| level.eq_ignore_ascii_case(other);
    if is("nometadata") {
        Some(Metadata::None)
    } else if is("minimalmetadata") {
        Some(Metadata::Minimal)
    } else if is("fullmetadata") {
        Some(Metadata::Full)
    } else {
        None
    }
}

/// Returns whether JSON may be used: since 2013-08-15, and while Atom is also supported only for
/// clients that do not ask for an older data service version.
fn knows_json(asked: &Asked<'_>) -> bool {
    let spoken = asked
        .max_data_service_version
        .or(asked.data_service_version);
    let major = spoken.and_then(|version| version.trim().split('.').next()?.parse::<u8>().ok());
    asked.version >= NO_ATOM_SINCE
        || asked.version >= JSON_SINCE && major.unwrap_or(u8::MAX) >= JSON_DATA_SERVICE_VERSION
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OLD: ApiVersion = ApiVersion::V2012_02_12;
    const BOTH: ApiVersion = ApiVersion::V2014_02_14;
    const NEW: ApiVersion = ApiVersion::V2019_02_02;

    fn asked(accept: Option<&'static str>, version: ApiVersion) -> Asked<'static> {
        Asked {
            accept,
            format: None,
            max_data_service_version: None,
            data_service_version: None,
            version,
        }
    }

    #[test]
    fn answers_are_negotiated() {
        use ErrorCode::{AtomFormatNotSupported, JsonFormatNotSupported, MediaTypeNotSupported};
        let minimal = Ok(Format::Json(Metadata::Minimal));
        for (accept, version, expected) in [
            (None, OLD, Ok(Format::Atom)),
            (None, BOTH, Ok(Format::Atom)),
            (None, NEW, minimal),
            (Some(""), NEW, minimal),
            (Some("*/*"), BOTH, Ok(Format::Atom)),
            (Some("*/*"), NEW, minimal),
            (Some("application/json"), NEW, minimal),
            (
                Some("application/json;odata=minimalmetadata"),
                BOTH,
                minimal,
            ),
            (
                Some("application/json; odata=nometadata"),
                NEW,
                Ok(Format::Json(Metadata::None)),
            ),
            (
                Some("Application/JSON;streaming=true;odata=FullMetadata"),
                NEW,
                Ok(Format::Json(Metadata::Full)),
            ),
            (
                Some("application/atom+xml,application/xml"),
                BOTH,
                Ok(Format::Atom),
            ),
            (
                Some("application/atom+xml,application/xml"),
                NEW,
                Err(AtomFormatNotSupported),
            ),
            (
                Some("application/atom+xml, application/json;q=0.5"),
                NEW,
                minimal,
            ),
            (
                Some("application/atom+xml;q=0.4, application/json;q=0.5"),
                BOTH,
                minimal,
            ),
            (Some("application/json"), OLD, Err(JsonFormatNotSupported)),
            (
                Some("application/json;odata=verbose"),
                NEW,
                Err(MediaTypeNotSupported),
            ),
            (Some("text/html"), NEW, Err(MediaTypeNotSupported)),
            (Some("*/*;q=0"), NEW, Err(MediaTypeNotSupported)),
        ] {
            let got = Format::negotiate(&asked(accept, version)).map_err(|error| error.code());
            assert_eq!(got, expected, "{accept:?} {version}");
        }
    }

    #[test]
    fn the_format_option_and_data_service_versions_are_considered() {
        let atom = Some("application/atom+xml");
        let format = Some("application/json;odata=fullmetadata");
        let by_query = Asked {
            format,
            ..asked(atom, NEW)
        };
        let full = Format::Json(Metadata::Full);
        assert_eq!(Format::negotiate(&by_query).ok(), Some(full));
        let json = asked(Some("application/json"), BOTH);
        for (max, own, known) in [
            (Some("3.0;NetFx"), Some("2.0"), true),
            (Some("2.0;NetFx"), Some("3.0"), false),
            (None, Some("3.0;NetFx"), true),
            (None, Some("1.0"), false),
            (None, Some("x"), true),
        ] {
            let asked = Asked {
                max_data_service_version: max,
                data_service_version: own,
                ..json
            };
            assert_eq!(Format::negotiate(&asked).is_ok(), known, "{max:?} {own:?}");
            let newer = Asked {
                version: NEW,
                ..asked
            };
            assert!(Format::negotiate(&newer).is_ok(), "{max:?} {own:?}");
        }
    }

    #[test]
    fn the_content_type_determines_the_format_of_a_body() {
        use ErrorCode::{AtomFormatNotSupported, JsonFormatNotSupported, MediaTypeNotSupported};
        for (given, version, expected) in [
            (None, BOTH, Ok(BodyFormat::Atom)),
            (None, NEW, Ok(BodyFormat::Json)),
            (
                Some("application/json;odata=nometadata"),
                NEW,
                Ok(BodyFormat::Json),
            ),
            (Some("application/json"), OLD, Err(JsonFormatNotSupported)),
            (Some("application/atom+xml"), BOTH, Ok(BodyFormat::Atom)),
            (
                Some("application/atom+xml"),
                NEW,
                Err(AtomFormatNotSupported),
            ),
            (Some("text/plain"), NEW, Err(MediaTypeNotSupported)),
        ] {
            let got = BodyFormat::of(given, version).map_err(|error| error.code());
            assert_eq!(got, expected, "{given:?} {version}");
        }
    }

    proptest! {
        #[test]
        fn any_header_is_parsed_or_rejected(accept in "[a-z/*;,=.0-9 ]{0,60}") {
            let asked = Asked { accept: Some(&accept), ..asked(None, BOTH) };
            let _ = Format::negotiate(&asked);
            let _ = BodyFormat::of(Some(&accept), BOTH);
        }
    }
}
