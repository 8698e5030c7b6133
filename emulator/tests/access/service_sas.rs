//! Service SAS and account SAS.

use smalt_protocol::signing::sas::SasTarget;
use smalt_protocol::signing::sas::build::{AccountSas, ServiceSas};
use smalt_protocol::{ApiVersion, Timestamp};

use super::world::{ACCOUNT, By, World, directory_sas, key, sign_lines, target};

const FAILED: (u16, &str) = (403, "AuthenticationFailed");
const PERMISSION: (u16, &str) = (403, "AuthorizationPermissionMismatch");

fn service(world: &World) -> ServiceSas<'static> {
    ServiceSas {
        version: ApiVersion::LATEST,
        target: target("box", Some("b")),
        permissions: "r",
        start: None,
        expiry: Some(world.now().plus_s(3600)),
        policy_id: "",
        ip: "",
        protocol: "",
        more: &[],
    }
}

async fn read(world: &World, sas: ServiceSas<'_>) -> (u16, String, String) {
    let answer = world
        .get(By::Sas(&sas.sign(key().as_bytes())), "/box/b")
        .await;
    let (status, code) = answer.outcome();
    (status, code.to_owned(), answer.body)
}

/// Signatures for a blob, a container and a snapshot cover just that.
#[tokio::test]
async fn service_sas_covers_its_resource_only() {
    let world = World::new().await;
    let snapshot = world.owner("PUT", "/box/b?comp=snapshot", &[], "").await;
    let moment = snapshot.header("x-ms-snapshot").to_owned();
    let of_blob = world.service_sas("box", Some("b"), "rl");
    let of_container = world.service_sas("box", None, "rl");
    let of_snapshot = ServiceSas {
        target: SasTarget {
            snapshot: &moment,
            ..target("box", Some("b"))
        },
        ..service(&world)
    };
    let of_snapshot = of_snapshot.sign(key().as_bytes());
    let list = "/box?restype=container&comp=list";
    let old = format!("/box/b?snapshot={moment}");
    for (sas, path, outcome) in [
        (&of_blob, "/box/b", (200, "")),
        (&of_blob, "/box/missing", FAILED),
        (&of_blob, "/open/b", FAILED),
        (&of_blob, list, FAILED),
        (&of_container, "/box/b", (200, "")),
        (&of_container, "/box/missing", (404, "BlobNotFound")),
        (&of_container, "/open/b", FAILED),
        (&of_container, list, (200, "")),
        (
            &of_container,
            "/box?restype=container",
            (403, "AuthorizationFailure"),
        ),
        (
            &of_container,
            "/box?restype=container&comp=acl",
            (403, "AuthorizationFailure"),
        ),
        (&of_container, "/?comp=list", FAILED),
        (&of_snapshot, old.as_str(), (200, "")),
        (&of_snapshot, "/box/b", FAILED),
    ] {
        let answer = world.get(By::Sas(sas), path).await;
        assert_eq!(answer.outcome(), outcome, "{path} {sas}");
    }
}

/// `sr=d`: a directory of names to its depth, and a listing within it.
#[tokio::test]
async fn directory_sas_covers_the_blobs_below_it() {
    let world = World::new().await;
    let block = [("x-ms-blob-type", "BlockBlob")];
    for path in ["/box/d/e/x", "/box/d/y", "/box/dz"] {
        assert_eq!(world.owner("PUT", path, &block, "").await.status, 201);
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
        let answer = world.get(By::Sas(&signed), &path).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
    }
}

