//! Tests of shared access signatures: vectors 7 to 11, every layout, every check.

use proptest::prelude::*;

use super::build::{AccountSas, ServiceSas, UserDelegationSas};
use super::*;
use crate::signing::AccountKey;
use crate::signing::tests::key;
use crate::uri::parse_query;
use crate::xml::user_delegation_key::UserDelegationKey;

const EXPIRY: &str = "2030-01-01T00:00:00Z";
const BLOB: SasTarget<'_> = SasTarget {
    service: Service::Blob,
    account: "devstoreaccount1",
    name: "c",
    blob: Some("b.txt"),
    snapshot: "",
};
const QUEUE: SasTarget<'_> = SasTarget {
    service: Service::Queue,
    name: "myqueue",
    blob: None,
    ..BLOB
};
const TABLE: SasTarget<'_> = SasTarget {
    service: Service::Table,
    name: "MyTable",
    ..QUEUE
};

fn sas(query: &str) -> Sas {
    Sas::parse(&parse_query(query).unwrap()).unwrap().unwrap()
}

fn refusal(query: &str) -> (u16, ErrorCode, String) {
    let error = Sas::parse(&parse_query(query).unwrap()).unwrap_err();
    (error.status(), error.code(), error.elements()[0].1.clone())
}

fn expiry() -> Timestamp {
    Timestamp::parse_iso(EXPIRY).unwrap()
}

fn account_sas(version: ApiVersion) -> AccountSas<'static> {
    AccountSas {
        version,
        account: "devstoreaccount1",
        services: "b",
        resource_types: "sco",
        permissions: "rl",
        start: None,
        expiry: expiry(),
        ip: "",
        protocol: "",
        encryption_scope: "",
    }
}

fn service_sas(
    version: ApiVersion,
    target: SasTarget<'static>,
    permissions: &'static str,
) -> ServiceSas<'static> {
    let expiry = Some(expiry());
    let (start, policy_id, ip, protocol, more) = (None, "", "", "", &[][..]);
    ServiceSas {
        version,
        target,
        permissions,
        start,
        expiry,
        policy_id,
        ip,
        protocol,
        more,
    }
}

/// Checks that a signed query parses, has this string to sign and this signature.
fn check(signed: &str, target: SasTarget<'_>, text: &str, signature: &str) {
    let read = sas(signed);
    assert_eq!(read.string_to_sign(&target), text);
    assert_eq!(read.get("sig"), signature);
    assert!(read.verify(&target, key().as_bytes()).is_ok());
    let error = read.verify(&target, b"other").unwrap_err();
    assert_eq!(
        (error.status(), error.code()),
        (403, ErrorCode::AuthenticationFailed)
    );
    assert!(!format!("{read:?}").contains(signature));
}

#[test]
fn account_vectors() {
    for (version, text, signature) in [
        (
            ApiVersion::V2019_12_12,
            "devstoreaccount1\nrl\nb\nsco\n\n2030-01-01T00:00:00Z\n\n\n2019-12-12\n",
            "GBDaZND0o/rOGOVbOfS+upxMr/WRQWFS3BX8pqdFt4s=",
        ),
        (
            ApiVersion::V2021_12_02,
            "devstoreaccount1\nrl\nb\nsco\n\n2030-01-01T00:00:00Z\n\n\n2021-12-02\n\n",
            "CHqqSZ2l/i9CZHaT+NtRAhAo7pfBrURAnowB2ECLH8Y=",
        ),
    ] {
        let signed = account_sas(version).sign(key().as_bytes());
        check(&signed, BLOB, text, signature);
        assert_eq!(sas(&signed).kind(), SasKind::Account);
    }
}

