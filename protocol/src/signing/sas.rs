//! Shared access signatures: the signed query parameters of a URL.
//!
//! [`Sas::parse`] finds the signature in a query, [`Sas::verify`] recomputes it, and the checks of
//! time, address and protocol are pure functions. Stored access policies (`si`) belong to the
//! resource, so the caller merges in their fields.

pub mod build;
pub mod layout;

use std::net::IpAddr;

use crate::error::{ErrorCode, StorageError};
use crate::service::Service;
use crate::signing::permissions::Permissions;
use crate::signing::{sign, verify};
use crate::time::Timestamp;
use crate::uri::{lookup, parameters};
use crate::version::ApiVersion;

/// The parameters of a SAS, in the order in which a signed query writes them.
const FIELDS: &[&str] = &[
    "sv", "ss", "srt", "sr", "tn", "sdd", "si", "spk", "srk", "epk", "erk", "sp", "st", "se",
    "sip", "spr", "ses", "skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid", "scid",
    "skdutid", "sduoid", "srh", "srq", "rscc", "rscd", "rsce", "rscl", "rsct", "sig",
];

/// The detail for malformed fields.
const NOT_WELL_FORMED: &str = "Signature fields not well formed.";

/// The type of a SAS, which determines key and layout of the string to sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SasKind {
    /// `ss` and `srt`: any resource of the account; signed with the account's key.
    Account,
    /// One container, blob, queue or table; signed with the account's key.
    Service,
    /// `skoid`: one container, blob or queue; signed with a user delegation key.
    UserDelegation,
}

/// A SAS with its decoded fields.
#[derive(Clone, PartialEq, Eq)]
pub struct Sas {
    kind: SasKind,
    version: Option<ApiVersion>,
    fields: Vec<(&'static str, String)>,
    /// The values of the headers and parameters in `srh` and `srq`, as signed.
    bound: Bound,
}

/// The headers and parameters of a request that a SAS is bound to, as signed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Bound {
    headers: String,
    parameters: String,
}

/// The resource that a service SAS or user delegation SAS signs, as the request addresses it.
#[derive(Clone, Copy, Debug)]
pub struct SasTarget<'a> {
    /// The addressed service.
    pub service: Service,
    /// The account, once, even on path-style hosts.
    pub account: &'a str,
    /// Container, queue or table, decoded.
    pub name: &'a str,
    /// The blob, decoded, if the request addresses one.
    pub blob: Option<&'a str>,
    /// The `snapshot` or `versionid` parameter; may be empty.
    pub snapshot: &'a str,
}