#[tokio::test]
async fn sas_checks_window_address_and_protocol() {
    let world = World::new().await;
    let now = world.now();
    let at = |seconds: u64| Some(now.plus_s(seconds));
    let failed = |detail: &'static str| (403, "AuthenticationFailed", detail);
    for (start, expiry, (status, code, detail)) in [
        (None, at(1), (200, "", "hello")),
        (Some(now), at(1), (200, "", "hello")),
        (
            at(1),
            at(2),
            failed("Signature not valid in the specified time frame: Start ["),
        ),
        (
            None,
            Some(now),
            failed("Signed expiry time [Tue, 14 Nov 2023 22:13:20 GMT] must be"),
        ),
        (at(2), at(1), failed("must be after signed start time [")),
    ] {
        let sas = ServiceSas {
            start,
            expiry,
            ..service(&world)
        };
        let (got, got_code, body) = read(&world, sas).await;
        assert_eq!(
            (got, got_code.as_str()),
            (status, code),
            "{start:?} {expiry:?}"
        );
        assert!(body.contains(detail), "{body}");
    }
    let https = ServiceSas {
        protocol: "https",
        ..service(&world)
    };
    let https = https.sign(key().as_bytes());
    assert_eq!(world.get(By::Sas(&https), "/box/b").await.status, 200);
    let path = format!("/box/b?{https}");
    let plain = world.send("http", "GET", &path, &[], "").await;
    assert_eq!(plain.outcome(), (403, "AuthorizationProtocolMismatch"));
    let only_http = ServiceSas {
        protocol: "http",
        ..service(&world)
    };
    assert_eq!(read(&world, only_http).await.0, 403);
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
        assert!(status == 200 || answer.outcome().1 == code, "{answer:?}");
    }
}

/// `sip` and `spr` in the SAS of a copy source's URL apply as if the caller had read the source, in
/// every operation that reads one.
#[tokio::test]
async fn copy_source_sas_checks_address_and_protocol_of_the_caller() {
    let world = World::new().await;
    let put = world.account_sas("rwac");
    let block = ("x-ms-blob-type", "BlockBlob");
    let append = world.owner("PUT", "/box/log", &[("x-ms-blob-type", "AppendBlob")], "");
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
            ("/open/a?", &[source][..], 202),
            ("/open/b?", &[source, ("x-ms-requires-sync", "true")], 202),
            ("/open/c?", &[source, block], 201),
            ("/open/d?comp=block&blockid=AAAA&", &[source], 201),
            ("/box/log?comp=appendblock&", &[source], 201),
        ] {
            let path = format!("{path}{put}");
            let version = world.version.to_string();
            let headers = [&[("x-ms-version", version.as_str())], headers].concat();
            let answer = world.send_from((peer, scheme), "PUT", &path, &headers);
            let answer = answer.await;
            let expected = if may {
                (done, "")
            } else {
                (403, "CannotVerifyCopySource")
            };
            assert_eq!(
                answer.outcome(),
                expected,
                "{path} {source:?} {}",
                answer.body
            );
        }
    }
}

/// `si`: a field may be in the policy or in the SAS, not in both; permissions and expiry must be in
/// one.
#[tokio::test]
async fn stored_policy_completes_a_sas() {
    let world = World::new().await;
    let end = world.now().plus_s(60).iso_s();
    let policy = |id: &str, fields: &str| {
        format!(
            "<SignedIdentifier><Id>{id}</Id><AccessPolicy>{fields}</AccessPolicy>\
             </SignedIdentifier>"
        )
    };
    let stored = [
        policy(
            "full",
            &format!("<Expiry>{end}</Expiry><Permission>r</Permission>"),
        ),
        policy("may", "<Permission>r</Permission>"),
        policy("empty", ""),
    ];
    let body = format!("<SignedIdentifiers>{}</SignedIdentifiers>", stored.concat());
    let path = "/box?restype=container&comp=acl";
    assert_eq!(world.owner("PUT", path, &[], &body).await.status, 200);
    let (own, none): (Option<Timestamp>, _) = (Some(world.now().plus_s(30)), None);
    for (policy_id, permissions, expiry, status) in [
        ("full", "", none, 200),
        ("full", "r", none, 403),
        ("full", "", own, 403),
        ("may", "", own, 200),
        ("may", "", none, 403),
        ("empty", "r", own, 200),
        ("empty", "", own, 403),
        ("unknown", "r", own, 403),
    ] {
        let sas = ServiceSas {
            policy_id,
            permissions,
            expiry,
            ..service(&world)
        };
        let (got, code, body) = read(&world, sas).await;
        assert_eq!(got, status, "{policy_id} {permissions:?} {expiry:?} {body}");
        assert!(got == 200 || code == FAILED.1);
    }
    let full = ServiceSas {
        policy_id: "full",
        permissions: "",
        expiry: None,
        ..service(&world)
    };
    let full = full.sign(key().as_bytes());
    world.advance_s(60);
    let ended = world.get(By::Sas(&full), "/box/b").await;
    assert_eq!(ended.outcome(), FAILED);
}

