//! Leases on blobs: acquire with a proposed id, renew, release, break.

use azure_storage_blob::models::{
    BlobClientAcquireLeaseOptions, BlobClientBreakLeaseOptions, BlobClientReleaseLeaseOptions,
    BlobClientRenewLeaseOptions,
};
use smalt_protocol::limits;

use super::answer::Answer;
use super::begin::BlobClient;
use crate::error::ErrorKind;
use crate::policy::{Repeat, options};
use crate::port::{Lease, PortResult};

impl BlobClient {
    /// Idempotent: the service grants a lease again for the id that holds it.
    pub(super) async fn acquire(&self, proposed_id: &str, duration_s: u32) -> PortResult<Lease> {
        let (call, client) = self.begin("Acquire Lease", Repeat::Idempotent)?;
        let permitted = limits::LEASE_DURATION_S.contains(&i64::from(duration_s));
        let duration = i32::try_from(duration_s).ok().filter(|_| permitted);
        let duration = duration.ok_or_else(|| call.invalid("a lease lasts 15 to 60 s"))?;
        let asked = BlobClientAcquireLeaseOptions {
            proposed_lease_id: Some(proposed_id.to_owned()),
            method_options: options(&call),
            ..Default::default()
        };
        let acquired = call.check(client.acquire_lease(duration, Some(asked)).await)?;
        let answer = Answer::read(acquired.headers());
        Ok(Lease {
            id: answer.lease_id.unwrap_or(proposed_id).to_owned(),
            server_time: answer.server_time(&call)?,
        })
    }

    pub(super) async fn renew(&self, lease_id: &str) -> PortResult<Lease> {
        let (call, client) = self.begin("Renew Lease", Repeat::Idempotent)?;
        let asked = BlobClientRenewLeaseOptions {
            method_options: options(&call),
            ..Default::default()
        };
        let renewed = call.check(client.renew_lease(lease_id.to_owned(), Some(asked)).await)?;
        let answer = Answer::read(renewed.headers());
        Ok(Lease {
            id: answer.lease_id.unwrap_or(lease_id).to_owned(),
            server_time: answer.server_time(&call)?,
        })
    }

    pub(super) async fn release(&self, lease_id: &str) -> PortResult<()> {
        let (call, client) = self.begin("Release Lease", Repeat::Removal)?;
        let asked = BlobClientReleaseLeaseOptions {
            method_options: options(&call),
            ..Default::default()
        };
        let released = client.release_lease(lease_id.to_owned(), Some(asked)).await;
        call.removed(released, |error| error.kind == ErrorKind::LeaseLost)
    }

    /// Uses a break period of zero, which frees the blob at once, whoever holds the lease.
    pub(super) async fn break_off(&self) -> PortResult<bool> {
        let (call, client) = self.begin("Break Lease", Repeat::Idempotent)?;
        let asked = BlobClientBreakLeaseOptions {
            break_period: Some(0),
            method_options: options(&call),
            ..Default::default()
        };
        let broken = client.break_lease(Some(asked)).await;
        match call.check(broken) {
            Err(error) if error.code.as_deref() == Some("LeaseNotPresentWithLeaseOperation") => {
                Ok(false)
            }
            Err(error) => Err(error),
            Ok(_) => Ok(true),
        }
    }
}