#[test]
fn service_vectors() {
    for (version, target, permissions, text, signature) in [
        (
            ApiVersion::V2021_12_02,
            BLOB,
            "r",
            "r\n\n2030-01-01T00:00:00Z\n/blob/devstoreaccount1/c/b.txt\n\n\n\n2021-12-02\nb\n\n\n\n\
             \n\n\n",
            "j3PO89Sji7n1dRJE0c88w+4rEA8CcKWOtUmH/D7INXQ=",
        ),
        (
            ApiVersion::V2018_03_28,
            QUEUE,
            "raup",
            "raup\n\n2030-01-01T00:00:00Z\n/queue/devstoreaccount1/myqueue\n\n\n\n2018-03-28",
            "C21DfUsqpklgUq0ORW9Fo7uVhluEk0M5QO5RJt9FUlc=",
        ),
        (
            ApiVersion::V2019_02_02,
            TABLE,
            "raud",
            "raud\n\n2030-01-01T00:00:00Z\n/table/devstoreaccount1/mytable\n\n\n\n2019-02-02\n\n\n\
             \n",
            "VH1kJ2dMcGJPJnFMefVZ3HMd1fedSci/031kWIgJz0w=",
        ),
    ] {
        let signed = service_sas(version, target, permissions).sign(key().as_bytes());
        check(&signed, target, text, signature);
        assert_eq!(sas(&signed).kind(), SasKind::Service);
    }
}

/// Fills every field with its own name and returns the layout as a list of names.
fn layout_of(version: Option<&str>, extra: &str, target: SasTarget<'_>) -> String {
    let sr = match version {
        Some(version) if version >= "2018-11-09" => "bs",
        _ => "b",
    };
    let mut query = "sig=x&sp=p&st=2020-01-01&se=2030-01-01&sip=SIP&spr=SPR&ses=SES\
        &rscc=CC&rscd=CD&rsce=CE&rscl=CL&rsct=CT&spk=SPK&srk=SRK&epk=EPK&erk=ERK"
        .to_owned();
    query.extend(["&sr=", sr, extra]);
    if let Some(version) = version {
        query.push_str("&sv=");
        query.push_str(version);
    }
    let target = SasTarget {
        snapshot: "SNAP",
        ..target
    };
    let mut sas = sas(&query);
    sas.bind(
        |name| (name == "RH").then_some("1"),
        |name| (name == "RQ").then_some("2"),
    );
    sas.string_to_sign(&target).replace('\n', " ")
}

#[test]
fn service_layouts_of_every_version() {
    let head = "p 2020-01-01 2030-01-01";
    let old = "/devstoreaccount1/c/b.txt SI";
    let new = "/blob/devstoreaccount1/c/b.txt SI";
    for (version, expected) in [
        (None, old.to_owned()),
        (Some("2012-02-12"), format!("{old} 2012-02-12")),
        (
            Some("2013-08-15"),
            format!("{old} 2013-08-15 CC CD CE CL CT"),
        ),
        (
            Some("2015-02-21"),
            format!("{new} 2015-02-21 CC CD CE CL CT"),
        ),
        (
            Some("2015-04-05"),
            format!("{new} SIP SPR 2015-04-05 CC CD CE CL CT"),
        ),
        (
            Some("2018-11-09"),
            format!("{new} SIP SPR 2018-11-09 bs SNAP CC CD CE CL CT"),
        ),
        (
            Some("2020-12-06"),
            format!("{new} SIP SPR 2020-12-06 bs SNAP SES CC CD CE CL CT"),
        ),
        (
            Some("2027-03-07"),
            format!("{new} SIP SPR 2027-03-07 bs SNAP SES CC CD CE CL CT"),
        ),
    ] {
        assert_eq!(
            layout_of(version, "&si=SI", BLOB),
            format!("{head} {expected}")
        );
    }
    for (version, expected) in [
        ("2012-02-12", "/devstoreaccount1/myqueue SI 2012-02-12"),
        ("2014-02-14", "/devstoreaccount1/myqueue SI 2014-02-14"),
        (
            "2015-04-05",
            "/queue/devstoreaccount1/myqueue SI SIP SPR 2015-04-05",
        ),
        (
            "2026-10-06",
            "/queue/devstoreaccount1/myqueue SI SIP SPR 2026-10-06",
        ),
    ] {
        assert_eq!(
            layout_of(Some(version), "&si=SI", QUEUE),
            format!("{head} {expected}")
        );
        let table = expected
            .replace("queue/", "table/")
            .replace("myqueue", "mytable");
        let table = format!("{head} {table} SPK SRK EPK ERK");
        assert_eq!(layout_of(Some(version), "&si=SI", TABLE), table);
    }
}

