//! Tests of precedence, strictness and secrets.

use std::time::Duration;

use smalt_sleeve::Identity;
use smalt_sleeve::port::BlobId;

use super::*;
use crate::config::{Collision, StateBackend};

const FILE: &str = r#"
[account.default]
connection_string = "env:CONN"
[account.archive]
name = "archive"
key = "file:/run/secrets/key"
[sweeper]
every = "1h"
page_size = 500
containers = ["events", "logs/app/"]
ttl_formats = ["rfc3339", "dd.MM.yyyy HH:mm:ss"]
[sweeper.dead]
account = "archive"
on_collision = "suffix"
[sweeper.guard]
max_per_cycle = 10
protect = ["legal/**"]
[[sweeper.rule]]
container = "logs"
older_than = "30d"
exclude = ["**/keep/*"]
[[sweeper.container]]
name = "extra"
account = "archive"
"#;

fn env(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect()
}

fn text(value: &str) -> Value {
    Value::String(value.to_owned())
}

#[test]
fn the_file_is_read_whole() {
    let settings = gather(Some(FILE), [], []).unwrap();
    let sweeper = &settings.sweeper;
    assert_eq!(sweeper.schedule.every, Duration::from_secs(3_600));
    assert_eq!(sweeper.containers.len(), 3);
    assert_eq!(sweeper.containers[1].prefix, "app/");
    assert_eq!(sweeper.containers[2].account, "archive");
    assert_eq!(sweeper.dead.on_collision, Collision::Suffix);
    assert_eq!(sweeper.guard.max_per_cycle, 10);
    assert_eq!(sweeper.policy.ttl_formats.len(), 2);
    assert_eq!(
        sweeper.policy.rules[0].older_than,
        Duration::from_secs(30 * 86_400)
    );
    assert_eq!(
        settings.accounts["archive"].key,
        Some(Secret::File("/run/secrets/key".to_owned()))
    );
}

#[test]
fn flag_wins_over_environment_over_file_over_default() {
    let with = |vars: &[(&str, &str)], flags: Vec<(&'static str, Value)>| {
        gather(Some(FILE), env(vars), flags).unwrap().sweeper
    };
    assert_eq!(gather(None, [], []).unwrap().sweeper.page_size, 1_000);
    assert_eq!(with(&[], vec![]).page_size, 500);
    let vars = [
        ("SWEEPER_PAGE_SIZE", "200"),
        ("SWEEPER_STATE_BACKEND", "etag"),
    ];
    assert_eq!(with(&vars, vec![]).page_size, 200);
    assert_eq!(with(&vars, vec![]).backend, StateBackend::Etag);
    let flags = vec![("sweeper.page_size", Value::Integer(100))];
    assert_eq!(with(&vars, flags).page_size, 100);
    let approved = with(&[], vec![("sweeper.guard.approve", Value::Boolean(true))]);
    assert_eq!(approved.guard.max_per_cycle, 0);
    assert_eq!(approved.policy.protect, ["legal/**"]);
}

/// An account given by flags does not take over the connection string of another source.
#[test]
fn accounts_are_never_mixed() {
    let vars = env(&[(
        "AZURE_STORAGE_CONNECTION_STRING",
        "UseDevelopmentStorage=true",
    )]);
    let plain = gather(None, vars.clone(), []).unwrap();
    assert!(plain.accounts["default"].connection_string.is_some());
    let flags = [
        ("account.default.name", text("acct")),
        ("account.default.sas", text("sig=x")),
    ];
    let settings = gather(None, vars, flags).unwrap();
    let account = &settings.accounts["default"];
    assert_eq!(account.connection_string, None);
    assert_eq!(account.name.as_deref(), Some("acct"));
}

