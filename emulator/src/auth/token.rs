//! The claims of a Microsoft Entra ID JSON Web Token: audience, issuer and lifetime.
//!
//! `key_set.rs` checks the signature. Source: "Authorize with Microsoft Entra ID", "Access tokens
//! in the Microsoft identity platform"; the details are Azure's own texts.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use smalt_protocol::{Service, Timestamp};
use uuid::Uuid;

/// The application id of Azure Storage.
const STORAGE_APPLICATION: &str = "e406a681-f3d4-42a8-90b6-c2b029497af1";
/// The resource for which clients request tokens for any account.
const STORAGE_RESOURCE: &str = "https://storage.azure.com";
/// Domains of Azure's clouds, for tokens whose audience is one account.
const CLOUDS: [&str; 4] = [
    "core.windows.net",
    "core.chinacloudapi.cn",
    "core.usgovcloudapi.net",
    "core.cloudapi.de",
];
/// Begin of the issuer of tokens for Azure Storage; the tenant follows.
pub(super) const TENANT_ISSUER: &str = "https://sts.windows.net/";
/// Issuers of Microsoft Entra ID: the older and the newer form, in every cloud.
const ISSUERS: [&str; 8] = [
    TENANT_ISSUER,
    "https://sts.windows-ppe.net/",
    "https://sts.chinacloudapi.cn/",
    "https://sts.microsoftonline.de/",
    "https://login.microsoftonline.com/",
    "https://login.microsoftonline.us/",
    "https://login.partner.microsoftonline.cn/",
    "https://login.windows-ppe.net/",
];

/// Azure's text, followed by the valid audiences.
const WRONG_AUDIENCE: &str = "Audience validation failed. Audience did not match. \
    An audience that every account takes is https://storage.azure.com.";
/// Azure's text, followed by the valid issuers.
const WRONG_ISSUER: &str = "Issuer validation failed. Issuer did not match. \
    An issuer that is taken is https://sts.windows.net/<tenant>/.";

/// URL-safe Base64: read with or without padding, written without it.
pub(super) const BASE64_URL: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The claims of a token.
#[derive(Clone, Debug, Deserialize)]
pub struct Claims {
    #[serde(default)]
    aud: Audiences,
    #[serde(default)]
    iss: String,
    /// Seconds since 1970.
    nbf: Option<f64>,
    /// Seconds since 1970.
    exp: Option<f64>,
    #[serde(default)]
    oid: Option<String>,
    #[serde(default)]
    tid: Option<String>,
}

/// `aud`: one audience or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Audiences {
    One(String),
    Several(Vec<String>),
}

impl Default for Audiences {
    fn default() -> Self {
        Audiences::Several(Vec::new())
    }
}

impl Audiences {
    fn all(&self) -> &[String] {
        match self {
            Audiences::One(one) => std::slice::from_ref(one),
            Audiences::Several(several) => several,
        }
    }
}

impl Claims {
    /// Parses a token of three parts, of which the second holds the claims. `None` for anything
    /// else.
    pub fn parse(token: &str) -> Option<Self> {
        let mut parts = token.split('.');
        let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        serde_json::from_slice(&BASE64_URL.decode(claims).ok()?).ok()
    }

    /// Checks lifetime, issuer and audience, in Azurite's order.
    ///
    /// # Errors
    /// The error detail that Azure returns.
    pub fn check(
        &self,
        account: &str,
        service: Service,
        now: Timestamp,
    ) -> Result<(), &'static str> {
        let (Some(not_before), Some(expiry)) = (self.nbf, self.exp) else {
            return Err("Lifetime validation failed. The token has no lifetime.");
        };
        let now_s = now.since(Timestamp::UNIX_EPOCH).as_secs_f64();
        if now_s < not_before {
            return Err("Lifetime validation failed. The token is not yet valid.");
        }
        if now_s >= expiry {
            return Err("Lifetime validation failed. The token is expired.");
        }
        if !ISSUERS.iter().any(|issuer| is_issued_by(&self.iss, issuer)) {
            return Err(WRONG_ISSUER);
        }
        let is_ours = |audience: &String| is_audience(audience, account, service);
        if !self.aud.all().iter().any(is_ours) {
            return Err(WRONG_AUDIENCE);
        }
        Ok(())
    }

    /// Returns the user's id, `oid`; nil when the token has none, or one that is not a GUID.
    pub fn object_id(&self) -> Uuid {
        guid(self.oid.as_deref())
    }

    /// Returns the user's tenant from `tid`, else the one in the issuer.
    pub fn tenant_id(&self) -> Uuid {
        let issuer = self.iss.split('/').nth(3);
        guid(self.tid.as_deref().or(issuer))
    }
}

