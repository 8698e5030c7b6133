//! `/state/snapshots`, `/state/reset`: named snapshots of the state.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Refusal, failed, no_such_method};
use crate::emulator::Emulator;
use crate::state::snapshots::START;
use crate::store::SnapshotError;

/// What the path of one snapshot starts with.
pub(super) const SNAPSHOT: &str = "/state/snapshots/";

type Act = fn(&Emulator, &str) -> Result<(), SnapshotError>;

/// Saves, loads or deletes a snapshot.
pub(super) async fn serve(
    emulator: &Emulator,
    name: &str,
    method: &Method,
) -> Result<Value, Refusal> {
    let (act, done) = match *method {
        Method::PUT => (Emulator::save as Act, "saved"),
        Method::POST => (Emulator::load as Act, "loaded"),
        Method::DELETE => (Emulator::delete_snapshot as Act, "deleted"),
        _ => return Err(no_such_method()),
    };
    if name == START && *method != Method::POST {
        let what = format!("{START} is the state after the start, and smalt's own to keep");
        return Err(Refusal::new(StatusCode::BAD_REQUEST, what));
    }
    let of = name.to_owned();
    blocking(emulator, move |emulator| act(emulator, &of))
        .await?
        .map_err(refusal)?;
    Ok(json!({ "status": done, "name": name }))
}

/// Goes back to the state after the start.
pub(super) async fn reset(emulator: &Emulator) -> Result<Value, Refusal> {
    let reset = blocking(emulator, |emulator| emulator.load(START)).await?;
    reset.map_err(|error| match error {
        SnapshotError::NotFound(_) => Refusal::new(
            StatusCode::CONFLICT,
            "the state after the start was not kept, for the store was not empty then; \
             save a snapshot (PUT /state/snapshots/NAME) and load that, or start with --seed",
        ),
        error => refusal(error),
    })?;
    Ok(json!({ "status": "reset" }))
}

/// Does what blocks beside the reactor.
pub(super) async fn blocking<T: Send + 'static>(
    emulator: &Emulator,
    work: impl FnOnce(&Emulator) -> T + Send + 'static,
) -> Result<T, Refusal> {
    let emulator = emulator.clone();
    let done = tokio::task::spawn_blocking(move || work(&emulator)).await;
    done.map_err(|error| failed(&error))
}

fn refusal(error: SnapshotError) -> Refusal {
    let status = match &error {
        SnapshotError::Name(_) => StatusCode::BAD_REQUEST,
        SnapshotError::NotFound(_) => StatusCode::NOT_FOUND,
        SnapshotError::Store(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    Refusal::new(status, error.to_string())
}
