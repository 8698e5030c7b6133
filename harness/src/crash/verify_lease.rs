//! Examines the lease on the container after a crash.

use std::collections::BTreeSet;
use std::time::Duration;

use super::property::{Flaw, Property, Verified};
use super::wire::Client;
use crate::servers::ServerError;

/// Longer than a lease lasts.
const EXPIRED: Duration = Duration::from_secs(61);
/// A lease id that was never used.
const STRANGER: &str = "5a5a5a5a-0000-4000-8000-5a5a5a5a5a5a";

/// C4: returns which of the leases that may exist is honoured, and checks that it keeps others out,
/// or that anybody gets a lease where there is none.
pub async fn honoured(
    client: &mut Client,
    ids: BTreeSet<String>,
    verified: &mut Verified,
) -> Result<Option<String>, ServerError> {
    let mut honoured = None;
    for id in ids {
        if client.try_lease("renew", &id).await?.status == 200 {
            honoured = Some(id);
            break;
        }
    }
    let other = client.try_lease("acquire", STRANGER).await?.status;
    match (&honoured, other) {
        (Some(_), 409) => {}
        (Some(_), _) => {
            let text = format!("the container was leased twice: {other}");
            verified.flaws.push(Flaw::new(Property::C4, text));
        }
        (None, 201) => drop(client.try_lease("release", STRANGER).await?.expect(200)?),
        (None, _) => {
            let text = format!("a lease that nobody owns keeps others out: {other}");
            verified.flaws.push(Flaw::new(Property::C4, text));
        }
    }
    Ok(honoured)
}

/// C4: checks that a lease of a minute has expired a minute after it was renewed, and is free then.
/// It waits for that, which requires paused time.
pub async fn expiry(client: &mut Client, verified: &mut Verified) -> Result<(), ServerError> {
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
    use crate::crash::compare::{self, Seen};
    use crate::crash::model::Model;

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
        let known = || BTreeSet::from([ID.to_owned()]);
        let found = honoured(&mut client, known(), &mut verified).await.unwrap();
        assert_eq!((found.as_deref(), &verified.flaws[..]), (Some(ID), &[][..]));
        // Nobody is known to have a lease: one that keeps others out is a flaw.
        let found = honoured(&mut client, BTreeSet::new(), &mut verified);
        assert_eq!(found.await.unwrap(), None);
        assert_eq!(verified.flaws.len(), 1);
        expiry(&mut client, &mut verified).await.unwrap();
        assert_eq!(verified.flaws.len(), 1);
        // A lease that was acknowledged and does not exist.
        let found = honoured(&mut client, known(), &mut verified);
        let lease = Some(found.await.unwrap());
        assert_eq!((&lease, verified.flaws.len()), (&Some(None), 1));
        let model = Model {
            lease: Some(ID.to_owned()),
            ..Model::default()
        };
        let seen = Seen {
            lease,
            ..Seen::default()
        };
        let flaws = compare::differences(&model, &seen);
        assert_eq!((flaws.len(), flaws[0].property), (1, Property::C4));
    }
}
