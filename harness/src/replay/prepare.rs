//! Makes the live request for a recorded one: live values, the target's hosts, fresh signatures.

use bytes::Bytes;
use smalt_protocol::{ApiVersion, Timestamp};

use super::bindings::{Bindings, Kind};
use super::credentials::{Credential, Signer, UNNAMED};
use super::dates;
use super::delegation::DelegationKey;
use super::hosts::Hosts;
use super::multipart;
use super::recording::Interaction;
use super::timeline::Timeline;
use crate::wire::url::Url;
use crate::wire::{Headers, Request};

/// Headers that belong to the connection or are made anew.
const NOT_SENT: &[&str] = &[
    "authorization",
    "connection",
    "content-length",
    "expect",
    "host",
    "transfer-encoding",
];
/// Headers whose value is a URL of the account.
const URL_HEADERS: &[&str] = &["x-ms-copy-source", "x-ms-previous-snapshot-url"];

/// Why an interaction cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unpreparable {
    /// It continues a page that was full of other things in the account.
    #[error("continues a page of other things in the account")]
    ForeignMarker,
    /// It uses a token, which requires HTTPS.
    #[error("uses a bearer token, which this target's HTTP does not allow")]
    TokenOverHttp,
    /// The target never returned the key that signs it.
    #[error("is signed with a user delegation key that the target did not return")]
    NoDelegationKey,
    /// Its URL does not name a storage account.
    #[error("its URL does not name a storage account")]
    ForeignHost,
}

/// Makes the requests of one recording.
pub struct Preparer<'a> {
    /// Accounts of the recording, and their addresses.
    pub hosts: &'a Hosts,
    /// The pairs of values so far.
    pub bindings: &'a Bindings,
    /// Time of the target's clock.
    pub now: Timestamp,
    /// How dates are shifted, where that clock cannot be set.
    pub timeline: Option<&'a Timeline>,
    /// The live user delegation key, once the target has returned one.
    pub delegation_key: Option<&'a DelegationKey>,
    /// Whether the account held other things as well.
    pub account_listing: bool,
}

/// Returns the account at the target for a recorded request.
pub fn account_of(hosts: &Hosts, request: &Request) -> Option<String> {
    let url = Url::parse(&request.url)?;
    hosts.locate(&url, None).map(|(account, _)| account)
}

