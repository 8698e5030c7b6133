//! Shared Key and Shared Key Lite, in the forms that clients send.

use smalt_protocol::signing::shared_key::Scheme;
use smalt_protocol::signing::{AccountKey, sign};
use smalt_protocol::{ApiVersion, Service};

use super::world::{new_world, world_with};
use crate::support::{ACCOUNT, Answer, Client, config, key, request, signature};

/// A request as a client writes it.
struct Signed<'a> {
    scheme: Scheme,
    version: ApiVersion,
    method: &'a str,
    /// Path and query after the account.
    path: &'a str,
    headers: &'a [(&'a str, &'a str)],
    account: &'a str,
    key: AccountKey,
}

impl Signed<'_> {
    fn get(path: &str) -> Signed<'_> {
        Signed {
            scheme: Scheme::SharedKey,
            version: ApiVersion::LATEST,
            method: "GET",
            path,
            headers: &[],
            account: ACCOUNT,
            key: key(),
        }
    }

    async fn send(&self, world: &Client) -> Answer {
        let version = self.version.to_string();
        let date = world.now().rfc1123();
        let mut headers = vec![("x-ms-version", version.as_str())];
        if !self.headers.iter().any(|(name, _)| name.ends_with("date")) {
            headers.push(("x-ms-date", &date));
        }
        headers.extend_from_slice(self.headers);
        let target = world.target(self.path);
        let scheme = (self.scheme, Service::Blob, self.version);
        let by = (self.account, &self.key);
        let value = signature(scheme, by, (self.method, &target), &headers);
        headers.push(("authorization", &value));
        world
            .send_over("http", self.method, self.path, &headers, "")
            .await
    }
}

#[tokio::test]
async fn both_schemes_accept_every_form_of_path_and_query() {
    let world = new_world().await;
    world.put("/box/a%20%C3%BC%2Bb", "x").await;
    for scheme in [Scheme::SharedKey, Scheme::SharedKeyLite] {
        for path in [
            "/box/b",
            "/box/a%20%C3%BC%2Bb",
            "/box?restype=container&comp=list&include=metadata&include=snapshots",
            "/box?restype=container&comp=list&prefix=a%20%C3%BC%2B",
            "/box?comp=list&RESTYPE=container&Prefix=B",
            // Base64 with unescaped padding.
            "/box?restype=container&comp=list&marker=",
            "/box/b?timeout=30&timeout=",
        ] {
            let signed = Signed {
                scheme,
                ..Signed::get(path)
            };
            let answer = signed.send(&world).await;
            assert_eq!(answer.status, 200, "{} {path}: {answer:?}", scheme.as_str());
        }
    }
    let listed = "/box?restype=container&comp=list&marker=2!4!MDAw==";
    let answer = Signed::get(listed).send(&world).await;
    assert_ne!(answer.status, 403, "{answer:?}");
}

/// The date: `x-ms-date` overrides `Date`; it may differ by fifteen minutes from the clock.
#[tokio::test]
async fn signature_is_valid_for_fifteen_minutes_around_its_date() {
    let world = new_world().await;
    let now = world.now();
    let minutes = |minutes: u64| std::time::Duration::from_secs(minutes * 60);
    for (date, status) in [
        (now, 200),
        (now.minus(minutes(15)), 200),
        (now.plus(minutes(15)), 200),
        (now.minus(minutes(16)), 403),
        (now.plus(minutes(16)), 403),
    ] {
        let date = date.rfc1123();
        for header in ["x-ms-date", "date"] {
            let headers = [(header, date.as_str())];
            let signed = Signed {
                headers: &headers,
                ..Signed::get("/box/b")
            };
            let answer = signed.send(&world).await;
            assert_eq!(answer.status, status, "{header}: {date}");
            let old = "Request date header too old: '";
            assert!(status == 200 || answer.text().contains(old), "{answer:?}");
        }
    }
    let right = now.rfc1123();
    let both = [
        ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("x-ms-date", right.as_str()),
    ];
    let signed = Signed {
        headers: &both,
        ..Signed::get("/box/b")
    };
    assert_eq!(signed.send(&world).await.status, 200);
    let none = [("x-ms-date", "yesterday")];
    let signed = Signed {
        headers: &none,
        ..Signed::get("/box/b")
    };
    let answer = signed.send(&world).await;
    let missing = "The date header in the request is missing or incorrect.";
    assert!(answer.text().contains(missing));
}

/// The string to sign has an empty line for an empty body since 2015-02-21, and a `0` before.
#[tokio::test]
async fn version_decides_how_an_empty_body_is_signed() {
    let world = new_world().await;
    let date = world.now().rfc1123();
    for (version, right, wrong) in [("2014-02-14", "0", ""), ("2015-02-21", "", "0")] {
        for (line, status) in [(right, 200), (wrong, 403)] {
            let text = format!(
                "PUT\n\n\n{line}\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:{version}\n\
                 /{ACCOUNT}/{ACCOUNT}/box/b\ncomp:metadata"
            );
            let value = format!("SharedKey {ACCOUNT}:{}", sign(key().as_bytes(), &text));
            let headers = [
                ("content-length", "0"),
                ("x-ms-date", date.as_str()),
                ("x-ms-version", version),
                ("authorization", value.as_str()),
            ];
            let path = "/box/b?comp=metadata";
            let answer = world.send_over("http", "PUT", path, &headers, "").await;
            assert_eq!(answer.status, status, "{version} {line:?}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn both_account_keys_are_valid_and_no_other() {
    let mut two = config();
    let second = AccountKey::parse("c2Vjb25k").unwrap();
    for account in two.accounts.values_mut() {
        account.keys.push(second.clone());
    }
    let world = world_with(two).await;
    for (key, status) in [
        (key(), 200),
        (second, 200),
        (AccountKey::parse("b2s=").unwrap(), 403),
    ] {
        let signed = Signed {
            key,
            ..Signed::get("/box/b")
        };
        let answer = signed.send(&world).await;
        assert_eq!(answer.status, status);
        let shown = "Server used following string to sign: 'GET\n";
        assert!(
            status == 200 || answer.text().contains(shown),
            "{}",
            answer.text()
        );
    }
    let other = Signed {
        account: "other",
        ..Signed::get("/box/b")
    };
    let other = other.send(&world).await;
    assert_eq!(other.outcome(), "403 AuthenticationFailed");
    for value in [
        "SharedKey",
        "SharedKey x",
        "Basic eA==",
        "Bearer a b",
        "nonsense",
    ] {
        let headers = [("authorization", value), ("x-ms-version", "2021-12-02")];
        let answer = world.send_over("http", "GET", "/box/b", &headers, "").await;
        assert_eq!(answer.outcome(), "400 InvalidAuthenticationInfo", "{value}");
    }
}

/// A request to the secondary signs the account name, with or without the suffix in the path.
#[tokio::test]
async fn secondary_is_signed_for_the_account() {
    let world = new_world().await;
    let date = world.now().rfc1123();
    let version = world.version.to_string();
    let path = "/devstoreaccount1-secondary/box/b";
    for signed_path in [path, "/devstoreaccount1/box/b"] {
        let headers = [("x-ms-date", date.as_str()), ("x-ms-version", &version)];
        let value = world.signature("GET", signed_path, &headers);
        let mut headers = headers.to_vec();
        headers.push(("authorization", &value));
        let url = format!("http://127.0.0.1:10000{path}");
        let answer = world.call(request("GET", &url, &headers, "")).await;
        assert_eq!(answer.status, 200, "{signed_path}: {answer:?}");
    }
}
