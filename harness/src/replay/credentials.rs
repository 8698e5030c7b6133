//! The credentials of replayed requests: recorded signatures are redacted, so each is made anew.

use smalt_protocol::signing::sas::{Sas, SasTarget, build};
use smalt_protocol::signing::shared_key::{Scheme, SigningInput, authorization};
use smalt_protocol::signing::{self};
use smalt_protocol::{ApiVersion, Service, Timestamp, uri};

use super::delegation::{self, DelegationKey};
use super::hosts::account_key;
use crate::wire::access::FULL;
use crate::wire::url::Url;
use crate::wire::{Answer, Headers, Request};

/// The key of signatures that must be wrong.
const WRONG_KEY: &[u8] = b"not the account's key";
/// The parameters that only a SAS has. They are removed when the recorded form cannot be repaired.
pub const SAS_PARAMETERS: &[&str] = &[
    "sv", "ss", "srt", "sr", "st", "se", "sp", "sip", "spr", "sig", "si", "tn", "ses",
];
/// Parameters of a service SAS that set headers of the answer.
const OVERRIDES: [&str; 5] = ["rscc", "rscd", "rsce", "rscl", "rsct"];
/// Version and permissions of a service SAS that is made anew.
const STRIPPED: [(&str, &str); 2] = [("sv", "2020-08-04"), ("sp", "racwdt")];
/// Seconds before and after the exchange for which a SAS is valid whose times the recorder replaced
/// by words.
const SAS_WINDOW_S: u64 = 3_600;

/// The credential of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// None.
    Anonymous,
    /// `Authorization: SharedKey`.
    SharedKey,
    /// `Authorization: SharedKey` with another key.
    WrongKey,
    /// An `Authorization` header that is malformed.
    Malformed,
    /// The SAS in its URL.
    Sas,
    /// The SAS in its URL, with the broken signature left as it is.
    BrokenSas,
    /// A SAS of which the recorder kept only fragments; replaced by Shared Key.
    LostSas,
    /// A service SAS of which the recorder kept only the parameters that set headers.
    StrippedSas,
    /// A bearer token, which a user delegation key needs.
    Bearer,
    /// A SAS that the recorder dropped completely; it was for other services than the requested
    /// one.
    OtherService,
    /// Like `OtherService`, but for other resource types.
    OtherResourceType,
    /// Like `OtherService`, but with other permissions.
    OtherPermission,
}

impl Credential {
    /// Returns the credential of a recorded exchange.
    ///
    /// A missing `Authorization` header means nothing, because recorders dropped it. The answer
    /// tells: an anonymous request, a bad signature and a SAS for something else get different
    /// errors.
    pub fn of(service: Service, url: &Url, request: &Request, answer: &Answer) -> Credential {
        let code = answer.error_code().unwrap_or_default();
        if url.has_param("sig") {
            return match code.as_str() {
                "AuthenticationFailed" => Credential::BrokenSas,
                _ if !url.has_param("sp") && !url.has_param("si") => Credential::LostSas,
                _ => Credential::Sas,
            };
        }
        if delegation::asks_for_key(url) && answer.status < 400 {
            return Credential::Bearer;
        }
        if OVERRIDES.iter().any(|name| url.has_param(name)) {
            return Credential::StrippedSas;
        }
        let unsigned = !request.headers.has("authorization");
        match (answer.status, code.as_str()) {
            (401, _) | (_, "NoAuthenticationInformation" | "PublicAccessNotPermitted") => {
                Credential::Anonymous
            }
            (404, "ResourceNotFound") if unsigned && service == Service::Blob => {
                Credential::Anonymous
            }
            (403, "AuthenticationFailed") => Credential::WrongKey,
            (400, "InvalidAuthenticationInfo") => Credential::Malformed,
            (403, "AuthorizationServiceMismatch") => Credential::OtherService,
            (403, "AuthorizationResourceTypeMismatch") => Credential::OtherResourceType,
            (403, "AuthorizationPermissionMismatch") if unsigned => Credential::OtherPermission,
            _ => Credential::SharedKey,
        }
    }
}

/// Adds the credential to a request for the target.
pub struct Signer<'a> {
    /// Account at the target.
    pub account: &'a str,
    /// Service of the request.
    pub service: Service,
    /// Time at which the request is sent.
    pub now: Timestamp,
    /// The live user delegation key, if the recording gets one.
    pub delegation_key: Option<&'a DelegationKey>,
    /// The recorded answer to the request.
    pub answer: Option<&'a Answer>,
    /// Version that signs a request without a version: in a part of a batch, that of the batch.
    pub version: ApiVersion,
}

