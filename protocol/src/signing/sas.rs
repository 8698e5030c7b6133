//! Shared access signatures: the signed query parameters of a URL.
//!
//! [`Sas::parse`] finds the signature in a query, [`Sas::verify`] recomputes it, and the checks of
//! time, address and protocol are pure functions. Stored access policies (`si`) live with the
//! resource: who evaluates a SAS merges their fields in.

pub mod build;
pub mod layout;

use std::net::IpAddr;

use crate::error::{ErrorCode, StorageError};
use crate::service::Service;
use crate::signing::permissions::Permissions;
use crate::signing::{sign, verify};
use crate::time::Timestamp;
use crate::uri::lookup;
use crate::version::ApiVersion;

/// The parameters that a SAS may consist of, in the order in which a signed query writes them.
const FIELDS: &[&str] = &[
    "sv", "ss", "srt", "sr", "tn", "sdd", "si", "spk", "srk", "epk", "erk", "sp", "st", "se",
    "sip", "spr", "ses", "skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid", "scid",
    "skdutid", "sduoid", "srh", "srq", "rscc", "rscd", "rsce", "rscl", "rsct", "sig",
];

/// Which key and which layout a SAS is signed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SasKind {
    /// `ss` and `srt`: any resource of the account; the account's key.
    Account,
    /// One container, blob, queue or table; the account's key.
    Service,
    /// `skoid`: one container, blob or queue; a user delegation key.
    UserDelegation,
}

/// A SAS: its fields, decoded, as given.
#[derive(Clone, PartialEq, Eq)]
pub struct Sas {
    kind: SasKind,
    version: Option<ApiVersion>,
    fields: Vec<(&'static str, String)>,
}

/// What a service SAS or user delegation SAS is signed for, as the request addresses it.
#[derive(Clone, Copy, Debug)]
pub struct SasTarget<'a> {
    /// The service asked.
    pub service: Service,
    /// The account; on path-style hosts it is not doubled here.
    pub account: &'a str,
    /// Container, queue or table, decoded.
    pub name: &'a str,
    /// The blob, decoded, when the request addresses one.
    pub blob: Option<&'a str>,
    /// The `snapshot` or `versionid` parameter, or empty.
    pub snapshot: &'a str,
}

impl Sas {
    /// Reads the SAS of a request's decoded query; `None` when it has no `sig`.
    ///
    /// # Errors
    /// 403 `AuthenticationFailed` for a field given twice, an `sv` that is no version, letters
    /// that are no permissions, malformed times, and missing fields that nothing can replace.
    pub fn parse(query: &[(String, String)]) -> Result<Option<Self>, StorageError> {
        if lookup(query, "sig").is_none() {
            return Ok(None);
        }
        let mut fields = Vec::new();
        for (name, value) in query {
            let Some(field) = FIELDS.iter().find(|field| name.eq_ignore_ascii_case(field)) else {
                continue;
            };
            if fields.iter().any(|(known, _)| known == field) {
                return Err(refused("Signature fields not well formed."));
            }
            fields.push((*field, value.clone()));
        }
        let sas = Sas {
            kind: kind_of(&fields),
            version: version_of(&fields)?,
            fields,
        };
        sas.check_fields()?;
        Ok(Some(sas))
    }

    fn check_fields(&self) -> Result<(), StorageError> {
        // A stored policy may hold permissions and expiry, so only these are always mandatory.
        let mandatory: &[&str] = match self.kind {
            SasKind::Account => &["sv", "ss", "srt", "sp", "se"],
            SasKind::UserDelegation => &[
                "sv", "sp", "se", "skoid", "sktid", "skt", "ske", "sks", "skv",
            ],
            SasKind::Service if self.get("si").is_empty() => &["sp", "se"],
            SasKind::Service => &[],
        };
        if let Some(missing) = mandatory.iter().find(|field| self.get(field).is_empty()) {
            return Err(refused(&format!("{missing} is mandatory. Cannot be empty")));
        }
        if Permissions::parse(self.get("sp")).is_none() {
            return Err(refused("Signature fields not well formed."));
        }
        for field in ["st", "se", "skt", "ske"] {
            self.time(field)?;
        }
        Ok(())
    }

    /// Which key and layout it is signed with.
    pub fn kind(&self) -> SasKind {
        self.kind
    }

    /// The version whose layout is signed; `None` for the first form, which had no `sv`.
    pub fn version(&self) -> Option<ApiVersion> {
        self.version
    }

    /// A field as given, decoded; empty when absent.
    pub fn get(&self, field: &str) -> &str {
        let found = self.fields.iter().find(|(name, _)| *name == field);
        found.map_or("", |(_, value)| value)
    }

    /// `sp`: what it permits by itself.
    pub fn permissions(&self) -> Permissions {
        Permissions::parse(self.get("sp")).unwrap_or_default()
    }

    /// `st`, unless absent.
    pub fn start(&self) -> Option<Timestamp> {
        self.time("st").ok().flatten()
    }

    /// `se`, unless absent.
    pub fn expiry(&self) -> Option<Timestamp> {
        self.time("se").ok().flatten()
    }

    /// `skt` and `ske`: the window of the user delegation key.
    pub fn key_window(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        (
            self.time("skt").ok().flatten(),
            self.time("ske").ok().flatten(),
        )
    }

