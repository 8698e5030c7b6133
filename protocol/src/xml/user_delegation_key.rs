//! The key that signs user delegation SAS: its request and answer.
//!
//! Source: *Get User Delegation Key*.

use crate::error::{ErrorCode, StorageError};
use crate::signing::AccountKey;
use crate::time::Timestamp;
use crate::xml::read::{ELEMENTS_MAX, Element, read_document};
use crate::xml::write::XmlWriter;

/// `<KeyInfo>`, the body of Get User Delegation Key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    /// The start of the key's validity; `None` means now.
    pub start: Option<Timestamp>,
    /// The end of the key's validity.
    pub expiry: Timestamp,
    /// The tenant of the user that a SAS of this key may be bound to, since 2025-07-05.
    pub delegated_tenant: Option<String>,
}

impl KeyInfo {
    /// Parses the document.
    ///
    /// # Errors
    /// 400 `InvalidXmlDocument` for another document or one without an expiry, 400
    /// `InvalidXmlNodeValue` for a malformed time.
    pub fn read(body: &[u8]) -> Result<Self, StorageError> {
        let root = read_document(body, ELEMENTS_MAX)?;
        if root.name != "KeyInfo" {
            return Err(root.unexpected());
        }
        let start = root.child("Start").filter(|start| !start.text.is_empty());
        let delegated = root.child("DelegatedUserTid").map(Element::trimmed);
        Ok(KeyInfo {
            start: start.map(time).transpose()?,
            expiry: time(root.required("Expiry")?)?,
            delegated_tenant: delegated.filter(|id| !id.is_empty()).map(str::to_owned),
        })
    }

    /// Writes the document.
    pub fn render(&self) -> Vec<u8> {
        let mut xml = XmlWriter::new();
        xml.open("KeyInfo");
        let start = self.start.map(Timestamp::iso_s);
        xml.optional("Start", start.as_deref());
        xml.element("Expiry", &self.expiry.iso_s());
        xml.optional("DelegatedUserTid", self.delegated_tenant.as_deref());
        xml.close("KeyInfo");
        xml.finish()
    }
}

fn time(element: &Element<'_>) -> Result<Timestamp, StorageError> {
    Timestamp::parse_iso(&element.text).ok_or_else(|| refused_value(element.trimmed()))
}

/// Returns 400 `InvalidXmlNodeValue` for an invalid time. Like the service it also reports the
/// value as the name of the node.
pub fn refused_value(value: &str) -> StorageError {
    StorageError::new(ErrorCode::InvalidXmlNodeValue)
        .with_message("The value for one of the XML nodes is not in the correct format.")
        .with_element("XmlNodeName", value)
        .with_element("XmlNodeValue", value)
}

/// The answer: the user, the validity window and the key.
#[derive(Clone, Copy)]
pub struct UserDelegationKeyDocument<'a> {
    /// `SignedOid`: object id of the user.
    pub object_id: &'a str,
    /// `SignedTid`: tenant of the user.
    pub tenant_id: &'a str,
    /// `SignedStart`, the start of the key's validity.
    pub start: Timestamp,
    /// `SignedExpiry`, the end of the key's validity.
    pub expiry: Timestamp,
    /// `SignedService`: the letter of the service.
    pub service: char,
    /// `SignedVersion`.
    pub version: &'a str,
    /// `SignedDelegatedUserTid`.
    pub delegated_tenant: Option<&'a str>,
    /// `Value`: the key in Base64.
    pub value: &'a str,
}

impl UserDelegationKeyDocument<'_> {
    /// Writes the document.
    pub fn render(&self) -> Vec<u8> {
        let mut xml = XmlWriter::new();
        xml.open("UserDelegationKey");
        xml.element("SignedOid", self.object_id);
        xml.element("SignedTid", self.tenant_id);
        xml.element("SignedStart", &self.start.iso_s());
        xml.element("SignedExpiry", &self.expiry.iso_s());
        xml.element("SignedService", &self.service.to_string());
        xml.element("SignedVersion", self.version);
        xml.optional("SignedDelegatedUserTid", self.delegated_tenant);
        xml.element("Value", self.value);
        xml.close("UserDelegationKey");
        xml.finish()
    }
}

/// The answer as a client parses it. The fields stay as received, since a SAS contains and signs
/// them unchanged. The `Debug` output does not contain the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserDelegationKey {
    /// `SignedOid`: object id of the user.
    pub object_id: String,
    /// `SignedTid`: tenant of the user.
    pub tenant_id: String,
    /// `SignedStart`, the start of the key's validity.
    pub start: String,
    /// `SignedExpiry`, the end of the key's validity.
    pub expiry: String,
    /// `SignedService`: the letter of the service.
    pub service: String,
    /// `SignedVersion`.
    pub version: String,
    /// `Value`, the key itself.
    pub value: AccountKey,
}

