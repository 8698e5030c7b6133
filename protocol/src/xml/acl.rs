//! Stored access policies: the body of Set Container/Queue/Table ACL and the answer of Get.
//!
//! Source: *Set Container ACL*; recordings for the reasons of errors and for times, which the
//! service returns with seven fractional digits.

use serde::{Deserialize, Serialize};

use crate::error::StorageError;
use crate::limits::{STORED_POLICIES_MAX, STORED_POLICY_ID_CHARS_MAX};
use crate::signing::permissions::Permissions;
use crate::time::Timestamp;
use crate::xml::read::{ELEMENTS_MAX, Element, is_blank, read_document};
use crate::xml::write::XmlWriter;

/// A stored access policy with its id. The SAS must supply each field that is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedIdentifier {
    /// The id that `si` of a SAS names.
    pub id: String,
    /// The start of the validity of a SAS.
    pub start: Option<Timestamp>,
    /// The expiry of a SAS.
    pub expiry: Option<Timestamp>,
    /// The permission letters as sent.
    pub permissions: Option<String>,
}

/// The document of Get and Set ACL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignedIdentifiersDocument;

impl SignedIdentifiersDocument {
    /// Parses the body of Set ACL; an empty body clears the policies.
    ///
    /// # Errors
    /// 400 `InvalidXmlDocument` for more than five policies, an id that is empty, longer than 64
    /// characters or repeated, invalid permission letters, malformed times.
    pub fn read(body: &[u8]) -> Result<Vec<SignedIdentifier>, StorageError> {
        if is_blank(body) {
            return Ok(Vec::new());
        }
        let root = read_document(body, ELEMENTS_MAX)?;
        if root.name != "SignedIdentifiers" {
            return Err(root.unexpected());
        }
        let mut identifiers: Vec<SignedIdentifier> = Vec::new();
        for child in &root.children {
            let identifier = read_identifier(child)?;
            if identifiers.iter().any(|known| known.id == identifier.id) {
                return Err(child.refuse("Signed identifier IDs must be unique."));
            }
            if identifiers.len() == STORED_POLICIES_MAX {
                return Err(child.refuse("No more than 5 signed identifiers are permitted."));
            }
            identifiers.push(identifier);
        }
        Ok(identifiers)
    }

    /// Writes the answer of Get ACL.
    pub fn render(identifiers: &[SignedIdentifier]) -> Vec<u8> {
        let mut xml = XmlWriter::new();
        if identifiers.is_empty() {
            xml.empty("SignedIdentifiers");
            return xml.finish();
        }
        xml.open("SignedIdentifiers");
        for identifier in identifiers {
            xml.open("SignedIdentifier");
            xml.element("Id", &identifier.id);
            push_policy(&mut xml, identifier);
            xml.close("SignedIdentifier");
        }
        xml.close("SignedIdentifiers");
        xml.finish()
    }
}

/// Writes `AccessPolicy`, unless it is empty, as recorded.
fn push_policy(xml: &mut XmlWriter, identifier: &SignedIdentifier) {
    if identifier.start.is_none() && identifier.expiry.is_none() && identifier.permissions.is_none()
    {
        return;
    }
    xml.open("AccessPolicy");
    xml.optional(
        "Start",
        identifier.start.map(Timestamp::iso_ticks).as_deref(),
    );
    xml.optional(
        "Expiry",
        identifier.expiry.map(Timestamp::iso_ticks).as_deref(),
    );
    xml.optional("Permission", identifier.permissions.as_deref());
    xml.close("AccessPolicy");
}

fn read_identifier(element: &Element<'_>) -> Result<SignedIdentifier, StorageError> {
    if element.name != "SignedIdentifier" {
        return Err(element.unexpected());
    }
    let id = element.required("Id")?.trimmed();
    if id.is_empty() || id.encode_utf16().count() > STORED_POLICY_ID_CHARS_MAX {
        let reason = "Signed identifier ID cannot be empty or over 64 characters in length";
        return Err(element.refuse(reason));
    }
    let mut identifier = SignedIdentifier {
        id: id.to_owned(),
        ..SignedIdentifier::default()
    };
    let Some(policy) = element.child("AccessPolicy") else {
        return Ok(identifier);
    };
    for field in &policy.children {
        match (field.name, field.trimmed()) {
            ("Start" | "Expiry" | "Permission", "") => {}
            ("Start", _) => identifier.start = Some(read_time(field)?),
            ("Expiry", _) => identifier.expiry = Some(read_time(field)?),
            ("Permission", letters) if Permissions::parse(letters).is_some() => {
                identifier.permissions = Some(letters.to_owned());
            }
            ("Permission", _) => return Err(field.refuse("The permissions are not valid.")),
            _ => return Err(field.unexpected()),
        }
    }
    Ok(identifier)
}

