//! A running server that cannot be told the time: Azurite, or a smalt without its control endpoint.
//!
//! Where a recording's time goes on, this waits until real time has come as far. Where the state
//! has to be empty, everything in the account is deleted.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use smalt::Clock;
use smalt_protocol::{Service, Timestamp};

use super::http::send;
use super::{Target, TargetError};
use crate::replay::credentials::{Credential, Signer, UNNAMED};
use crate::replay::hosts::Addressing;
use crate::replay::settings::AccountSettings;
use crate::replay::uri::{self, Url};
use crate::replay::wire::{Headers, Request, Response};

/// The longest wait for real time: the shortest lease, and a little.
const WAIT_S_MAX: u64 = 90;
/// How the refusal to wait longer ends.
pub const TOO_LONG_TO_WAIT: &str = "too long to wait";
/// Between two looks at the clock.
const STEP: Duration = Duration::from_millis(20);
/// The version of the requests that empty an account.
const VERSION: &str = "2019-02-02";

/// A server of which only the addresses are known.
pub struct Live {
    blob: String,
    queue: String,
    table: String,
    clock: Clock,
}

impl Live {
    /// A server at these addresses of blob, queue and table, `127.0.0.1:10000`.
    pub fn at([blob, queue, table]: [String; 3]) -> Live {
        Live {
            blob,
            queue,
            table,
            clock: Clock::system(),
        }
    }

    /// Deletes every container or queue of an account.
    async fn empty(&self, account: &str, service: Service) -> Result<(), TargetError> {
        let listing = self
            .ask(account, service, "GET", "/?comp=list", None)
            .await?;
        let text = String::from_utf8_lossy(&listing.body).into_owned();
        for name in names(&text) {
            let path = match service {
                Service::Blob => format!("/{}?restype=container", uri::encode(&name)),
                _ => format!("/{}", uri::encode(&name)),
            };
            let mut answer = self.ask(account, service, "DELETE", &path, None).await?;
            if answer.status == 412 {
                let broken = format!("{path}&comp=lease");
                let action = Some(("x-ms-lease-action", "break"));
                self.ask(account, service, "PUT", &broken, action).await?;
                answer = self.ask(account, service, "DELETE", &path, None).await?;
            }
            if answer.status >= 300 {
                let problem = format!("{name} cannot be deleted: {answer:?}");
                return Err(TargetError::Control(problem));
            }
        }
        Ok(())
    }

    /// Deletes every table of an account.
    async fn empty_tables(&self, account: &str) -> Result<(), TargetError> {
        let service = Service::Table;
        let listing = self.ask(account, service, "GET", "/Tables", None).await?;
        for name in table_names(&listing.body) {
            let path = format!("/Tables('{name}')");
            let answer = self.ask(account, service, "DELETE", &path, None).await?;
            if answer.status >= 300 {
                let problem = format!("the table {name} cannot be deleted: {answer:?}");
                return Err(TargetError::Control(problem));
            }
        }
        Ok(())
    }

    async fn ask(
        &self,
        account: &str,
        service: Service,
        method: &str,
        path: &str,
        more: Option<(&str, &str)>,
    ) -> Result<Response, TargetError> {
        let authority = match service {
            Service::Blob => &self.blob,
            Service::Queue => &self.queue,
            Service::Table => &self.table,
        };
        let url = format!("http://{authority}/{account}{path}");
        let host_style = format!(
            "http://{account}.{}.core.windows.net{path}",
            service.as_str()
        );
        let mut parsed =
            Url::parse(&host_style).ok_or_else(|| TargetError::Request(url.clone()))?;
        let now = self.clock.now();
        let mut headers = Headers::from_iter([
            ("x-ms-version", VERSION.to_owned()),
            ("x-ms-date", now.rfc1123()),
            ("content-length", "0".to_owned()),
            ("accept", "application/json;odata=nometadata".to_owned()),
        ]);
        for (name, value) in more
            .into_iter()
            .chain(more.is_some().then_some(("x-ms-lease-break-period", "0")))
        {
            headers.push(name, value);
        }
        let signer = Signer {
            account,
            service,
            now,
            delegation_key: None,
            answer: None,
            version: UNNAMED,
        };
        let raw_path = |url: &Url| format!("/{account}{}", url.path);
        signer.apply(
            Credential::SharedKey,
            method,
            &mut parsed,
            raw_path,
            &mut headers,
        );
        send(Request {
            method: method.to_owned(),
            url,
            headers,
            body: Bytes::new(),
        })
        .await
    }
}

/// The names in a listing of containers or queues.
fn names(listing: &str) -> Vec<String> {
    let entries = listing.split("<Name>").skip(1);
    entries
        .filter_map(|rest| Some(rest.split_once("</Name>")?.0.to_owned()))
        .collect()
}

/// The names in a listing of tables; none where it is no such listing.
fn table_names(listing: &[u8]) -> Vec<String> {
    let listing: serde_json::Value = serde_json::from_slice(listing).unwrap_or_default();
    let rows = listing["value"].as_array();
    let names = rows.into_iter().flatten();
    names
        .filter_map(|row| Some(row["TableName"].as_str()?.to_owned()))
        .collect()
}

#[async_trait]
impl Target for Live {
    fn addressing(&self) -> Addressing {
        Addressing::Path {
            blob: self.blob.clone(),
            queue: self.queue.clone(),
            table: self.table.clone(),
        }
    }

    async fn reset(&self, settings: &AccountSettings, _: Timestamp) -> Result<(), TargetError> {
        for account in &settings.accounts {
            self.empty(account, Service::Blob).await?;
            self.empty(account, Service::Queue).await?;
            self.empty_tables(account).await?;
        }
        Ok(())
    }

    async fn set_clock(&self, time: Timestamp) -> Result<(), TargetError> {
        let now = self.clock.now();
        if time > now && time.since(now).as_secs() > WAIT_S_MAX {
            let ahead_s = time.since(now).as_secs();
            let problem = format!("the next request lies {ahead_s} s ahead, {TOO_LONG_TO_WAIT}");
            return Err(TargetError::Control(problem));
        }
        while self.clock.now() < time {
            tokio::time::sleep(STEP).await;
        }
        Ok(())
    }

    async fn call(&self, request: Request) -> Result<Response, TargetError> {
        send(request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_of_listings() {
        let listing = "<Queues><Queue><Name>a</Name></Queue><Queue><Name>b-1</Name></Queue>";
        assert_eq!(names(listing), ["a", "b-1"]);
        assert_eq!(names("<Queues />"), Vec::<String>::new());
    }

    #[tokio::test]
    async fn does_not_wait_for_days() {
        let live = Live::at(["127.0.0.1:1"; 3].map(str::to_owned));
        let now = Clock::system().now();
        assert!(live.set_clock(now.plus_s(86_400)).await.is_err());
        assert!(live.set_clock(now).await.is_ok());
    }
}
