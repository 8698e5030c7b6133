//! A running server that cannot be told the time: Azurite, or a smalt without its control endpoint.
//!
//! Where a recording's time goes on, this waits until real time has come as far. Where the state
//! has to be empty, everything in the account is deleted.

use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use smalt::Clock;
use smalt_protocol::{Service, Timestamp};

use super::http::send;
use super::{Target, TargetError};
use crate::replay::credentials::{Credential, Signer, UNNAMED};
use crate::replay::hosts::Addressing;
use crate::replay::player::CALL_TIMEOUT;
use crate::replay::settings::AccountSettings;
use crate::replay::uri::{self, Url};
use crate::replay::wire::{Headers, Request, Response};

/// The longest wait for real time: the shortest lease, and a little.
const WAIT_S_MAX: u64 = 90;
/// Between two looks at the clock.
const STEP: Duration = Duration::from_millis(20);
/// What a server's clock may be off, as both are on one machine.
const SKEW_S_MAX: u64 = 5;
/// The version of the requests that empty an account.
const VERSION: &str = "2019-02-02";
/// What an account says that was given no kind: emulators know no other.
const USUAL_SKU: &str = "Standard_RAGRS";
/// The service properties of a new account: what all services have, and what blobs have besides.
const PROPERTIES: [&str; 2] = [
    "<Logging><Version>1.0</Version><Delete>false</Delete><Read>false</Read><Write>false</Write>\
     <RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>\
     <HourMetrics><Version>1.0</Version><Enabled>false</Enabled>\
     <RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics>\
     <MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled>\
     <RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics><Cors />",
    "<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy>\
     <StaticWebsite><Enabled>false</Enabled></StaticWebsite>",
];

/// A server of which only the addresses are known.
pub struct Live {
    blob: String,
    queue: String,
    table: String,
    clock: Clock,
    resets_properties: bool,
    takes_any_settings: bool,
}

/// A request to a server, without what every one has.
#[derive(Clone, Copy, Default)]
struct Ask<'a> {
    method: &'a str,
    path: &'a str,
    headers: &'a [(&'a str, &'a str)],
    body: &'a str,
}

impl<'a> Ask<'a> {
    fn of(method: &'a str, path: &'a str) -> Ask<'a> {
        Ask {
            method,
            path,
            ..Ask::default()
        }
    }
}

impl Live {
    /// A server at these addresses of blob, queue and table, `127.0.0.1:10000`.
    pub fn at([blob, queue, table]: [String; 3]) -> Live {
        Live {
            blob,
            queue,
            table,
            clock: Clock::system(),
            resets_properties: false,
            takes_any_settings: false,
        }
    }

    /// A server that runs: blob at `http://127.0.0.1:10000`, queue and table on the next ports.
    ///
    /// # Errors
    /// In words. Everything in its accounts is deleted, so that only this machine's servers will
    /// do.
    pub fn parse(text: &str) -> Result<Live, String> {
        let url = Url::parse(text).filter(|url| url.scheme == "http");
        let url = url.ok_or_else(|| format!("{text}: name a server as http://127.0.0.1:10000"))?;
        let port = url.authority.rsplit_once(':');
        let (host, port) = port.ok_or_else(|| format!("{text} names no port"))?;
        let port: u16 = port.parse().map_err(|_| format!("{text} names no port"))?;
        let ip = host.trim_matches(['[', ']']).parse();
        if host != "localhost" && !ip.is_ok_and(|ip: IpAddr| ip.is_loopback()) {
            return Err(format!(
                "{text} is not on this machine: before every recording all containers, queues and \
                 tables of its accounts are deleted, so only a server on loopback is asked. For an \
                 account of Azure there is `harness conform --allow-real-account`, which touches \
                 nothing but its own"
            ));
        }
        let at = |n: u16| {
            let port = port.checked_add(n);
            let port = port.ok_or_else(|| format!("{text} leaves no ports for queue and table"))?;
            Ok::<_, String>(format!("{host}:{port}"))
        };
        Ok(Live::at([at(0)?, at(1)?, at(2)?]))
    }

    /// Emptied, its accounts get the service properties of a new account as well.
    #[must_use]
    pub fn with_default_properties(self) -> Live {
        Live {
            resets_properties: true,
            ..self
        }
    }

