//! Tests of the flags.

use std::ffi::OsString;

use super::super::Cli;
use super::*;

fn read(arguments: &str) -> Result<Flags, clap::Error> {
    let all = ["smalt"].into_iter().chain(arguments.split_whitespace());
    Ok(Cli::read(all.map(OsString::from))?.flags)
}

#[test]
fn azurite_flags_are_accepted() {
    let flags = read(
        "--silent --location /tmp/x --blobHost 0.0.0.0 --blobPort 0 --queueHost localhost \
         --queuePort 1 --tableHost ::1 --tablePort 2 --loose --skipApiVersionCheck \
         --disableProductStyleUrl --inMemoryPersistence --debug debug.log \
         --copySourceAllow public,none --copy-source-allow 10.1.0.0/16",
    )
    .unwrap();
    assert_eq!(flags.copy_source_allow.len(), 3);
    assert_eq!(flags.endpoint(Service::Blob), ("0.0.0.0", 0));
    assert_eq!(flags.endpoint(Service::Queue), ("localhost", 1));
    assert_eq!(flags.endpoint(Service::Table), ("::1", 2));
    assert!(flags.config().unwrap().allowed_hosts.is_empty());
    let flags_of_hosts = read("--allowHost a.example,*.b.example --allow-host *").unwrap();
    assert_eq!(flags_of_hosts.config().unwrap().allowed_hosts.len(), 3);
    assert!(read("--allowHost http://a.example").is_err());
    assert!(!flags.config().unwrap().host_style);
}

#[test]
fn oauth_needs_https_and_debug_hides_secrets() {
    let parse = |more: &str| read(&format!("--oauth Basic {more}"));
    assert!(parse("").unwrap().config().is_err());
    for https in ["--devCert", "--cert c --key k"] {
        assert_eq!(parse(https).unwrap().config().unwrap().oauth, OAuth::Basic);
    }
    assert!(parse("--cert c --key k --devCert d").is_err());
    assert!(read("--cert c.pfx --pwd p").is_ok_and(|flags| flags.is_https()));
    for incomplete in ["--cert c", "--key k", "--pwd p"] {
        assert!(read(incomplete).is_err(), "{incomplete}");
    }
    let alone = read("--oauth --devCert").unwrap();
    assert_eq!(alone.config().unwrap().oauth, OAuth::Basic);
    assert!(read("--oauth full --devCert").is_err());
    let verified = read("--oauth verified --devCert").unwrap();
    assert_eq!(verified.config().unwrap().oauth, OAuth::Verified);
    assert!(read("--oauthKeys k").is_err());
    for unusable in ["--oauth basic", "--oauth verified"] {
        let flags = read(&format!("{unusable} --oauthKeys no-such-file --devCert")).unwrap();
        assert!(flags.config().is_err(), "{unusable}");
    }
    let flags =
        read("--accounts one:c2VjcmV0 --controlToken hidden --cert c --pwd hidden").unwrap();
    let shown = format!("{flags:?}");
    assert!(
        !shown.contains("c2VjcmV0") && !shown.contains("hidden"),
        "{shown}"
    );
}

#[test]
fn extent_memory_limit_is_in_megabytes() {
    let limit = |text: &str| {
        read(&format!("--inMemoryPersistence --extentMemoryLimit {text}"))
            .map(|flags| flags.extent_memory_limit)
    };
    let sizes = [
        ("100", 104_857_600),
        ("100.0", 104_857_600),
        ("0.5", 524_288),
    ];
    for (text, bytes) in sizes {
        assert_eq!(limit(text).unwrap(), Some(bytes), "{text}");
    }
    for bad in ["-1", "many", "inf", "NaN"] {
        assert!(limit(bad).is_err(), "{bad}");
    }
    assert!(read("--extentMemoryLimit 100").is_err());
}

#[test]
fn keep_alive_is_in_seconds_and_per_service() {
    let flags = read("--blobKeepAliveTimeout 7 --queueKeepAliveTimeout 0").unwrap();
    let kept = Service::ALL.map(|service| flags.keep_alive(service));
    assert_eq!(kept, [Some(Duration::from_secs(7)), None, None]);
}

#[test]
fn account_flags_apply_to_every_account() {
    let flags = read("--accounts one:a2V5;two:a2V5 --versioning --containerRetentionDays 7");
    let config = flags.unwrap().config().unwrap();
    for account in config.accounts.values() {
        assert!(account.settings.versioning && !account.settings.last_access_tracking);
        assert_eq!(account.settings.container_retention_days, Some(7));
    }
    for days in ["0", "366", "many"] {
        let bad = read(&format!("--containerRetentionDays {days}"));
        assert!(bad.is_err(), "{days}");
    }
}

#[test]
fn being_deleted_seconds_are_at_most_one_day() {
    let seconds = |more: &str| read(more).unwrap().config().unwrap().being_deleted_s;
    assert_eq!(seconds(""), 0);
    assert_eq!(seconds("--beingDeletedSeconds 40"), 40);
    for bad in ["-1", "86401", "long"] {
        let bad = read(&format!("--beingDeletedSeconds {bad}"));
        assert!(bad.is_err());
    }
}
