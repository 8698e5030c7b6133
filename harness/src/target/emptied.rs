//! A server without a control endpoint: Azurite, or smalt started without one.
//!
//! Requests delete everything in its accounts, and time passes only in real time.

use std::time::Duration;

use bytes::Bytes;
use smalt::Clock;
use smalt_protocol::{Service, Timestamp};

use super::{Setup, Target, TargetError};
use crate::wire::access::Account;
use crate::wire::{Answer, url};

/// The longest wait in real time, which covers a lease of fixed duration (at most 60 seconds).
const WAIT_S_MAX: u64 = 90;
/// Interval of looking at the clock.
const STEP: Duration = Duration::from_millis(20);
/// Allowed difference of a server's clock: both clocks are on one machine.
const SKEW_S_MAX: u64 = 5;
/// Time limit for the requests that empty an account, which take milliseconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The service properties of a new account: those of all services, and the additional ones of
/// blobs.
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

/// Deletes everything in the accounts of a setup. With `properties`, also restores the service
/// properties of a new account.
pub async fn empty(
    target: &dyn Target,
    setup: &Setup,
    properties: bool,
) -> Result<(), TargetError> {
    for account in &setup.accounts {
        let owner = Owner { target, account };
        owner.empty(Service::Blob).await?;
        owner.empty(Service::Queue).await?;
        owner.empty_tables().await?;
        if properties {
            for service in Service::ALL {
                owner.reset_properties(service).await?;
            }
        }
    }
    Ok(())
}

/// Waits until a clock reaches `time`.
///
/// # Errors
/// When that would take more than 90 seconds.
pub async fn wait_for(clock: &Clock, time: Timestamp) -> Result<(), TargetError> {
    let now = clock.now();
    if time > now && time.since(now).as_secs() > WAIT_S_MAX {
        let ahead_s = time.since(now).as_secs();
        return Err(TargetError::TooFarAhead { ahead_s });
    }
    while clock.now() < time {
        tokio::time::sleep(STEP).await;
    }
    Ok(())
}

/// Checks that each service still answers a request for an account.
///
/// # Errors
/// When one does not answer, or not in time.
pub async fn answers(target: &dyn Target, account: &Account) -> Result<(), TargetError> {
    let owner = Owner { target, account };
    for service in Service::ALL {
        owner.ask(service, Ask::of("GET", listing(service))).await?;
    }
    Ok(())
}

/// Checks that each service accepts an account and has about the same time as this machine.
pub async fn is_fit(target: &dyn Target, account: &Account) -> Result<(), String> {
    let owner = Owner { target, account };
    for service in Service::ALL {
        let name = service.as_str();
        let answer = owner.ask(service, Ask::of("GET", listing(service)));
        let answer = answer.await.map_err(|error| format!("{name}: {error}"))?;
        let date = answer.header("date").and_then(Timestamp::parse_rfc1123);
        let date = date.ok_or_else(|| format!("{name}: answers have no Date header"))?;
        let now = Clock::system().now();
        if now.since(date).max(date.since(now)).as_secs() > SKEW_S_MAX {
            return Err(format!(
                "{name}: the clock shows {date}, not this machine's time; restart the server"
            ));
        }
        if answer.status != 200 {
            return Err(format!(
                "{name}: rejects the account {} ({}); start it with the output of --print-accounts",
                account.name, answer.status
            ));
        }
    }
    Ok(())
}

/// Sends requests as the account's owner, to empty it.
struct Owner<'a> {
    target: &'a dyn Target,
    account: &'a Account,
}

/// A request to a server, without the parts that all requests have.
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

impl Owner<'_> {
    async fn reset_properties(&self, service: Service) -> Result<(), TargetError> {
        let [common, blobs] = PROPERTIES;
        let blobs = if service == Service::Blob { blobs } else { "" };
        let root = "StorageServiceProperties";
        let body = format!("<{root}>{common}{blobs}</{root}>");
        let ask = Ask {
            headers: &[("content-type", "application/xml")],
            body: &body,
            ..Ask::of("PUT", "/?restype=service&comp=properties")
        };
        let what = format!("set the properties of the {} service", service.as_str());
        done(&what, &self.ask(service, ask).await?)
    }

    async fn empty(&self, service: Service) -> Result<(), TargetError> {
        let listing = self.ask(service, Ask::of("GET", listing(service))).await?;
        for name in names(&String::from_utf8_lossy(&listing.body)) {
            let path = match service {
                Service::Blob => format!("/{}?restype=container", url::encode(&name)),
                _ => format!("/{}", url::encode(&name)),
            };
            let delete = Ask::of("DELETE", &path);
            let mut answer = self.ask(service, delete).await?;
            if answer.status == 412 {
                let broken = format!("{path}&comp=lease");
                let end = Ask {
                    headers: &[
                        ("x-ms-lease-action", "break"),
                        ("x-ms-lease-break-period", "0"),
                    ],
                    ..Ask::of("PUT", &broken)
                };
                self.ask(service, end).await?;
                answer = self.ask(service, delete).await?;
            }
            done(&format!("delete {name}"), &answer)?;
        }
        Ok(())
    }

    async fn empty_tables(&self) -> Result<(), TargetError> {
        let service = Service::Table;
        let listing = self.ask(service, Ask::of("GET", listing(service))).await?;
        for name in table_names(&listing.body) {
            let path = format!("/Tables('{name}')");
            let answer = self.ask(service, Ask::of("DELETE", &path)).await?;
            done(&format!("delete the table {name}"), &answer)?;
        }
        Ok(())
    }

    async fn ask(&self, service: Service, ask: Ask<'_>) -> Result<Answer, TargetError> {
        let account = self.account;
        let url = self.target.about().url(&account.name, service, ask.path);
        let body = Bytes::from(ask.body.to_owned());
        let line = (ask.method, url);
        let request = account.request(service, Clock::system().now(), line, ask.headers, body);
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, self.target.call(request)).await;
        let late = || TargetError::Call(format!("none within {ANSWER_TIMEOUT:?}"));
        answer.unwrap_or_else(|_| Err(late()))
    }
}

fn done(what: &str, answer: &Answer) -> Result<(), TargetError> {
    if answer.status < 300 {
        return Ok(());
    }
    Err(TargetError::control(format!("cannot {what}: {answer:?}")))
}

/// Returns the path that lists everything of a service.
fn listing(service: Service) -> &'static str {
    match service {
        Service::Blob | Service::Queue => "/?comp=list",
        Service::Table => "/Tables",
    }
}

fn names(listing: &str) -> Vec<String> {
    let entries = listing.split("<Name>").skip(1);
    entries
        .filter_map(|rest| Some(rest.split_once("</Name>")?.0.to_owned()))
        .collect()
}

/// Returns the names in a listing of tables; empty for any other document.
fn table_names(listing: &[u8]) -> Vec<String> {
    let listing: serde_json::Value = serde_json::from_slice(listing).unwrap_or_default();
    let rows = listing["value"].as_array();
    let names = rows.into_iter().flatten();
    names
        .filter_map(|row| Some(row["TableName"].as_str()?.to_owned()))
        .collect()
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
        let clock = Clock::system();
        let now = clock.now();
        let refused = wait_for(&clock, now.plus_s(86_400)).await.unwrap_err();
        assert!(matches!(refused, TargetError::TooFarAhead { ahead_s } if ahead_s > 86_000));
        assert!(wait_for(&clock, now).await.is_ok());
    }
}