    /// Played as well is what needs settings that it cannot be given: that it fails shows what it
    /// does not have.
    #[must_use]
    pub fn whatever_it_lacks(self, is_played: bool) -> Live {
        Live {
            takes_any_settings: is_played,
            ..self
        }
    }

    /// Whether each service still answers a request for an account.
    ///
    /// # Errors
    /// When one does not, or not in time.
    pub async fn answers(&self, account: &str) -> Result<(), TargetError> {
        for service in Service::ALL {
            self.ask(account, service, Ask::of("GET", listing(service)))
                .await?;
        }
        Ok(())
    }

    /// Whether each service lets an account in and shows about the same time as this machine.
    ///
    /// # Errors
    /// In words, with what to do.
    pub async fn is_fit(&self, account: &str) -> Result<(), String> {
        for service in Service::ALL {
            let name = service.as_str();
            let answer = self.ask(account, service, Ask::of("GET", listing(service)));
            let answer = answer.await.map_err(|error| format!("{name}: {error}"))?;
            let date = answer
                .headers
                .get("date")
                .and_then(Timestamp::parse_rfc1123);
            let date = date.ok_or_else(|| format!("{name}: its answers have no Date"))?;
            let now = self.clock.now();
            if now.since(date).max(date.since(now)).as_secs() > SKEW_S_MAX {
                return Err(format!(
                    "{name}: its clock shows {date}, not this machine's time: start it anew"
                ));
            }
            if answer.status != 200 {
                return Err(format!(
                    "{name}: it refuses {account} ({}); start it with what --print-accounts prints",
                    answer.status
                ));
            }
        }
        Ok(())
    }

    async fn reset_properties(&self, account: &str, service: Service) -> Result<(), TargetError> {
        let [common, blobs] = PROPERTIES;
        let blobs = if service == Service::Blob { blobs } else { "" };
        let root = "StorageServiceProperties";
        let body = format!("<{root}>{common}{blobs}</{root}>");
        let ask = Ask {
            headers: &[("content-type", "application/xml")],
            body: &body,
            ..Ask::of("PUT", "/?restype=service&comp=properties")
        };
        let answer = self.ask(account, service, ask).await?;
        if answer.status < 300 {
            return Ok(());
        }
        let name = service.as_str();
        let problem = format!("the properties of the {name} service cannot be set: {answer:?}");
        Err(TargetError::Control(problem))
    }

