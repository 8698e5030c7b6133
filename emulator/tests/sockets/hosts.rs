//! The host names under which a server on loopback can be addressed.

use smalt::Config;
use smalt::config::AllowedHost;
use smalt::http::Patience;

use super::served::Served;
use crate::support::Client;

/// Returns the status of a Get Blob of a missing blob under these host names.
async fn status(served: &Served, hosts: &[&str]) -> u16 {
    let mut raw = served.connect().await;
    raw.say(served.get_at(hosts)).await;
    raw.hear().await.0
}

/// A page whose name was pointed at this machine is refused, however it is signed.
#[tokio::test]
async fn rebound_host_name_is_refused() {
    let served = Served::new(Patience::default()).await;
    for (hosts, expected) in [
        (&["127.0.0.1:10000"][..], 404),
        (&["[::1]:10000"], 404),
        (&["localhost"], 404),
        (&["azurite:10000"], 404),
        (&["host.docker.internal:10000"], 404),
        (&["evil.example"], 400),
        (&["evil.example:10000"], 400),
        (&["devstoreaccount1.blob.evil.example"], 400),
        (&["localhost", "evil.example"], 400),
        (&["localhost", "localhost"], 400),
        (&[], 400),
    ] {
        assert_eq!(status(&served, hosts).await, expected, "{hosts:?}");
    }
}

/// `--allowHost` allows a name, and `*` every name.
#[tokio::test]
async fn host_name_can_be_allowed() {
    for (allowed, host, expected) in [
        ("storage.example", "storage.example:80", 404),
        ("storage.example", "evil.example", 400),
        ("storage.example", "localhost", 404),
        ("*", "evil.example", 404),
    ] {
        let allowed: AllowedHost = allowed.parse().unwrap();
        let config = Config {
            allowed_hosts: vec![allowed.clone()],
            ..Config::default()
        };
        let client = Client::of(|builder| builder.config(config));
        let served = Served::of(client, Patience::default()).await;
        let found = status(&served, &[host]).await;
        assert_eq!(found, expected, "{allowed} and {host}");
    }
}
