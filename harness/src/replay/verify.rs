//! Checks that a replayed request is signed as the service demands; the mirror uses it.

use smalt_protocol::signing::sas::{Sas, SasKind, SasTarget};
use smalt_protocol::signing::shared_key::{
    Authorization, Scheme, SigningInput, parse_authorization, verify_request,
};
use smalt_protocol::{ApiVersion, Service};

use super::credentials::{UNNAMED, signed_snapshot};
use super::delegation;
use super::hosts::account_key;
use super::multipart;
use crate::wire::url::Url;
use crate::wire::{Headers, Request};

/// Returns what is wrong with the signatures of a host-style request, of its copy source and of its
/// batch parts; `None` when all of them verify.
pub fn problem(request: &Request) -> Option<String> {
    let url = Url::parse(&request.url)?;
    let (account, service) = place(&url)?;
    let version = version_of(&request.headers).unwrap_or(UNNAMED);
    let proof = Proof {
        account: &account,
        service,
        version,
    };
    if !proof.signed(&request.method, &url, &request.headers) {
        return Some(format!("{} {} is not signed", request.method, request.url));
    }
    for name in ["x-ms-copy-source", "x-ms-previous-snapshot-url"] {
        let source = request.headers.get(name).and_then(Url::parse);
        let Some(source) = source.filter(|source| source.has_param("sig")) else {
            continue;
        };
        let owner = place(&source);
        if !owner.is_some_and(|(account, service)| sas_verifies(&source, &account, service)) {
            return Some(format!("{name} {source} is not signed"));
        }
    }
    batch_problem(request, &proof)
}

fn version_of(headers: &Headers) -> Option<ApiVersion> {
    headers.get("x-ms-version").and_then(ApiVersion::parse)
}

/// The expected credential of a request.
struct Proof<'a> {
    account: &'a str,
    service: Service,
    /// Version of a request without a version: in a part of a batch, that of the batch.
    version: ApiVersion,
}

fn batch_problem(request: &Request, proof: &Proof<'_>) -> Option<String> {
    let media_type = request.headers.get("content-type").unwrap_or_default();
    if proof.service != Service::Blob || !media_type.starts_with("multipart/mixed") {
        return None;
    }
    let mut found = None;
    multipart::rewrite(&request.body, |inner| {
        let account = proof.account;
        let text = format!("https://{account}.blob.core.windows.net{}", inner.target);
        let url = Url::parse(&text);
        let verifies = url.is_some_and(|url| proof.signed(inner.method, &url, &inner.headers));
        if !verifies {
            found = Some(format!(
                "batch part {} {} is not signed",
                inner.method, inner.target
            ));
        }
    });
    found
}

fn place(url: &Url) -> Option<(String, Service)> {
    let (account, service) = url.account_and_service()?;
    let service = Service::ALL.into_iter().find(|s| s.as_str() == service)?;
    Some((account.to_owned(), service))
}

impl Proof<'_> {
    fn signed(&self, method: &str, url: &Url, headers: &Headers) -> bool {
        let (account, service) = (self.account, self.service);
        if url.has_param("sig") {
            return sas_verifies(url, account, service);
        }
        let value = headers.get("authorization").unwrap_or_default();
        let (named, signature) = match parse_authorization(value) {
            Ok(Authorization::Key {
                scheme: Scheme::SharedKey,
                account,
                signature,
            }) => (account, signature),
            Ok(Authorization::Bearer(_)) => return delegation::asks_for_key(url),
            _ => return false,
        };
        let pairs: Vec<(&str, &str)> = headers.iter().collect();
        let sent = url.path_and_query();
        let path = sent
            .split('?')
            .next()
            .filter(|path| !path.is_empty())
            .unwrap_or("/");
        let input = SigningInput {
            service,
            scheme: Scheme::SharedKey,
            version: version_of(headers).unwrap_or(self.version),
            method,
            account,
            path,
            query: &url.decoded_query(),
            headers: &pairs,
        };
        named == account && verify_request(&input, &account_key(account), &signature)
    }
}

fn sas_verifies(url: &Url, account: &str, service: Service) -> bool {
    let Ok(Some(sas)) = Sas::parse(&url.decoded_query()) else {
        return false;
    };
    let snapshot = signed_snapshot(url, sas.get("sr"));
    let segments = url.segments();
    let blob = segments
        .get(1..)
        .map(|rest| rest.join("/"))
        .filter(|blob| !blob.is_empty());
    let target = SasTarget {
        service,
        account,
        name: match service {
            Service::Table => sas.get("tn"),
            _ => segments.first().map_or("", String::as_str),
        },
        blob: blob.as_deref(),
        snapshot: &snapshot,
    };
    // A user delegation SAS uses the recorded key, which is unknown here.
    let is_delegated = sas.kind() == SasKind::UserDelegation;
    is_delegated || sas.verify(&target, &account_key(account)).is_ok()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use smalt_protocol::Timestamp;

    use super::*;
    use crate::replay::credentials::{Credential, Signer};

    fn request(credential: Credential, query: &str) -> Request {
        let text = format!("https://account.blob.core.windows.net/c/b%20c{query}");
        let mut url = Url::parse(&text).unwrap();
        let now = Timestamp::from_unix_s(1_600_000_000);
        let service = Service::Blob;
        let signer = Signer {
            account: "account",
            service,
            now,
            delegation_key: None,
            answer: None,
            version: UNNAMED,
        };
        let mut headers = Headers::default();
        signer.apply(
            credential,
            "GET",
            &mut url,
            |url| url.path.clone(),
            &mut headers,
        );
        Request {
            method: "GET".into(),
            url: url.to_string(),
            headers,
            body: Bytes::new(),
        }
    }

    #[test]
    fn accepts_only_signed_requests() {
        let sas = "?sv=2019-02-02&se=2030-01-01&sr=b&sp=r&sig=REDACTED";
        for (credential, query, signed) in [
            (Credential::SharedKey, "?comp=metadata", true),
            (Credential::LostSas, "?st=2019-01-01&sig=REDACTED", true),
            (Credential::Sas, sas, true),
            (Credential::OtherService, "", true),
            (Credential::WrongKey, "", false),
            (Credential::Malformed, "", false),
            (Credential::Anonymous, "", false),
            (Credential::BrokenSas, sas, false),
        ] {
            let request = request(credential, query);
            assert_eq!(
                problem(&request).is_none(),
                signed,
                "{credential:?}: {request:?}"
            );
            let moved = Request {
                url: request.url.replace("/c/", "/d/"),
                ..request
            };
            // Only an account SAS is valid for every container.
            let expected = credential == Credential::OtherService;
            assert_eq!(problem(&moved).is_none(), expected, "{credential:?}");
        }
    }

    #[test]
    fn checks_copy_sources_and_batches() {
        let mut copy = request(Credential::SharedKey, "");
        assert_eq!(problem(&copy), None);
        let source =
            "https://account.blob.core.windows.net/c/b?sv=2019-02-02&se=2030-01-01&sr=b&sp=r";
        copy.headers
            .set("x-ms-copy-source", format!("{source}&sig=REDACTED"));
        assert!(problem(&copy).is_some());
        let mut batch = request(Credential::OtherResourceType, "");
        batch
            .headers
            .set("content-type", "multipart/mixed; boundary=b");
        batch.body = Bytes::from("--b\r\n\r\nDELETE /c/b HTTP/1.1\r\nx-ms-date: d\r\n\r\n--b--");
        assert!(problem(&batch).is_some_and(|text| text.starts_with("batch part DELETE")));
    }
}