impl Sas {
    /// Parses the SAS of a request's decoded query; returns `None` if it has no `sig`.
    ///
    /// # Errors
    /// 403 `AuthenticationFailed` for a repeated field, an invalid `sv`, invalid permission
    /// letters, malformed times, and missing fields that a stored policy cannot supply.
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
                return Err(refused(NOT_WELL_FORMED));
            }
            fields.push((*field, value.clone()));
        }
        let sas = Sas {
            kind: kind_of(&fields),
            version: version_of(&fields)?,
            fields,
            bound: Bound::default(),
        };
        sas.check_fields()?;
        Ok(Some(sas))
    }

    fn check_fields(&self) -> Result<(), StorageError> {
        // A stored policy may supply permissions and expiry, so only these are always mandatory.
        let mandatory: &[&str] = match self.kind {
            SasKind::Account => &["sv", "ss", "srt", "sp", "se"],
            SasKind::UserDelegation => &[
                "sv", "sp", "se", "skoid", "sktid", "skt", "ske", "sks", "skv",
            ],
            SasKind::Service if self.get("si").is_empty() => &["sp", "se"],
            SasKind::Service => &[],
        };
        let directory = (self.get("sr") == "d").then_some("sdd");
        let mut fields = mandatory.iter().copied().chain(directory);
        if let Some(missing) = fields.find(|field| self.get(field).is_empty()) {
            return Err(refused(&format!("{missing} is mandatory. Cannot be empty")));
        }
        let is_known = self.is_known_to_its_version();
        if Permissions::parse(self.get("sp")).is_none() || !is_known {
            return Err(refused(NOT_WELL_FORMED));
        }
        for field in ["st", "se", "skt", "ske"] {
            self.time(field)?;
        }
        Ok(())
    }

    /// Returns whether the version of the SAS supports its kind: "Versioning for Azure Storage".
    fn is_known_to_its_version(&self) -> bool {
        let since = match self.kind {
            SasKind::Account => ApiVersion::V2015_04_05,
            SasKind::UserDelegation if !self.get("si").is_empty() => return false,
            SasKind::UserDelegation => ApiVersion::V2018_11_09,
            SasKind::Service => match self.get("sr") {
                "bs" => ApiVersion::V2018_11_09,
                // Recorded under the preview of versions, before the documented 2019-12-12.
                "bv" => ApiVersion::V2019_10_10,
                "d" => ApiVersion::V2020_02_10,
                _ => return true,
            },
        };
        self.version.is_some_and(|version| version >= since)
    }

    /// Returns the type of the SAS.
    pub fn kind(&self) -> SasKind {
        self.kind
    }

    /// Returns the version whose layout is signed; `None` for the first form, which had no `sv`.
    pub fn version(&self) -> Option<ApiVersion> {
        self.version
    }

    /// Returns a field, decoded; empty if absent.
    pub fn get(&self, field: &str) -> &str {
        let found = self.fields.iter().find(|(name, _)| *name == field);
        found.map_or("", |(_, value)| value)
    }

    /// Returns the letters of `sp`, without those of a stored policy.
    pub fn permissions(&self) -> Permissions {
        Permissions::parse(self.get("sp")).unwrap_or_default()
    }

    /// Returns `st`, if present.
    pub fn start(&self) -> Option<Timestamp> {
        self.time("st").ok().flatten()
    }

    /// Returns `se`, if present.
    pub fn expiry(&self) -> Option<Timestamp> {
        self.time("se").ok().flatten()
    }

    /// Returns `skt` and `ske`, the validity window of the user delegation key.
    pub fn key_window(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        (
            self.time("skt").ok().flatten(),
            self.time("ske").ok().flatten(),
        )
    }

    /// Returns `si`, the id of a stored access policy, if present.
    pub fn policy_id(&self) -> Option<&str> {
        Some(self.get("si")).filter(|id| !id.is_empty())
    }

    /// Returns whether the SAS is bound to headers or parameters of the request.
    pub fn is_bound(&self) -> bool {
        !self.get("srh").is_empty() || !self.get("srq").is_empty()
    }

    /// Stores the values of the request's headers and parameters that `srh` and `srq` name. Since
    /// 2026-04-06 a user delegation SAS may be bound to them; their values are signed with it.
    pub fn bind<'r>(
        &mut self,
        header: impl Fn(&str) -> Option<&'r str>,
        parameter: impl Fn(&str) -> Option<&'r str>,
    ) {
        let names = |field: &str| -> Vec<String> {
            let names = self.get(field).split(',').map(str::trim);
            names
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect()
        };
        let headers = names("srh");
        let parameters = names("srq");
        self.bound = Bound::default();
        for name in headers {
            let value = header(&name).unwrap_or_default();
            self.bound.headers.extend([&name, ":", value, "\n"]);
        }
        for name in parameters {
            let value = parameter(&name).unwrap_or_default();
            self.bound.parameters.extend(["\n", &name, ":", value]);
        }
    }

    fn time(&self, field: &str) -> Result<Option<Timestamp>, StorageError> {
        match self.get(field) {
            "" => Ok(None),
            text => Timestamp::parse_iso(text)
                .map(Some)
                .ok_or_else(|| refused(NOT_WELL_FORMED)),
        }
    }

    /// Checks the validity window of the user delegation key; its start and expiry are mandatory.
    ///
    /// # Errors
    /// 403 `AuthenticationFailed` with the service's detail.
    pub fn check_key_window(&self, now: Timestamp) -> Result<(), StorageError> {
        let (Some(start), Some(expiry)) = self.key_window() else {
            return Err(refused(NOT_WELL_FORMED));
        };
        if start <= now && now < expiry {
            return Ok(());
        }
        Err(refused(&format!(
            "Signature not valid in the specified key time frame: Key start [{}] - \
             Key expiry [{}] - Current [{}]",
            start.rfc1123(),
            expiry.rfc1123(),
            now.rfc1123(),
        )))
    }

    /// Returns the string to sign.
    pub fn string_to_sign(&self, target: &SasTarget<'_>) -> String {
        layout::string_to_sign(self, target)
    }

    /// Checks the signature with the account's key, or the user delegation key's value.
    ///
    /// # Errors
    /// 403 `AuthenticationFailed`; the detail contains the string to sign.
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
    /// `sip` that is not an address or range.
    pub fn check_ip(&self, client: IpAddr) -> Result<(), StorageError> {
        let sip = self.get("sip");
        if sip.is_empty() {
            return Ok(());
        }
        let (first, last) = sip.split_once('-').unwrap_or((sip, sip));
        let address = |text: &str| {
            let address = text.trim().parse::<IpAddr>().ok();
            address.ok_or_else(|| refused(NOT_WELL_FORMED))
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
    /// `AuthenticationFailed` for any other value (`http` alone is not allowed).
    pub fn check_protocol(&self, is_https: bool) -> Result<(), StorageError> {
        match self.get("spr") {
            "" | "https,http" | "http,https" => Ok(()),
            "https" if is_https => Ok(()),
            "https" => Err(ErrorCode::AuthorizationProtocolMismatch.into()),
            _ => Err(refused(NOT_WELL_FORMED)),
        }
    }

    /// Signs the fields and writes them as a raw query.
    fn signed_query(mut self, target: &SasTarget<'_>, key: &[u8]) -> String {
        self.fields.retain(|(_, value)| !value.is_empty());
        let signature = sign(key, &self.string_to_sign(target));
        self.fields.push(("sig", signature));
        let pairs = FIELDS.iter().map(|field| (*field, self.get(field)));
        crate::uri::write_query(pairs.filter(|(_, value)| !value.is_empty()))
    }
}

impl std::fmt::Debug for Sas {
    /// Writes everything but the signature.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = self.fields.iter().filter(|(name, _)| *name != "sig");
        f.debug_map()
            .entries(shown.map(|(name, value)| (name, value)))
            .finish()
    }
}