/// An account opens by name and identity; an unknown identity is rejected, and the output shows
/// which one is used.
#[test]
fn an_identity_opens_an_account() {
    let file = "[account.default]\nname = \"acct\"\nauth = \"managed-identity\"";
    let (settings, values) = effective(Some(file), [], []).unwrap();
    let account = &settings.accounts["default"];
    assert_eq!(account.auth, Some(Identity::ManagedIdentity));
    let shown = values.iter().find(|v| v.key == "account.default.auth");
    let shown = shown.map(|v| (v.value.as_str(), v.source.to_string()));
    assert_eq!(shown, Some(("managed-identity", "file".to_owned())));
    let wrong = gather(Some(&file.replace("managed-", "")), [], []).unwrap_err();
    assert!(wrong.to_string().contains("identity"), "{wrong}");
    let vars = env(&[(
        "AZURE_STORAGE_CONNECTION_STRING",
        "UseDevelopmentStorage=true",
    )]);
    let flags = [
        ("account.default.name", text("acct")),
        ("account.default.auth", text("entra")),
    ];
    let settings = gather(None, vars, flags).unwrap();
    let account = &settings.accounts["default"];
    assert_eq!(
        (account.auth, &account.connection_string),
        (Some(Identity::Entra), &None)
    );
}

#[test]
fn invalid_values_are_rejected_with_messages() {
    for (file, part) in [
        ("[sweeper.guard]\nmax_fraction = 1.5", "max_fraction"),
        (
            "[[sweeper.rule]]\ncontainer = \"logs\"\ntag = \"tmp\"",
            "key=value",
        ),
        (
            "[[sweeper.rule]]\ncontainer = \"logs\"\nlarger_than = \"5\"",
            "invalid size `5`",
        ),
        (
            "[[sweeper.rule]]\ncontainer = \"logs\"\nlarger_than = \"5B\"\nsmaller_than = \"6B\"",
            "matches no blob",
        ),
        ("[sweeper\n", "line 1"),
    ] {
        let error = gather(Some(file), [], []).unwrap_err();
        assert!(error.to_string().contains(part), "{file}: {error}");
    }
    assert!(gather(None, env(&[("SWEEPER_PORT", "tcp://10.0.0.1")]), []).is_ok());
}

/// SS9: inline secrets are rejected, and no debug output or error shows a secret.
#[test]
fn inline_secrets_are_rejected_and_never_shown() {
    for (field, value) in [
        ("key", "Zm9v"),
        ("sas", "sig=abc"),
        ("connection_string", "AccountKey=Zm9v"),
    ] {
        let file = format!("[account.x]\n{field} = \"{value}\"");
        let error = gather(Some(&file), [], []).unwrap_err();
        assert!(
            error.to_string().contains("env:NAME") && !error.to_string().contains(value),
            "{error}"
        );
        let allowed = format!("allow_inline_secrets = true\n{file}");
        let settings = gather(Some(&allowed), [], []).unwrap();
        assert!(!format!("{settings:?}").contains(value));
    }
    let dev = "[account.default]\nconnection_string = \"UseDevelopmentStorage=true\"";
    assert!(gather(Some(dev), [], []).is_ok());
}

/// S15: the state document by the URI of its blob with a SAS, which no output shows.
#[test]
fn s15_the_state_is_a_place_or_the_uri_of_a_blob() {
    let uri = "https://acct.blob.core.windows.net/jobs/TimeToLiveBlobs?sp=rwdl&sig=S3cret";
    let vars = || env(&[("SWEEPER_STATE", uri)]);
    let (settings, values) = effective(None, vars(), []).unwrap();
    let sweeper = &settings.sweeper;
    let place = (sweeper.state_account.as_str(), &sweeper.state_blob);
    assert_eq!(place, ("state", &BlobId::new("jobs", "TimeToLiveBlobs")));
    let access = &settings.accounts["state"];
    assert_eq!(access.name.as_deref(), Some("acct"));
    assert!(access.sas.is_some() && !format!("{settings:?}{values:?}").contains("S3cret"));
    let sas = values
        .iter()
        .find(|v| v.key == "account.state.sas")
        .unwrap();
    let shown = (sas.value.as_str(), sas.source.to_string());
    assert_eq!(shown, ("***", "SWEEPER_STATE".to_owned()));
    let named = [("sweeper.state_account", text("default"))];
    assert!(gather(None, vars(), named).is_err());
    let file = format!("[sweeper]\nstate = \"{uri}\"");
    for wrong in [
        gather(Some(&file), [], []),
        gather(
            None,
            env(&[("SWEEPER_STATE", "ftp://acct/jobs?sig=S3cret")]),
            [],
        ),
    ] {
        let error = wrong.unwrap_err().to_string();
        assert!(!error.contains("S3cret"), "{error}");
    }
}