/// Version that signs a request without a version outside a batch.
pub const UNNAMED: ApiVersion = ApiVersion::V2009_09_19;

impl Signer<'_> {
    /// Adds the credential: changes the query of the host-style `url`, or the headers. `raw_path`
    /// is the path in the request line.
    pub fn apply(
        &self,
        credential: Credential,
        method: &str,
        url: &mut Url,
        raw_path: impl Fn(&Url) -> String,
        headers: &mut Headers,
    ) {
        headers.remove("authorization");
        match credential {
            Credential::Anonymous | Credential::BrokenSas => {}
            Credential::Malformed => headers.push("authorization", "REDACTED"),
            Credential::Sas => self.sign_sas(url),
            Credential::StrippedSas => self.complete_sas(url),
            Credential::Bearer => {
                let token = self
                    .answer
                    .map(|answer| delegation::token(answer, self.now));
                let token = token.unwrap_or_default();
                headers.push("authorization", format!("Bearer {token}"));
            }
            Credential::OtherService => self.add_account_sas(url, "q", "sco", "rwdlac"),
            Credential::OtherResourceType => self.add_account_sas(url, "bqt", "o", "rwdlac"),
            Credential::OtherPermission => self.add_account_sas(url, "bqt", "sco", "u"),
            Credential::SharedKey | Credential::WrongKey | Credential::LostSas => {
                if credential == Credential::LostSas {
                    SAS_PARAMETERS
                        .iter()
                        .for_each(|name| url.remove_param(name));
                }
                let wrong = credential == Credential::WrongKey;
                let key = if wrong {
                    WRONG_KEY.to_vec()
                } else {
                    account_key(self.account)
                };
                let path = raw_path(url);
                let value = self.shared_key(method, &path, url, headers, &key);
                headers.push("authorization", value);
            }
        }
    }

    fn shared_key(
        &self,
        method: &str,
        path: &str,
        url: &Url,
        headers: &mut Headers,
        key: &[u8],
    ) -> String {
        if !headers.has("x-ms-date") && !headers.has("date") {
            headers.push("x-ms-date", self.now.rfc1123());
        }
        let version = headers.get("x-ms-version").and_then(ApiVersion::parse);
        let pairs: Vec<(&str, &str)> = headers.iter().collect();
        let input = SigningInput {
            service: self.service,
            scheme: Scheme::SharedKey,
            version: version.unwrap_or(self.version),
            method,
            account: self.account,
            path,
            query: &url.decoded_query(),
            headers: &pairs,
        };
        authorization(&input, key)
    }

    /// Computes `sig` from the fields of the SAS in a URL. A malformed SAS keeps its broken
    /// signature, because the service checks the form first.
    pub fn sign_sas(&self, url: &mut Url) {
        let around = [
            (
                "st",
                self.now.minus(std::time::Duration::from_secs(SAS_WINDOW_S)),
            ),
            ("se", self.now.plus_s(SAS_WINDOW_S)),
        ];
        for (field, time) in around {
            // Recorders replaced some times by the words `start` and `end`.
            if url
                .param(field)
                .is_some_and(|text| matches!(text.as_str(), "start" | "end"))
            {
                url.set_param(field, &time.iso_s());
            }
        }
        if url.scheme == "http" && url.param("spr").as_deref() == Some("https") {
            // The target uses plain HTTP, unlike the recorded service.
            url.set_param("spr", "https,http");
        }
        let delegated = self.delegation_key.filter(|_| url.has_param("skoid"));
        if let Some(key) = delegated {
            key.name_in(url);
        }
        let Ok(Some(sas)) = Sas::parse(&url.decoded_query()) else {
            return;
        };
        let segments = url.segments();
        let snapshot = signed_snapshot(url, sas.get("sr"));
        let blob = segments
            .get(1..)
            .filter(|rest| !rest.is_empty())
            .map(|rest| rest.join("/"));
        let table = sas.get("tn").to_owned();
        let target = SasTarget {
            service: self.service,
            account: self.account,
            name: match self.service {
                Service::Table => &table,
                _ => segments.first().map_or("", String::as_str),
            },
            blob: blob.as_deref().filter(|_| self.service == Service::Blob),
            snapshot: &snapshot,
        };
        let text = sas.string_to_sign(&target);
        let signature = match delegated {
            Some(key) => key.sign(&text),
            None => signing::sign(&account_key(self.account), &text),
        };
        url.set_param("sig", &signature);
    }

    /// Restores the parameters that the recorder removed from a service SAS for a blob or a
    /// snapshot.
    fn complete_sas(&self, url: &mut Url) {
        let resource = if url.has_param("snapshot") { "bs" } else { "b" };
        let expiry = self.now.plus_s(SAS_WINDOW_S).iso_s();
        let fields = [
            ("sr", resource),
            ("se", expiry.as_str()),
            ("sig", "unsigned"),
        ];
        for (name, value) in STRIPPED.into_iter().chain(fields) {
            url.set_param(name, value);
        }
        self.sign_sas(url);
    }

    /// Appends an account SAS that is valid around now.
    pub fn add_account_sas(&self, url: &mut Url, services: &str, types: &str, permissions: &str) {
        let sas = build::AccountSas {
            version: ApiVersion::V2019_12_12,
            account: self.account,
            services,
            resource_types: types,
            permissions,
            expiry: self.now.plus_s(SAS_WINDOW_S),
            ..FULL
        };
        let query = sas.sign(&account_key(self.account));
        for (name, value) in uri::parse_query(&query).unwrap_or_default() {
            url.set_param(&name, &value);
        }
    }
}

