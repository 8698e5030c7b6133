//! A signature that was verified once is not computed again; everything else is judged every time.

use smalt_protocol::Timestamp;
use smalt_protocol::signing::sas::build::ServiceSas;

use super::world::{By, new_world};
use crate::support::{Client, key};

const FAILED: &str = "403 AuthenticationFailed";

fn service(world: &Client) -> ServiceSas<'static> {
    world.service_sas("box", Some("b"), "r")
}

/// Reads a blob and expects this outcome.
async fn expect(world: &Client, sas: &str, path: &str, outcome: &str) {
    let answer = world.get_as(By::Sas(sas), path).await;
    assert_eq!(answer.outcome(), outcome, "{path} {sas}");
}

/// The window is judged again, and neither another signature nor other fields pass.
#[tokio::test]
async fn known_signature_ends_with_its_window_and_covers_its_fields_only() {
    let world = new_world().await;
    let sas = service(&world).sign(key().as_bytes());
    for _ in 0..2 {
        expect(&world, &sas, "/box/b", "200").await;
    }
    let (fields, _) = sas.split_once("&sig=").unwrap();
    for other in [
        format!("{fields}&sig=AAAA"),
        sas.replace("sp=r", "sp=rw"),
        format!("{sas}&sip=10.0.0.1"),
        format!("SP=rw&{sas}"),
        format!("{sas}&SP=rw"),
    ] {
        expect(&world, &other, "/box/b", FAILED).await;
    }
    expect(&world, &sas, "/box/missing", FAILED).await;
    expect(&world, &sas, "/open/b", FAILED).await;
    expect(&world, &sas, "/box/b", "200").await;
    world.advance_s(3600);
    expect(&world, &sas, "/box/b", FAILED).await;
}

/// A signature for one snapshot opens neither another one nor the blob.
#[tokio::test]
async fn known_signature_of_a_snapshot_is_for_no_other() {
    let world = new_world().await;
    let mut paths = Vec::new();
    let mut first = String::new();
    for _ in 0..2 {
        world.advance_s(1);
        let made = world.send("PUT", "/box/b?comp=snapshot", &[], "").await;
        let snapshot = made.header("x-ms-snapshot");
        let mut sas = service(&world);
        sas.target.snapshot = snapshot;
        if first.is_empty() {
            first = sas.sign(key().as_bytes());
        }
        paths.push(format!("/box/b?snapshot={snapshot}"));
    }
    for _ in 0..2 {
        expect(&world, &first, &paths[0], "200").await;
    }
    for other in [&paths[1], "/box/b"] {
        expect(&world, &first, other, FAILED).await;
    }
}

/// A stored access policy is read for every request: shortened, and removed.
#[tokio::test]
async fn policy_of_a_known_signature_is_read_every_time() {
    let world = new_world().await;
    let set = async |policy: &str| {
        let body = format!("<SignedIdentifiers>{policy}</SignedIdentifiers>");
        let path = "/box?restype=container&comp=acl";
        assert_eq!(world.send("PUT", path, &[], body).await.status, 200);
    };
    let policy = |expiry: Timestamp| {
        format!(
            "<SignedIdentifier><Id>one</Id><AccessPolicy><Expiry>{}</Expiry>\
             <Permission>r</Permission></AccessPolicy></SignedIdentifier>",
            expiry.iso_s()
        )
    };
    let sas = ServiceSas {
        permissions: "",
        expiry: None,
        policy_id: "one",
        ..service(&world)
    };
    let sas = sas.sign(key().as_bytes());
    set(&policy(world.now().plus_s(3600))).await;
    expect(&world, &sas, "/box/b", "200").await;
    set(&policy(world.now().plus_s(60))).await;
    expect(&world, &sas, "/box/b", "200").await;
    world.advance_s(60);
    expect(&world, &sas, "/box/b", FAILED).await;
    set(&policy(world.now().plus_s(60))).await;
    expect(&world, &sas, "/box/b", "200").await;
    set("").await;
    expect(&world, &sas, "/box/b", FAILED).await;
}

/// After a reset the signature is still valid, and what it gave access to is gone.
#[tokio::test]
async fn reset_leaves_nothing_to_a_known_signature() {
    let world = new_world().await;
    let sas = service(&world).sign(key().as_bytes());
    expect(&world, &sas, "/box/b", "200").await;
    world.emulator().reset().unwrap();
    expect(&world, &sas, "/box/b", "404 ContainerNotFound").await;
}