/// `c` allows creating blobs, but not replacing them.
#[tokio::test]
async fn create_permission_alone_does_not_overwrite() {
    let world = World::new().await;
    let block = [("x-ms-blob-type", "BlockBlob")];
    let sas = world.service_sas("box", None, "c");
    let made = world
        .ask(By::Sas(&sas), "PUT", "/box/new", &block, "x")
        .await;
    assert_eq!(made.status, 201);
    let again = world
        .ask(By::Sas(&sas), "PUT", "/box/new", &block, "x")
        .await;
    assert_eq!(again.outcome(), (403, "UnauthorizedBlobOverwrite"));
    // A copy cannot replace them either.
    let read = world.service_sas("box", None, "r");
    let source = format!("http://127.0.0.1:10000/devstoreaccount1/box/b?{read}");
    let copy = [("x-ms-copy-source", source.as_str())];
    for (path, wanted) in [
        ("/box/copy", (202, "")),
        ("/box/new", (403, "UnauthorizedBlobOverwrite")),
    ] {
        let copied = world.ask(By::Sas(&sas), "PUT", path, &copy, "").await;
        assert_eq!(copied.outcome(), wanted, "{path}");
    }
    let sas = world.service_sas("box", None, "w");
    let written = world
        .ask(By::Sas(&sas), "PUT", "/box/new", &block, "x")
        .await;
    assert_eq!(written.status, 201);
}

/// Service, resource type and permission of an account SAS, checked in this order.
#[tokio::test]
async fn account_sas_checks_service_type_and_permission() {
    let world = World::new().await;
    let full = AccountSas {
        version: ApiVersion::LATEST,
        account: ACCOUNT,
        services: "bqt",
        resource_types: "sco",
        permissions: "rwdlacupxtfiy",
        start: None,
        expiry: world.now().plus_s(60),
        ip: "",
        protocol: "",
        encryption_scope: "scope",
    };
    let none = AccountSas {
        services: "q",
        resource_types: "s",
        permissions: "a",
        ..full
    };
    for (sas, path, outcome) in [
        (full, "/box/b", (200, "")),
        (full, "/?comp=list", (200, "")),
        (
            full,
            "/box?restype=container&comp=acl",
            (403, "AuthorizationFailure"),
        ),
        (none, "/box/b", (403, "AuthorizationServiceMismatch")),
        (
            AccountSas {
                services: "b",
                ..none
            },
            "/box/b",
            (403, "AuthorizationResourceTypeMismatch"),
        ),
        (
            AccountSas {
                services: "b",
                resource_types: "o",
                ..none
            },
            "/box/b",
            PERMISSION,
        ),
        (
            AccountSas {
                permissions: "r",
                ..full
            },
            "/box?restype=container&comp=list",
            PERMISSION,
        ),
    ] {
        let signed = sas.sign(key().as_bytes());
        let answer = world.get(By::Sas(&signed), path).await;
        assert_eq!(answer.outcome(), outcome, "{path} {sas:?}");
    }
}

/// "Shared access signature error codes": before 2015-04-05 a refused resource appears as missing.
#[tokio::test]
async fn old_version_hides_refused_resources() {
    let world = World::new().await.under(ApiVersion::V2014_02_14);
    let sas = world.service_sas("box", Some("b"), "w");
    let refused = world.get(By::Sas(&sas), "/box/b").await;
    assert_eq!(refused.status, 404);
    assert!(refused.body.contains("<Code>ResourceNotFound</Code>"));
}

/// The first form, without a version, is valid for an hour unless a policy says otherwise.
#[tokio::test]
async fn sas_of_the_first_form_lasts_an_hour() {
    let world = World::new().await;
    for (seconds, status) in [(3600, 200), (3601, 403)] {
        let expiry = world.now().plus_s(seconds).iso_s();
        let fields = [("sr", "b"), ("sp", "r"), ("se", expiry.as_str())];
        let lines = ["r", "", &expiry, "/devstoreaccount1/box/b", ""];
        let signed = sign_lines(&fields, &lines, key().as_bytes());
        let path = format!("/box/b?{signed}");
        let answer = world.send("http", "GET", &path, &[], "").await;
        assert_eq!(answer.status, status, "{}", answer.body);
    }
}

