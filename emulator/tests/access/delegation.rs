//! User delegation keys and their signatures.

use smalt::{AccountSettings, Role, RoleAssignment, Service};
use smalt_protocol::signing::AccountKey;
use smalt_protocol::{ApiVersion, Timestamp};

use super::world::{By, OBJECT_ID, TENANT_ID, new_world, sign_lines, world_with};
use crate::support::{self, Answer, Client, config};

const ASK: &str = "/?restype=service&comp=userdelegationkey";
const DAY_S: u64 = 24 * 3600;

async fn ask(world: &Client, start: Timestamp, expiry: Timestamp) -> Answer {
    let (start, expiry) = (start.iso_s(), expiry.iso_s());
    let body = format!("<KeyInfo><Start>{start}</Start><Expiry>{expiry}</Expiry></KeyInfo>");
    let token = world.token();
    world.ask(By::Token(&token), "POST", ASK, &[], &body).await
}

fn element<'a>(answer: &'a Answer, name: &str) -> &'a str {
    answer.elements(name)[0]
}

/// Gets a key for the next day.
async fn key(world: &Client) -> (AccountKey, String, String) {
    let answer = ask(world, world.now(), world.now().plus_s(DAY_S)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let (start, expiry) = (
        element(&answer, "SignedStart"),
        element(&answer, "SignedExpiry"),
    );
    let value = AccountKey::parse(element(&answer, "Value")).unwrap();
    (value, start.to_owned(), expiry.to_owned())
}

/// The signature gives no more than the roles of its signer, whether it names a user or not; those
/// of the account's key need no role.
#[tokio::test]
async fn signature_needs_a_role_of_its_signer() {
    let world = new_world().await;
    let own_key = key(&world).await;
    let signed = sas(&own_key, "rd", &[]);
    let named = sas(&own_key, "rd", &[("suoid", OBJECT_ID)]);
    let owners = world.service_sas("box", Some("b"), "r");
    let owners = owners.sign(support::key().as_bytes());
    let assign = |role, hierarchical_namespace| {
        let assigned = RoleAssignment {
            principal: OBJECT_ID.parse().unwrap(),
            role,
            resource: None,
        };
        let settings = AccountSettings {
            role_assignments: Some([assigned].into()),
            hierarchical_namespace,
            ..AccountSettings::default()
        };
        world.change_settings(settings);
    };
    let refused = "403 AuthorizationPermissionMismatch";
    for (sas, is_hierarchical, outcome) in [
        (&signed, true, refused),
        (&named, false, refused),
        (&signed, false, refused),
        (&owners, false, "200"),
    ] {
        assign(Role::BlobDelegator, is_hierarchical);
        let answer = world.get_as(By::Sas(sas), "/box/b").await;
        assert_eq!(answer.outcome(), outcome, "{sas}");
    }
    assign(Role::BlobDataReader, false);
    assert_eq!(world.get_as(By::Sas(&signed), "/box/b").await.status, 200);
    let answer = world.ask(By::Sas(&signed), "DELETE", "/box/b", &[], "");
    assert_eq!(answer.await.outcome(), refused);
}

/// Builds a SAS for `box/b` field by field in the layout of 2020-12-06, with further fields.
fn sas(key: &(AccountKey, String, String), permissions: &str, more: &[(&str, &str)]) -> String {
    sas_of("2020-12-06", key, permissions, more)
}

fn sas_of(
    version: &str,
    (key, start, expiry): &(AccountKey, String, String),
    permissions: &str,
    more: &[(&str, &str)],
) -> String {
    let fields = [
        ("sv", version),
        ("sr", "b"),
        ("sp", permissions),
        ("se", expiry.as_str()),
        ("skoid", OBJECT_ID),
        ("sktid", TENANT_ID),
        ("skt", start),
        ("ske", expiry),
        ("sks", "b"),
        ("skv", "2026-10-06"),
    ];
    let is_given = |name: &str| more.iter().any(|(field, _)| *field == name);
    let usual = fields.into_iter().filter(|(name, _)| !is_given(name));
    let fields: Vec<_> = usual.chain(more.iter().copied()).collect();
    let given = |name: &str| {
        let found = fields.iter().find(|(field, _)| *field == name);
        found.map_or("", |(_, value)| *value)
    };
    let mut lines = vec![
        given("sp"),
        given("st"),
        given("se"),
        "/blob/devstoreaccount1/box/b",
    ];
    lines.extend(["skoid", "sktid", "skt", "ske", "sks", "skv"].map(given));
    if version >= "2020-02-10" {
        lines.extend(["saoid", "suoid", "scid"].map(given));
    }
    if version >= "2025-07-05" {
        lines.extend(["skdutid", "sduoid"].map(given));
    }
    lines.extend(["sip", "spr", "sv", "sr"].map(given));
    lines.push("");
    if version >= "2020-12-06" {
        lines.push(given("ses"));
    }
    let bound = ["x-ms-lease-id:l\n", "\ncomp:metadata"];
    if version >= "2026-04-06" {
        let signs = !given("srh").is_empty();
        lines.extend(bound.map(|text| if signs { text } else { "" }));
    }
    lines.extend(["rscc", "rscd", "rsce", "rscl", "rsct"].map(given));
    sign_lines(&fields, &lines, key.as_bytes())
}

/// Returns a SAS for an hour, by a key for a minute.
pub(super) async fn by_key_of_a_minute(world: &Client) -> String {
    let (now, end) = (world.now(), world.now().plus_s(60));
    let answer = ask(world, now, end).await;
    let value = AccountKey::parse(element(&answer, "Value")).unwrap();
    let expiry = now.plus_s(3600).iso_s();
    sas(&(value, now.iso_s(), end.iso_s()), "r", &[("se", &expiry)])
}

#[tokio::test]
async fn delegation_key_needs_a_token() {
    let world = new_world().await;
    let now = world.now();
    let answer = ask(&world, now, now.plus_s(7 * DAY_S)).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), "application/xml");
    for (name, value) in [
        ("SignedOid", OBJECT_ID.to_owned()),
        ("SignedTid", TENANT_ID.to_owned()),
        ("SignedStart", now.iso_s()),
        ("SignedExpiry", now.plus_s(7 * DAY_S).iso_s()),
        ("SignedService", "b".to_owned()),
        ("SignedVersion", world.version.to_string()),
    ] {
        assert_eq!(element(&answer, name), value);
    }
    assert_eq!(
        AccountKey::parse(element(&answer, "Value"))
            .unwrap()
            .as_bytes()
            .len(),
        32
    );
    let body = "<KeyInfo><Expiry>2023-11-15T00:00:00Z</Expiry></KeyInfo>";
    let everything = world.account_sas("rwdlacup");
    let everything = everything.sign(support::key().as_bytes());
    for by in [By::Owner, By::Sas(&everything)] {
        let refused = world.ask(by, "POST", ASK, &[], body).await;
        assert_eq!(refused.outcome(), "403 AuthenticationFailed");
        let detail = "Only authentication scheme Bearer is supported";
        assert!(refused.text().contains(detail), "{}", refused.text());
    }
    let old = world.under(ApiVersion::V2018_03_28);
    let refused = ask(&old, now, now.plus_s(DAY_S)).await;
    assert_eq!(refused.outcome(), "400 InvalidQueryParameterValue");
}

