//! `/subscriptions`: event subscriptions.

use http::header::HOST;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::content;
use super::refusal::{Refusal, failed, no_such_method};
use crate::body::Body;
use crate::emulator::Emulator;
use crate::events::SubscribeError;
use crate::rules::subscription::{Destination, Subscription};

pub(super) const SUBSCRIPTION: &str = "/subscriptions/";

pub(super) fn all(emulator: &Emulator) -> Result<Value, Refusal> {
    let all = emulator.subscriptions().map_err(|error| failed(&error))?;
    Ok(json!(all))
}

pub(super) async fn serve(
    emulator: &Emulator,
    name: &str,
    head: &Parts,
    body: Body,
) -> Result<Response<Body>, Refusal> {
    if let Some(name) = name.strip_suffix("/confirm") {
        let code = head
            .uri
            .query()
            .and_then(|query| query.strip_prefix("code="));
        let confirmed = emulator.confirm(name, code.unwrap_or_default()).await;
        return match confirmed.map_err(refused)? {
            true => Ok(content::json(
                &json!({ "status": "confirmed", "name": name }),
            )),
            false => Err(Refusal::new(
                StatusCode::NOT_FOUND,
                format!("no subscription {name} awaits this code; create it again"),
            )),
        };
    }
    match head.method {
        Method::GET => {}
        Method::PUT => {
            let settings: Subscription = content::parse(body).await?;
            if settings.destination == Destination::Channel {
                let message = "a channel needs a receiver in process; use a queue or a webhook";
                return Err(Refusal::new(StatusCode::BAD_REQUEST, message));
            }
            let host = head.headers.get(HOST).and_then(|host| host.to_str().ok());
            let confirm =
                host.map(|host| format!("http://{host}{SUBSCRIPTION}{name}/confirm?code="));
            let subscribed = emulator.subscribe_or_await(name, settings, confirm.as_deref());
            if let Some(until) = subscribed.await.map_err(refused)? {
                let told = json!({ "status": "AwaitingManualAction", "until": until.iso_ticks() });
                let mut response = content::json(&told);
                *response.status_mut() = StatusCode::ACCEPTED;
                return Ok(response);
            }
        }
        Method::DELETE => {
            let deleted = emulator.unsubscribe(name).await;
            return match deleted.map_err(|error| failed(&error))? {
                true => Ok(content::json(&json!({ "status": "deleted", "name": name }))),
                false => Err(unknown(name)),
            };
        }
        _ => return Err(no_such_method()),
    }
    let mut all = emulator.subscriptions().map_err(|error| failed(&error))?;
    all.remove(name)
        .map(|found| content::json(&found))
        .ok_or_else(|| unknown(name))
}

fn refused(error: SubscribeError) -> Refusal {
    match error {
        SubscribeError::Invalid(what) => Refusal::new(StatusCode::BAD_REQUEST, what),
        SubscribeError::Store(error) => failed(&error),
    }
}

fn unknown(name: &str) -> Refusal {
    Refusal::new(
        StatusCode::NOT_FOUND,
        format!("unknown subscription {name}"),
    )
}
