//! Stored access policies of a queue.

use super::client::Client;

fn policy(id: &str, permissions: &str) -> String {
    format!(
        "<SignedIdentifier><Id>{id}</Id><AccessPolicy><Start>2020-01-01T00:00:00Z</Start>\
         <Expiry>2099-01-01T00:00:00Z</Expiry><Permission>{permissions}</Permission>\
         </AccessPolicy></SignedIdentifier>"
    )
}

fn policies(all: &[String]) -> String {
    format!("<SignedIdentifiers>{}</SignedIdentifiers>", all.concat())
}

/// Set replaces all five at most, Get shows them; an empty body clears.
#[tokio::test]
async fn policies_are_set_shown_and_cleared() {
    let client = Client::new().await;
    let path = "/que?comp=acl";
    let five: Vec<_> = (0..5).map(|n| policy(&format!("id{n}"), "raup")).collect();
    assert_eq!(
        client.send("PUT", path, policies(&five)).await.outcome(),
        "204"
    );
    let shown = client.send("GET", path, "").await;
    assert_eq!(shown.outcome(), "200");
    assert_eq!(shown.all("Id"), ["id0", "id1", "id2", "id3", "id4"]);
    assert_eq!(shown.all("Permission"), ["raup"; 5]);
    assert_eq!(shown.header("content-type"), "application/xml");
    assert_eq!(
        client
            .send("PUT", path, policies(&five[..1]))
            .await
            .outcome(),
        "204"
    );
    assert_eq!(client.send("GET", path, "").await.all("Id"), ["id0"]);
    assert_eq!(client.send("PUT", path, "").await.outcome(), "204");
    assert_eq!(client.send("GET", path, "").await.all("Id").len(), 0);
}

/// A sixth, an id that is too long or there twice, a right that queues do not have, no document.
#[tokio::test]
async fn what_is_no_policy_is_refused() {
    let client = Client::new().await;
    let six: Vec<_> = (0..6).map(|n| policy(&format!("id{n}"), "r")).collect();
    for body in [
        policies(&six),
        policies(&[policy(&"x".repeat(65), "r")]),
        policies(&[policy("id", "rw")]),
        "<SignedIdentifiers>".to_owned(),
        "<Other/>".to_owned(),
    ] {
        let answer = client.send("PUT", "/que?comp=acl", body.clone()).await;
        assert_eq!(answer.outcome(), "400 InvalidXmlDocument", "{body}");
    }
    assert_eq!(
        client
            .send("GET", "/que?comp=acl", "")
            .await
            .all("Id")
            .len(),
        0
    );
}
