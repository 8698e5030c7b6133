//! The whole table against a server in this process, so that every `cargo test` runs it.

use std::path::Path;
use std::time::Duration;

use clap::Parser as _;
use smalt::Service;
use smalt::cli::Cli;
use smalt::server::{self, Server};

use super::runner::Runner;
use super::subject::Addresses;
use super::table::{self, Case};

fn cases() -> Vec<(String, Case)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/malformed");
    table::read(&dir).unwrap()
}

#[test]
fn the_table_is_wide_and_says_why() {
    let cases = cases();
    assert!(cases.len() >= 90, "{} cases", cases.len());
    for (area, case) in cases {
        assert!(!case.source.is_empty(), "{area}: {}", case.name);
        assert!(case.status < 500, "{area}: {}: {}", case.name, case.status);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_malformed_request_gets_its_answer() {
    let ports = ["blob", "queue", "table", "control"]
        .map(|service| [format!("--{service}Port"), "0".to_owned()])
        .concat();
    let flags = ["smalt", "--silent", "--stallTimeoutMs", "200"].map(str::to_owned);
    let cli = Cli::try_parse_from(flags.into_iter().chain(ports)).unwrap();
    let emulator = server::builder(&cli.flags).unwrap().open().unwrap();
    let server = Server::bind(&cli.flags, emulator).await.unwrap();
    let address = |service| server.address(service).unwrap();
    let addresses = Addresses {
        blob: address(Service::Blob),
        queue: address(Service::Queue),
        table: address(Service::Table),
        control: server.control_address(),
    };
    let serving = tokio::spawn(server.run(std::future::pending()));
    let mut runner = Runner::begin(addresses).await.unwrap();
    let mut wrong = Vec::new();
    let all = async {
        for (area, case) in cases() {
            if let Err(what) = runner.run(&case).await {
                wrong.push(format!("{area}: {}: {what}", case.name));
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(120), all)
        .await
        .unwrap();
    serving.abort();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
