//! Compares a store after a crash with what was acknowledged: the lease on the container.

use std::time::Duration;

use super::model::{Model, Op};
use super::property::{Flaw, Property};
use super::verify::Verified;
use super::wire::Client;
use crate::servers::ServerError;

/// Longer than a lease lasts.
const EXPIRED: Duration = Duration::from_secs(61);
/// A lease id that was never used.
const STRANGER: &str = "5a5a5a5a-0000-4000-8000-5a5a5a5a5a5a";

/// C4: checks that a lease that was given is honoured, and that nobody else gets one; afterwards
/// the model contains the lease that exists.
///
/// # Errors
/// When the server does not answer.
pub async fn lease(
    client: &mut Client,
    model: &mut Model,
    verified: &mut Verified,
) -> Result<(), ServerError> {
    // What the unanswered operation may have done to the lease.
    let certain = match model.pending.as_ref() {
        Some(Op::AcquireLease { id }) => {
            let renewed = client.try_lease("renew", id).await?;
            model.lease = (renewed.status == 200).then(|| id.clone());
            true
        }
        Some(Op::ReleaseLease { .. }) => false,
        _ => true,
    };
    if let Some(id) = model.lease.clone() {
        let renewed = client.try_lease("renew", &id).await?.status;
        if renewed == 200 {
            let other = client.try_lease("acquire", STRANGER).await?.status;
            if other != 409 {
                let text = format!("the container was leased twice: {other}");
                verified.flaws.push(Flaw::new(Property::C4, text));
            }
            return Ok(());
        }
        model.lease = None;
        if certain {
            let text = format!("lease {id} is not honoured: {renewed}");
            verified.flaws.push(Flaw::new(Property::C4, text));
        }
    }
    let other = client.try_lease("acquire", STRANGER).await?.status;
    if other != 201 {
        let text = format!("a lease that nobody owns keeps others out: {other}");
        verified.flaws.push(Flaw::new(Property::C4, text));
        return Ok(());
    }
    client.try_lease("release", STRANGER).await?.expect(200)?;
    Ok(())
}

/// C4: checks that a lease of a minute has expired a minute after it was renewed, and is free then.
/// It waits for that, which requires paused time.
///
/// # Errors
/// When the server does not answer.
pub async fn expiry(
    client: &mut Client,
    model: &mut Model,
    verified: &mut Verified,
) -> Result<(), ServerError> {
    if model.lease.take().is_none() {
        return Ok(());
    }
    tokio::time::sleep(EXPIRED).await;
    let other = client.try_lease("acquire", STRANGER).await?;
    if other.status != 201 {
        let body = String::from_utf8_lossy(&other.body);
        let text = format!("an expired lease keeps others out: {body}");
        verified.flaws.push(Flaw::new(Property::C4, text));
        return Ok(());
    }
    let released = client.try_lease("release", STRANGER).await?;
    released.expect(200)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use smalt::{Clock, Emulator, Timestamp};

    use super::*;

    const ID: &str = "aaaaaaaa-0000-4000-8000-aaaaaaaaaaaa";

    /// The check finds a lease that exists, a missing one, and an expired one.
    #[tokio::test(start_paused = true)]
    async fn leases_are_checked() {
        let clock = Clock::tokio(Timestamp::from_unix_s(1_800_000_000));
        let emulator = Emulator::builder().clock(clock).open().unwrap();
        let mut client = Client::within(&emulator, "leased");
        client.create().await.unwrap();
        let mut verified = Verified::default();
        let acquired = client.try_lease("acquire", ID).await.unwrap();
        acquired.expect(201).unwrap();
        let mut model = Model {
            lease: Some(ID.to_owned()),
            ..Model::default()
        };
        lease(&mut client, &mut model, &mut verified).await.unwrap();
        assert_eq!(verified.flaws, []);
        // Nobody is known to have a lease: one that keeps others out is a flaw.
        let mut unknown = Model::default();
        lease(&mut client, &mut unknown, &mut verified)
            .await
            .unwrap();
        assert_eq!(verified.flaws.len(), 1);
        expiry(&mut client, &mut model, &mut verified)
            .await
            .unwrap();
        assert_eq!(verified.flaws.len(), 1);
        // A lease that was acknowledged and does not exist.
        model.lease = Some(ID.to_owned());
        lease(&mut client, &mut model, &mut verified).await.unwrap();
        assert_eq!(verified.flaws.len(), 2);
        assert_eq!(model.lease, None);
    }
}