#[test]
fn a_place_for_dead_blobs_implies_an_account() {
    let flags = [("sweeper.dead.container", text("dbc/"))];
    let settings = gather(None, [], flags).unwrap();
    assert_eq!(settings.sweeper.dead.account.as_deref(), Some("default"));
    assert_eq!(gather(None, [], []).unwrap().sweeper.dead.account, None);
}

/// Every value is listed once with its source, and no secret is shown.
#[test]
fn values_have_sources() {
    let file = "allow_inline_secrets = true\n\
        [account.archive]\nname = \"archive\"\nkey = \"c2VjcmV0\"\n\
        [sweeper]\nevery = \"1h\"\npage_size = 7\ncontainers = [\"events\"]\n\
        [sweeper.guard]\nmax_per_cycle = 5\n\
        [[sweeper.rule]]\ncontainer = \"logs\"\nolder_than = \"30d\"\n";
    let env = env(&[
        ("SWEEPER_EVERY", "2h"),
        ("AZURE_STORAGE_CONNECTION_STRING", "AccountKey=S3"),
    ]);
    let flags = [("sweeper.page_size", Value::Integer(9))];
    let (settings, values) = effective(Some(file), env, flags).unwrap();
    assert_eq!(settings.sweeper.page_size, 9);
    let keys: std::collections::BTreeSet<_> = values.iter().map(|v| &v.key).collect();
    assert_eq!(keys.len(), values.len());
    for (key, value, source) in [
        ("sweeper.every", "2h", "SWEEPER_EVERY"),
        ("sweeper.page_size", "9", "flag"),
        ("sweeper.containers", "events/", "file"),
        ("sweeper.guard.max_per_cycle", "5", "file"),
        ("sweeper.rule", "logs/ older than 30d", "file"),
        ("sweeper.parallelism", "15", "default"),
        ("sweeper.dead.index_tags", "keep", "default"),
        ("account.archive.key", "***", "file"),
        (
            "account.default.connection_string",
            "***",
            "AZURE_STORAGE_CONNECTION_STRING",
        ),
    ] {
        let found = values.iter().find(|v| v.key == key).unwrap();
        assert_eq!(
            (found.value.as_str(), found.source.to_string().as_str()),
            (value, source)
        );
    }
    assert!(!format!("{values:?}").contains("c2VjcmV0"));
}

/// Allowed destinations come from every layer and imply an account for dead blobs.
#[test]
fn destinations_are_allowed_by_flag_environment_and_file() {
    let file = "[sweeper.dead]\nallow = [\"a-*\"]";
    let vars = env(&[("SWEEPER_DEAD_ALLOW", "one, two")]);
    let list = |names: &[&str]| Value::Array(names.iter().map(|name| text(name)).collect());
    let flag = [("sweeper.dead.allow", list(&["dead"]))];
    let allow = |settings: Settings| settings.sweeper.policy.allow;
    assert!(allow(gather(None, [], []).unwrap()).is_empty());
    assert_eq!(allow(gather(Some(file), [], []).unwrap()), ["a-*"]);
    assert_eq!(
        allow(gather(Some(file), vars.clone(), []).unwrap()),
        ["one", "two"]
    );
    let by_flag = gather(Some(file), vars, flag.clone()).unwrap();
    assert_eq!(by_flag.sweeper.dead.account.as_deref(), Some("default"));
    assert_eq!(allow(by_flag), ["dead"]);
    let compat = ("sweeper.profile", text("compat"));
    let open = gather(None, [], [compat.clone()]).unwrap();
    assert_eq!(
        (&open.sweeper.policy.allow, &open.sweeper.dead.account),
        (&vec!["*".into()], &None)
    );
    assert!(open.sweeper.policy.allows_any());
    let [flag] = flag;
    assert!(
        !gather(None, [], [compat, flag])
            .unwrap()
            .sweeper
            .policy
            .allows_any()
    );
}