#[test]
fn user_delegation_layouts_of_every_version() {
    let extra = "&skoid=OID&sktid=TID&skt=2020-01-01&ske=2030-01-01&sks=KS&skv=KV&saoid=AO&suoid=UO\
        &scid=CID&skdutid=DU&sduoid=DO&srh=RH&srq=RQ";
    let key = "OID TID 2020-01-01 2030-01-01 KS KV";
    let head = format!("p 2020-01-01 2030-01-01 /blob/devstoreaccount1/c/b.txt {key}");
    for (version, middle, scope) in [
        ("2018-11-09", "", ""),
        ("2020-02-10", " AO UO CID", ""),
        ("2020-12-06", " AO UO CID", " SES"),
        ("2025-07-05", " AO UO CID DU DO", " SES"),
        ("2026-04-06", " AO UO CID DU DO", " SES RH:1   RQ:2"),
    ] {
        let text = layout_of(Some(version), extra, BLOB);
        let tail = format!("SIP SPR {version} bs SNAP{scope} CC CD CE CL CT");
        assert_eq!(text, format!("{head}{middle} {tail}"));
    }
    let queue = layout_of(Some("2026-04-06"), extra, QUEUE);
    let head = format!("p 2020-01-01 2030-01-01 /queue/devstoreaccount1/myqueue {key}");
    assert_eq!(queue, format!("{head} DU DO SIP SPR 2026-04-06"));
}

#[test]
fn signed_resources() {
    let blob = SasTarget {
        blob: Some("x/y/z"),
        ..BLOB
    };
    for (sr, expected) in [
        ("b", "/blob/devstoreaccount1/c/x/y/z"),
        ("c", "/blob/devstoreaccount1/c"),
        ("d&sdd=2", "/blob/devstoreaccount1/c/x/y"),
        ("d&sdd=9", "/blob/devstoreaccount1/c/x/y/z"),
        ("d&sdd=0", "/blob/devstoreaccount1/c"),
        ("d&sdd=a", "/blob/devstoreaccount1/c"),
    ] {
        let text = sas(&format!("sig=x&sp=r&se=2030-01-01&sv=2021-12-02&sr={sr}"));
        let text = text.string_to_sign(&blob);
        assert_eq!(text.split('\n').nth(3), Some(expected), "{sr}");
    }
}

