//! Service SAS that no case builds, and callers of other addresses and schemes.

use smalt::AccountSettings;
use smalt_protocol::ApiVersion;
use smalt_protocol::signing::sas::build::ServiceSas;

use super::world::{By, directory_sas, new_world, sign_lines};
use crate::support::{ACCOUNT, BLOCK, Client, key};

fn service(world: &Client) -> ServiceSas<'static> {
    world.service_sas("box", Some("b"), "r")
}

/// `sr=d`: a directory of names to its depth, and a listing within it.
#[tokio::test]
async fn directory_sas_covers_the_blobs_below_it() {
    let world = new_world().await;
    for path in ["/box/d/e/x", "/box/d/y", "/box/dz"] {
        world.put(path, "").await;
    }
    let expiry = world.now().plus_s(3600).iso_s();
    let signed = directory_sas("/blob/devstoreaccount1/box/d", "rlf", &expiry);
    let list = "/box?restype=container&comp=list";
    let find = "/box?restype=container&comp=blobs&where=a%3D%27b%27";
    for (path, status) in [
        ("/box/d/e/x".to_owned(), 200),
        ("/box/d/y".to_owned(), 200),
        ("/box/dz".to_owned(), 403),
        ("/box/b".to_owned(), 403),
        (format!("{list}&prefix=d/"), 200),
        (format!("{list}&prefix=d/e/"), 200),
        (format!("{list}&prefix=d"), 403),
        (list.to_owned(), 403),
        // A search by tags ignores the prefix, so it would find blobs elsewhere.
        (format!("{find}&prefix=d/"), 403),
        (find.to_owned(), 403),
    ] {
        let answer = world.get_as(By::Sas(&signed), &path).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
    }
}

#[tokio::test]
async fn sas_checks_address_and_protocol() {
    let world = new_world().await;
    let https = ServiceSas {
        protocol: "https",
        ..service(&world)
    };
    let https = https.sign(key().as_bytes());
    assert_eq!(world.get_as(By::Sas(&https), "/box/b").await.status, 200);
    let path = format!("/box/b?{https}");
    let plain = world.send_over("http", "GET", &path, &[], "").await;
    assert_eq!(plain.outcome(), "403 AuthorizationProtocolMismatch");
    let only_http = ServiceSas {
        protocol: "http",
        ..service(&world)
    };
    let only_http = only_http.sign(key().as_bytes());
    assert_eq!(
        world.get_as(By::Sas(&only_http), "/box/b").await.status,
        403
    );
    let ranged = ServiceSas {
        ip: "10.0.0.5-10.0.0.9",
        ..service(&world)
    };
    let ranged = format!("/box/b?{}", ranged.sign(key().as_bytes()));
    for (peer, status) in [
        ("10.0.0.5", 200),
        ("10.0.0.9", 200),
        ("::ffff:10.0.0.7", 200),
        ("10.0.0.10", 403),
        ("::1", 403),
    ] {
        let answer = world.get_from(peer, &ranged).await;
        assert_eq!(answer.status, status, "{peer}");
        let code = "AuthorizationSourceIPMismatch";
        assert!(
            status == 200 || answer.header("x-ms-error-code") == code,
            "{answer:?}"
        );
    }
}

/// `sip` and `spr` in the SAS of a copy source's URL apply as if the caller had read the source, in
/// every operation that reads one.
#[tokio::test]
async fn copy_source_sas_checks_address_and_protocol_of_the_caller() {
    let world = new_world().await;
    let put = world.account_sas("rwac").sign(key().as_bytes());
    let append = world.send("PUT", "/box/log", &[("x-ms-blob-type", "AppendBlob")], "");
    assert_eq!(append.await.status, 201);
    for (ip, protocol, peer, scheme, source, may) in [
        ("10.0.0.5", "", "10.0.0.5", "http", "http", true),
        ("10.0.0.5", "", "10.0.0.6", "http", "http", false),
        ("", "https", "10.0.0.5", "https", "https", true),
        ("", "https", "10.0.0.5", "https", "http", false),
        ("", "https", "10.0.0.5", "http", "https", false),
        ("", "https,http", "10.0.0.5", "http", "http", true),
    ] {
        let sas = ServiceSas {
            ip,
            protocol,
            ..service(&world)
        };
        let sas = sas.sign(key().as_bytes());
        let source = format!("{source}://127.0.0.1:10000/{ACCOUNT}/box/b?{sas}");
        let source = ("x-ms-copy-source", source.as_str());
        for (path, headers, done) in [
            ("/open/a?", &[source][..], "202"),
            ("/open/b?", &[source, ("x-ms-requires-sync", "true")], "202"),
            ("/open/c?", &[source, BLOCK], "201"),
            ("/open/d?comp=block&blockid=AAAA&", &[source], "201"),
            ("/box/log?comp=appendblock&", &[source], "201"),
        ] {
            let path = format!("{path}{put}");
            let version = world.version.to_string();
            let headers = [&[("x-ms-version", version.as_str())], headers].concat();
            let answer = world.send_from((peer, scheme), "PUT", &path, &headers);
            let answer = answer.await;
            let expected = if may {
                done
            } else {
                "403 CannotVerifyCopySource"
            };
            assert_eq!(
                answer.outcome(),
                expected,
                "{path} {source:?} {}",
                answer.text()
            );
        }
    }
}

