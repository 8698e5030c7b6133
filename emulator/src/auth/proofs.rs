//! Signatures that were verified before, so that they are not computed again.
//!
//! An entry says that a signature belongs to its fields and to a resource under a key of the
//! account. That stays true, because an emulator's keys never change; all that can change is
//! checked for each request: windows, addresses, protocols, stored access policies. Only verified
//! signatures are entered, so a caller without a key can neither fill the table nor add to it.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use parking_lot::RwLock;
use smalt_protocol::signing::is_same;
use smalt_protocol::signing::sas::{Sas, SasKind, SasTarget, suffix};
use smalt_protocol::{Service, StorageError};

use super::terms::Terms;
use crate::call::Call;

/// Maximum number of entries. A full table is emptied, which costs each signature one computation.
const PROOFS_MAX: usize = 1_024;
/// Maximum length of the fields in an entry, in bytes: several times the usual one.
const FIELDS_BYTES_MAX: usize = 1_024;

/// The verified signatures of an emulator, by the hash of account and fields.
#[derive(Default)]
pub struct Proofs(RwLock<BTreeMap<u64, Arc<Proof>>>);

/// A verified signature, with what it was verified for.
pub struct Proof {
    account: String,
    /// The fields as sent, with the signature.
    fields: String,
    sas: Sas,
    terms: Terms,
    service: Service,
    name: String,
    blob: Option<String>,
    snapshot: String,
}

/// The SAS of a request.
pub enum Given {
    /// Its signature was verified before.
    Proven(Arc<Proof>),
    /// Its signature is not verified yet.
    New(Box<Sas>),
}

impl Given {
    /// Returns the SAS of a call; `None` if it has none.
    ///
    /// # Errors
    /// 403 `AuthenticationFailed` for malformed fields.
    pub fn of(call: &Call, proofs: &Proofs) -> Result<Option<Self>, StorageError> {
        if let Some(proof) = proofs.find(call) {
            return Ok(Some(Given::Proven(proof)));
        }
        let sas = Sas::parse(&call.query)?;
        Ok(sas.map(|sas| Given::New(Box::new(sas))))
    }

    /// Returns the fields.
    pub fn sas(&self) -> &Sas {
        match self {
            Given::Proven(proof) => &proof.sas,
            Given::New(sas) => sas,
        }
    }

    /// Returns the terms of the SAS without a policy.
    pub fn terms(&self) -> Terms {
        match self {
            Given::Proven(proof) => proof.terms,
            Given::New(sas) => Terms::of(sas),
        }
    }

    /// Returns whether the signature was verified for this resource.
    pub fn is_proven_for(&self, target: &SasTarget<'_>) -> bool {
        let Given::Proven(proof) = self else {
            return false;
        };
        // The signature of an account SAS covers no resource.
        proof.sas.kind() == SasKind::Account
            || (proof.service == target.service
                && proof.name == target.name
                && proof.blob.as_deref() == target.blob
                && proof.snapshot == target.snapshot)
    }
}

impl Proofs {
    fn find(&self, call: &Call) -> Option<Arc<Proof>> {
        let fields = fields(call)?;
        let proofs = self.0.read();
        let proof = proofs.get(&hash(call.account(), fields))?;
        let is_it = proof.account == call.account() && is_same(&proof.fields, fields);
        is_it.then(|| Arc::clone(proof))
    }

    /// Enters the verified signature of a call, unless it covers headers or parameters of the
    /// request.
    pub fn add(&self, call: &Call, sas: &Sas, target: &SasTarget<'_>) {
        let Some(fields) = fields(call).filter(|_| !sas.is_bound()) else {
            return;
        };
        let proof = Proof {
            account: call.account().to_owned(),
            fields: fields.to_owned(),
            sas: sas.clone(),
            terms: Terms::of(sas),
            service: target.service,
            name: target.name.to_owned(),
            blob: target.blob.map(str::to_owned),
            snapshot: target.snapshot.to_owned(),
        };
        let mut proofs = self.0.write();
        if proofs.len() >= PROOFS_MAX {
            proofs.clear();
        }
        proofs.insert(hash(call.account(), fields), Arc::new(proof));
    }
}

fn fields(call: &Call) -> Option<&str> {
    let fields = suffix(call.uri.query()?, &call.query)?;
    (fields.len() <= FIELDS_BYTES_MAX).then_some(fields)
}

