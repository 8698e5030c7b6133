//! A server over sockets: one connection per request, in plain text or TLS.

use async_trait::async_trait;
use smalt::Clock;
use smalt::faults::Rule;
use smalt_protocol::{Service, Timestamp};

use super::control::Control;
use super::{Ability, About, Setup, Target, TargetError, cannot, emptied};
use crate::cases::raw::{self, Then};
use crate::servers::{Running, ServerError};
use crate::wire::endpoint::{Endpoint, Trust};
use crate::wire::url::Url;
use crate::wire::{Answer, Request};

/// A server, with its control endpoint if it has one.
pub struct Server {
    about: About,
    trust: Trust,
    control: Option<Control>,
    /// The server that was started for the target, killed with it.
    child: Option<Box<Running>>,
    resets_properties: bool,
}

impl Server {
    /// Returns a server at the addresses in `about`, without a control endpoint.
    pub fn at(mut about: About) -> Server {
        if about.blob.starts_with("http://") {
            about.abilities.insert(Ability::Bytes);
        }
        Server {
            about,
            trust: Trust::browsers(),
            control: None,
            child: None,
            resets_properties: false,
        }
    }

    /// Adds the control endpoint at `host:port`, which sets the clock, settings and faults.
    pub fn controlled(mut self, authority: &str) -> Result<Server, TargetError> {
        self.control = Some(Control::at(authority)?);
        let more = [Ability::Clock, Ability::Settings, Ability::Faults];
        self.about.abilities.extend(more);
        Ok(self)
    }

    /// Trusts this certificate, in PEM; checks that need HTTPS then run against the server.
    pub fn trusting(mut self, authority: &str) -> Result<Server, TargetError> {
        self.trust = Trust::only(authority)?;
        let more = [Ability::Https, Ability::Tokens];
        self.about.abilities.extend(more);
        Ok(self)
    }

    /// Takes ownership of the server process, which ends with the target.
    #[must_use]
    pub fn owning(self, child: Running) -> Server {
        let child = Some(Box::new(child));
        Server { child, ..self }
    }

    /// Makes `reset` restore the service properties of a new account as well. With `any_settings`
    /// the server claims to accept settings that it cannot be given, so that the checks that need
    /// them run and show by their failure what it lacks.
    #[must_use]
    pub fn replayed(mut self, any_settings: bool) -> Server {
        self.resets_properties = true;
        let claimed = any_settings.then_some(Ability::Settings);
        self.about.abilities.extend(claimed);
        self
    }

    /// Returns the control endpoint.
    pub fn control(&self) -> Option<&Control> {
        self.control.as_ref()
    }

    fn controls(&self, ability: Ability) -> Result<&Control, TargetError> {
        self.control.as_ref().ok_or_else(|| cannot(ability))
    }

    /// Ends the server if it was started for the target.
    pub async fn end(self) -> Result<(), ServerError> {
        match self.child {
            None => Ok(()),
            Some(child) => child.process.kill().await,
        }
    }
}

#[async_trait]
impl Target for Server {
    fn about(&self) -> &About {
        &self.about
    }

    async fn call(&self, request: Request) -> Result<Answer, TargetError> {
        let bad = || TargetError::Request(request.url.clone());
        let url = Url::parse(&request.url).ok_or_else(bad)?;
        let endpoint = Endpoint::of(&url, &self.trust)?;
        Ok(endpoint.ask(&request).await?)
    }

    async fn exchange(
        &self,
        service: Service,
        bytes: Vec<u8>,
        then: Then,
    ) -> Result<Answer, TargetError> {
        let authority = self.about.authority(service);
        let authority = authority.ok_or_else(|| cannot(Ability::Bytes))?;
        let answer = raw::exchange(&authority, bytes, then).await;
        answer.map_err(|error| TargetError::Request(error.to_string()))
    }

    async fn reset(&self, setup: &Setup) -> Result<(), TargetError> {
        match &self.control {
            Some(control) => control.reset(setup).await,
            None => emptied::empty(self, setup, self.resets_properties).await,
        }
    }

    async fn set_clock(&self, now: Timestamp) -> Result<(), TargetError> {
        match &self.control {
            Some(control) => control.set_clock(now).await,
            None => emptied::wait_for(&Clock::system(), now).await,
        }
    }

    async fn advance(&self, seconds: u64) -> Result<(), TargetError> {
        self.controls(Ability::Clock)?.advance(seconds).await
    }

    async fn configure(&self, settings: &serde_json::Value) -> Result<(), TargetError> {
        let control = self.controls(Ability::Settings)?;
        control.configure(&self.about.account.name, settings).await
    }

    async fn plan(&self, rule: &Rule) -> Result<(), TargetError> {
        self.controls(Ability::Faults)?.plan(rule).await
    }

    async fn fired(&self) -> Result<u64, TargetError> {
        self.controls(Ability::Faults)?.fired().await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use http_body_util::Full;
    use hyper_util::rt::TokioIo;
    use smalt_protocol::ApiVersion;
    use smalt_protocol::signing::shared_key::{
        Authorization, Scheme, SigningInput, parse_authorization, verify_request,
    };
    use tokio::net::TcpListener;

    use super::*;
    use crate::replay::hosts::account_key;
    use crate::replay::player::{Outcome, play};
    use crate::replay::recording;

    type Answered = http::Response<Full<Bytes>>;

    /// Serves control requests, and blob requests in path style with a valid signature.
    fn serve(request: &http::Request<hyper::body::Incoming>) -> Answered {
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

    /// Over a socket, the account moves into the path and the signature covers the request as sent.
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
        let about = About::by_path("smalt", "http", [at.clone(), at.clone(), at.clone()]);
        let target = Server::at(about).controlled(&at).unwrap();
        let played = play(Arc::new(target), &recording::parse("f", text).unwrap()).await;
        assert_eq!(played.setup_problems, Vec::<String>::new());
        assert_eq!(played.outcomes, [Outcome::Passed]);
    }
}
