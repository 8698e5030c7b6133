//! Fault rules of the control endpoint: errors of the service, conditions on headers, probability.

use serde_json::{Value, json};

use crate::support::Client;

/// Adds a rule. Returns the status, and the error's text.
async fn add(client: &Client, rule: Value) -> (u16, String) {
    let answer = client.control("POST", "/faults", rule.to_string()).await;
    let error = answer.json()["error"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    (answer.status, error)
}

async fn list(client: &Client, headers: &[(&str, &str)]) -> String {
    client.try_("GET", "/?comp=list", headers).await
}

/// Row 35: any code of the table, with its status or any other, on any condition of headers.
#[tokio::test]
async fn rule_answers_any_error_to_requests_with_its_headers() {
    let client = Client::new();
    let condition = json!({ "headers": { "x-ms-client-request-id": "job-", "if-match": null } });
    for (fault, expected) in [
        (
            json!({ "kind": "error", "code": "LeaseIdMissing" }),
            "412 LeaseIdMissing",
        ),
        (
            json!({ "kind": "error", "code": "AuthorizationFailure", "status": 418 }),
            "418 AuthorizationFailure",
        ),
        (
            json!({ "kind": "error", "code": "ConditionNotMet", "status": 304 }),
            "304 ConditionNotMet",
        ),
    ] {
        let rule = json!({ "times": 9, "when": condition, "fault": fault });
        assert_eq!(add(&client, rule).await, (200, String::new()));
        let id = ("x-ms-client-request-id", "job-7");
        for (headers, expected) in [
            (vec![], "200"),
            (vec![("x-ms-client-request-id", "other")], "200"),
            (vec![id, ("if-match", "*")], "200"),
            (vec![id], expected),
        ] {
            assert_eq!(list(&client, &headers).await, expected, "{headers:?}");
        }
        let rules = client.control("DELETE", "/faults", "").await.json();
        assert_eq!(rules[0]["when"]["headers"], condition["headers"]);
        assert_eq!(
            (&rules[0]["seen"], &rules[0]["fired"]),
            (&json!(1), &json!(1))
        );
    }
}

/// Row 35: a seed decides which calls a probability hits.
#[tokio::test]
async fn probability_hits_the_same_calls_for_the_same_seed() {
    let client = Client::new();
    let mut runs = Vec::new();
    for seed in [7, 7, 8] {
        let fault = json!({ "kind": "error", "code": "ServerBusy" });
        let when = json!({ "probability": 0.25, "seed": seed });
        add(
            &client,
            json!({ "times": 400, "when": when, "fault": fault }),
        )
        .await;
        let mut run = Vec::new();
        for _ in 0..400 {
            run.push(list(&client, &[]).await);
        }
        let hit = run
            .iter()
            .filter(|found| *found == "503 ServerBusy")
            .count();
        assert!((60..140).contains(&hit), "{hit}");
        runs.push(run);
        client.control("DELETE", "/faults", "").await;
    }
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
}

#[tokio::test]
async fn invalid_rule_is_rejected_and_affects_nothing() {
    let client = Client::new();
    let busy = json!({ "kind": "error", "code": "ServerBusy" });
    for (rule, expected) in [
        (
            json!({ "fault": { "kind": "error", "code": "Nonsense" } }),
            "unknown code Nonsense",
        ),
        (
            json!({ "fault": { "kind": "error", "code": "ServerBusy", "status": 200 } }),
            "400 to 599",
        ),
        (
            json!({ "when": { "probability": 1.5 }, "fault": busy }),
            "0 to 1",
        ),
        (
            json!({ "when": { "headers": { "a b": "" } }, "fault": busy }),
            "names of HTTP headers",
        ),
        (
            json!({ "when": { "chance": 1 }, "fault": busy }),
            "unknown field",
        ),
        (json!({ "chance": 1, "fault": busy }), "unknown field"),
    ] {
        let (status, told) = add(&client, rule.clone()).await;
        assert_eq!(status, 400, "{rule}");
        assert!(told.contains(expected), "{told}");
    }
    assert_eq!(list(&client, &[]).await, "200");
}