/// Parses a time of the ACL; a fraction must have seven digits.
fn read_time(field: &Element<'_>) -> Result<Timestamp, StorageError> {
    let text = field.trimmed();
    let fraction = text
        .split_once('.')
        .map(|(_, rest)| rest.trim_end_matches(['Z', 'z']));
    Timestamp::parse_iso(text)
        .filter(|_| fraction.is_none_or(|digits| digits.len() == 7))
        .ok_or_else(|| field.refuse("The value is not a valid time."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;
    use crate::xml::write::tests::body_of;
    use proptest::prelude::*;

    fn policy(id: &str, inner: &str) -> String {
        format!("<SignedIdentifier><Id>{id}</Id>{inner}</SignedIdentifier>")
    }

    fn read(inner: &str) -> Result<Vec<SignedIdentifier>, StorageError> {
        let body = format!("<SignedIdentifiers>{inner}</SignedIdentifiers>");
        SignedIdentifiersDocument::read(body.as_bytes())
    }

    #[test]
    fn parses_and_renders_as_recorded() {
        let identifiers = read(
            &[
                policy(
                    "full",
                    "<AccessPolicy><Permission>raud</Permission><Start>2050-12-20T21:55:06Z</Start>\
                 <Expiry>2050-12-21</Expiry></AccessPolicy>",
                ),
                policy("empty", "<AccessPolicy><Start/></AccessPolicy>"),
                policy("none", ""),
            ]
            .concat(),
        );
        assert_eq!(
            body_of(SignedIdentifiersDocument::render(&identifiers.unwrap())),
            "<SignedIdentifiers><SignedIdentifier><Id>full</Id><AccessPolicy>\
             <Start>2050-12-20T21:55:06.0000000Z</Start>\
             <Expiry>2050-12-21T00:00:00.0000000Z</Expiry><Permission>raud</Permission>\
             </AccessPolicy></SignedIdentifier><SignedIdentifier><Id>empty</Id></SignedIdentifier>\
             <SignedIdentifier><Id>none</Id></SignedIdentifier></SignedIdentifiers>"
        );
        assert_eq!(
            body_of(SignedIdentifiersDocument::render(&[])),
            "<SignedIdentifiers />"
        );
    }

    #[test]
    fn an_empty_body_clears_the_policies() {
        for body in ["", "\n", "\u{feff}", "<SignedIdentifiers />"] {
            assert_eq!(
                SignedIdentifiersDocument::read(body.as_bytes()),
                Ok(vec![]),
                "{body}"
            );
        }
    }

    #[test]
    fn a_long_id_is_rejected_as_recorded() {
        let first = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<SignedIdentifiers>\
            <SignedIdentifier><AccessPolicy><Permission>r</Permission>\
            <Expiry>2021-06-11T20:00:00Z</Expiry><Start>2021-06-11T20:05:00Z</Start>\
            </AccessPolicy>";
        let body = format!(
            "{first}<Id>{}</Id></SignedIdentifier><SignedIdentifier></SignedIdentifier>\
             </SignedIdentifiers>",
            "a".repeat(65)
        );
        let error = SignedIdentifiersDocument::read(body.as_bytes()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidXmlDocument);
        let reason = "Signed identifier ID cannot be empty or over 64 characters in length";
        let expected = [
            ("LineNumber", "2"),
            ("LinePosition", "259"),
            ("Reason", reason),
        ];
        assert_eq!(
            error.elements(),
            expected.map(|(name, value)| (name, value.to_owned()))
        );
    }

    #[test]
    fn rejects_what_the_service_rejects() {
        let time = |text: &str| {
            policy(
                "a",
                &format!("<AccessPolicy><Start>{text}</Start></AccessPolicy>"),
            )
        };
        let many = |n: usize| {
            (0..n)
                .map(|id| policy(&id.to_string(), ""))
                .collect::<String>()
        };
        assert_eq!(read(&many(5)).map(|five| five.len()), Ok(5));
        assert!(read(&time("2021-06-11T20:00:00.1234567Z")).is_ok());
        for inner in [
            many(6),
            policy("", ""),
            policy("a", "") + &policy("a", ""),
            "<SignedIdentifier/>".to_owned(),
            "<Other/>".to_owned(),
            time("yesterday"),
            time("2021-06-11T20:00:00.123Z"),
            policy(
                "a",
                "<AccessPolicy><Permission>R!</Permission></AccessPolicy>",
            ),
            policy("a", "<AccessPolicy><Other>r</Other></AccessPolicy>"),
        ] {
            let error = read(&inner).unwrap_err();
            assert_eq!(
                (error.status(), error.code()),
                (400, ErrorCode::InvalidXmlDocument)
            );
        }
        assert!(SignedIdentifiersDocument::read(b"<Other/>").is_err());
    }

    proptest! {
        #[test]
        fn rendered_policies_parse_back(
            ids in proptest::collection::hash_set("[a-zA-Z0-9<&]{1,64}", 0..=5),
            start in proptest::option::of(0..=Timestamp::MAX.ticks()),
        ) {
            let start = start.map(Timestamp::from_ticks);
            let identifiers: Vec<_> = ids
                .into_iter()
                .map(|id| SignedIdentifier { id, start, ..SignedIdentifier::default() })
                .collect();
            let body = SignedIdentifiersDocument::render(&identifiers);
            prop_assert_eq!(SignedIdentifiersDocument::read(&body), Ok(identifiers));
        }
    }
}