/// Policies with the letters of 2015-04-05 cannot be returned to versions without them.
#[tokio::test]
async fn old_version_cannot_read_policies_with_newer_letters() {
    let world = World::new().await;
    let path = "/box?restype=container&comp=acl";
    for (letters, outcome) in [
        ("rwd", (200, "")),
        ("rwdc", (409, "<Code>FeatureVersionMismatch</Code>")),
    ] {
        let body = format!(
            "<SignedIdentifiers><SignedIdentifier><Id>x</Id><AccessPolicy><Permission>{letters}\
             </Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
        );
        assert_eq!(world.owner("PUT", path, &[], &body).await.status, 200);
        let old = world.under(ApiVersion::V2015_02_21);
        let shown = old.owner("GET", path, &[], "").await;
        assert_eq!(shown.status, outcome.0);
        assert!(shown.body.contains(outcome.1), "{}", shown.body);
        for version in [ApiVersion::V2015_04_05, ApiVersion::LATEST] {
            let world = world.under(version);
            assert_eq!(world.owner("GET", path, &[], "").await.status, 200);
        }
    }
}

/// "Previous Azure Storage service versions": with its first two versions only the signature
/// determines the version of the request, whatever the header says.
#[tokio::test]
async fn oldest_sas_versions_decide_the_api_version() {
    let world = World::new().await;
    for version in [ApiVersion::V2012_02_12, ApiVersion::V2013_08_15] {
        let sas = ServiceSas {
            version,
            ..service(&world)
        };
        let answer = world
            .get(By::Sas(&sas.sign(key().as_bytes())), "/box/b")
            .await;
        assert_eq!(answer.header("x-ms-version"), version.to_string());
    }
    let sas = ServiceSas {
        version: ApiVersion::V2014_02_14,
        ..service(&world)
    };
    let answer = world
        .get(By::Sas(&sas.sign(key().as_bytes())), "/box/b")
        .await;
    assert_eq!(answer.header("x-ms-version"), world.version.to_string());
}

/// `ses`: writes with the signature use its scope, and cannot name another one.
#[tokio::test]
async fn sas_sets_its_encryption_scope() {
    let world = World::new().await;
    let full = AccountSas {
        version: ApiVersion::LATEST,
        account: ACCOUNT,
        services: "b",
        resource_types: "sco",
        permissions: "rwd",
        start: None,
        expiry: world.now().plus_s(60),
        ip: "",
        protocol: "",
        encryption_scope: "one",
    };
    let signed = full.sign(key().as_bytes());
    let by = By::Sas(&signed);
    let block = ("x-ms-blob-type", "BlockBlob");
    let put = world.ask(by, "PUT", "/box/n", &[block], "x").await;
    assert_eq!(
        (put.status, put.header("x-ms-encryption-scope")),
        (201, "one")
    );
    let read = world.get(By::Owner, "/box/n").await;
    assert_eq!(read.header("x-ms-encryption-scope"), "one");
    let same = [block, ("x-ms-encryption-scope", "one")];
    assert_eq!(world.ask(by, "PUT", "/box/n", &same, "x").await.status, 201);
    let other = [block, ("x-ms-encryption-scope", "two")];
    let refused = world.ask(by, "PUT", "/box/m", &other, "x").await;
    assert_eq!(refused.outcome(), (403, "AuthorizationFailure"));
    let fixed = [
        ("x-ms-default-encryption-scope", "two"),
        ("x-ms-deny-encryption-scope-override", "true"),
    ];
    let path = "/strict?restype=container";
    assert_eq!(world.owner("PUT", path, &fixed, "").await.status, 201);
    let refused = world.ask(by, "PUT", "/strict/n", &[block], "x").await;
    let code = "RequestForbiddenByContainerEncryptionPolicy";
    assert_eq!(refused.outcome(), (403, code));
    assert_eq!(world.get(by, "/box/b").await.status, 200);
}
