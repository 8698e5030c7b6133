//! Cross-origin resource sharing, in process: actual responses, preflights, who sees a change.

mod support;

use support::{Answer, Client};

const PROPERTIES: &str = "/?restype=service&comp=properties";

/// Sets these rules: origins, methods, headers both ways.
async fn set_rules(client: &Client, rules: &[(&str, &str, &str)]) {
    let rule = |(origins, methods, headers): &(&str, &str, &str)| {
        format!(
            "<CorsRule><AllowedOrigins>{origins}</AllowedOrigins>\
             <AllowedMethods>{methods}</AllowedMethods><MaxAgeInSeconds>60</MaxAgeInSeconds>\
             <ExposedHeaders>{headers}</ExposedHeaders><AllowedHeaders>{headers}</AllowedHeaders>\
             </CorsRule>"
        )
    };
    let rules: String = rules.iter().map(rule).collect();
    let body = format!("<StorageServiceProperties><Cors>{rules}</Cors></StorageServiceProperties>");
    let answer = client.send("PUT", PROPERTIES, &[], body).await;
    assert_eq!(answer.status, 202);
}

fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer.has(name).then(|| answer.header(name))
}

#[tokio::test]
async fn answers_say_who_may_read_them_from_the_next_request_on() {
    let client = Client::new();
    let list = async |origin: Option<&str>| {
        let origin = origin.map(|origin| ("origin", origin));
        let answer = client
            .send("GET", "/?comp=list", origin.as_slice(), "")
            .await;
        let text = |name| header(&answer, name).map(str::to_owned);
        let exposed = text("access-control-expose-headers");
        let allowed = text("access-control-allow-origin");
        let credentials = text("access-control-allow-credentials");
        (text("vary"), allowed, credentials, exposed)
    };
    assert_eq!(list(Some("http://a")).await, (None, None, None, None));

    set_rules(&client, &[("http://a", "GET", "x-ms-version")]).await;
    let own = |text: &str| Some(text.to_owned());
    let varies = own("Origin");
    assert_eq!(list(None).await, (varies.clone(), None, None, None));
    assert_eq!(
        list(Some("http://b")).await,
        (varies.clone(), None, None, None)
    );
    let granted = (varies, own("http://a"), own("true"), own("x-ms-version"));
    assert_eq!(list(Some("http://a")).await, granted);

    set_rules(&client, &[("*", "GET", "x-ms-v*")]).await;
    let granted = (None, own("*"), None, own("x-ms-version"));
    assert_eq!(list(None).await, granted);

    set_rules(&client, &[]).await;
    assert_eq!(list(None).await, (None, None, None, None));
}

#[tokio::test]
async fn refusals_are_shared_too() {
    let client = Client::new();
    set_rules(&client, &[("*", "GET,PUT", "*")]).await;
    let missing = client.send("GET", "/box/b", &[], "").await;
    assert_eq!(missing.status, 404);
    let exposed = header(&missing, "access-control-expose-headers").unwrap();
    assert!(exposed.contains("x-ms-error-code"), "{exposed}");
    assert!(!exposed.contains("content-type"), "{exposed}");
    // What writes is answered only where a page asks.
    let origin = [("origin", "http://a")];
    for (headers, allowed) in [(&[][..], None), (&origin, Some("*"))] {
        let answer = client
            .send("PUT", "/box?restype=container", headers, "")
            .await;
        assert_eq!(header(&answer, "access-control-allow-origin"), allowed);
    }
}

#[tokio::test]
async fn a_preflight_is_granted_or_refused_by_the_rules_alone() {
    let client = Client::new();
    let ask =
        async |headers: &[(&str, &str)]| client.send("OPTIONS", "/no/such", headers, "").await;
    let origin = ("origin", "http://a");
    let method = ("access-control-request-method", "PUT");
    let headers = ("access-control-request-headers", "x-ms-date,x-ms-meta-b");
    let code = |answer: &Answer| header(answer, "x-ms-error-code").map(str::to_owned);

    for incomplete in [&[origin][..], &[method]] {
        let answer = ask(incomplete).await;
        assert_eq!(answer.status, 400);
        assert_eq!(code(&answer).as_deref(), Some("InvalidHeaderValue"));
    }
    let answer = ask(&[origin, method]).await;
    assert_eq!(answer.status, 403);
    assert_eq!(code(&answer).as_deref(), Some("CorsPreflightFailure"));

    set_rules(&client, &[("http://a", "PUT", "x-ms-*")]).await;
    let answer = ask(&[origin, method, headers]).await;
    assert_eq!(answer.status, 200);
    for (name, value) in [
        ("access-control-allow-origin", "http://a"),
        ("access-control-allow-methods", "PUT"),
        ("access-control-allow-headers", "x-ms-date,x-ms-meta-b"),
        ("access-control-allow-credentials", "true"),
        ("access-control-max-age", "60"),
    ] {
        assert_eq!(header(&answer, name), Some(value), "{name}");
    }
    let other = ("access-control-request-headers", "if-match");
    assert_eq!(ask(&[origin, method, other]).await.status, 403);
}
