//! A running server: path-style requests over loopback, clock and state by its control endpoint.

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::json;
use smalt_protocol::Timestamp;
use tokio::net::TcpStream;

use super::{RETENTION_DAYS, Target, TargetError, answer, builder};
use crate::replay::hosts::Addressing;
use crate::replay::settings::AccountSettings;
use crate::replay::uri::Url;
use crate::replay::wire::{Headers, Request, Response};

/// A server at `http://host:port`: blob there, queue, table and control on the ports that follow.
pub struct OverHttp {
    blob: String,
    queue: String,
    table: String,
    control: String,
}

impl OverHttp {
    /// Reads `http://127.0.0.1:10000`. `None` when that has no port.
    pub fn at(url: &str) -> Option<OverHttp> {
        let url = Url::parse(url)?;
        let (host, port) = url.authority.rsplit_once(':')?;
        let port: u16 = port.parse().ok()?;
        let next = |n: u16| port.checked_add(n).map(|port| format!("{host}:{port}"));
        Some(OverHttp {
            blob: next(0)?,
            queue: next(1)?,
            table: next(2)?,
            control: next(3)?,
        })
    }

    /// A server whose services are at `host:port` each: blob, queue, table and control.
    pub fn of([blob, queue, table, control]: [String; 4]) -> OverHttp {
        OverHttp {
            blob,
            queue,
            table,
            control,
        }
    }

    /// Whether its control endpoint answers.
    ///
    /// # Errors
    /// With what came instead.
    pub async fn is_controlled(&self) -> Result<(), TargetError> {
        self.control("GET", "/clock", &json!({})).await
    }

    async fn control(
        &self,
        method: &str,
        path: &str,
        body: &serde_json::Value,
    ) -> Result<(), TargetError> {
        let body = Bytes::from(body.to_string());
        let headers = Headers::from_iter([
            ("content-type", "application/json".to_owned()),
            ("content-length", body.len().to_string()),
        ]);
        let url = format!("http://{}{path}", self.control);
        let response = send(Request {
            method: method.to_owned(),
            url,
            headers,
            body,
        })
        .await?;
        if response.status < 300 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&response.body).into_owned();
        Err(TargetError::Control(format!(
            "{method} {path}: {} {text}",
            response.status
        )))
    }
}

#[async_trait]
impl Target for OverHttp {
    fn addressing(&self) -> Addressing {
        Addressing::Path {
            blob: self.blob.clone(),
            queue: self.queue.clone(),
            table: self.table.clone(),
        }
    }

    async fn reset(&self, settings: &AccountSettings, start: Timestamp) -> Result<(), TargetError> {
        self.control("DELETE", "/state", &json!({})).await?;
        let mut body = json!({
            "public_access": !settings.public_access_forbidden,
            "default_tier": if settings.default_tier_cool { "Cool" } else { "Hot" },
            "versioning": settings.versioning,
            "container_retention_days": settings.container_soft_delete.then_some(RETENTION_DAYS),
            "last_access_tracking": settings.last_access_tracking,
            "version_immutability": settings.version_immutability,
            "blob_expiry": settings.blob_expiry,
            "encryption_scopes": settings.encryption_scopes,
        });
        if let Some(sku) = &settings.sku {
            body["sku"] = json!(sku);
        }
        for name in &settings.accounts {
            self.control("PUT", &format!("/accounts/{name}"), &body)
                .await?;
        }
        self.set_clock(start).await
    }

    async fn set_clock(&self, now: Timestamp) -> Result<(), TargetError> {
        let body = json!({ "now": now.iso_ticks(), "mode": "frozen" });
        self.control("PUT", "/clock", &body).await
    }

    async fn call(&self, request: Request) -> Result<Response, TargetError> {
        send(request).await
    }
}

