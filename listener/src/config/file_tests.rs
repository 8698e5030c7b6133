//! Tests of the file, the precedence of settings, and secrets.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use smalt_protocol::service::Service;
use smalt_sleeve::Identity;
use smalt_worker::secret::Secret;

use super::*;
use crate::config::connection::{Connection, connection};

#[derive(Default)]
struct Fake(BTreeMap<&'static str, &'static str>);

impl Sources for Fake {
    fn variable(&self, name: &str) -> Option<String> {
        self.0.get(name).map(|v| (*v).to_owned())
    }

    fn file(&self, path: &str) -> io::Result<String> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        self.0
            .get(path)
            .map(|v| (*v).to_owned())
            .ok_or_else(missing)
    }
}

const FILE: &str = r#"
[storage]
account = "acct"
account_key = "env:KEY"

[listener]
worker = "w7"

[[listener.queue]]
name = "orders"
visibility = "30s"
retry = ["1s", "2m"]
idle = { min = "50ms", max = "10s" }
tasks = { min = 2, max = 20 }
rate = 100
poison = { queue = "orders-dead" }
handler = { http = "http://127.0.0.1:8080/orders", timeout = "1m", on_4xx = "retry" }
"#;

#[test]
fn a_file_is_read() {
    let sources = Fake(BTreeMap::from([("l.toml", FILE)]));
    let file = load("l.toml", &sources).unwrap();
    let config = file.listener.queue[0].settings("w7").unwrap();
    assert_eq!(config.visibility, Duration::from_secs(30));
    assert_eq!(
        config.retry,
        [Duration::from_secs(1), Duration::from_secs(120)]
    );
    assert_eq!(
        (config.tasks.min, config.tasks.max, config.rate_per_s),
        (2, 20, 100)
    );
    assert_eq!(config.handler_timeout, Duration::from_secs(60));
    assert_eq!(config.poison_queue(), "orders-dead");
    assert_eq!(config.cooldown, Duration::from_secs(15), "default");
}

#[test]
fn flags_win_over_the_file() {
    let file: ConfigFile = toml::from_str(FILE).unwrap();
    let flags = QueueLayer {
        visibility: Some(Span(Duration::from_secs(90))),
        handler: HandlerLayer {
            exec: Some(CommandLine::Shell("cat".to_owned())),
            ..HandlerLayer::default()
        },
        ..QueueLayer::default()
    };
    let (merged, _) = merge(&flags, &file.listener.queue[0]).unwrap();
    assert_eq!(
        merged.settings("w").unwrap().visibility,
        Duration::from_secs(90)
    );
    assert!(
        merged.handler.http.is_none(),
        "one kind of handler replaces the other"
    );
    assert_eq!(merged.rate, Some(100));
}

#[test]
fn unknown_settings_are_rejected() {
    for text in [
        "[listener]\nqueues = 1",
        "[[listener.queue]]\nname = \"orders\"\npartitions = \"many\"",
        "[[listener.queue]]\nname = \"orders\"\npartition = 4",
        "[[listener.queue]]\nname = \"orders\"\nvisibility = \"soon\"",
        "[[listener.queue]]\nname = \"orders\"\npolicy = \"magic\"",
    ] {
        assert!(toml::from_str::<ConfigFile>(text).is_err(), "{text}");
    }
}

fn flags(connection_string: &str) -> ConnectionLayer {
    ConnectionLayer {
        connection_string: Some(Secret::parse(connection_string)),
        ..ConnectionLayer::default()
    }
}

#[test]
fn the_connection_by_precedence() {
    let file: ConfigFile = toml::from_str(FILE).unwrap();
    let none = ConnectionLayer::default;
    let key = || BTreeMap::from([("KEY", "a2V5")]);
    let by_file = connection(none(), file.storage.clone(), &Fake(key())).unwrap();
    assert_eq!(
        by_file.masked(&Fake(key())).unwrap(),
        "AccountName=acct;AccountKey=***;QueueEndpoint=https://acct.queue.core.windows.net"
    );
    let account = by_file.access.account(Service::Queue, &Fake(key()));
    let account = account.unwrap();
    let host = Some("acct.queue.core.windows.net");
    assert_eq!(
        (account.name(), account.host(Service::Queue)),
        ("acct", host)
    );
    let masked = |found: &Connection| found.masked(&Fake::default()).unwrap();
    let mut variables = key();
    variables.insert("AZURE_STORAGE_CONNECTION_STRING", "AccountName=env");
    let by_variable = connection(none(), file.storage.clone(), &Fake(variables)).unwrap();
    assert_eq!(masked(&by_variable), "AccountName=env");
    let flag = flags("AccountName=flag");
    let by_flag = connection(flag, file.storage, &Fake(key())).unwrap();
    assert_eq!(masked(&by_flag), "AccountName=flag");
    assert!(connection(none(), none(), &Fake::default()).is_err());
}

