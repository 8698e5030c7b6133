//! The command line as an operator uses it: exit codes, one line per mistake, sources of settings.
//! These tests need no account; docs/listener.md describes those that run against smalt.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// An account that no service answers for: the port is reserved and never listens.
const NOBODY: &str = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=c2VjcmV0;\
                      QueueEndpoint=http://127.0.0.1:1/a";

/// Returns the command without settings from the environment of the tests.
fn command(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smalt-listener"));
    command.env_clear().args(line.split_whitespace());
    command
}

fn run(line: &str) -> Output {
    command(line).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn file(toml: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(toml.as_bytes()).unwrap();
    file
}

const LOCAL: &str = "--connection-string UseDevelopmentStorage=true";

/// Replaces `ACCOUNT` in the lines below; no service answers there.
const ACCOUNT: &str = "--account a --account-key c2VjcmV0 --endpoint http://127.0.0.1:1/a";

/// A command line, its exit code, and a part of its error line.
const MISTAKES: &[(&str, i32, &str)] = &[
    ("run LOCAL", 2, "no queue is named"),
    (
        "run --queue orders --exec cat",
        2,
        "give --connection-string",
    ),
    ("stats LOCAL --queue a", 2, "is not a queue name"),
    ("stats ACCOUNT --queue orders", 4, "Unreachable"),
    ("peek ACCOUNT --queue orders", 4, "Unreachable"),
    ("poison list ACCOUNT --queue orders", 4, "Unreachable"),
    ("bench ACCOUNT", 4, "Unreachable"),
    (
        "poison purge LOCAL --queue orders --all",
        2,
        "confirm with --yes",
    ),
    (
        "notify orders --to http://127.0.0.1:1",
        4,
        "http://127.0.0.1:1",
    ),
    (
        "notify orders --to nowhere",
        2,
        "is not an http:// or https:// URL",
    ),
    (
        "notify orders --to ftp://x",
        2,
        "`ftp://x` is not an http:// or https:// URL",
    ),
    ("cost --interval 0s", 2, "--interval"),
    ("cost --tasks 0", 2, "--tasks"),
    (
        "send ACCOUNT --queue orders --ttl 2s --delay 2s x",
        2,
        "--delay: 2s must be shorter than the --ttl of 2s",
    ),
    (
        "validate --queue orders --exec cat",
        2,
        "give --connection-string",
    ),
    (
        "run LOCAL --config /nowhere.toml",
        2,
        "cannot read /nowhere.toml: No such file",
    ),
];

/// Each mistake ends with its exit code and one line that says what is wrong.
#[test]
fn mistakes_have_their_codes_and_lines() {
    // All run at once, because those that look for an account retry several times.
    let started: Vec<_> = MISTAKES
        .iter()
        .map(|(line, code, says)| {
            let line = line.replace("LOCAL", LOCAL).replace("ACCOUNT", ACCOUNT);
            let mut command = command(&line);
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            (command.spawn().unwrap(), line, code, says)
        })
        .collect();
    for (child, line, code, says) in started {
        let output = child.wait_with_output().unwrap();
        let shown = text(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{line}: {shown}");
        let errors: Vec<&str> = shown.lines().filter(|l| l.starts_with("error:")).collect();
        assert_eq!(errors.len(), 1, "{line}: {shown}");
        assert!(errors[0].contains(*says), "{line}: {shown}");
        let cause = errors[0].rsplit(": ").next().unwrap_or_default();
        assert_eq!(errors[0].matches(cause).count(), 1, "{line}: {shown}");
        assert!(output.stdout.is_empty(), "{line}");
    }
}

/// `validate --connect` reports a queue that cannot be reached.
#[test]
fn validate_connect_checks_the_account() {
    let line = format!("validate --queue orders --exec cat --connection-string {NOBODY}");
    assert_eq!(run(&line).status.code(), Some(0));
    let output = run(&format!("{line} --connect"));
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
}

#[test]
fn a_file_error_names_its_line() {
    for (toml, says) in [
        ("[listener]\ngrase = \"1s\"\n", ":2: unknown field `grase`"),
        (
            "[[listener.queue]]\nname = \"orders\"\nvisibility = \"soon\"\n",
            ":3: `soon` is no",
        ),
        ("[[listener.queue]\n", ":1: "),
        ("\n\n[listener.queue]\nname = 3\n", ":3: invalid type"),
        (
            "[listener]\nprofile = \"compat\"\n",
            ":2: unknown variant `compat`, expected one of",
        ),
    ] {
        let file = file(toml);
        let output = run(&format!(
            "validate {LOCAL} --config {}",
            file.path().display()
        ));
        let shown = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{shown}");
        assert_eq!(shown.lines().count(), 1, "{shown}");
        assert!(shown.contains(says), "{toml}: {shown}");
    }
}

fn source(shown: &str, key: &str) -> String {
    let line = shown
        .lines()
        .find(|l| l.split_whitespace().next() == Some(key));
    let last = line.and_then(|line| line.split_whitespace().last());
    last.unwrap_or_else(|| panic!("{key} in {shown}"))
        .to_owned()
}

/// A flag wins over the environment, the file and the default; the secret is not printed.
#[test]
fn settings_show_their_sources() {
    let file = file(
        "[listener]\nprice = 0.004\n[[listener.queue]]\nname = \"orders\"\nrate = 1\nslots = 1\n\
         max_dequeue = 1\nhandler = { exec = \"cat\" }\n",
    );
    let line = format!("validate --config {} --rate 3", file.path().display());
    let output = command(&line)
        .env("LISTENER_RATE", "2")
        .env("LISTENER_SLOTS", "2")
        .env("AZURE_STORAGE_CONNECTION_STRING", NOBODY)
        .output()
        .unwrap();
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for (key, wanted) in [
        ("rate", "flag"),
        ("slots", "LISTENER_SLOTS"),
        ("max_dequeue", "file"),
        ("handler.exec", "file"),
        ("price", "file"),
        ("visibility", "default"),
        ("storage", "AZURE_STORAGE_CONNECTION_STRING"),
    ] {
        assert_eq!(source(&shown, key), wanted, "{key}");
    }
    assert!(
        !shown.contains("c2VjcmV0") && shown.contains("AccountKey=***"),
        "{shown}"
    );
    let rate = shown
        .lines()
        .find(|l| l.trim().starts_with("rate"))
        .unwrap();
    assert!(rate.contains(" 3 "), "{rate}");
}

/// Returns the value and source of `key` as `validate` shows them.
fn shown(output: &Output, key: &str) -> (String, String) {
    let json: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    let row = &json["queues"][0]["settings"][key];
    let word = |name: &str| row[name].as_str().unwrap().to_owned();
    (word("value"), word("source"))
}

/// The profile comes from a flag, else the environment, the queue or the process; every explicit
/// setting wins over it.
#[test]
fn a_profile_has_the_lowest_precedence() {
    let of = |profiles: &[(&str, &str)]| {
        let place = |name: &str| profiles.iter().find(|(place, _)| *place == name);
        let line = |name: &str| {
            let profile = place(name).map(|(_, profile)| format!("profile = \"{profile}\"\n"));
            profile.unwrap_or_default()
        };
        let file = file(&format!(
            "[listener]\n{}[[listener.queue]]\nname = \"orders\"\n{}tasks = {{ max = 7 }}\n\
             handler = {{ exec = \"cat\" }}\n",
            line("process"),
            line("queue"),
        ));
        let path = file.path().display();
        let mut command = command(&format!("validate {LOCAL} --json --config {path} --rate 9"));
        command.env("LISTENER_SLOTS", "5");
        if let Some((_, profile)) = place("flag") {
            command.args(["--profile", profile]);
        }
        if let Some((_, profile)) = place("variable") {
            command.env("LISTENER_PROFILE", profile);
        }
        command.output().unwrap()
    };
    let all = [
        ("flag", "seed", "flag"),
        ("variable", "low-latency", "LISTENER_PROFILE"),
        ("queue", "throughput", "file"),
        ("process", "frugal", "file"),
    ];
    let idle = ["1s", "1s", "30s", "5m", "30s"];
    for strongest in 0..=all.len() {
        let places = all[strongest..].iter();
        let said: Vec<_> = places.map(|(place, name, _)| (*place, *name)).collect();
        let output = of(&said);
        let (_, profile, source) = all.get(strongest).unwrap_or(&("", "default", "default"));
        let is = |key: &str, value: &str, source: &str| {
            let wanted = (value.to_owned(), source.to_owned());
            assert_eq!(shown(&output, key), wanted, "{key} with {said:?}");
        };
        is("profile", profile, source);
        let by_profile = match idle[strongest] {
            "30s" => "default".to_owned(),
            _ => format!("profile {profile}"),
        };
        is("idle.max", idle[strongest], &by_profile);
        is("tasks.max", "7", "file");
        is("slots", "5", "LISTENER_SLOTS");
        is("rate", "9", "flag");
    }
}

/// Every command has help; the commands with examples show them.
#[test]
fn every_command_has_help() {
    let help = text(&run("--help").stdout);
    for name in [
        "run",
        "once",
        "send",
        "peek",
        "stats",
        "poison",
        "notify",
        "cost",
        "validate",
        "bench",
        "completions",
    ] {
        let listed = help
            .lines()
            .any(|l| l.trim_start().starts_with(&format!("{name} ")));
        assert!(listed, "{name} in {help}");
        assert_eq!(run(&format!("{name} --help")).status.code(), Some(0));
    }
    for line in ["poison --help", "notify --help", "cost --help", "--help"] {
        assert!(text(&run(line).stdout).contains("Examples:"), "{line}");
    }
    assert!(text(&run("completions bash").stdout).contains("requeue"));
}

#[test]
fn the_cost_of_a_run_is_extrapolated() {
    let json = text(&run("cost --tasks 200 --requests 120 --run-time 1m --json").stdout);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let lines = json["polling"].as_array().unwrap();
    assert_eq!(
        lines.last().unwrap()["requests_per_month"],
        2.0 * 86_400.0 * 30.0
    );
}

/// As with `head -n 0`: no panic, and no output on standard error. The reader is gone before the
/// command starts, because otherwise the command might print everything first.
#[test]
fn a_reader_that_goes_away_ends_the_command() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ended = command("cost").stdout(writer).output().unwrap();
    assert_eq!(text(&ended.stderr), "");
    assert_eq!(
        ended.status.code(),
        Some(smalt_sleeve::stdout::NOBODY_READS)
    );
}
