//! The built-in handlers, against real processes and sockets.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use smalt_listener::handler::exec::{CommandLine, ExecHandler};
use smalt_listener::handler::http::{HttpHandler, On4xx};
use smalt_listener::handler::{Context, Handler, Message, Verdict};
use smalt_protocol::Timestamp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

fn message(body: &[u8]) -> Message {
    Message {
        id: "m1".to_owned(),
        queue: "orders".to_owned(),
        body: Bytes::copy_from_slice(body),
        dequeue_count: 2,
        inserted: Timestamp::from_unix_s(1_500_000_000),
        expires: Timestamp::MAX,
    }
}

fn ctx() -> (Context, tokio::sync::watch::Sender<bool>) {
    Context::new("w1", Duration::from_secs(60), 5)
}

async fn exec(line: &str, body: &[u8]) -> Verdict {
    let handler = ExecHandler::new(CommandLine::Shell(line.to_owned()));
    let (ctx, _switch) = ctx();
    handler.handle(&message(body), &ctx).await
}

#[tokio::test]
async fn exit_statuses_are_verdicts() {
    assert_eq!(exec("exit 0", b"").await, Verdict::Ok);
    assert!(matches!(exec("exit 65", b"").await, Verdict::Reject { .. }));
    for line in ["exit 75", "exit 1", "exit 64", "kill -9 $$"] {
        assert!(
            matches!(exec(line, b"").await, Verdict::Retry { .. }),
            "{line}"
        );
    }
}

/// A command that cannot run is not the message's fault.
#[tokio::test]
async fn a_missing_command_is_unable() {
    for line in [
        "/no/such/command",
        "no-such-command-anywhere",
        "exit 126",
        "/etc",
    ] {
        let verdict = exec(line, b"").await;
        assert!(
            matches!(verdict, Verdict::Unable { .. }),
            "{line}: {verdict:?}"
        );
    }
    for program in [
        "/no/such",
        "no-such-command-anywhere",
        "/etc",
        "/etc/passwd/x",
        "",
    ] {
        let missing = ExecHandler::new(CommandLine::Argv(vec![program.to_owned()]));
        let (ctx, _switch) = ctx();
        let verdict = missing.handle(&message(b""), &ctx).await;
        assert!(
            matches!(verdict, Verdict::Unable { .. }),
            "{program}: {verdict:?}"
        );
    }
}

#[tokio::test]
async fn body_and_facts_arrive() {
    assert_eq!(exec("test \"$(cat)\" = hello", b"hello").await, Verdict::Ok);
    let facts = "test \"$MSG_ID $MSG_QUEUE $MSG_DEQUEUE_COUNT/$MSG_MAX_DEQUEUE\" = \
                 'm1 orders 2/5' && test -z \"$MSG_EXPIRES\" && \
                 test $MSG_INSERTED = 2017-07-14T02:40:00Z && test $MSG_TIMEOUT_S = 60";
    assert_eq!(exec(facts, b"").await, Verdict::Ok);
    let argv = ["sh", "-c", "test \"$1\" = 'a b'", "sh", "a b"];
    let argv = CommandLine::Argv(argv.map(str::to_owned).to_vec());
    let (ctx, _switch) = ctx();
    let verdict = ExecHandler::new(argv).handle(&message(b""), &ctx).await;
    assert_eq!(verdict, Verdict::Ok);
}

