//! Tests of the command line itself.

use super::*;

fn listen_flags(line: &str) -> ListenFlags {
    let words = ["smalt-listener"].into_iter().chain(line.split(' '));
    match Cli::try_parse_from(words).map(|cli| cli.command) {
        Ok(Command::Run(flags) | Command::Once(flags)) => flags,
        Ok(_) => panic!("{line}: another command"),
        Err(error) => panic!("{line}: {error}"),
    }
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn flags_become_settings() {
    let flags = listen_flags(
        "once --connection-string UseDevelopmentStorage=true --queue orders --exec cat \
         --visibility 90s --retry 1s,2m --tasks-max 3 --timeout 10m",
    );
    let layers = listen::queues(&Default::default(), &flags).unwrap();
    let config = layers[0].settings("w").unwrap();
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
    let one = listen::queues(&file, &listen_flags("run --queue orders --exec cat")).unwrap();
    assert_eq!((one.len(), one[0].rate), (1, Some(7)));
    let all = listen::queues(&file, &listen_flags("run --exec cat")).unwrap();
    assert_eq!(all.len(), 2);
    assert!(listen::queues(&Default::default(), &listen_flags("run --exec cat")).is_err());
}

#[test]
fn nonsense_is_a_usage_error() {
    for line in [
        "run --visibility soon",
        "once --exec a --http b",
        "peek --queue q --count 33",
    ] {
        let words = ["smalt-listener"].into_iter().chain(line.split(' '));
        assert!(Cli::try_parse_from(words).is_err(), "{line}");
    }
}