/// The first form, without a version, is valid for an hour unless a policy says otherwise.
#[tokio::test]
async fn sas_of_the_first_form_lasts_an_hour() {
    let world = new_world().await;
    for (seconds, status) in [(3600, 200), (3601, 403)] {
        let expiry = world.now().plus_s(seconds).iso_s();
        let fields = [("sr", "b"), ("sp", "r"), ("se", expiry.as_str())];
        let lines = ["r", "", &expiry, "/devstoreaccount1/box/b", ""];
        let signed = sign_lines(&fields, &lines, key().as_bytes());
        let path = format!("/box/b?{signed}");
        let answer = world.send_over("http", "GET", &path, &[], "").await;
        assert_eq!(answer.status, status, "{}", answer.text());
    }
}

/// `sr=bv`: the signature covers the version that it names.
#[tokio::test]
async fn sas_of_a_version_is_for_no_other() {
    let world = new_world().await;
    world.change_settings(AccountSettings {
        versioning: true,
        ..AccountSettings::default()
    });
    let expiry = world.now().plus_s(3600).iso_s();
    let version = "2020-12-06";
    let mut made = Vec::new();
    for _ in 0..2 {
        world.advance_s(1);
        let answer = world.send("PUT", "/box/b", &[BLOCK], "").await;
        made.push(answer.header("x-ms-version-id").to_owned());
    }
    let fields = [("sv", version), ("sr", "bv"), ("sp", "r"), ("se", &expiry)];
    let resource = "/blob/devstoreaccount1/box/b";
    let mut lines = vec!["r", "", &expiry, resource, "", "", "", version, "bv"];
    // The version, encryption scope, five response headers.
    lines.push(&made[0]);
    lines.extend([""; 6]);
    let signed = sign_lines(&fields, &lines, key().as_bytes());
    for (id, status) in [(&made[0], 200), (&made[1], 403)] {
        let path = format!("/box/b?versionid={id}");
        let answer = world.get_as(By::Sas(&signed), &path).await;
        assert_eq!(answer.status, status, "{id}: {}", answer.text());
    }
}

/// Before 2015-04-05 what a SAS does not permit appears as missing, before 2019-12-12 what needs
/// one.
#[tokio::test]
async fn version_decides_how_a_refusal_is_told() {
    let world = new_world().await;
    let writes = world.service_sas("box", Some("b"), "w");
    let writes = writes.sign(key().as_bytes());
    let writes = By::Sas(&writes);
    for (by, version, outcome) in [
        (writes, ApiVersion::V2015_02_21, "404"),
        (writes, ApiVersion::V2015_04_05, "403"),
        (By::Nobody, ApiVersion::V2019_10_10, "404 ResourceNotFound"),
        (
            By::Nobody,
            ApiVersion::V2019_12_12,
            "401 NoAuthenticationInformation",
        ),
    ] {
        let refused = world.under(version).get_as(by, "/box/b").await;
        assert_eq!(refused.outcome(), outcome, "{version}");
    }
}

/// The detail of the refusal says which field is missing or wrong.
#[tokio::test]
async fn refusal_names_the_missing_field() {
    let world = new_world().await;
    let sas = service(&world).sign(key().as_bytes());
    for (field, detail) in [
        ("", "sr is mandatory. Cannot be empty"),
        ("sr=x&", "Signature fields not well formed."),
        ("sr=d&sdd=2&", "Signed Directory Depth Invalid"),
    ] {
        let sas = sas.replace("sr=b&", field);
        let refused = world.get_as(By::Sas(&sas), "/box/b").await;
        assert_eq!(refused.status, 403, "{detail}");
        let text = refused.text();
        assert!(text.contains(detail), "{detail}: {text}");
    }
}
