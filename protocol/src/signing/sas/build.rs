//! Builders of signed queries, which a client appends to a URL.
//!
//! Source: *Create a service SAS*, *Create an account SAS*, *Create a user delegation SAS*. The
//! strings to sign are those that [`Sas::verify`](super::Sas::verify) builds.

use super::{Bound, Sas, SasKind, SasTarget};
use crate::service::Service;
use crate::time::Timestamp;
use crate::version::ApiVersion;
use crate::xml::user_delegation_key::UserDelegationKey;

/// An account SAS to sign. Empty and absent fields are omitted.
#[derive(Clone, Copy, Debug)]
pub struct AccountSas<'a> {
    /// `sv`: 2015-04-05 or later.
    pub version: ApiVersion,
    /// The account whose key signs.
    pub account: &'a str,
    /// `ss`: letters of services, `bqt`.
    pub services: &'a str,
    /// `srt`: letters of resource types, `sco`.
    pub resource_types: &'a str,
    /// `sp`: letters in the documented order.
    pub permissions: &'a str,
    /// `st`, the start of its validity.
    pub start: Option<Timestamp>,
    /// `se`, the end of its validity.
    pub expiry: Timestamp,
    /// `sip`: an address or a range.
    pub ip: &'a str,
    /// `spr`: `https` or `https,http`.
    pub protocol: &'a str,
    /// `ses`, since 2020-12-06.
    pub encryption_scope: &'a str,
}

impl AccountSas<'_> {
    /// Returns the signed query, without `?`.
    pub fn sign(&self, key: &[u8]) -> String {
        let fields = vec![
            ("sv", self.version.to_string()),
            ("ss", self.services.to_owned()),
            ("srt", self.resource_types.to_owned()),
            ("sp", self.permissions.to_owned()),
            ("st", show(self.start)),
            ("se", show(Some(self.expiry))),
            ("sip", self.ip.to_owned()),
            ("spr", self.protocol.to_owned()),
            ("ses", self.encryption_scope.to_owned()),
        ];
        let (service, account) = (Service::Blob, self.account);
        // The layout of an account SAS does not include a resource.
        let target = SasTarget {
            service,
            account,
            name: "",
            blob: None,
            snapshot: "",
        };
        let sas = Sas {
            kind: SasKind::Account,
            version: Some(self.version),
            fields,
            bound: Bound::default(),
        };
        sas.signed_query(&target, key)
    }
}

/// A service SAS to sign. Empty and absent fields are omitted.
#[derive(Clone, Copy, Debug)]
pub struct ServiceSas<'a> {
    /// `sv`: 2012-02-12 or later.
    pub version: ApiVersion,
    /// The resource. For the Blob service `blob` decides between `sr=b` and `sr=c`; `snapshot`
    /// makes it `sr=bs`.
    pub target: SasTarget<'a>,
    /// `sp`: letters in the documented order; empty if the stored policy has them.
    pub permissions: &'a str,
    /// `st`, the start of its validity.
    pub start: Option<Timestamp>,
    /// `se`; `None` if the stored policy has it.
    pub expiry: Option<Timestamp>,
    /// `si`: the id of a stored access policy.
    pub policy_id: &'a str,
    /// `sip`: an address or a range.
    pub ip: &'a str,
    /// `spr`: `https` or `https,http`.
    pub protocol: &'a str,
    /// Further fields by parameter name: `ses`, `rscc`, `spk`, ...; unknown names are omitted.
    pub more: &'a [(&'a str, &'a str)],
}

impl ServiceSas<'_> {
    /// Returns the signed query, without `?`.
    pub fn sign(&self, key: &[u8]) -> String {
        let tn = match self.target.service {
            Service::Table => self.target.name,
            Service::Blob | Service::Queue => "",
        };
        let mut fields = vec![
            ("sv", self.version.to_string()),
            ("sr", resource_letter(&self.target).to_owned()),
            ("tn", tn.to_owned()),
            ("si", self.policy_id.to_owned()),
            ("sp", self.permissions.to_owned()),
            ("st", show(self.start)),
            ("se", show(self.expiry)),
            ("sip", self.ip.to_owned()),
            ("spr", self.protocol.to_owned()),
        ];
        for (name, value) in self.more {
            let known = super::FIELDS.iter().find(|field| *field == name);
            fields.extend(known.map(|field| (*field, (*value).to_owned())));
        }
        let sas = Sas {
            kind: SasKind::Service,
            version: Some(self.version),
            fields,
            bound: Bound::default(),
        };
        sas.signed_query(&self.target, key)
    }
}

/// A user delegation SAS of a container or blob, to sign. Empty and absent fields are omitted.
#[derive(Clone, Copy, Debug)]
pub struct UserDelegationSas<'a> {
    /// `sv`: 2018-11-09 or later.
    pub version: ApiVersion,
    /// The resource; it determines `sr` as in a [`ServiceSas`].
    pub target: SasTarget<'a>,
    /// `sp`: letters in the documented order.
    pub permissions: &'a str,
    /// `st`, the start of its validity.
    pub start: Option<Timestamp>,
    /// `se`; the service rejects an expiry after that of the key.
    pub expiry: Timestamp,
    /// `spr`: `https` or `https,http`.
    pub protocol: &'a str,
    /// The key that signs; `skoid` to `skv` name it.
    pub key: &'a UserDelegationKey,
}

impl UserDelegationSas<'_> {
    /// Returns the signed query, without `?`.
    pub fn sign(&self) -> String {
        let key = self.key;
        let fields = vec![
            ("sv", self.version.to_string()),
            ("sr", resource_letter(&self.target).to_owned()),
            ("sp", self.permissions.to_owned()),
            ("st", show(self.start)),
            ("se", show(Some(self.expiry))),
            ("spr", self.protocol.to_owned()),
            ("skoid", key.object_id.clone()),
            ("sktid", key.tenant_id.clone()),
            ("skt", key.start.clone()),
            ("ske", key.expiry.clone()),
            ("sks", key.service.clone()),
            ("skv", key.version.clone()),
        ];
        let sas = Sas {
            kind: SasKind::UserDelegation,
            version: Some(self.version),
            fields,
            bound: Bound::default(),
        };
        sas.signed_query(&self.target, key.value.as_bytes())
    }
}

/// Returns `sr`; services other than Blob have none.
fn resource_letter(target: &SasTarget<'_>) -> &'static str {
    match (target.service, target.blob) {
        (Service::Blob, None) => "c",
        (Service::Blob, Some(_)) if target.snapshot.is_empty() => "b",
        (Service::Blob, Some(_)) => "bs",
        (Service::Queue | Service::Table, _) => "",
    }
}

fn show(time: Option<Timestamp>) -> String {
    time.map(Timestamp::iso_s).unwrap_or_default()
}
