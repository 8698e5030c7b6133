//! `/subscriptions`: event subscriptions.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::refusal::{Refusal, failed, no_such_method};
use crate::body::Body;
use crate::emulator::Emulator;
use crate::events::SubscribeError;

pub(super) const SUBSCRIPTION: &str = "/subscriptions/";

pub(super) fn all(emulator: &Emulator) -> Result<Value, Refusal> {
    let all = emulator.subscriptions().map_err(|error| failed(&error))?;
    Ok(json!(all))
}

pub(super) async fn serve(
    emulator: &Emulator,
    name: &str,
    method: &Method,
    body: Body,
) -> Result<Value, Refusal> {
    match *method {
        Method::GET => {}
        Method::PUT => {
            let subscribed = emulator.subscribe(name, super::parse(body).await?).await;
            subscribed.map_err(|error| match error {
                SubscribeError::Invalid(what) => Refusal::new(StatusCode::BAD_REQUEST, what),
                SubscribeError::Store(error) => failed(&error),
            })?;
        }
        Method::DELETE => {
            let deleted = emulator.unsubscribe(name).await;
            return match deleted.map_err(|error| failed(&error))? {
                true => Ok(json!({ "status": "deleted", "name": name })),
                false => Err(unknown(name)),
            };
        }
        _ => return Err(no_such_method()),
    }
    let mut all = emulator.subscriptions().map_err(|error| failed(&error))?;
    all.remove(name)
        .map(|found| json!(found))
        .ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Refusal {
    Refusal::new(
        StatusCode::NOT_FOUND,
        format!("unknown subscription {name}"),
    )
}