    /// `si`: the id of a stored access policy, unless absent.
    pub fn policy_id(&self) -> Option<&str> {
        Some(self.get("si")).filter(|id| !id.is_empty())
    }

    fn time(&self, field: &str) -> Result<Option<Timestamp>, StorageError> {
        match self.get(field) {
            "" => Ok(None),
            text => Timestamp::parse_iso(text)
                .map(Some)
                .ok_or_else(|| refused("Signature fields not well formed.")),
        }
    }

    /// The string that its signature signs.
    pub fn string_to_sign(&self, target: &SasTarget<'_>) -> String {
        layout::string_to_sign(self, target)
    }

    /// Checks the signature with the account's key, or the user delegation key's value.
    ///
    /// # Errors
    /// 403 `AuthenticationFailed`; the detail shows the string that the service signed.
    pub fn verify(&self, target: &SasTarget<'_>, key: &[u8]) -> Result<(), StorageError> {
        let text = self.string_to_sign(target);
        if verify(key, &text, self.get("sig")) {
            return Ok(());
        }
        let detail = format!("Signature did not match. String to sign used was {text}");
        Err(refused(&detail))
    }

    /// Checks `sip`, an address or an inclusive range of addresses.
    ///
    /// # Errors
    /// 403 `AuthorizationSourceIPMismatch` for another address, 403 `AuthenticationFailed` for a
    /// `sip` that is no address or range.
    pub fn check_ip(&self, client: IpAddr) -> Result<(), StorageError> {
        let sip = self.get("sip");
        if sip.is_empty() {
            return Ok(());
        }
        let (first, last) = sip.split_once('-').unwrap_or((sip, sip));
        let address = |text: &str| {
            let address = text.trim().parse::<IpAddr>().ok();
            address.ok_or_else(|| refused("Signature fields not well formed."))
        };
        let (first, last, client) = (address(first)?, address(last)?, client.to_canonical());
        if first.is_ipv4() == client.is_ipv4() && (first..=last).contains(&client) {
            return Ok(());
        }
        Err(StorageError::new(ErrorCode::AuthorizationSourceIPMismatch)
            .with_element("SourceIP", &client.to_string()))
    }

    /// Checks `spr`: `https` alone forbids plain HTTP.
    ///
    /// # Errors
    /// 403 `AuthorizationProtocolMismatch` for plain HTTP where only HTTPS is permitted, 403
    /// `AuthenticationFailed` for any other text (`http` alone cannot be asked for).
    pub fn check_protocol(&self, is_https: bool) -> Result<(), StorageError> {
        match self.get("spr") {
            "" | "https,http" | "http,https" => Ok(()),
            "https" if is_https => Ok(()),
            "https" => Err(ErrorCode::AuthorizationProtocolMismatch.into()),
            _ => Err(refused("Signature fields not well formed.")),
        }
    }

    /// Puts the fields, signed, into a raw query.
    fn signed_query(mut self, target: &SasTarget<'_>, key: &[u8]) -> String {
        self.fields.retain(|(_, value)| !value.is_empty());
        let signature = sign(key, &self.string_to_sign(target));
        self.fields.push(("sig", signature));
        let pairs = FIELDS.iter().map(|field| (*field, self.get(field)));
        crate::uri::write_query(pairs.filter(|(_, value)| !value.is_empty()))
    }
}

impl std::fmt::Debug for Sas {
    /// Everything but the signature.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = self.fields.iter().filter(|(name, _)| *name != "sig");
        f.debug_map()
            .entries(shown.map(|(name, value)| (name, value)))
            .finish()
    }
}

/// Checks the time window of a SAS: its start belongs to it, its expiry does not.
///
/// # Errors
/// 403 `AuthenticationFailed` with the detail that the service gives.
pub fn check_window(
    start: Option<Timestamp>,
    expiry: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), StorageError> {
    let begun = start.is_none_or(|start| start <= now);
    let alive = expiry.is_none_or(|expiry| now < expiry);
    if begun && alive {
        return Ok(());
    }
    let show = |time: Option<Timestamp>| time.map(Timestamp::rfc1123).unwrap_or_default();
    Err(refused(&format!(
        "Signature not valid in the specified time frame: Start [{}] - Expiry [{}] - Current [{}]",
        show(start),
        show(expiry),
        now.rfc1123(),
    )))
}

/// 403 `AuthenticationFailed` with this detail.
pub fn refused(detail: &str) -> StorageError {
    StorageError::new(ErrorCode::AuthenticationFailed)
        .with_element("AuthenticationErrorDetail", detail)
}

fn kind_of(fields: &[(&'static str, String)]) -> SasKind {
    let has = |field| fields.iter().any(|(name, _)| *name == field);
    if has("ss") || has("srt") {
        SasKind::Account
    } else if has("skoid") {
        SasKind::UserDelegation
    } else {
        SasKind::Service
    }
}

fn version_of(fields: &[(&'static str, String)]) -> Result<Option<ApiVersion>, StorageError> {
    let Some((_, text)) = fields.iter().find(|(name, _)| *name == "sv") else {
        return Ok(None);
    };
    match ApiVersion::resolve(text) {
        Ok(resolved) => Ok(Some(resolved.version)),
        Err(_) => Err(refused("Signature fields not well formed.")),
    }
}

#[cfg(test)]
mod tests;
