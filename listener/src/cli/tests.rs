//! Tests of the command line.

use super::flags::ListenFlags;
use super::*;

pub(crate) fn parsed(line: &str) -> Result<Command, clap::Error> {
    let words = ["smalt-listener"].into_iter().chain(line.split(' '));
    Cli::try_parse_from(words).map(|cli| cli.command)
}

pub(crate) fn listen_flags(line: &str) -> ListenFlags {
    match parsed(line) {
        Ok(Command::Run(flags) | Command::Once(flags)) => flags.listen,
        Ok(_) => panic!("{line}: another command"),
        Err(error) => panic!("{line}: {error}"),
    }
}

#[test]
fn the_command_definition_is_valid() {
    Cli::command().debug_assert();
}

#[test]
fn flags_become_settings() {
    let flags = listen_flags(
        "once --connection-string UseDevelopmentStorage=true --queue orders --exec cat \
         --visibility 90s --retry 1s,2m --tasks-max 3 --timeout 10m",
    );
    let plan = plan::make(&Default::default(), &flags).ok().unwrap();
    let config = &plan.queues[0].config;
    assert_eq!(config.queue, "orders");
    assert_eq!(config.visibility, Duration::from_secs(90));
    assert_eq!(
        config.retry,
        [Duration::from_secs(1), Duration::from_secs(120)]
    );
    assert_eq!(
        (config.tasks.max, config.handler_timeout.as_secs()),
        (3, 600)
    );
}

#[test]
fn a_queue_of_the_file_can_be_chosen() {
    let file = toml::from_str(
        "[[listener.queue]]\nname = \"orders\"\nrate = 7\n[[listener.queue]]\nname = \"mails\"",
    )
    .unwrap();
    let planned = |line| plan::make(&file, &listen_flags(line)).ok().unwrap().queues;
    let one = planned("run --queue orders --exec cat");
    assert_eq!((one.len(), one[0].config.rate_per_s), (1, 7));
    assert_eq!(planned("run --exec cat").len(), 2);
    let none = plan::make(&Default::default(), &listen_flags("run --exec cat"));
    assert!(none.is_err());
}

/// Flags and the expected problem.
const WRONG: &str = r"
run --exec cat | no queue is named
run --queue InputQueue --exec cat | `InputQueue` is not a queue name
run --queue orders | `orders`: no handler is named: give --exec
run --queue orders --http ftp://h | `orders`: `ftp://h
run --queue orders --exec /no/such/binary | `orders`: handler.exec: `/no/such/binary` does not exist
run --queue orders --exec cat --visibility 500ms | visibility: 500ms is not
run --queue orders --exec cat --visibility 8d | 8d is not between 1s and 7d
run --queue orders --exec cat --slots 33 | slots: must be 1 to 32
run --queue orders --exec cat --tasks-min 9 --tasks-max 8 | 1 <= min <= max
run --queue orders --exec cat --health 9100 | health: `9100` is not HOST:PORT
run --queue orders,orders --exec cat | `orders`: is named twice
run --queue orders --exec cat --trigger-queue orders | trigger.queue: must differ
run --queue orders --exec cat --grace 2d | grace: 2d is not
run --queue a-1 --exec cat --max-cost-per-day inf | max_cost_per_day: must be a number of 0 or more
";

/// A file, flags, and the expected problems.
const WRONG_FILES: &[(&str, &str, &[&str])] = &[
    (
        "[[listener.queue]]\nname = \"orders\"\nhandler = { exec = \"\" }",
        "once",
        &["`orders`: handler.exec: is empty"],
    ),
    (
        "[[listener.queue]]\nname = \"orders\"\nhandler = { exec = [] }",
        "once",
        &["`orders`: handler.exec: is empty; give a program"],
    ),
    (
        "[listener]\naccount_rate = 0",
        "run --queue orders --exec cat",
        &["account_rate: must be"],
    ),
    (
        "[[listener.queue]]\nname = \"Orders\"\nslots = 0\nretry = [\"8d\"]\n\
         idle = { min = \"1s\", max = \"10ms\" }\npartitions = { count = 0, max_age = \"2h\" }\n\
         offload = { enc = \"zstd\", max = \"0B\" }\ntrigger = { queue = \"E\", every = \"1ms\" }",
        "run --tasks-min 9 --tasks-max 8 --grace 2d",
        &[
            "offload.container",
            "offload.max",
            "partitions: 0 is not",
            "partitions.max_age",
            "queue: `Orders`",
            "retry: 8d",
            "idle.max: 10ms is not between 1s",
            "grace: 2d",
            "slots: must be",
            "tasks: must",
            "trigger.queue: `E`",
            "trigger.every",
            "no handler is named",
        ],
    ),
    (
        "[[listener.queue]]\nslots = 33",
        "run --exec cat",
        &["give a queue", "slots: must be"],
    ),
    (
        "[listener]\nprice = -1.0\nmax_cost_per_day = -0.5",
        "run --queue orders --exec cat",
        &["price: must be", "max_cost_per_day: must be"],
    ),
    (
        "[[listener.queue]]\nname = \"a-1\"\nslots = 0\n[[listener.queue]]\nname = \"b-1\"",
        "run",
        &[
            "queue `a-1`: slots",
            "queue `a-1`: no handler",
            "queue `b-1`: no handler",
        ],
    ),
];