/// A command inherits only the basic variables and those named for it, because the listener's
/// environment may hold credentials under any name.
#[tokio::test]
async fn a_command_inherits_no_credentials() {
    use smalt_listener::handler::exec::BASE_ENVIRONMENT;
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("env");
    let line = CommandLine::Shell(format!("env > {}", out.display()));
    const OF_THE_SHELL: [&str; 4] = ["PWD", "OLDPWD", "SHLVL", "_"];
    let is_known = |name: &str| BASE_ENVIRONMENT.contains(&name) || OF_THE_SHELL.contains(&name);
    // Any variable of this process that is not passed by default.
    let passed = std::env::vars().map(|(name, _)| name);
    let passed = passed
        .filter(|name| !is_known(name))
        .find(|name| name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_'))
        .unwrap();
    for (handler, gets) in [
        (ExecHandler::new(line.clone()), false),
        (
            ExecHandler::new(line).passing([passed.clone(), "NOT_SET".to_owned()]),
            true,
        ),
    ] {
        let (ctx, _switch) = ctx();
        assert_eq!(handler.handle(&message(b""), &ctx).await, Verdict::Ok);
        let text = tokio::fs::read_to_string(&out).await.unwrap();
        let names: Vec<&str> = text
            .lines()
            .filter_map(|l| Some(l.split_once('=')?.0))
            .collect();
        assert!(
            std::env::vars().count() > names.len(),
            "there is more than that here"
        );
        assert_eq!(names.contains(&passed.as_str()), gets, "{text}");
        for name in names.into_iter().filter(|name| *name != passed) {
            let known = is_known(name) || name.starts_with("MSG_");
            assert!(known, "{name} is inherited");
        }
    }
}

/// No descriptor of the listener reaches a command, neither sockets nor files.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_command_inherits_no_descriptors() {
    use std::os::fd::AsRawFd;
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("fds");
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let file = tokio::fs::File::create(dir.path().join("held"))
        .await
        .unwrap();
    let line = format!("ls -l /proc/self/fd > {}", out.display());
    assert_eq!(exec(&line, b"").await, Verdict::Ok);
    let text = tokio::fs::read_to_string(&out).await.unwrap();
    assert!(text.contains("fds"), "{text}");
    for held in [socket.as_raw_fd(), file.as_raw_fd()] {
        let link = std::fs::read_link(format!("/proc/self/fd/{held}")).unwrap();
        assert!(
            !text.contains(&*link.to_string_lossy()),
            "{link:?} in {text}"
        );
    }
}

/// A redirect is an ordinary answer: no part of a message goes to another host.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = format!("http://{}/steal", elsewhere.local_addr().unwrap());
    for status in ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"] {
        let answer = format!("HTTP/1.1 {status}\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n");
        let (url, _requests) = server(vec![vec![Box::leak(answer.into_boxed_str())]]).await;
        let handler = HttpHandler::new(&url, On4xx::Reject).unwrap();
        let (ctx, _switch) = ctx();
        let verdict = handler.handle(&message(b"hello"), &ctx).await;
        assert!(
            matches!(verdict, Verdict::Retry { .. }),
            "{status} {verdict:?}"
        );
    }
    let nobody = tokio::time::timeout(Duration::from_millis(50), elsewhere.accept()).await;
    assert!(nobody.is_err(), "somebody came");
}

/// A command may ignore its input, of any length, and leave children that keep it open.
#[tokio::test]
async fn an_unread_body_does_not_block() {
    let body = vec![b'x'; 1 << 20];
    assert_eq!(exec("exit 0", &body).await, Verdict::Ok);
    let verdict = tokio::time::timeout(
        Duration::from_secs(5),
        exec(
            "sleep 60 0<&0 >/dev/null 2>&1 & echo $! > /dev/null; exit 65",
            &body,
        ),
    );
    assert!(matches!(verdict.await, Ok(Verdict::Reject { .. })));
}

fn is_running(pid: &str) -> bool {
    let stat = std::path::Path::new("/proc").join(pid).join("stat");
    // A zombie has ended, but its parent has not yet read its status.
    std::fs::metadata(&stat).is_ok() && {
        let status = std::process::Command::new("ps")
            .args(["-o", "stat=", "-p", pid])
            .output();
        status.is_ok_and(|s| !s.stdout.is_empty() && !s.stdout.starts_with(b"Z"))
    }
}