/// The operator's own destinations are restricted like those of blobs.
#[test]
fn website_and_state_are_never_destinations() {
    for dead in ["$web/old/", "$root", "smalt-sweeper", "smalt-sweeper/x"] {
        let error = gather(None, [], [("sweeper.dead.container", text(dead))]).unwrap_err();
        assert!(
            error.to_string().contains("never a destination"),
            "{dead} {error}"
        );
    }
    let elsewhere = [
        ("sweeper.dead.container", text("smalt-sweeper/x")),
        ("sweeper.dead.account", text("dead")),
    ];
    assert!(gather(None, [], elsewhere).is_ok());
}

/// The `compat` profile sets the defaults of the original design; explicit values override it.
#[test]
fn compat_is_the_original_design() {
    let profile = ("sweeper.profile", text("compat"));
    let settings = gather(None, [], [profile.clone()]).unwrap();
    assert_eq!(settings.sweeper.page_size, 100);
    assert_eq!(settings.sweeper.dead.on_collision, Collision::Overwrite);
    let said = [profile, ("sweeper.dead.on_collision", text("fail"))];
    let settings = gather(None, [], said).unwrap();
    assert_eq!(settings.sweeper.dead.on_collision, Collision::Fail);
}

/// A budget of 0 means none; the price is that of all other estimates.
#[test]
fn a_budget_has_the_configured_price() {
    let file = "[sweeper.guard]\nmax_cost_per_day = 0.5\n\
                [sweeper.prices]\nper_10k_transactions = 0.05";
    let read = |file: &str, flags: Vec<(&'static str, Value)>| {
        let none: [(String, String); 0] = [];
        gather(Some(file), none, flags).map(|settings| settings.sweeper.budget)
    };
    let budget = read(file, vec![]).unwrap().unwrap();
    assert_eq!(budget.max_cost_per_day, 0.5);
    assert_eq!(budget.price_per_10k, 0.05);
    let flag = |max| vec![("sweeper.guard.max_cost_per_day", Value::Float(max))];
    let lower = read(file, flag(0.25)).unwrap().unwrap();
    assert_eq!(lower.max_cost_per_day, 0.25);
    assert_eq!(read(file, flag(0.0)).unwrap(), None);
    let refused = read(file, flag(-1.0)).unwrap_err().to_string();
    assert!(refused.contains("max_cost_per_day"), "{refused}");
}

/// A rule may match a tag and size bounds instead of an age.
#[test]
fn rules_by_tag_and_size() {
    let file = "[[sweeper.rule]]\ncontainer = \"logs\"\ntag = \"kind=a=b\"\n\
        larger_than = \"1KiB\"\nsmaller_than = \"2MiB\"\n";
    let read = gather(Some(file), [], []).unwrap().sweeper.policy.rules;
    let rule = &read[0];
    assert_eq!(rule.tag, Some(("kind".to_owned(), "a=b".to_owned())));
    assert_eq!(
        (rule.larger_than, rule.smaller_than),
        (Some(1 << 10), Some(2 << 20))
    );
    assert!(rule.older_than.is_zero());
    let shown = "logs/ tagged kind=a=b larger than 1.0 KiB smaller than 2.0 MiB";
    assert_eq!(rule.to_string(), shown);
}