#[test]
fn missing_and_malformed_fields_are_rejected() {
    let malformed = "Signature fields not well formed.";
    for (query, detail) in [
        (
            "sig=x&ss=b&srt=o&sp=r&se=2030-01-01",
            "sv is mandatory. Cannot be empty",
        ),
        (
            "sig=x&sv=2021-12-02&ss=b&sp=r&se=2030-01-01",
            "srt is mandatory. Cannot be empty",
        ),
        (
            "sig=x&sv=2021-12-02&sr=b&sp=r",
            "se is mandatory. Cannot be empty",
        ),
        (
            "sig=x&sv=2021-12-02&sr=b&se=2030-01-01",
            "sp is mandatory. Cannot be empty",
        ),
        ("sig=x&sv=2021-12-03&sr=b&sp=r&se=2030-01-01", malformed),
        ("sig=x&sv=&sr=b&sp=r&se=2030-01-01", malformed),
        ("sig=x&sv=2021-12-02&sr=b&sp=rr&se=2030-01-01", malformed),
        ("sig=x&sv=2021-12-02&sr=b&sp=r&se=tomorrow", malformed),
        // A kind of SAS that its version does not support.
        (
            "sig=x&sv=2015-02-21&ss=b&srt=o&sp=r&se=2030-01-01",
            malformed,
        ),
        ("sig=x&sv=2018-03-28&sr=bs&sp=r&se=2030-01-01", malformed),
        ("sig=x&sv=2019-07-07&sr=bv&sp=r&se=2030-01-01", malformed),
        (
            "sig=x&sv=2019-12-12&sr=d&sdd=1&sp=r&se=2030-01-01",
            malformed,
        ),
        (
            "sig=x&sv=2018-03-28&sr=b&sp=r&se=2030-01-01&skoid=o&sktid=t&skt=2020-01-01\
             &ske=2030-01-01&sks=b&skv=2018-11-09",
            malformed,
        ),
        (
            "sig=x&sv=2020-02-10&sr=d&sp=r&se=2030-01-01",
            "sdd is mandatory. Cannot be empty",
        ),
        (
            "sig=x&sv=2021-12-02&sr=b&sp=r&se=2030-01-01&sp=w",
            malformed,
        ),
    ] {
        let expected = (403, ErrorCode::AuthenticationFailed, detail.to_owned());
        assert_eq!(refusal(query), expected, "{query}");
    }
    assert!(
        Sas::parse(&parse_query("sv=2021-12-02&sr=b").unwrap())
            .unwrap()
            .is_none()
    );
    let stored = sas("sig=x&sv=2019-02-02&sr=b&si=policy");
    assert_eq!(stored.policy_id(), Some("policy"));
    assert_eq!((stored.start(), stored.expiry()), (None, None));
    assert!(stored.permissions().is_empty());
}

#[test]
fn the_window_includes_its_start_and_excludes_its_expiry() {
    let at = |s| Some(Timestamp::from_unix_s(s));
    let now = Timestamp::from_unix_s(100);
    for (start, expiry, valid) in [
        (None, at(101), true),
        (at(100), at(101), true),
        (at(101), at(102), false),
        (at(99), at(100), false),
        (None, at(100), false),
        (at(99), at(98), false),
        (None, None, true),
    ] {
        assert_eq!(check_window(start, expiry, now).is_ok(), valid);
    }
    for (start, expiry, detail) in [
        (
            at(101),
            at(102),
            "Signature not valid in the specified time frame: Start [",
        ),
        (None, at(99), "Signed expiry time ["),
        (at(98), at(97), "Signed expiry time ["),
    ] {
        let error = check_window(start, expiry, now).unwrap_err();
        assert_eq!(error.code(), ErrorCode::AuthenticationFailed);
        assert!(error.elements()[0].1.starts_with(detail), "{error:?}");
    }
}

#[test]
fn a_user_delegation_sas_verifies_with_its_signature() {
    let delegated = UserDelegationKey {
        object_id: "o".to_owned(),
        tenant_id: "t".to_owned(),
        start: "2029-12-31T00:00:00Z".to_owned(),
        expiry: "2030-01-02T00:00:00Z".to_owned(),
        service: "b".to_owned(),
        version: "2026-04-06".to_owned(),
        value: AccountKey::parse("a2V5").unwrap(),
    };
    let built = UserDelegationSas {
        version: ApiVersion::V2021_12_02,
        target: BLOB,
        permissions: "r",
        start: None,
        expiry: expiry(),
        protocol: "https",
        key: &delegated,
    };
    let read = sas(&built.sign());
    assert_eq!(read.kind(), SasKind::UserDelegation);
    assert_eq!(
        read.string_to_sign(&BLOB),
        "r\n\n2030-01-01T00:00:00Z\n/blob/devstoreaccount1/c/b.txt\no\nt\n2029-12-31T00:00:00Z\n\
         2030-01-02T00:00:00Z\nb\n2026-04-06\n\n\n\n\nhttps\n2021-12-02\nb\n\n\n\n\n\n\n"
    );
    assert!(read.verify(&BLOB, b"key").is_ok());
    assert!(read.verify(&BLOB, b"other").is_err());
    let container = SasTarget { blob: None, ..BLOB };
    let whole = UserDelegationSas {
        target: container,
        ..built
    };
    assert_eq!(sas(&whole.sign()).get("sr"), "c");
}

