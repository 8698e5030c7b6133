//! A server over sockets: one connection for each request, in the clear or by TLS.

use std::net::SocketAddr;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use serde_json::json;
use smalt::faults::Rule;
use smalt_protocol::Service;

use super::{About, Target, TargetError};
use crate::cases::case::Ability;
use crate::cases::raw::{self, Then};
use crate::replay::uri::Url;
use crate::replay::wire::{Headers, Request, Response};
use crate::servers::connection::Connection;
use crate::traces::upstream::{Upstream, UpstreamError};

/// Longest wait for an answer: the slowest honest one takes seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A server, and its control endpoint where it has one.
pub struct Server {
    about: About,
    upstreams: [Upstream; 3],
    control: Option<SocketAddr>,
}

impl Server {
    /// A server that is asked where `about` says. Clock, settings and faults of `control` join
    /// its abilities.
    ///
    /// # Errors
    /// When a base URL is none.
    pub fn at(mut about: About, control: Option<SocketAddr>) -> Result<Server, TargetError> {
        let upstream = |service| {
            let base = about.base(service);
            let root = base.strip_suffix(about.prefix(service)).unwrap_or(base);
            Upstream::at(root).map_err(|error| TargetError::Request(error.to_string()))
        };
        let upstreams = [
            upstream(Service::Blob)?,
            upstream(Service::Queue)?,
            upstream(Service::Table)?,
        ];
        if about.blob.starts_with("http://") {
            about.abilities.insert(Ability::Bytes);
        }
        if control.is_some() {
            let more = [Ability::Clock, Ability::Settings, Ability::Faults];
            about.abilities.extend(more);
        }
        Ok(Server {
            about,
            upstreams,
            control,
        })
    }

    /// Trusts this certificate, in PEM; the server is then asked for what goes by https only.
    ///
    /// # Errors
    /// When it is none.
    pub fn trusting(mut self, authority: &str) -> Result<Server, TargetError> {
        let wrong = |error: UpstreamError| TargetError::Request(error.to_string());
        for upstream in &mut self.upstreams {
            *upstream = upstream.clone().trusting(authority).map_err(wrong)?;
        }
        let more = [Ability::Https, Ability::Tokens];
        self.about.abilities.extend(more);
        Ok(self)
    }

    fn upstream(&self, url: &str) -> &Upstream {
        let [blob, queue, table] = &self.upstreams;
        let is_at = |base: &str| url.starts_with(base);
        match () {
            () if is_at(&self.about.queue) => queue,
            () if is_at(&self.about.table) => table,
            () => blob,
        }
    }

    async fn control(
        &self,
        method: http::Method,
        path: &str,
        body: &serde_json::Value,
    ) -> Result<Bytes, TargetError> {
        let control = |error: &dyn std::fmt::Display| TargetError::Control(error.to_string());
        let address = self.control.ok_or_else(|| control(&"there is none"))?;
        let mut connection = Connection::open(address).await.map_err(|e| control(&e))?;
        let headers = [("content-type", "application/json")];
        let answer = connection
            .send(method, path, &headers, body.to_string())
            .await
            .map_err(|e| control(&e))?;
        if answer.status.is_success() {
            return Ok(answer.body);
        }
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        Err(control(&format!("{path}: {} {text}", answer.status)))
    }
}

#[async_trait]
impl Target for Server {
    fn about(&self) -> &About {
        &self.about
    }

    async fn call(&self, request: Request) -> Result<Response, TargetError> {
        let bad = || TargetError::Request(request.url.clone());
        let url = Url::parse(&request.url).ok_or_else(bad)?;
        let mut path = url.path_and_query();
        if !path.starts_with('/') {
            path.insert(0, '/');
        }
        let upstream = self.upstream(&request.url);
        let wire = wire(&request, &path)?
            .header("host", &upstream.authority)
            .body(Full::new(request.body.clone()))
            .map_err(|error| TargetError::Request(error.to_string()))?;
        let call = |error: &dyn std::fmt::Display| TargetError::Call(error.to_string());
        let exchange = async {
            let answer = upstream.send(wire).await.map_err(|e| call(&e))?;
            let (head, body) = answer.into_parts();
            let body = body.collect().await.map_err(|e| call(&e))?.to_bytes();
            Ok(answered(&head, body))
        };
        let answered = tokio::time::timeout(ANSWER_TIMEOUT, exchange).await;
        answered.unwrap_or_else(|_| Err(call(&format!("none within {ANSWER_TIMEOUT:?}"))))
    }

    async fn exchange(
        &self,
        service: Service,
        bytes: Vec<u8>,
        then: Then,
    ) -> Result<Response, TargetError> {
        let answer = raw::exchange(self.about.authority(service), bytes, then).await;
        answer.map_err(|error| TargetError::Call(error.to_string()))
    }

    async fn advance(&self, seconds: u64) -> Result<(), TargetError> {
        let body = json!({ "advance_s": seconds });
        self.control(http::Method::PUT, "/clock", &body).await?;
        Ok(())
    }

    async fn configure(&self, settings: &serde_json::Value) -> Result<(), TargetError> {
        let path = format!("/accounts/{}", self.about.account.name);
        let body = if settings.is_null() {
            &json!({})
        } else {
            settings
        };
        self.control(http::Method::PUT, &path, body).await?;
        Ok(())
    }

    async fn plan(&self, rule: &Rule) -> Result<(), TargetError> {
        let body = serde_json::to_value(rule);
        let body = body.map_err(|error| TargetError::Control(error.to_string()))?;
        self.control(http::Method::POST, "/faults", &body).await?;
        Ok(())
    }

    async fn fired(&self) -> Result<u64, TargetError> {
        let nothing = json!({});
        let answer = self
            .control(http::Method::DELETE, "/faults", &nothing)
            .await?;
        let rules: Vec<serde_json::Value> = serde_json::from_slice(&answer)
            .map_err(|error| TargetError::Control(error.to_string()))?;
        let fired = rules.iter().filter_map(|rule| rule.get("fired")?.as_u64());
        Ok(fired.sum())
    }
}

/// The request for the `http` crate, without its body.
pub(super) fn wire(request: &Request, uri: &str) -> Result<http::request::Builder, TargetError> {
    let fail = |e: &dyn std::fmt::Display| TargetError::Request(format!("{e}: {}", request.url));
    let uri: http::Uri = uri.parse().map_err(|e| fail(&e))?;
    let method: http::Method = request.method.parse().map_err(|e| fail(&e))?;
    let mut builder = http::Request::builder().method(method).uri(uri);
    for (name, value) in request.headers.iter() {
        let value = http::HeaderValue::from_bytes(value.as_bytes()).map_err(|e| fail(&e))?;
        builder = builder.header(name, value);
    }
    Ok(builder)
}

fn answered(head: &http::response::Parts, body: Bytes) -> Response {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = head.headers.iter();
    Response {
        status: head.status.as_u16(),
        headers: headers
            .map(|(name, value)| (name.as_str(), text(value)))
            .collect::<Headers>(),
        body,
    }
}
