//! smalt's control endpoint: clock, state, settings and faults of a running server.

use bytes::Bytes;
use serde_json::{Value, json};
use smalt::faults::Rule;
use smalt_protocol::Timestamp;

use super::{Setup, TargetError};
use crate::wire::endpoint::Endpoint;
use crate::wire::{Headers, Request};

/// The control endpoint of a server.
#[derive(Clone)]
pub struct Control(Endpoint);

impl Control {
    /// Returns the control endpoint at `host:port`.
    pub fn at(authority: &str) -> Result<Control, TargetError> {
        Ok(Control(Endpoint::at(&format!("http://{authority}"))?))
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Result<Bytes, TargetError> {
        let body = Bytes::from(body.to_string());
        let headers = Headers::from_iter([
            ("content-type", "application/json".to_owned()),
            ("content-length", body.len().to_string()),
        ]);
        let request = Request {
            method: method.to_owned(),
            url: format!("http://{}{path}", self.0.authority),
            headers,
            body,
        };
        let answer = self.0.ask(&request).await.map_err(TargetError::control)?;
        if answer.status < 300 {
            return Ok(answer.body);
        }
        let text = String::from_utf8_lossy(&answer.body);
        let status = answer.status;
        Err(TargetError::control(format!(
            "{method} {path}: {status} {text}"
        )))
    }

    async fn get(&self, path: &str) -> Result<Value, TargetError> {
        let body = self.send("GET", path, &json!({})).await?;
        serde_json::from_slice(&body).map_err(TargetError::control)
    }

    /// Checks that the endpoint answers.
    pub async fn answers(&self) -> Result<(), TargetError> {
        self.get("/clock").await.map(drop)
    }

    /// Returns the stored state, without the time of the dump.
    pub async fn state(&self) -> Result<Value, TargetError> {
        let mut state = self.get("/state?blobs=1000000").await?;
        if let Some(fields) = state.as_object_mut() {
            fields.remove("now");
        }
        Ok(state)
    }

    /// Empties the server, then sets its accounts and its time. The accounts must be among those
    /// that it was started with.
    pub async fn reset(&self, setup: &Setup) -> Result<(), TargetError> {
        self.send("DELETE", "/state", &json!({})).await?;
        let settings = serde_json::to_value(&setup.settings).map_err(TargetError::control)?;
        for account in &setup.accounts {
            self.configure(&account.name, &settings).await?;
        }
        self.set_clock(setup.now).await
    }

    /// Stops the clock at this time.
    pub async fn set_clock(&self, now: Timestamp) -> Result<(), TargetError> {
        let body = json!({ "now": now.iso_ticks(), "mode": "frozen" });
        self.send("PUT", "/clock", &body).await.map(drop)
    }

    /// Advances the clock.
    pub async fn advance(&self, seconds: u64) -> Result<(), TargetError> {
        let body = json!({ "advance_s": seconds });
        self.send("PUT", "/clock", &body).await.map(drop)
    }

    /// Changes the settings of an account; missing and `null` settings get their defaults.
    pub async fn configure(&self, account: &str, settings: &Value) -> Result<(), TargetError> {
        let nothing = json!({});
        let body = if settings.is_null() {
            &nothing
        } else {
            settings
        };
        let path = format!("/accounts/{account}");
        self.send("PUT", &path, body).await.map(drop)
    }

    /// Plans a fault.
    pub async fn plan(&self, rule: &Rule) -> Result<(), TargetError> {
        let body = serde_json::to_value(rule).map_err(TargetError::control)?;
        self.send("POST", "/faults", &body).await.map(drop)
    }

    /// Removes all faults and returns how often they fired.
    pub async fn fired(&self) -> Result<u64, TargetError> {
        let answer = self.send("DELETE", "/faults", &json!({})).await?;
        let rules: Vec<Value> = serde_json::from_slice(&answer).map_err(TargetError::control)?;
        let fired = rules.iter().filter_map(|rule| rule.get("fired")?.as_u64());
        Ok(fired.sum())
    }
}
