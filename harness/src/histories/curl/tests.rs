//! Runs the commands with a real shell and a real curl.
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::sync::Arc;

use smalt::Emulator;
use smalt::control::Control;
use smalt::http::{Listener, Patience};
use smalt_model::Model;
use smalt_model::vocabulary::tables::{Action, Change, RowId, TableOperation};
use smalt_model::vocabulary::{
    BlobId, BlobOperation, Condition, ContainerOperation, Content, Guard, Labels, LeaseAction,
    LeaseId, Metadata, NewBlob, Operation, QueueOperation, TAG,
};
use smalt_protocol::table::Value;
use tokio::process::Command;
use tokio::task::JoinSet;

use super::*;
use crate::histories::names::Names;
use crate::histories::run::Player;
use crate::histories::server::Server;
use crate::wire::access::ACCOUNT;

fn blob(name: &str, operation: BlobOperation) -> Operation {
    let id = BlobId {
        container: "con0".to_owned(),
        blob: name.to_owned(),
    };
    Operation::Blob(id, operation)
}

fn metadata(name: &str, value: &str) -> Metadata {
    Metadata::from([(name.to_owned(), value.to_owned())])
}

fn blobs() -> Vec<Operation> {
    let put = |content| BlobOperation::Put(content, Labels::default(), Guard::default());
    let (few, many) = (
        Content {
            seed: 250,
            length: 9,
        },
        Content {
            seed: 1,
            length: 700,
        },
    );
    let tagged = |is_equal| Guard {
        condition: Some(Condition::IfTags("it is", is_equal)),
        ..Guard::default()
    };
    let acquire = LeaseAction::Acquire {
        proposed: Some(LeaseId(0)),
        duration_s: Some(15),
    };
    let pages = BlobOperation::WritePages {
        first: 0,
        count: 1,
        fill: Some(0x61),
        sequence: None,
        guard: Guard::default(),
    };
    let copied = BlobOperation::Copy {
        source: BlobId {
            container: "con0".to_owned(),
            blob: "b0".to_owned(),
        },
        snapshot: None,
        source_condition: None,
        labels: Labels::default(),
        guard: Guard::default(),
    };
    let head = BlobOperation::Head {
        snapshot: None,
        guard: Guard::default(),
    };
    let new = NewBlob::Pages {
        pages: 2,
        number: 0,
    };
    vec![
        Operation::Container("con0".into(), ContainerOperation::Create(Metadata::new())),
        blob("b0", put(few)),
        blob("b0", BlobOperation::SetTags(metadata(TAG, "it is"), None)),
        blob(
            "b0",
            BlobOperation::SetMetadata(metadata("a", "it's"), tagged(true)),
        ),
        blob(
            "b0",
            BlobOperation::SetMetadata(Metadata::new(), tagged(false)),
        ),
        blob("b1", copied),
        blob(
            "b2",
            BlobOperation::Create(new, Labels::default(), Guard::default()),
        ),
        blob("b2", pages),
        blob("b0", BlobOperation::Lease(acquire, None)),
        blob("b0", put(many)),
        Operation::Advance { seconds: 60 },
        blob("b0", put(many)),
        blob("b0", head),
    ]
}

fn messages_and_entities() -> Vec<Operation> {
    let queue = |operation| Operation::Queue("que0".to_owned(), operation);
    let table = |operation| Operation::Table("Tab0".to_owned(), operation);
    let insert = |row: &str| Change {
        row: RowId {
            partition_key: "o'b".to_owned(),
            row_key: row.to_owned(),
        },
        action: Action::Insert([("Said".to_owned(), Value::String("it's \\ \"".into()))].into()),
    };
    vec![
        queue(QueueOperation::Create(metadata("a", "b"))),
        queue(QueueOperation::Put {
            text: "it's $HOME".to_owned(),
            ttl_s: None,
            visibility_timeout_s: 0,
        }),
        queue(QueueOperation::Peek { most: 1 }),
        queue(QueueOperation::Clear),
        table(TableOperation::Create),
        table(TableOperation::Change(insert("a"))),
        table(TableOperation::Change(insert("a"))),
        table(TableOperation::Batch(vec![insert("b"), insert("c")])),
        table(TableOperation::Batch(vec![insert("b"), insert("d")])),
        table(TableOperation::Delete),
    ]
}

