//! Properties and statistics of the service, access policies, cross-origin requests.

use super::client::{ACCOUNT, Client, address};

const XML: [(&str, &str); 1] = [("content-type", "application/xml")];

/// "Set Table Service Properties" changes the sections that it names.
#[tokio::test]
async fn properties_are_kept_by_section() {
    let client = Client::new().await;
    let path = "/?restype=service&comp=properties";
    let body = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>https://a.example\
        </AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods>\
        <MaxAgeInSeconds>60</MaxAgeInSeconds>\
        <ExposedHeaders>*</ExposedHeaders><AllowedHeaders>*</AllowedHeaders></CorsRule></Cors>\
        </StorageServiceProperties>";
    assert_eq!(
        client.send_with("PUT", path, &XML, body).await.outcome(),
        "202"
    );
    let shown = client.send("GET", path, "").await;
    assert_eq!(shown.outcome(), "200");
    assert!(
        shown
            .text
            .contains("<AllowedOrigins>https://a.example</AllowedOrigins>")
    );
    assert!(shown.text.contains("<HourMetrics>") && !shown.text.contains("DefaultServiceVersion"));
    let refused = client.send_with("PUT", path, &XML, "<Other/>").await;
    assert_eq!(refused.outcome(), "400 InvalidXmlDocument");
    assert!(refused.text.contains("<m:error"), "{}", refused.text);
    assert_eq!(refused.header("x-ms-error-code"), "InvalidXmlDocument");
    let origin = ("origin", "https://a.example");
    let page = client.send_with("GET", "/Tables", &[origin], "").await;
    assert_eq!(
        page.header("access-control-allow-origin"),
        "https://a.example"
    );
    let asked = [origin, ("access-control-request-method", "PUT")];
    let target = format!("/{ACCOUNT}/tab");
    let preflight = client
        .call("OPTIONS", &target, &asked, Default::default())
        .await;
    assert_eq!(preflight.outcome(), "200");
    assert_eq!(preflight.header("access-control-allow-methods"), "PUT");
}

/// "Get Table Service Stats": only the secondary tells.
#[tokio::test]
async fn the_secondary_tells_how_far_it_is() {
    let client = Client::new().await;
    let path = "/?restype=service&comp=stats";
    assert_eq!(client.send("GET", path, "").await.status, 400);
}

/// "Common REST API error codes": the secondary is read, and not written to. A transaction does
/// what the requests inside of it do.
#[tokio::test]
async fn the_secondary_is_only_read() {
    let client = Client::new().await;
    assert_eq!(client.insert("p", "1", "kept").await.outcome(), "201");
    let refused = "403 InsufficientAccountPermissions";
    let entity = address("p", "1");
    for (method, path, body) in [
        ("POST", "/Tables", r#"{"TableName":"other"}"#),
        ("DELETE", "/Tables('tab')", ""),
        ("POST", "/tab", r#"{"PartitionKey":"p","RowKey":"2"}"#),
        ("PUT", &entity, r#"{"v":"other"}"#),
        ("MERGE", &entity, r#"{"v":"other"}"#),
        ("DELETE", &entity, ""),
        ("PUT", "/?restype=service&comp=properties", "<x/>"),
        ("PUT", "/tab?comp=acl", ""),
    ] {
        let path = format!("-secondary{path}");
        let answer = client.send(method, &path, body).await;
        assert_eq!(answer.outcome(), refused, "{method} {path}");
    }
    let answer = client.send("GET", &format!("-secondary{entity}"), "").await;
    assert_eq!((answer.status, &answer.json()["v"]), (200, &"kept".into()));
    let tables = client.send("GET", "-secondary/Tables", "").await;
    assert_eq!(tables.texts("TableName"), ["tab"]);
}

/// "Set Table ACL": five policies at most, of rights that tables have.
#[tokio::test]
async fn policies_are_set_shown_and_cleared() {
    let client = Client::new().await;
    let policy = |id: &str, letters: &str| {
        format!(
            "<SignedIdentifier><Id>{id}</Id><AccessPolicy><Permission>{letters}</Permission>\
             </AccessPolicy></SignedIdentifier>"
        )
    };
    let all = |policies: &str| format!("<SignedIdentifiers>{policies}</SignedIdentifiers>");
    let path = "/tab?comp=acl";
    let five: String = (0..5).map(|n| policy(&format!("id{n}"), "raud")).collect();
    assert_eq!(
        client
            .send_with("PUT", path, &XML, all(&five))
            .await
            .outcome(),
        "204"
    );
    let shown = client.send("GET", path, "").await;
    assert_eq!(
        (shown.outcome().as_str(), shown.text.matches("<Id>").count()),
        ("200", 5)
    );
    for body in [
        all(&(five.clone() + &policy("id5", "r"))),
        all(&policy("id", "rwl")),
        "<SignedIdentifiers>".to_owned(),
    ] {
        let refused = client.send_with("PUT", path, &XML, body).await;
        assert_eq!(refused.outcome(), "400 InvalidXmlDocument");
    }
    assert_eq!(client.send("PUT", path, "").await.outcome(), "204");
    assert_eq!(
        client
            .send("GET", path, "")
            .await
            .text
            .matches("<Id>")
            .count(),
        0
    );
    let missing = client.send("GET", "/none?comp=acl", "").await;
    assert_eq!(missing.outcome(), "404 TableNotFound");
}