#[tokio::test]
async fn delegation_key_lasts_seven_days_at_most() {
    let world = new_world().await;
    let now = world.now();
    for (start, expiry) in [
        (now, now.plus_s(7 * DAY_S + 1)),
        (now.plus_s(7 * DAY_S + 1), now.plus_s(7 * DAY_S + 2)),
        (now, now),
        (now.minus(std::time::Duration::from_secs(10)), now),
        (now.plus_s(20), now.plus_s(10)),
    ] {
        let refused = ask(&world, start, expiry).await;
        assert_eq!(refused.outcome(), "400 InvalidXmlNodeValue");
        // Azure returns the value as the name, too.
        assert_eq!(
            element(&refused, "XmlNodeName"),
            element(&refused, "XmlNodeValue")
        );
    }
    let token = world.token();
    for body in [
        "",
        "<KeyInfo/>",
        "<Other/>",
        "<KeyInfo><Expiry>soon</Expiry></KeyInfo>",
    ] {
        let refused = world.ask(By::Token(&token), "POST", ASK, &[], body).await;
        assert_eq!(refused.status, 400, "{body}");
    }
}

#[tokio::test]
async fn delegation_sas_is_valid_in_every_version() {
    let world = new_world().await;
    let key = key(&world).await;
    for version in [
        "2018-11-09",
        "2020-02-10",
        "2020-12-06",
        "2025-07-05",
        "2026-04-06",
    ] {
        let signed = sas_of(version, &key, "r", &[("rsct", "a/b"), ("spr", "https")]);
        let read = world.get_as(By::Sas(&signed), "/box/b").await;
        assert_eq!(read.status, 200, "{version}: {}", read.text());
        assert_eq!(read.header("content-type"), "a/b");
        let other = world.get_as(By::Sas(&signed), "/box/other").await;
        assert_eq!(other.outcome(), "403 AuthenticationFailed");
        let write = world
            .ask(By::Sas(&signed), "DELETE", "/box/b", &[], "")
            .await;
        assert_eq!(write.outcome(), "403 AuthorizationPermissionMismatch");
    }
    let more = [("saoid", OBJECT_ID), ("scid", "corr"), ("ses", "scope")];
    let signed = sas(&key, "r", &more);
    assert_eq!(world.get_as(By::Sas(&signed), "/box/b").await.status, 200);
    for forged in [
        signed.replace("scid=corr", "scid=other"),
        signed.replace(OBJECT_ID, TENANT_ID),
        signed.replace("sks=b", "sks=q"),
        signed.replace("skv=2026-10-06", "skv=2026-06-06"),
        format!("{signed}&si=policy"),
    ] {
        let refused = world.get_as(By::Sas(&forged), "/box/b").await;
        assert_eq!(refused.outcome(), "403 AuthenticationFailed", "{forged}");
    }
}