fn hash(account: &str, fields: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (account, fields).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::blob::testing;
    use smalt_protocol::uri;

    fn call(raw: &str) -> Call {
        let mut call = testing::call(&[], &[]);
        call.uri = format!("/a/box/b?{raw}").parse().unwrap();
        call.query = uri::parse_query(raw).unwrap();
        call
    }

    fn add(proofs: &Proofs, raw: &str) {
        let call = call(raw);
        let target = SasTarget {
            service: Service::Blob,
            account: "a",
            name: "box",
            blob: Some("b"),
            snapshot: "",
        };
        proofs.add(&call, &Sas::parse(&call.query).unwrap().unwrap(), &target);
    }

    /// A verified signature is not computed again for its own resource, but for any other.
    #[test]
    fn signature_is_proven_for_its_resource() {
        let target = |service, name, blob, snapshot| SasTarget {
            service,
            account: "a",
            name,
            blob,
            snapshot,
        };
        let (own, queue) = (Service::Blob, Service::Queue);
        let proofs = Proofs::default();
        let service = "sp=r&se=2030-01-01&sr=b&sig=s";
        let account = "sv=2021-12-02&ss=b&srt=o&sp=r&se=2030-01-01&sig=s";
        for raw in [service, account] {
            add(&proofs, raw);
            let given = Given::of(&call(raw), &proofs).unwrap().unwrap();
            for (target, is_own) in [
                (target(own, "box", Some("b"), ""), true),
                (target(queue, "box", Some("b"), ""), false),
                (target(own, "bag", Some("b"), ""), false),
                (target(own, "box", Some("c"), ""), false),
                (target(own, "box", Some("b"), "s"), false),
            ] {
                let is_proven = given.is_proven_for(&target);
                assert_eq!(is_proven, is_own || raw == account, "{raw} {target:?}");
            }
        }
        let new = Given::of(&call("sp=r&se=2030-01-01&sig=t"), &proofs).unwrap();
        assert!(
            !new.unwrap()
                .is_proven_for(&target(own, "box", Some("b"), ""))
        );
    }

    /// However many signatures are verified, the table stays small, and long fields are left out.
    #[test]
    fn table_is_bounded() {
        let proofs = Proofs::default();
        let early = ["1", "2"].map(|sig| format!("sp=w&se=2030-01-01&sig={sig}"));
        early.iter().for_each(|raw| add(&proofs, raw));
        assert!(early.iter().all(|raw| proofs.find(&call(raw)).is_some()));
        for number in 0..3 * PROOFS_MAX {
            add(&proofs, &format!("sp=r&se=2030-01-01&sig={number}"));
            assert!(proofs.0.read().len() <= PROOFS_MAX);
        }
        let long = format!("sp=r&se=2030-01-01&sig={}", "s".repeat(FIELDS_BYTES_MAX));
        add(&proofs, &long);
        assert!(proofs.find(&call(&long)).is_none());
    }

    /// Only the same fields of the same account are found; other parameters do not matter.
    #[test]
    fn only_equal_fields_are_found() {
        let proofs = Proofs::default();
        add(&proofs, "comp=metadata&sp=r&se=2030-01-01&sig=s");
        for (raw, found) in [
            ("sp=r&se=2030-01-01&sig=s", true),
            ("comp=tags&sp=r&se=2030-01-01&sig=s", true),
            ("sp=w&se=2030-01-01&sig=s", false),
            ("sp=r&se=2031-01-01&sig=s", false),
            ("sp=r&se=2030-01-01&sig=t", false),
            ("sp=r&se=2030-01-01&sig=s&sip=1.2.3.4", false),
            ("SP=w&sp=r&se=2030-01-01&sig=s", false),
        ] {
            assert_eq!(proofs.find(&call(raw)).is_some(), found, "{raw}");
        }
        let mut other = call("sp=r&se=2030-01-01&sig=s");
        other.target.account = "other".to_owned();
        assert!(proofs.find(&other).is_none());
    }

    /// A signature over headers of the request is computed every time.
    #[test]
    fn bound_signature_is_left_out() {
        let proofs = Proofs::default();
        add(&proofs, "sp=r&se=2030-01-01&srh=x-ms-meta-a&sig=s");
        assert!(proofs.0.read().is_empty());
    }
}