/// A token replaces a key and cannot be combined with one.
#[test]
fn a_token_opens_the_account() {
    let file: ConfigFile =
        toml::from_str("[storage]\naccount = \"acct\"\nauth = \"managed-identity\"").unwrap();
    let none = ConnectionLayer::default;
    let given = connection(none(), file.storage.clone(), &Fake::default()).unwrap();
    assert_eq!(given.access.auth, Some(Identity::ManagedIdentity));
    assert_eq!(
        given.masked(&Fake::default()).unwrap(),
        "AccountName=acct;QueueEndpoint=https://acct.queue.core.windows.net"
    );
    let keyed = flags("AccountName=flag;AccountKey=a2V5");
    let by_flag = connection(keyed, file.storage.clone(), &Fake::default()).unwrap();
    assert_eq!(by_flag.access.auth, None);
    let both = ConnectionLayer {
        sas: Some(Secret::parse("env:SAS")),
        ..file.storage
    };
    let refused = connection(none(), both, &Fake::default()).unwrap();
    let refused = refused.access.account(Service::Queue, &Fake::default());
    let refused = refused.unwrap_err();
    assert!(
        refused.to_string().contains("the account uses a token"),
        "{refused}"
    );
    assert!(toml::from_str::<ConfigFile>("[storage]\nauth = \"password\"").is_err());
}

#[test]
fn secrets_stay_out_of_files_and_logs() {
    let inline = flags("AccountName=a;AccountKey=c2VjcmV0");
    let refused = connection(ConnectionLayer::default(), inline.clone(), &Fake::default());
    let message = refused.unwrap_err().to_string();
    assert!(!message.contains("c2VjcmV0"), "{message}");
    let local = flags("UseDevelopmentStorage=true");
    connection(ConnectionLayer::default(), local, &Fake::default()).unwrap();
    let given = connection(inline, ConnectionLayer::default(), &Fake::default()).unwrap();
    assert!(!format!("{given:?}").contains("c2VjcmV0"));
    let from_file = flags("file:/run/key");
    let sources = Fake(BTreeMap::from([("/run/key", "AccountName=x\n")]));
    let given = connection(from_file, ConnectionLayer::default(), &sources).unwrap();
    assert_eq!(given.masked(&sources).unwrap(), "AccountName=x");
}

#[test]
fn idle_tasks_accepts_sentinel() {
    let of = |text: &str| {
        let layer: QueueLayer = toml::from_str(&format!("name = \"orders\"\n{text}")).unwrap();
        layer.settings("w").unwrap()
    };
    assert_eq!(of("idle_tasks = 0").idle_tasks, 0);
    assert_eq!(of("idle_tasks = 1").sentinel, None);
    let fleet = of("idle_tasks = \"sentinel\"\nsentinel = { lease = \"20s\" }");
    let sentinel = fleet.sentinel.unwrap();
    assert_eq!(sentinel.container, "listener-sentinels");
    assert_eq!(sentinel.lease, Duration::from_secs(20));
}

/// L12: the bounds of the agent come from the file, and those out of range are named.
#[test]
fn l12_the_bounds_of_the_agent_are_in_the_file() {
    let of = |text: &str| {
        let file: ConfigFile = toml::from_str(&format!("[listener.agent]\n{text}")).unwrap();
        file.listener.agent.bounds()
    };
    let base = Bounds::default();
    assert_eq!(of("").unwrap(), (base, AGENT_EVERY));
    let (bounds, every) = of("max = 3\nage_max = \"5m\"\nevery = \"30s\"").unwrap();
    let expected = Bounds {
        max: 3,
        age_max: Duration::from_secs(300),
        ..base
    };
    assert_eq!((bounds, every), (expected, Duration::from_secs(30)));
    for (text, setting) in [
        ("max = 0", "max"),
        ("min = 21", "min"),
        ("depth_per_instance = 0", "depth_per_instance"),
        ("processor_max = 1.1", "processor_max"),
        ("processor_max = nan", "processor_max"),
        ("every = \"500ms\"", "every"),
    ] {
        let error = of(text).unwrap_err().to_string();
        assert!(
            error.contains(&format!("listener.agent.{setting}")),
            "{error}"
        );
    }
}
