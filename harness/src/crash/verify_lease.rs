//! The store after a crash against what was acknowledged: the lease on the container.

use super::model::{Model, Op};
use super::property::{Flaw, Property};
use super::verify::Verified;
use super::wire::Client;
use crate::servers::ServerError;

/// A lease that nobody was given.
const STRANGER: &str = "5a5a5a5a-0000-4000-8000-5a5a5a5a5a5a";

/// C4: a lease that was given is honoured, and not given to anybody else beside; the model then
/// holds the one that there is.
///
/// # Errors
/// When the server does not answer.
pub async fn lease(
    client: &mut Client,
    model: &mut Model,
    verified: &mut Verified,
) -> Result<(), ServerError> {
    // What the unanswered operation may have done to it.
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
        let text = format!("a lease that nobody has keeps others out: {other}");
        verified.flaws.push(Flaw::new(Property::C4, text));
        return Ok(());
    }
    client
        .try_lease("release", STRANGER)
        .await?
        .expect(200)
        .map(drop)
}