/// Headers and parameters to which a SAS is bound, since 2026-04-06.
#[tokio::test]
async fn delegation_sas_can_be_bound_to_headers_and_parameters() {
    let world = new_world().await;
    let key = key(&world).await;
    let bound = [("srh", "x-ms-lease-id"), ("srq", "comp")];
    let signed = sas_of("2026-04-06", &key, "r", &bound);
    let path = "/box/b?comp=metadata";
    let headers = [("x-ms-lease-id", "l")];
    let with = world.ask(By::Sas(&signed), "GET", path, &headers, "").await;
    // The request is authorised, and refused for its malformed lease id.
    assert_eq!(with.status, 400, "{with:?}");
    let without = world.get_as(By::Sas(&signed), path).await;
    assert_eq!(without.outcome(), "403 AuthenticationFailed");
    let elsewhere = world
        .ask(By::Sas(&signed), "GET", "/box/b", &headers, "")
        .await;
    assert_eq!(elsewhere.outcome(), "403 AuthenticationFailed");
}

/// `sduoid`: the signature and the user's token are valid together, neither of them alone.
#[tokio::test]
async fn delegation_sas_for_one_user_needs_that_users_token() {
    let world = new_world().await;
    let key = key(&world).await;
    let signed = sas_of("2025-07-05", &key, "r", &[("sduoid", OBJECT_ID)]);
    let refused = world.get_as(By::Sas(&signed), "/box/b").await;
    assert_eq!(refused.outcome(), "403 AuthenticationFailed");
    let token = world.token();
    let read = world
        .get_as(By::Token(&token), &format!("/box/b?{signed}"))
        .await;
    assert_eq!(read.status, 200, "{read:?}");
    let other = sas_of("2025-07-05", &key, "r", &[("sduoid", TENANT_ID)]);
    let refused = world
        .get_as(By::Token(&token), &format!("/box/b?{other}"))
        .await;
    assert_eq!(refused.outcome(), "403 AuthenticationFailed");
    // The token alone may delete; together with the signature it may not.
    let path = format!("/box/b?{signed}");
    let refused = world.ask(By::Token(&token), "DELETE", &path, &[], "").await;
    assert_eq!(refused.outcome(), "403 AuthorizationPermissionMismatch");
}