impl Preparer<'_> {
    /// Returns the request to send in place of the recorded one.
    pub fn prepare(&self, interaction: &Interaction) -> Result<Request, Unpreparable> {
        let recorded = &interaction.request;
        let mut url = Url::parse(&recorded.url).ok_or(Unpreparable::ForeignHost)?;
        let (account, service) = self
            .hosts
            .locate(&url, None)
            .ok_or(Unpreparable::ForeignHost)?;
        if self.account_listing && self.continues_foreign_page(&url) {
            return Err(Unpreparable::ForeignMarker);
        }
        let credential = Credential::of(service, &url, recorded, &interaction.response);
        self.renew(&mut url);
        let signer = Signer {
            answer: Some(&interaction.response),
            ..self.signer(&account, service)
        };
        let mut headers = self.headers(interaction, &account);
        let body = self.body(interaction, &account);
        if !body.is_empty()
            || matches!(recorded.method.as_str(), "PUT" | "POST" | "MERGE" | "PATCH")
        {
            headers.push("content-length", body.len().to_string());
        }
        url.scheme = self.hosts.map(url.clone(), None).scheme;
        let path = |url: &Url| self.raw_path(url);
        if credential == Credential::Bearer && url.scheme == "http" {
            return Err(Unpreparable::TokenOverHttp);
        }
        if url.has_param("skoid") && self.delegation_key.is_none() {
            return Err(Unpreparable::NoDelegationKey);
        }
        signer.apply(credential, &recorded.method, &mut url, path, &mut headers);
        let url = self.hosts.map(url, None).to_string();
        Ok(Request {
            method: recorded.method.clone(),
            url,
            headers,
            body,
        })
    }

    /// Puts live values and the target's time into a URL.
    fn renew(&self, url: &mut Url) {
        url.rewrite(|name, value| {
            self.bindings
                .substitute(value, name.and_then(parameter_kind))
        });
        if let Some(timeline) = self.timeline {
            dates::in_signature(url, |time| timeline.time(time));
        }
    }

    fn signer<'s>(&'s self, account: &'s str, service: smalt_protocol::Service) -> Signer<'s> {
        Signer {
            account,
            service,
            now: self.now,
            delegation_key: self.delegation_key,
            answer: None,
            version: UNNAMED,
        }
    }

    /// Returns the path in the request line, without the query.
    fn raw_path(&self, url: &Url) -> String {
        let mapped = self.hosts.map(url.clone(), None).path_and_query();
        let path = mapped.split('?').next().unwrap_or_default();
        if path.is_empty() {
            "/".to_owned()
        } else {
            path.to_owned()
        }
    }

    /// Whether the request asks for a page after a marker that no live answer returned.
    fn continues_foreign_page(&self, url: &Url) -> bool {
        let markers = url.decoded_query().into_iter().filter(|(name, value)| {
            parameter_kind(name) == Some(Kind::Marker) && !value.is_empty()
        });
        markers
            .into_iter()
            .any(|(_, value)| self.bindings.live(Kind::Marker, &value).is_none())
    }

    fn headers(&self, interaction: &Interaction, account: &str) -> Headers {
        let mut headers = Headers::default();
        for (name, value) in interaction.request.headers.iter() {
            if NOT_SENT.contains(&name) {
                continue;
            }
            let live = if URL_HEADERS.contains(&name) {
                self.source(interaction, value, account)
            } else {
                self.header_value(name, value)
            };
            headers.push(name, live);
        }
        headers.write_as(&interaction.request.headers);
        headers
    }

    fn header_value(&self, name: &str, value: &str) -> String {
        if dates::is_moment(name) {
            let bound = self.bindings.live_date(value);
            return match (bound.filter(|_| dates::is_condition(name)), self.timeline) {
                (Some(live), _) => live.to_owned(),
                (None, Some(timeline)) => timeline.text(value),
                (None, None) => value.to_owned(),
            };
        }
        if name == "x-ms-undelete-source"
            && let Some((path, id)) = value.split_once("deletionid=")
            && let Some(live) = self.bindings.substitute(id, Some(Kind::DeletedVersion))
        {
            return format!("{path}deletionid={live}");
        }
        let kind = match name {
            "x-ms-lease-id" | "x-ms-source-lease-id" => Some(Kind::LeaseId),
            "x-ms-deleted-container-version" => Some(Kind::DeletedVersion),
            _ => None,
        };
        self.bindings
            .substitute(value, kind)
            .unwrap_or_else(|| value.to_owned())
    }

    /// Returns the URL of a copy's source, signed where the recorded one was or must have been.
    fn source(&self, interaction: &Interaction, value: &str, account: &str) -> String {
        let Some(mut url) = Url::parse(value) else {
            return value.to_owned();
        };
        let Some((owner, service)) = self.hosts.locate(&url, Some(account)) else {
            return value.to_owned();
        };
        self.renew(&mut url);
        url.scheme = self.hosts.map(url.clone(), Some(account)).scheme;
        let signer = self.signer(&owner, service);
        let refused =
            interaction.response.error_code().as_deref() == Some("CannotVerifyCopySource");
        if url.has_param("sig") {
            if !(refused && interaction.response.status == 403) {
                signer.sign_sas(&mut url);
            }
        } else if reads_source_by_url(interaction) && interaction.response.status < 300 {
            // The recorder dropped the authorization: `x-ms-copy-source-authorization`.
            signer.add_account_sas(&mut url, "b", "o", "r");
        }
        self.hosts.map(url, Some(account)).to_string()
    }

    /// Returns the body. It stays as the client sent it, except for batches, which contain
    /// requests, and for periods.
    fn body(&self, interaction: &Interaction, account: &str) -> Bytes {
        let recorded = &interaction.request;
        let media_type = recorded.headers.get("content-type").unwrap_or_default();
        if !media_type.starts_with("multipart/mixed") {
            return self.periods(recorded);
        }
        let rewritten = multipart::rewrite(&recorded.body, |inner| {
            let version = recorded.headers.get("x-ms-version");
            let version = version.and_then(ApiVersion::parse).unwrap_or(UNNAMED);
            self.inner(inner, account, version);
        });
        rewritten.unwrap_or_else(|| recorded.body.clone())
    }

    /// Returns the body, with the periods of access policies and delegation keys at the target's
    /// time.
    fn periods(&self, recorded: &Request) -> Bytes {
        let comp = Url::parse(&recorded.url).and_then(|url| url.param("comp"));
        let has_periods = matches!(comp.as_deref(), Some("acl" | "userdelegationkey"));
        let text = std::str::from_utf8(&recorded.body).ok();
        match (self.timeline, text.filter(|_| has_periods)) {
            (Some(timeline), Some(text)) => {
                Bytes::from(dates::in_periods(text, |time| timeline.time(time)))
            }
            _ => recorded.body.clone(),
        }
    }

    fn inner(&self, inner: &mut multipart::Inner<'_>, account: &str, version: ApiVersion) {
        for (name, value) in inner.headers.iter_mut() {
            *value = self.header_value(name, value);
        }
        let absolute = inner.target.contains("://");
        let text = if absolute {
            inner.target.clone()
        } else {
            format!("https://{account}.blob.core.windows.net{}", inner.target)
        };
        let Some(mut url) = Url::parse(&text) else {
            return;
        };
        self.renew(&mut url);
        if absolute {
            inner.target = self.hosts.map(url, Some(account)).to_string();
            return;
        }
        url.scheme = self.hosts.map(url.clone(), None).scheme;
        let signed = url.has_param("sig");
        let credential = if signed {
            Credential::Sas
        } else {
            Credential::SharedKey
        };
        let signer = Signer {
            version,
            ..self.signer(account, smalt_protocol::Service::Blob)
        };
        let path = |url: &Url| format!("{}{}", self.hosts.path_prefix(account), url.path);
        signer.apply(credential, inner.method, &mut url, path, &mut inner.headers);
        inner.target = format!(
            "{}{}",
            self.hosts.path_prefix(account),
            url.path_and_query()
        );
    }
}