/// Returns the snapshot or version for which a SAS (`sr=bs`, `sr=bv`) is signed; a SAS for the blob
/// itself covers all of them.
pub fn signed_snapshot(url: &Url, resource: &str) -> String {
    let parameter = match resource {
        "bs" => "snapshot",
        "bv" => "versionid",
        _ => return String::new(),
    };
    url.param(parameter).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn credential(service: Service, query: &str, status: u16, code: &str) -> Credential {
        let url = Url::parse(&format!("https://account.blob.core.windows.net/c{query}")).unwrap();
        let request = Request {
            method: "GET".into(),
            url: url.to_string(),
            headers: Headers::default(),
            body: Bytes::new(),
        };
        let headers = [("x-ms-error-code", code)]
            .into_iter()
            .filter(|(_, v)| !v.is_empty())
            .collect();
        let answer = Answer {
            status,
            headers,
            body: Bytes::new(),
        };
        Credential::of(service, &url, &request, &answer)
    }

    #[test]
    fn the_answer_determines_the_credential() {
        use Credential::{
            Anonymous, Bearer, BrokenSas, LostSas, OtherService, Sas, SharedKey, StrippedSas,
            WrongKey,
        };
        use Service::{Blob, Table};
        for (service, query, status, code, expected) in [
            (Blob, "", 200, "", SharedKey),
            (Blob, "", 404, "ResourceNotFound", Anonymous),
            (Table, "", 404, "ResourceNotFound", SharedKey),
            (Table, "", 401, "NoAuthenticationInformation", Anonymous),
            (Blob, "", 403, "AuthenticationFailed", WrongKey),
            (Blob, "", 403, "AuthorizationServiceMismatch", OtherService),
            (Blob, "?sig=R&sp=r", 200, "", Sas),
            (Blob, "?sig=R&sp=r", 403, "AuthenticationFailed", BrokenSas),
            (Blob, "?sig=R&st=x", 200, "", LostSas),
            (Blob, "?rscc=x", 200, "", StrippedSas),
            (
                Blob,
                "?restype=service&comp=userdelegationkey",
                200,
                "",
                Bearer,
            ),
        ] {
            assert_eq!(
                credential(service, query, status, code),
                expected,
                "{query} {status} {code}"
            );
        }
    }

    #[test]
    fn a_signed_url_verifies() {
        let now = Timestamp::from_unix_s(1_600_000_000);
        let signer = Signer {
            account: "account",
            service: Service::Blob,
            now,
            delegation_key: None,
            answer: None,
            version: UNNAMED,
        };
        let text = "https://account.blob.core.windows.net/c/d/b\
            ?sv=2019-02-02&st=start&se=end&sr=b&sp=r&sig=R";
        let mut url = Url::parse(text).unwrap();
        signer.sign_sas(&mut url);
        let sas = Sas::parse(&url.decoded_query()).unwrap().unwrap();
        assert_eq!(sas.expiry(), Some(now.plus_s(SAS_WINDOW_S)));
        let target = SasTarget {
            service: Service::Blob,
            account: "account",
            name: "c",
            blob: Some("d/b"),
            snapshot: "",
        };
        assert!(sas.verify(&target, &account_key("account")).is_ok());
    }
}