fn guid(text: Option<&str>) -> Uuid {
    text.and_then(|text| Uuid::parse_str(text).ok())
        .unwrap_or_default()
}

fn is_audience(audience: &str, account: &str, service: Service) -> bool {
    let audience = audience.strip_suffix('/').unwrap_or(audience);
    let is_general = audience == STORAGE_APPLICATION || audience == STORAGE_RESOURCE;
    is_general
        || CLOUDS.iter().any(|cloud| {
            let service = service.as_str();
            audience == format!("https://{account}.{service}.{cloud}")
        })
}

/// Matches `https://sts.windows.net/<tenant>/`, `https://login.microsoftonline.com/<tenant>/v2.0`.
fn is_issued_by(claim: &str, issuer: &str) -> bool {
    let tenant = claim.strip_prefix(issuer);
    tenant.is_some_and(|tenant| !tenant.trim_matches('/').is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: u64 = 1_700_000_000;

    fn token(claims: &str) -> String {
        format!("e30.{}.c2ln", BASE64_URL.encode(claims))
    }

    fn check(audience: &str, issuer: &str, lifetime: (i64, i64)) -> Result<(), &'static str> {
        let (not_before, expiry) = lifetime;
        let claims = format!(
            r#"{{"aud":"{audience}","iss":"{issuer}","nbf":{},"exp":{}}}"#,
            NOW_S as i64 + not_before,
            NOW_S as i64 + expiry,
        );
        let claims = Claims::parse(&token(&claims)).unwrap();
        claims.check("one", Service::Blob, Timestamp::from_unix_s(NOW_S))
    }

    const ISSUER: &str = "https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a606/";
    const AUDIENCE: &str = "https://storage.azure.com";

    #[test]
    fn audiences() {
        for (audience, accepted) in [
            (AUDIENCE, true),
            ("https://storage.azure.com/", true),
            (STORAGE_APPLICATION, true),
            ("https://one.blob.core.windows.net", true),
            ("https://one.blob.core.usgovcloudapi.net/", true),
            ("https://two.blob.core.windows.net", false),
            ("https://one.queue.core.windows.net", false),
            ("https://one.blob.core.windows.net.example.org", false),
            ("https://management.azure.com", false),
            ("", false),
        ] {
            let checked = check(audience, ISSUER, (0, 1));
            assert_eq!(checked.is_ok(), accepted, "{audience}");
            assert!(checked.is_ok() || checked.unwrap_err().contains("udience"));
        }
    }

    #[test]
    fn issuers() {
        for (issuer, accepted) in [
            (ISSUER, true),
            ("https://login.microsoftonline.com/common/v2.0", true),
            ("https://sts.windows.net/", false),
            ("https://sts.windows.net.example.org/t/", false),
            ("", false),
        ] {
            let checked = check(AUDIENCE, issuer, (0, 1));
            assert_eq!(checked.is_ok(), accepted, "{issuer}");
            assert!(checked.is_ok() || checked.unwrap_err().contains("ssuer"));
        }
    }

    /// A token is valid from `nbf`, inclusive, until `exp`, exclusive.
    #[test]
    fn lifetimes() {
        for (lifetime, accepted) in [((0, 1), true), ((1, 2), false), ((-2, 0), false)] {
            let checked = check(AUDIENCE, ISSUER, lifetime);
            assert_eq!(checked.is_ok(), accepted, "{lifetime:?}");
        }
    }

    #[test]
    fn malformed_tokens_are_rejected_and_ids_are_guids() {
        for bad in [
            "",
            "a.b",
            "a.b.c",
            "e30.e30.e30.e30",
            "e30.bm90IGpzb24.c2ln",
        ] {
            assert!(Claims::parse(bad).is_none(), "{bad}");
        }
        let id = "23657296-5cd5-45b0-a809-d972a7f4dfe1";
        let full = token(&format!(r#"{{"aud":["a","b"],"oid":"{id}","tid":"{id}"}}"#));
        let full = Claims::parse(&full).unwrap();
        assert_eq!(full.object_id().to_string(), id);
        assert_eq!(full.tenant_id().to_string(), id);
        let bare = Claims::parse(&token(&format!(r#"{{"iss":"{ISSUER}","oid":"me"}}"#))).unwrap();
        assert!(bare.object_id().is_nil());
        assert!(ISSUER.contains(&bare.tenant_id().to_string()));
        let now = Timestamp::from_unix_s(NOW_S);
        assert!(bare.check("one", Service::Blob, now).is_err());
    }
}