#[tokio::test]
async fn delegation_sas_expires_with_its_key() {
    let world = new_world().await;
    let now = world.now();
    let answer = ask(&world, now.plus_s(60), now.plus_s(120)).await;
    let value = AccountKey::parse(element(&answer, "Value")).unwrap();
    let (start, expiry) = (now.plus_s(60).iso_s(), now.plus_s(120).iso_s());
    let signed = sas(&(value, start, expiry), "r", &[]);
    for (seconds, status) in [(0, 403), (60, 200), (59, 200), (1, 403)] {
        world.advance_s(seconds);
        let read = world.get_as(By::Sas(&signed), "/box/b").await;
        assert_eq!(read.status, status, "{seconds}");
        assert!(
            status == 200
                || read
                    .text()
                    .contains("specified key time frame: Key start [")
        );
    }
}

/// Keys are not stored: another process derives them again from the account key.
#[tokio::test]
async fn delegation_sas_survives_a_restart_but_not_a_new_account_key() {
    let world = new_world().await;
    let signed = sas(&key(&world).await, "r", &[]);
    let again = new_world().await;
    assert_eq!(again.get_as(By::Sas(&signed), "/box/b").await.status, 200);
    let mut changed = config();
    for account in changed.accounts.values_mut() {
        account
            .keys
            .insert(0, AccountKey::parse("b3RoZXI=").unwrap());
    }
    // While the old key is one of the account's two, its derived keys stay valid.
    let rotated = world_with(changed.clone()).await;
    assert_eq!(rotated.get_as(By::Sas(&signed), "/box/b").await.status, 200);
    for account in changed.accounts.values_mut() {
        account.keys.truncate(1);
    }
    let revoked = Client::with(changed);
    let refused = revoked.get_as(By::Sas(&signed), "/box/b").await;
    assert_eq!(refused.outcome(), "403 AuthenticationFailed");
}

/// Queues have such keys since 2025-07-05, with signatures in their own layout.
#[tokio::test]
async fn queues_have_delegation_keys() {
    let world = new_world().await;
    let queues = world.at(Service::Queue);
    let token = format!("Bearer {}", world.token());
    let bearer = [
        ("authorization", token.as_str()),
        ("x-ms-version", "2026-04-06"),
    ];
    let expiry = world.now().plus_s(DAY_S).iso_s();
    let asked = format!("<KeyInfo><Expiry>{expiry}</Expiry></KeyInfo>");
    let answer = queues
        .send_over("https", "POST", ASK, &bearer, &asked)
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(element(&answer, "SignedService"), "q");
    let made = queues
        .send_over("https", "PUT", "/queue", &bearer, "")
        .await;
    assert_eq!(made.status, 201, "{made:?}");
    let key = AccountKey::parse(element(&answer, "Value")).unwrap();
    let start = element(&answer, "SignedStart");
    let (version, permissions) = ("2026-04-06", "r");
    let named = [
        ("skoid", OBJECT_ID),
        ("sktid", TENANT_ID),
        ("skt", start),
        ("ske", &expiry),
        ("sks", "q"),
        ("skv", version),
    ];
    let mut fields = vec![("sv", version), ("sp", permissions), ("se", &expiry)];
    fields.extend_from_slice(&named);
    let resource = "/queue/devstoreaccount1/queue";
    let mut lines = vec![permissions, "", &expiry, resource];
    lines.extend(named.map(|(_, value)| value));
    lines.extend(["", "", "", "", version]);
    let signed = sign_lines(&fields, &lines, key.as_bytes());
    for (path, status) in [
        ("messages?peekonly=true", 200),
        ("messages?numofmessages=1", 403),
    ] {
        let path = format!("/queue/{path}&{signed}");
        let answer = queues.send_over("https", "GET", &path, &[], "").await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
}
