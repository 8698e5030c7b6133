//! User delegation keys, which sign a SAS for accounts opened with an Entra ID token. A token
//! itself cannot sign.
//!
//! Source: "Get User Delegation Key", "Create a user delegation SAS". A SAS expires with its key at
//! the latest. So the requested key lasts twice as long as the URL it signs, and is replaced once
//! it lasts no longer than that.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use azure_core::http::RequestContent;
use azure_storage_blob::models::BlobServiceClientGetUserDelegationKeyOptions;
use smalt_protocol::Timestamp;
use smalt_protocol::signing::sas::SasTarget;
use smalt_protocol::signing::sas::build::UserDelegationSas;
use smalt_protocol::xml::user_delegation_key::{KeyInfo, UserDelegationKey};

use super::AzureStorage;
use super::delegate::SAS_VERSION;
use crate::error::ErrorKind;
use crate::policy::{Call, Repeat, options};
use crate::port::{CallContext, PortResult};

/// A key is valid from this long before its request, because clocks of the service's machines
/// differ.
const BEGINS_EARLIER: Duration = Duration::from_secs(15 * 60);
/// Maximum lifetime of a key: one day less than the service allows, because clocks differ.
const LIFETIME_MAX: Duration = Duration::from_secs(6 * 24 * 3_600);
/// Advice for an identity without the required permission.
const NEEDED: &str = "to sign the URL of a copy source, the identity needs the role \
    Storage Blob Delegator on the account";

#[derive(Default)]
pub(super) struct Kept(Mutex<Option<UserDelegationKey>>);

impl Kept {
    fn lock(&self) -> MutexGuard<'_, Option<UserDelegationKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AzureStorage {
    /// Returns the kept key if it is valid until `until`.
    pub(super) fn delegated_key(&self, until: Timestamp) -> Option<UserDelegationKey> {
        let kept = self.shared.delegation.lock().clone();
        kept.filter(|key| key.ends().is_some_and(|end| end >= until))
    }

    pub(super) async fn ask_for_key(&self, cx: &CallContext, lifetime: Duration) -> PortResult<()> {
        let (call, service) = self.on_blobs("Get User Delegation Key", Repeat::Read, cx)?;
        let now = self.shared.clock.now();
        let asked = KeyInfo {
            start: Some(now.minus(BEGINS_EARLIER)),
            expiry: now.plus(lifetime.saturating_mul(2).min(LIFETIME_MAX)),
            delegated_tenant: None,
        };
        let how = BlobServiceClientGetUserDelegationKeyOptions {
            method_options: options(&call),
            ..Default::default()
        };
        let asked = RequestContent::from(asked.render());
        let answer = service.get_user_delegation_key(asked, Some(how)).await;
        let answer = answer.map_err(|error| {
            let mut error = call.fail(&error);
            if error.kind == ErrorKind::Denied {
                error.message = format!("{}; {NEEDED}", error.message);
            }
            error
        })?;
        let key = UserDelegationKey::read(answer.body().as_ref());
        let key = key.ok_or_else(|| call.unreadable("no key"))?;
        *self.shared.delegation.lock() = Some(key);
        Ok(())
    }

    /// Returns a SAS signed with the kept key; for HTTPS only, like the token that fetched the key.
    pub(super) fn delegated_sas(
        &self,
        target: SasTarget<'_>,
        permissions: &str,
        lifetime: Duration,
    ) -> PortResult<String> {
        let expiry = self.shared.clock.now().plus(lifetime);
        let key = self.delegated_key(expiry).ok_or_else(|| {
            let path = [Some(target.account), Some(target.name), target.blob];
            let resource = path.into_iter().flatten().collect::<Vec<_>>().join("/");
            let call = Call::new("Sign Blob URL", resource, Repeat::Read, None);
            call.invalid("there is no user delegation key that lasts long enough")
        })?;
        let sas = UserDelegationSas {
            version: SAS_VERSION,
            target,
            permissions,
            start: None,
            expiry,
            protocol: "https",
            key: &key,
        };
        Ok(sas.sign())
    }
}
