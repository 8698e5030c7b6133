//! Keys, tokens and signatures do not appear where others could read them.

use smalt_protocol::connection_string::EMULATOR_ACCOUNT_KEY;

use super::world::{By, new_world};
use crate::support::key;

/// The Debug output of the whole emulator, which may end up in a log or a panic.
#[tokio::test]
async fn debug_output_contains_no_key() {
    let world = new_world().await;
    let shown = format!("{:?} {:?}", world.emulator(), smalt::Emulator::builder());
    assert!(shown.contains("redacted") && !shown.contains(EMULATOR_ACCOUNT_KEY));
}

/// A refusal quotes the string to sign, but neither the signature nor the token.
#[tokio::test]
async fn refusal_contains_no_signature() {
    let world = new_world().await;
    let forged = world.service_sas("box", Some("b"), "r");
    let forged = forged.sign(key().as_bytes());
    let forged = forged.replace("sp=r", "sp=rw");
    let (_, signature) = forged.split_once("sig=").unwrap();
    let raw = percent(signature);
    let refused = world.get_as(By::Sas(&forged), "/box/b").await;
    assert!(
        refused.text().contains("String to sign used was rw"),
        "{}",
        refused.text()
    );
    assert!(!refused.text().contains(&raw) && !refused.text().contains(signature));

    let token = world.token();
    world.advance_s(7200);
    let refused = world.get_as(By::Token(&token), "/box/b").await;
    assert!(refused.text().contains("expired") && !refused.text().contains(&token));

    let headers = [
        ("authorization", "SharedKey devstoreaccount1:c2VjcmV0"),
        ("x-ms-date", "Tue, 14 Nov 2023 22:13:20 GMT"),
        ("x-ms-version", "2021-12-02"),
    ];
    let refused = world
        .send_over("https", "GET", "/box/b", &headers, "")
        .await;
    assert_eq!(refused.status, 403);
    assert!(!refused.text().contains("c2VjcmV0"));
}

fn percent(text: &str) -> String {
    smalt_protocol::uri::percent_decode(text).unwrap()
}