/// Returns the output for a failing history of these operations, each answered as the model
/// predicts.
async fn printed(operations: Vec<Operation>) -> String {
    let mut model = Model::new(START_S);
    let mut names = Names::default();
    let mut player = Player::new(Arc::new(Server::in_memory().unwrap()));
    for operation in operations {
        let expected = model.step(&operation);
        match operation {
            Operation::Advance { .. } => player.set_time(model.now_s()),
            _ => player
                .play(&operation, &expected, &mut names)
                .await
                .unwrap(),
        }
    }
    script(player.transcript())
}

/// Starts a smalt on free ports as the binary does; returns it with the variables that name it.
async fn smalt() -> (JoinSet<()>, Vec<(&'static str, String)>) {
    let emulator = Emulator::builder().open().unwrap();
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut servers = JoinSet::new();
    let control = Control::bind(any, None, emulator.clone()).await.unwrap();
    let address = control.address().unwrap();
    let mut variables = vec![("CONTROL", format!("http://{address}"))];
    servers.spawn(control.serve(std::future::pending()));
    for service in Service::ALL {
        let listener = Listener::bind(service, any, None, Patience::default()).await;
        let listener = listener.unwrap();
        let name = match service {
            Service::Queue => "QUEUE",
            Service::Table => "TABLE",
            Service::Blob => "BLOB",
        };
        let address = listener.address().unwrap();
        variables.push((name, format!("http://{address}/{ACCOUNT}")));
        servers.spawn(listener.serve(emulator.clone(), std::future::pending()));
    }
    variables.push(("SAS", Server::access().query().to_owned()));
    (servers, variables)
}

async fn is_there(program: &str) -> bool {
    let mut command = Command::new(program);
    let status = command.arg("--version").stdout(Stdio::null()).status();
    status.await.is_ok_and(|status| status.success())
}

/// Returns the statuses behind commands, and behind answers: `# 201`, `# 404 BlobNotFound`.
fn statuses(text: &str) -> Vec<&str> {
    let told = text.lines().filter_map(|line| line.strip_prefix("# "));
    let all = told.filter_map(|told| told.get(..3));
    all.filter(|status| status.parse::<u16>().is_ok()).collect()
}

/// Quotes, bytes, transactions, copy sources, HEAD and the clock: the commands get the same answers
/// as the history.
#[tokio::test(flavor = "multi_thread")]
async fn printed_commands_can_be_run() {
    for program in ["bash", "curl", "base64"] {
        if !is_there(program).await {
            eprintln!("NOT RUN: {program} is not installed, so the commands cannot run");
            return;
        }
    }
    let script = printed([blobs(), messages_and_entities()].concat()).await;
    for of in [
        "base64 -d <<<",
        "| tr '\\0'",
        "$'--batch",
        "--head",
        "'\\''",
    ] {
        assert!(script.contains(of), "{of} in\n{script}");
    }
    let (_servers, variables) = smalt().await;
    let mut command = Command::new("bash");
    command
        .arg("-c")
        .arg(&script)
        .envs(variables)
        .kill_on_drop(true);
    let output = command.output().await.unwrap();
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    let (noted, shown) = (statuses(&script), statuses(&output));
    assert!(noted.contains(&"412") && noted.len() > 20, "{noted:?}");
    assert_eq!(shown, noted, "{script}\n{output}");
}

/// The variables default to smalt's default addresses.
#[test]
fn variables_are_explained_once() {
    let script = script("curl -i\n");
    for (name, port) in [
        ("BLOB", 10_000),
        ("QUEUE", 10_001),
        ("TABLE", 10_002),
        ("CONTROL", 10_003),
    ] {
        let set = format!("{name}=${{{name}:-http://127.0.0.1:{port}");
        assert_eq!(script.matches(&set).count(), 1, "{set}");
    }
    assert!(script.contains("harness sas") && script.contains("2023-11-14T22:13:20.4000000Z"));
}