async fn started_pids(path: &std::path::Path) -> Vec<String> {
    for _ in 0..200 {
        let text = tokio::fs::read_to_string(path).await.unwrap_or_default();
        let pids: Vec<String> = text.lines().map(str::to_owned).collect();
        if pids.len() == 2 {
            return pids;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the command did not start");
}

async fn all_gone(pids: &[String]) -> bool {
    for _ in 0..200 {
        if !pids.iter().any(|pid| is_running(pid)) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    false
}

/// Dropping a run kills the whole process group, including children that ignore SIGTERM.
#[tokio::test]
async fn a_dropped_run_leaves_no_process() {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    let line = format!(
        "trap '' TERM; (trap '' TERM; exec sleep 300) & echo $! >> {0}; echo $$ >> {0}; wait",
        pids.display()
    );
    let running = tokio::spawn(async move { exec(&line, b"").await });
    let pids = started_pids(&pids).await;
    running.abort();
    assert!(all_gone(&pids).await, "{pids:?} still run");
}

/// A cancelled run first gets SIGTERM, as does its whole group.
#[tokio::test]
async fn a_cancelled_run_is_asked_to_end() {
    let dir = tempfile::tempdir().unwrap();
    let (pids, asked) = (dir.path().join("pids"), dir.path().join("asked"));
    let line = format!(
        "trap 'echo asked > {1}; exit 0' TERM; sleep 300 & echo $! >> {0}; echo $$ >> {0}; wait",
        pids.display(),
        asked.display()
    );
    let handler = ExecHandler::new(CommandLine::Shell(line));
    let (ctx, switch) = ctx();
    let running = tokio::spawn(async move { handler.handle(&message(b""), &ctx).await });
    let pids = started_pids(&pids).await;
    switch.send(true).unwrap();
    running.await.unwrap();
    assert!(all_gone(&pids).await, "{pids:?} still run");
    assert!(asked.exists());
}

/// Starts a server with one script per connection: each string is sent unchanged after a request
/// was read.
async fn server(connections: Vec<Vec<&'static str>>) -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/orders?a=b", listener.local_addr().unwrap());
    let (seen, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for answers in connections {
            let (mut stream, _) = listener.accept().await.unwrap();
            for answer in answers {
                seen.send(request(&mut stream).await).unwrap();
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    });
    (url, requests)
}

async fn request(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.ends_with("hello") {
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the request ends early: {text}");
        text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
    text.to_lowercase()
}

const OK: &str = "HTTP/1.1 204 No Content\r\n\r\n";

#[tokio::test]
async fn a_message_is_posted() {
    let (url, mut requests) = server(vec![vec![OK]]).await;
    let handler = HttpHandler::new(&url, On4xx::Reject).unwrap();
    let (ctx, _switch) = ctx();
    assert_eq!(handler.handle(&message(b"hello"), &ctx).await, Verdict::Ok);
    let request = requests.recv().await.unwrap();
    assert!(
        request.starts_with("post /orders?a=b http/1.1\r\n"),
        "{request}"
    );
    for line in [
        "host: 127.0.0.1:",
        "x-message-id: m1",
        "x-message-dequeue-count: 2",
    ] {
        assert!(request.contains(line), "{line} in {request}");
    }
}

#[tokio::test]
async fn answers_are_verdicts() {
    let busy = "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nfull";
    let bad = "HTTP/1.1 422 Bad\r\nContent-Length: 0\r\n\r\n";
    let (url, _requests) = server(vec![vec![busy, bad, OK]]).await;
    let handler = HttpHandler::new(&url, On4xx::Reject).unwrap();
    let (ctx, _switch) = ctx();
    let first = handler.handle(&message(b"hello"), &ctx).await;
    let after = Some(Duration::from_secs(7));
    assert!(
        matches!(first, Verdict::Retry { after: a, .. } if a == after),
        "{first:?}"
    );
    let second = handler.handle(&message(b"hello"), &ctx).await;
    assert!(
        matches!(second, Verdict::Reject { .. }),
        "on the same connection: {second:?}"
    );
    assert_eq!(handler.handle(&message(b"hello"), &ctx).await, Verdict::Ok);
}

/// If the endpoint has closed a kept connection, the next message uses a new one.
#[tokio::test]
async fn a_closed_connection_costs_no_attempt() {
    let (url, _requests) = server(vec![vec![OK], vec![OK]]).await;
    let handler = HttpHandler::new(&url, On4xx::Reject).unwrap();
    let (ctx, _switch) = ctx();
    assert_eq!(handler.handle(&message(b"hello"), &ctx).await, Verdict::Ok);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(handler.handle(&message(b"hello"), &ctx).await, Verdict::Ok);
}

#[tokio::test]
async fn no_endpoint_and_no_url() {
    let free = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let handler = HttpHandler::new(&format!("http://{free}/"), On4xx::Reject).unwrap();
    let (ctx, switch) = ctx();
    let verdict = handler.handle(&message(b"hello"), &ctx).await;
    assert!(matches!(verdict, Verdict::Retry { .. }), "{verdict:?}");
    for url in ["ftp://host/", "/path", "", "http://"] {
        assert!(HttpHandler::new(url, On4xx::Reject).is_err(), "{url}");
    }
    let (url, mut requests) = server(vec![vec![""]]).await;
    let silent = Arc::new(HttpHandler::new(&url, On4xx::Reject).unwrap());
    let waiting = tokio::spawn(async move { silent.handle(&message(b"hello"), &ctx).await });
    requests.recv().await.unwrap();
    switch.send(true).unwrap();
    assert!(
        matches!(waiting.await.unwrap(), Verdict::Retry { .. }),
        "cancelled"
    );
}