/// Each problem gets its own line with the queue's name.
#[test]
fn each_problem_names_its_queue() {
    let flags = WRONG
        .trim()
        .lines()
        .map(|row| row.split_once(" | ").unwrap());
    let flags = flags.map(|(flags, problem)| ("", flags, vec![problem]));
    let files = WRONG_FILES.iter();
    let files = files.map(|(file, flags, problems)| (*file, *flags, problems.to_vec()));
    for (file, flags, wanted) in flags.chain(files) {
        let file = toml::from_str(file).unwrap();
        let problems = plan::make(&file, &listen_flags(flags)).err().unwrap();
        let problems: Vec<String> = problems.iter().map(|p| format!("{p:#}")).collect();
        assert_eq!(problems.len(), wanted.len(), "{flags}: {problems:?}");
        for (problem, wanted) in problems.iter().zip(wanted) {
            assert!(problem.contains(wanted), "{flags}: {problem}");
            assert!(!problem.contains('\n'), "{problem}");
        }
    }
}

/// A flag wins over the file; 0 disables the budget; the default price is that of `cost`.
#[test]
fn flags_and_file_set_the_budget() {
    let file = "[listener]\nprice = 0.004\nmax_cost_per_day = 0.5\n";
    for (file, flags, wanted) in [
        ("", "", None),
        (file, "", Some((0.5, 0.004))),
        (file, " --max-cost-per-day 0.25", Some((0.25, 0.004))),
        (file, " --price 0.01", Some((0.5, 0.01))),
        (file, " --max-cost-per-day 0", None),
        ("", " --max-cost-per-day 2", Some((2.0, 0.01))),
    ] {
        let flags = listen_flags(&format!("run --queue orders --exec cat{flags}"));
        let plan = plan::make(&toml::from_str(file).unwrap(), &flags);
        let budget = plan.ok().unwrap().budget;
        let found = budget.map(|b| (b.max_cost_per_day, b.price_per_10k));
        assert_eq!(found, wanted, "{file}");
    }
}

#[test]
fn invalid_arguments_are_usage_errors() {
    for line in [
        "run --visibility soon",
        "once --exec a --http b",
        "peek --queue q --count 33",
    ] {
        assert!(parsed(line).is_err(), "{line}");
    }
}

/// Text that a hostile sender may put into a message: an escape sequence in both forms, a forged
/// log line, line separators, and a bidirectional override.
const HOSTILE: &str = "\u{1b}[31mRED\u{9b}2J\r\nERROR forged\u{85}\u{2028}\u{202e}gpj";

/// Text output contains no control characters from messages, and only an indented body starts lines
/// of its own. JSON output keeps the same document.
#[test]
fn text_output_has_no_control_characters() {
    use smalt_protocol::Timestamp;
    use smalt_protocol::terminal::steers;
    use smalt_worker::settings::{Setting, Source};
    let message = smalt_sleeve::port::QueueMessage {
        id: HOSTILE.to_owned(),
        text: HOSTILE.to_owned(),
        pop_receipt: String::new(),
        dequeue_count: 1,
        inserted: Timestamp::UNIX_EPOCH,
        expires: Timestamp::MAX,
        next_visible: None,
    };
    let setting = Setting {
        key: "handler.exec".to_owned(),
        value: HOSTILE.to_owned(),
        source: Source::Environment(HOSTILE.to_owned()),
    };
    let error = anyhow::anyhow!("{HOSTILE}").context(HOSTILE);
    for (command, text, lines) in [
        ("peek", inspect::as_text(HOSTILE, &message, HOSTILE), 3),
        (
            "poison list",
            poison::row(&message, Timestamp::UNIX_EPOCH),
            1,
        ),
        ("poison show", poison::shown(&message), 7),
        ("validate", validate::row(&setting), 1),
        ("error", exit::line(&error), 1),
    ] {
        let steering: Vec<_> = text.chars().filter(|c| steers(*c) && *c != '\n').collect();
        assert!(steering.is_empty(), "{command}: {steering:?} in {text:?}");
        assert_eq!(text.lines().count(), lines, "{command}: {text}");
        let forged = text.lines().any(|line| line.starts_with("ERROR"));
        assert!(!forged && text.contains("[31mRED"), "{command}: {text}");
    }
    let shown: serde_json::Value = serde_json::from_str(&poison::shown(&message)).unwrap();
    assert_eq!(shown["body"], HOSTILE);
}
