//! The Queue service of an account: properties, statistics, cross-origin rules.

use super::client::{ACCOUNT, Client};

const PROPERTIES: &str = "/?restype=service&comp=properties";

fn rules(rules: &str) -> String {
    format!("<StorageServiceProperties><Cors>{rules}</Cors></StorageServiceProperties>")
}

fn rule(origins: &str, methods: &str) -> String {
    format!(
        "<CorsRule><AllowedOrigins>{origins}</AllowedOrigins>\
         <AllowedMethods>{methods}</AllowedMethods><MaxAgeInSeconds>60</MaxAgeInSeconds>\
         <ExposedHeaders>x-ms-*</ExposedHeaders><AllowedHeaders>x-ms-*</AllowedHeaders></CorsRule>"
    )
}

/// What is set is shown; what is left out stays as it was.
#[tokio::test]
async fn properties_are_set_in_parts() {
    let client = Client::new().await;
    let logging = "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>true</Delete>\
                   <Read>true</Read><Write>false</Write><RetentionPolicy><Enabled>true</Enabled>\
                   <Days>9</Days></RetentionPolicy></Logging></StorageServiceProperties>";
    assert_eq!(
        client.send("PUT", PROPERTIES, logging).await.outcome(),
        "202"
    );
    let cors = rules(&rule("http://a", "GET"));
    assert_eq!(client.send("PUT", PROPERTIES, cors).await.outcome(), "202");
    let shown = client.send("GET", PROPERTIES, "").await;
    assert_eq!(shown.outcome(), "200");
    assert_eq!(
        (shown.one("Delete"), shown.one("Write")),
        ("true".into(), "false".into())
    );
    assert!(shown.all("Days").contains(&"9"));
    assert_eq!(shown.one("AllowedOrigins"), "http://a");
    let cleared = client.send("PUT", PROPERTIES, rules("")).await;
    assert_eq!(cleared.outcome(), "202");
    assert_eq!(
        client
            .send("GET", PROPERTIES, "")
            .await
            .one("AllowedOrigins"),
        ""
    );
}

/// Retention beyond a year, a sixth rule, and what is no document.
#[tokio::test]
async fn properties_have_bounds() {
    let client = Client::new().await;
    let retention = "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>true</Delete>\
                     <Read>true</Read><Write>true</Write><RetentionPolicy><Enabled>true</Enabled>\
                     <Days>366</Days></RetentionPolicy></Logging></StorageServiceProperties>";
    let six = rules(&rule("http://a", "GET").repeat(6));
    for body in [retention, &six, "<StorageServiceProperties>"] {
        let answer = client.send("PUT", PROPERTIES, body.to_owned()).await;
        assert_eq!(answer.outcome(), "400 InvalidXmlDocument", "{body}");
    }
}

/// Only the secondary tells how far it is.
#[tokio::test]
async fn statistics_are_of_the_secondary() {
    let client = Client::new().await;
    let query = "?restype=service&comp=stats";
    let primary = client.send("GET", &format!("/{query}"), "").await;
    assert_eq!(primary.outcome(), "400 InvalidQueryParameterValue");
    let sas = super::signatures::account_sas(&client, "q", "s", "r");
    let target = format!("/{ACCOUNT}-secondary/{query}&{sas}");
    let headers = [("x-ms-version", "2021-12-02")];
    let told = client.call("GET", &target, &headers, "".into()).await;
    assert_eq!(told.outcome(), "200");
    assert_eq!(told.one("Status"), "live");
    assert_ne!(told.one("LastSyncTime"), "");
}

/// A preflight is answered by the rules, for queues, messages, and one message.
#[tokio::test]
async fn browsers_ask_first() {
    let client = Client::new().await;
    let set = rules(&rule("http://a", "GET,PUT"));
    assert_eq!(client.send("PUT", PROPERTIES, set).await.outcome(), "202");
    for path in ["que", "que/messages", "que/messages/one"] {
        for (origin, method, status) in [
            ("http://a", "PUT", 200),
            ("http://a", "DELETE", 403),
            ("http://b", "PUT", 403),
        ] {
            let headers = [
                ("origin", origin),
                ("access-control-request-method", method),
            ];
            let target = format!("/{ACCOUNT}/{path}");
            let answer = client.call("OPTIONS", &target, &headers, "".into()).await;
            assert_eq!(answer.status, status, "{path} {origin} {method}");
            let allowed = answer.header("access-control-allow-origin");
            assert_eq!(allowed, if status == 200 { origin } else { "" });
        }
    }
    let origin = [("origin", "http://a")];
    let got = client.send_with("GET", "/que/messages", &origin, "").await;
    assert_eq!(got.header("access-control-allow-origin"), "http://a");
}

/// "Common REST API error codes": the secondary is read, and not written to; a message that is
/// taken is hidden, which is a write.
#[tokio::test]
async fn the_secondary_is_only_read() {
    let client = Client::new().await;
    let message = "<QueueMessage><MessageText>a</MessageText></QueueMessage>";
    let sas = super::signatures::account_sas(&client, "q", "sco", "rwdlacup");
    let headers = [("x-ms-version", "2021-12-02")];
    let ask = async |method: &str, path: &str, body: &'static str| {
        let mark = if path.contains('?') { '&' } else { '?' };
        let target = format!("/{ACCOUNT}-secondary{path}{mark}{sas}");
        let answer = client.call(method, &target, &headers, body.into()).await;
        answer.outcome()
    };
    for (method, path, body) in [
        ("PUT", "/other", ""),
        ("DELETE", "/other", ""),
        ("POST", "/other/messages", message),
        ("GET", "/other/messages", ""),
        ("DELETE", "/other/messages/id?popreceipt=r", ""),
    ] {
        let expected = "403 InsufficientAccountPermissions";
        assert_eq!(ask(method, path, body).await, expected, "{method} {path}");
    }
    let peeked = ask("GET", "/other/messages?peekonly=true", "").await;
    assert_eq!(peeked, "404 QueueNotFound");
    assert_eq!(ask("GET", "/?comp=list", "").await, "200");
}