/// One request on a connection of its own: a target that breaks it spoils nothing else.
pub(super) async fn send(request: Request) -> Result<Response, TargetError> {
    let call = |e: &dyn std::fmt::Display| TargetError::Call(e.to_string());
    let url = Url::parse(&request.url).ok_or_else(|| TargetError::Request(request.url.clone()))?;
    let stream = TcpStream::connect(&url.authority)
        .await
        .map_err(|e| call(&e))?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|e| call(&e))?;
    let driver = tokio::spawn(connection);
    let wire = builder(&request, &url.path_and_query())?
        .header("host", &url.authority)
        .body(Full::new(request.body.clone()))
        .map_err(|e| TargetError::Request(e.to_string()))?;
    let response = sender.send_request(wire).await.map_err(|e| call(&e))?;
    let (head, body) = response.into_parts();
    let body = body.collect().await.map_err(|e| call(&e))?.to_bytes();
    driver.abort();
    Ok(answer(head.status.as_u16(), &head.headers, body))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use smalt_protocol::signing::shared_key::{
        Authorization, Scheme, SigningInput, parse_authorization, verify_request,
    };
    use smalt_protocol::{ApiVersion, Service};
    use tokio::net::TcpListener;

    use super::*;
    use crate::replay::hosts::account_key;
    use crate::replay::player::{Outcome, play};
    use crate::replay::recording;

    type Answer = http::Response<Full<Bytes>>;

    /// A server that accepts control requests, and blob requests in path style whose signature is
    /// right.
    fn serve(request: &http::Request<hyper::body::Incoming>) -> Answer {
        let path = request.uri().path();
        let status = if matches!(path, "/clock" | "/accounts/account" | "/state") {
            200
        } else if path == "/account/c" && is_signed(request) {
            201
        } else {
            403
        };
        let date = "Thu, 09 May 2019 00:57:59 GMT";
        let answer = http::Response::builder()
            .status(status)
            .header("date", date);
        answer.body(Full::default()).unwrap()
    }

    fn is_signed(request: &http::Request<hyper::body::Incoming>) -> bool {
        let text = |name| {
            request
                .headers()
                .get(name)
                .map(|v: &http::HeaderValue| v.to_str().unwrap())
        };
        let value = parse_authorization(text("authorization").unwrap_or_default());
        let Ok(Authorization::Key {
            account, signature, ..
        }) = value
        else {
            return false;
        };
        let headers: Vec<(&str, &str)> = request
            .headers()
            .iter()
            .map(|(n, v)| (n.as_str(), v.to_str().unwrap()))
            .collect();
        let query = smalt_protocol::uri::parse_query(request.uri().query().unwrap_or_default());
        let input = SigningInput {
            service: Service::Blob,
            scheme: Scheme::SharedKey,
            version: ApiVersion::V2019_02_02,
            method: request.method().as_str(),
            account: &account,
            path: request.uri().path(),
            query: &query.unwrap(),
            headers: &headers,
        };
        verify_request(&input, &account_key("account"), &signature)
    }

    /// Over a socket the account moves into the path and the signature covers what was sent.
    #[tokio::test]
    async fn plays_in_path_style_with_valid_signatures() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = hyper::service::service_fn(|request| async move {
                    Ok::<_, std::convert::Infallible>(serve(&request))
                });
                let http = hyper::server::conn::http1::Builder::new();
                tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
            }
        });
        let text = concat!(
            r#"{"service":"blob","sdk":"x","interactions":1}"#,
            "\n",
            r#"{"n":0,"op":"x","#,
            r#""request":{"method":"PUT","#,
            r#""url":"https://account.blob.core.windows.net/c?restype=container","#,
            r#""headers":{"x-ms-version":"2019-02-02","#,
            r#""x-ms-date":"Thu, 09 May 2019 00:57:58 GMT"}},"#,
            r#""response":{"status":201,"#,
            r#""headers":{"Date":"Thu, 09 May 2019 00:57:59 GMT"}}}"#,
        );
        let target = OverHttp {
            blob: at.clone(),
            queue: at.clone(),
            table: at.clone(),
            control: at,
        };
        let played = play(Arc::new(target), &recording::parse("f", text).unwrap()).await;
        assert_eq!(played.setup_problems, Vec::<String>::new());
        assert_eq!(played.outcomes, [Outcome::Passed]);
    }

    #[test]
    fn finds_the_four_ports() {
        let server = OverHttp::at("http://127.0.0.1:10000").unwrap();
        assert_eq!(server.table, "127.0.0.1:10002");
        assert_eq!(server.control, "127.0.0.1:10003");
        assert!(OverHttp::at("http://127.0.0.1").is_none());
        assert!(OverHttp::at("elsewhere").is_none());
        assert!(OverHttp::at("http://127.0.0.1:65535").is_none());
    }
}
