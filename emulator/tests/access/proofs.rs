//! A signature that was verified once is not computed again; everything else is judged every time.

use smalt_protocol::Timestamp;
use smalt_protocol::signing::sas::build::ServiceSas;

use super::delegation::by_key_of_a_minute;
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

/// Returns the world with two snapshots, paths of blobs, and signatures for some of them.
async fn furnished() -> (Client, Vec<String>, Vec<String>) {
    let world = new_world().await;
    let mut paths = vec!["/box/b".to_owned(), "/open/b".to_owned()];
    let mut signed = vec![
        service(&world).sign(key().as_bytes()),
        (world.service_sas("box", None, "r")).sign(key().as_bytes()),
        world.account_sas("r").sign(key().as_bytes()),
        by_key_of_a_minute(&world).await,
    ];
    for _ in 0..2 {
        world.advance_s(1);
        let made = world.send("PUT", "/box/b?comp=snapshot", &[], "").await;
        let snapshot = made.header("x-ms-snapshot");
        let mut sas = service(&world);
        sas.target.snapshot = snapshot;
        signed.push(sas.sign(key().as_bytes()));
        paths.push(format!("/box/b?snapshot={snapshot}"));
    }
    (world, paths, signed)
}

/// What was proven before changes no answer, neither for another path nor later.
#[tokio::test]
async fn known_signature_opens_what_it_opens_anew() {
    let (used, paths, signed) = furnished().await;
    let mut passed_s = 0;
    for more_s in [0, 0, 30, 30, 3600] {
        used.advance_s(more_s);
        passed_s += more_s;
        for (sas, path) in signed
            .iter()
            .flat_map(|sas| paths.iter().map(move |p| (sas, p)))
        {
            let (fresh, ..) = furnished().await;
            fresh.advance_s(passed_s);
            let anew = fresh.get_as(By::Sas(sas), path).await.outcome();
            expect(&used, sas, path, &anew).await;
        }
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