/// Returns the kind of value in a query parameter.
fn parameter_kind(name: &str) -> Option<Kind> {
    let kinds = [
        ("snapshot", Kind::Snapshot),
        ("prevsnapshot", Kind::Snapshot),
        ("versionid", Kind::VersionId),
        ("copyid", Kind::CopyId),
        ("popreceipt", Kind::PopReceipt),
        ("marker", Kind::Marker),
        ("continuation", Kind::Marker),
        ("nexttablename", Kind::Marker),
        ("nextpartitionkey", Kind::Marker),
        ("nextrowkey", Kind::Marker),
    ];
    let found = kinds
        .iter()
        .find(|(known, _)| name.eq_ignore_ascii_case(known));
    found.map(|(_, kind)| *kind)
}

/// Whether a request reads its source by URL alone: Put Block, Append Block, Put Page and Put Blob
/// From URL and the synchronous Copy Blob do; the asynchronous Copy Blob may use the account's own
/// rights.
fn reads_source_by_url(interaction: &Interaction) -> bool {
    let request = &interaction.request;
    let operation = Url::parse(&request.url).and_then(|url| url.param("comp"));
    matches!(operation.as_deref(), Some("block" | "appendblock" | "page"))
        || request.headers.has("x-ms-requires-sync")
        || request.headers.has("x-ms-blob-type")
}