/// Every fault is reported with its place: structure, environment, invalid values and inconsistent
/// combinations. Valid values next to them are not reported.
#[test]
fn all_faults_are_reported() {
    let file = r#"
        sweepr = 1
        [account.x]
        key = "Zm9v"
        nam = "x"
        [account.y]
        sas = "sig=abc"
        [swept]
        every = "1h"
        page_size = 5
        [sweeper]
        every = "soon"
        page_size = 6000
        lease = "5s"
        align = true
        state = "x"
        containers = ["UPPER", "events", "events/a", "logs", "logs"]
        ttl_formats = ["us", "rfc3339"]
        health = "nowhere"
        [sweeper.dead]
        on_collision = "maybe"
        [[sweeper.rule]]
        container = "logs"
        [[sweeper.rule]]
        container = "logs"
        older = "1d"
        [[sweeper.rule]]
        container = "logs"
        older_than = "1d"
        dead = "dbc"
        [connection]
        connect_to = "here"
    "#;
    let env = env(&[("SWEEPER_RATE", "fast"), ("SWEEPER_SEED", "many")]);
    let flags = [("sweeper.metrics", text("there"))];
    let faults = gather(Some(file), env, flags).unwrap_err().faults;
    let expected = [
        "account.x.key holds a secret",
        "account.y.sas holds a secret",
        "SWEEPER_RATE must be a number",
        "SWEEPER_SEED must be a number",
        "account.x.nam: unknown field `nam`",
        "swept: unknown field `swept`",
        "sweepr: unknown field `sweepr`",
        "sweeper.every: `soon` is not a duration",
        "sweeper.dead.on_collision: unknown variant `maybe`",
        "sweeper.rule 2: unknown field `older`",
        "connect_to: `here` is not ADDRESS:PORT",
        "`UPPER` is not a container name",
        "ttl_formats: ",
        "the rule for logs/ matches every blob; give older_than, tag",
        "state: `x` is not CONTAINER/BLOB",
        "lease must be",
        "page_size must be",
        "health: `nowhere`",
        "metrics: `there`",
        "events/ and events/a overlap",
        "logs/ is named twice",
        "moves to `dbc`",
    ];
    for part in expected {
        let found = faults
            .iter()
            .filter(|fault| fault.starts_with(part) || fault.contains(part));
        assert_eq!(found.count(), 1, "{part}: {faults:#?}");
    }
    assert_eq!(faults.len(), expected.len(), "{faults:#?}");
}

/// Errors are rejected; warnings are found but do not prevent a run.
#[test]
fn errors_are_rejected_and_warnings_found() {
    let rule = "[[sweeper.rule]]\ncontainer = \"logs\"\nprefix = \"app/\"\nolder_than = \"1d\"\n";
    let dead = format!("{rule}dead = \"x/\"\n");
    let swept = |text: &str| format!("[sweeper]\ncontainers = [{text}]\n");
    for (file, part) in [
        (
            swept("\"events/a/\", \"events\""),
            "events/a/ and events/ overlap",
        ),
        (
            "[sweeper]\nmetrics = \"host:99999\"".to_owned(),
            "metrics: `host:99999`",
        ),
        ("[sweeper]\nmetrics = \":80\"".to_owned(), "ADDRESS:PORT"),
    ] {
        let error = gather(Some(&file), [], []).unwrap_err();
        assert!(error.to_string().contains(part), "{file}: {error}");
    }
    for file in [
        format!("[sweeper.dead]\naccount = \"default\"\n{dead}"),
        swept("\"events/a/\", \"events/b/\", \"logs\""),
        "[sweeper]\nhealth = \"localhost:9100\"\nmetrics = \"[::1]:0\"".to_owned(),
    ] {
        assert!(gather(Some(&file), [], []).is_ok(), "{file}");
    }
    for (containers, count) in [
        ("", 0),
        ("\"logs\"", 0),
        ("\"logs/app/x/\"", 0),
        ("\"logs/web/\"", 1),
        ("\"events\"", 1),
    ] {
        let file = format!("{}{rule}", swept(containers));
        let config = gather(Some(&file), [], []).unwrap().sweeper;
        assert_eq!(findings(&config).len(), count, "{containers}");
    }
}