#[test]
fn a_user_delegation_key_is_valid_only_in_its_window() {
    let sas = sas(
        "sig=x&sv=2020-02-10&sr=b&sp=r&se=2030-01-01&skoid=o&sktid=t\
        &skt=2020-01-01&ske=2020-01-03&sks=b&skv=2020-02-10",
    );
    for (now, valid) in [
        ("2019-12-31T23:59:59Z", false),
        ("2020-01-01", true),
        ("2020-01-02T23:59:59Z", true),
        ("2020-01-03", false),
    ] {
        let checked = sas.check_key_window(Timestamp::parse_iso(now).unwrap());
        assert_eq!(checked.is_ok(), valid, "{now}");
        if let Err(error) = checked {
            let detail = &error.elements()[0].1;
            assert!(detail.starts_with("Signature not valid in the specified key time frame: Key"));
        }
    }
}

#[test]
fn addresses_and_protocols() {
    use ErrorCode::{
        AuthenticationFailed, AuthorizationProtocolMismatch, AuthorizationSourceIPMismatch,
    };
    let base = "sig=x&sv=2021-12-02&sr=b&sp=r&se=2030-01-01";
    for (sip, client, expected) in [
        ("", "1.2.3.4", None),
        ("1.2.3.4", "1.2.3.4", None),
        ("1.2.3.4", "::ffff:1.2.3.4", None),
        ("1.2.3.4", "1.2.3.5", Some(AuthorizationSourceIPMismatch)),
        ("1.2.3.0-1.2.3.9", "1.2.3.9", None),
        (
            "1.2.3.0-1.2.3.9",
            "1.2.3.10",
            Some(AuthorizationSourceIPMismatch),
        ),
        (
            "1.2.3.0-1.2.3.9",
            "::1",
            Some(AuthorizationSourceIPMismatch),
        ),
        ("nowhere", "1.2.3.4", Some(AuthenticationFailed)),
    ] {
        let result = sas(&format!("{base}&sip={sip}")).check_ip(client.parse().unwrap());
        assert_eq!(result.err().map(|e| e.code()), expected, "{sip} {client}");
    }
    for (spr, is_https, expected) in [
        ("", false, None),
        ("https", true, None),
        ("https", false, Some(AuthorizationProtocolMismatch)),
        ("https,http", false, None),
        ("http", false, Some(AuthenticationFailed)),
    ] {
        let result = sas(&format!("{base}&spr={spr}")).check_protocol(is_https);
        assert_eq!(result.err().map(|e| e.code()), expected, "{spr}");
    }
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_rejected(
        sv in "(2021-12-02|.{0,10})", sp in "[a-z]{0,4}", rest in "[a-z&=0-9%-]{0,40}",
    ) {
        let raw = format!("sig=x&sv={sv}&sp={sp}&{rest}");
        if let Ok(query) = parse_query(&raw) && let Ok(Some(sas)) = Sas::parse(&query) {
            let _ = sas.verify(&BLOB, b"key");
            let _ = sas.check_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
    }
}

/// The suffix is all of the SAS and nothing else, or there is none.
#[test]
fn suffix_has_every_field_and_nothing_else() {
    for (raw, expected) in [
        ("sp=r&sig=s", Some("sp=r&sig=s")),
        ("comp=list&&sp=r&sig=s", Some("sp=r&sig=s")),
        ("comp=list", None),
        ("", None),
        ("sp=r&sig=s&comp=list", None),
        ("sp=r&comp=list&sig=s", None),
        ("SP=w&sp=r&sig=s", None),
        ("%73p=w&sp=r&sig=s", None),
        ("sp=r&%73ig=s", None),
        ("sp=r&sig=s&", None),
    ] {
        let query = crate::uri::parse_query(raw).unwrap();
        assert_eq!(suffix(raw, &query), expected, "{raw}");
    }
}