    /// Deletes every container or queue of an account.
    async fn empty(&self, account: &str, service: Service) -> Result<(), TargetError> {
        let all = Ask::of("GET", listing(service));
        let listing = self.ask(account, service, all).await?;
        let text = String::from_utf8_lossy(&listing.body).into_owned();
        for name in names(&text) {
            let path = match service {
                Service::Blob => format!("/{}?restype=container", uri::encode(&name)),
                _ => format!("/{}", uri::encode(&name)),
            };
            let delete = Ask::of("DELETE", &path);
            let mut answer = self.ask(account, service, delete).await?;
            if answer.status == 412 {
                let broken = format!("{path}&comp=lease");
                let end = Ask {
                    headers: &[
                        ("x-ms-lease-action", "break"),
                        ("x-ms-lease-break-period", "0"),
                    ],
                    ..Ask::of("PUT", &broken)
                };
                self.ask(account, service, end).await?;
                answer = self.ask(account, service, delete).await?;
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
        let all = Ask::of("GET", listing(service));
        let listing = self.ask(account, service, all).await?;
        for name in table_names(&listing.body) {
            let path = format!("/Tables('{name}')");
            let delete = Ask::of("DELETE", &path);
            let answer = self.ask(account, service, delete).await?;
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
        ask: Ask<'_>,
    ) -> Result<Response, TargetError> {
        let Ask { method, path, .. } = ask;
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
            ("content-length", ask.body.len().to_string()),
            ("accept", "application/json;odata=nometadata".to_owned()),
        ]);
        for (name, value) in ask.headers {
            headers.push(name, *value);
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
        let request = Request {
            method: method.to_owned(),
            url,
            headers,
            body: Bytes::from(ask.body.to_owned()),
        };
        let answer = tokio::time::timeout(CALL_TIMEOUT, send(request)).await;
        let late = || TargetError::Call(format!("none within {} s", CALL_TIMEOUT.as_secs()));
        answer.unwrap_or_else(|_| Err(late()))
    }
}

/// What lists everything of a service.
fn listing(service: Service) -> &'static str {
    match service {
        Service::Blob | Service::Queue => "/?comp=list",
        Service::Table => "/Tables",
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

    fn own_clock(&self) -> Option<Clock> {
        Some(self.clock.clone())
    }

    fn lacks(&self, settings: &AccountSettings) -> Option<&'static str> {
        let is_usual = |sku: &String| sku == USUAL_SKU;
        let needs = [
            (settings.versioning, "versioning cannot be switched on"),
            (
                settings.container_soft_delete,
                "soft deletion of containers cannot be switched on",
            ),
            (
                settings.public_access_forbidden,
                "public access cannot be forbidden",
            ),
            (
                settings.last_access_tracking,
                "tracking of access cannot be switched on",
            ),
            (
                settings.version_immutability,
                "immutability of versions cannot be switched on",
            ),
            (
                settings.blob_expiry || settings.premium || settings.default_tier_cool,
                "the kind of account cannot be chosen",
            ),
            (
                !settings.sku.as_ref().is_none_or(is_usual),
                "the kind of account cannot be chosen",
            ),
            (
                !settings.encryption_scopes.is_empty(),
                "encryption scopes cannot be made",
            ),
        ];
        let found = needs.into_iter().find(|(is_needed, _)| *is_needed);
        found
            .filter(|_| !self.takes_any_settings)
            .map(|(_, why)| why)
    }

    async fn reset(&self, settings: &AccountSettings, _: Timestamp) -> Result<(), TargetError> {
        for account in &settings.accounts {
            self.empty(account, Service::Blob).await?;
            self.empty(account, Service::Queue).await?;
            self.empty_tables(account).await?;
            if self.resets_properties {
                for service in Service::ALL {
                    self.reset_properties(account, service).await?;
                }
            }
        }
        Ok(())
    }

    async fn set_clock(&self, time: Timestamp) -> Result<(), TargetError> {
        let now = self.clock.now();
        if time > now && time.since(now).as_secs() > WAIT_S_MAX {
            let ahead_s = time.since(now).as_secs();
            return Err(TargetError::TooFarAhead { ahead_s });
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

    #[test]
    fn only_this_machine_is_emptied() {
        let live = Live::parse("http://127.0.0.1:10000").ok().unwrap();
        assert_eq!(live.table, "127.0.0.1:10002");
        assert!(Live::parse("http://localhost:1").is_ok() && Live::parse("http://[::1]:1").is_ok());
        for (url, why) in [
            (
                "http://account.blob.core.windows.net:80",
                "not on this machine",
            ),
            ("http://10.0.0.1:10000", "not on this machine"),
            ("https://127.0.0.1:10000", "name a server as"),
            ("http://127.0.0.1", "no port"),
            ("http://127.0.0.1:65535", "no ports for"),
            ("elsewhere", "name a server as"),
        ] {
            let refused = Live::parse(url).err().unwrap();
            assert!(refused.contains(why), "{url}: {refused}");
        }
    }

    #[test]
    fn says_what_it_cannot_be_given() {
        let live = Live::at(["127.0.0.1:1"; 3].map(str::to_owned));
        let settings = AccountSettings {
            sku: Some(USUAL_SKU.to_owned()),
            blob_soft_delete: true,
            ..AccountSettings::default()
        };
        assert_eq!(live.lacks(&settings), None);
        let settings = AccountSettings {
            versioning: true,
            ..settings
        };
        let why = live.lacks(&settings);
        assert!(why.is_some_and(|why| why.contains("versioning")));
        assert_eq!(live.whatever_it_lacks(true).lacks(&settings), None);
    }

    #[tokio::test]
    async fn does_not_wait_for_days() {
        let live = Live::at(["127.0.0.1:1"; 3].map(str::to_owned));
        let now = Clock::system().now();
        let refused = live.set_clock(now.plus_s(86_400)).await.unwrap_err();
        assert!(matches!(refused, TargetError::TooFarAhead { ahead_s } if ahead_s > 86_000));
        assert!(live.set_clock(now).await.is_ok());
    }
}