impl UserDelegationKey {
    /// Parses the answer; returns `None` for another document or one with a missing field.
    pub fn read(body: &[u8]) -> Option<Self> {
        let root = read_document(body, ELEMENTS_MAX).ok()?;
        if root.name != "UserDelegationKey" {
            return None;
        }
        let text = |name: &str| {
            let text = root.child(name).map(Element::trimmed);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        Some(UserDelegationKey {
            object_id: text("SignedOid")?,
            tenant_id: text("SignedTid")?,
            start: text("SignedStart")?,
            expiry: text("SignedExpiry")?,
            service: text("SignedService")?,
            version: text("SignedVersion")?,
            value: AccountKey::parse(&text("Value")?)?,
        })
    }

    /// Returns the end of the key's validity; `None` if `SignedExpiry` is not a time.
    pub fn ends(&self) -> Option<Timestamp> {
        Timestamp::parse_iso(&self.expiry)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parses_the_request() {
        let at = |text| Timestamp::parse_iso(text).unwrap();
        let whole = "<KeyInfo><Start>2020-01-01T00:00:00Z</Start>\
            <Expiry>2020-01-02T00:00:00.5Z</Expiry>\
            <DelegatedUserTid>t</DelegatedUserTid></KeyInfo>";
        let read = KeyInfo::read(whole.as_bytes()).unwrap();
        assert_eq!(read.start, Some(at("2020-01-01")));
        assert_eq!(read.expiry, at("2020-01-02T00:00:00.5Z"));
        assert_eq!(read.delegated_tenant.as_deref(), Some("t"));
        let least = "<KeyInfo><Start /><Expiry>2020-01-02</Expiry></KeyInfo>";
        let least = KeyInfo::read(least.as_bytes()).unwrap();
        assert_eq!(least.start, None);
        assert_eq!(KeyInfo::read(&least.render()).unwrap(), least);
        for (body, code) in [
            ("", ErrorCode::InvalidXmlDocument),
            ("<Other/>", ErrorCode::InvalidXmlDocument),
            (
                "<KeyInfo><Start>2020-01-01</Start></KeyInfo>",
                ErrorCode::InvalidXmlDocument,
            ),
            (
                "<KeyInfo><Expiry>soon</Expiry></KeyInfo>",
                ErrorCode::InvalidXmlNodeValue,
            ),
            (
                "<KeyInfo><Start>now</Start><Expiry>2020-01-01</Expiry></KeyInfo>",
                ErrorCode::InvalidXmlNodeValue,
            ),
        ] {
            let error = KeyInfo::read(body.as_bytes()).unwrap_err();
            assert_eq!((error.status(), error.code()), (400, code), "{body}");
        }
    }

    #[test]
    fn renders_and_parses_the_answer() {
        let document = UserDelegationKeyDocument {
            object_id: "o",
            tenant_id: "t",
            start: Timestamp::parse_iso("2020-01-01").unwrap(),
            expiry: Timestamp::parse_iso("2020-01-02").unwrap(),
            service: 'b',
            version: "2020-02-10",
            delegated_tenant: None,
            value: "a2V5",
        };
        let text = String::from_utf8(document.render()).unwrap();
        assert!(text.ends_with(
            "<UserDelegationKey><SignedOid>o</SignedOid><SignedTid>t</SignedTid>\
             <SignedStart>2020-01-01T00:00:00Z</SignedStart>\
             <SignedExpiry>2020-01-02T00:00:00Z</SignedExpiry><SignedService>b</SignedService>\
             <SignedVersion>2020-02-10</SignedVersion><Value>a2V5</Value></UserDelegationKey>"
        ));
        let read = UserDelegationKey::read(text.as_bytes()).unwrap();
        assert_eq!(read.ends(), Some(document.expiry));
        assert_eq!(
            (read.object_id.as_str(), read.value.to_base64().as_str()),
            ("o", "a2V5")
        );
        assert!(!format!("{read:?}").contains("a2V5"));
        for broken in [
            text.replace("a2V5", ""),
            text.replace("SignedOid", "Oid"),
            text.replace("UserDelegationKey>", "Key>"),
        ] {
            assert_eq!(UserDelegationKey::read(broken.as_bytes()), None, "{broken}");
        }
    }

    proptest! {
        #[test]
        fn key_info_parses_back(
            start in prop::option::of(0u64..4_000_000_000),
            expiry in 0u64..4_000_000_000,
            delegated_tenant in prop::option::of("[!-~]{1,40}"),
        ) {
            let info = KeyInfo {
                start: start.map(Timestamp::from_unix_s),
                expiry: Timestamp::from_unix_s(expiry),
                delegated_tenant,
            };
            prop_assert_eq!(KeyInfo::read(&info.render()), Ok(info));
        }

        #[test]
        fn any_text_is_parsed_or_rejected(
            body in "(<KeyInfo>|</KeyInfo>|<Start>|</Start>|<Expiry>|</Expiry>|2020|\\PC){0,12}",
        ) {
            let read = KeyInfo::read(body.as_bytes());
            prop_assert!(read.map_or_else(|error| error.status() == 400, |_| true));
            prop_assert_eq!(UserDelegationKey::read(body.as_bytes()), None);
        }
    }
}