/// Returns the fields at the end of a raw query that has no other fields; `query` is the decoded
/// one. [`Sas::parse`] finds the same SAS in every query that ends with them.
pub fn suffix<'q>(raw: &'q str, query: &[(String, String)]) -> Option<&'q str> {
    let (mut start, mut at, mut others) = (None, 0, 0);
    for (name, value) in parameters(raw) {
        match (start, FIELDS.contains(&name)) {
            (None, true) => start = Some(at),
            (None, false) => others += usize::from((name, value) != ("", None)),
            (Some(_), true) => {}
            (Some(_), false) => return None,
        }
        at += name.len() + value.map_or(0, |value| 1 + value.len()) + 1;
    }
    let is_field = |name: &String| FIELDS.iter().any(|field| name.eq_ignore_ascii_case(field));
    let mut others = query.get(..others)?.iter();
    if others.any(|(name, _)| is_field(name)) {
        return None;
    }
    raw.get(start?..)
}

/// Checks the validity window of a SAS: the start is inclusive, the expiry exclusive. Without a
/// start the window begins at the request, so an expired SAS ends before it begins, and the service
/// says so.
///
/// # Errors
/// 403 `AuthenticationFailed` with the service's detail.
pub fn check_window(
    start: Option<Timestamp>,
    expiry: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), StorageError> {
    let begin = start.unwrap_or(now);
    let Some(expiry) = expiry else {
        return Ok(());
    };
    if expiry <= begin {
        return Err(refused(&format!(
            "Signed expiry time [{}] must be after signed start time [{}]",
            expiry.rfc1123(),
            begin.rfc1123(),
        )));
    }
    if begin <= now && now < expiry {
        return Ok(());
    }
    Err(refused(&format!(
        "Signature not valid in the specified time frame: Start [{}] - Expiry [{}] - Current [{}]",
        begin.rfc1123(),
        expiry.rfc1123(),
        now.rfc1123(),
    )))
}

/// Returns 403 `AuthenticationFailed` with this detail.
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
        Err(_) => Err(refused(NOT_WELL_FORMED)),
    }
}

#[cfg(test)]
mod tests;
