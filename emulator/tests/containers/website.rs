//! Row 9: the static website of an account, at its own host name.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use http::{HeaderMap, Request};
use http_body_util::BodyExt as _;
use smalt::body;

use crate::support::Client;

const HOST: &str = "devstoreaccount1.web.localhost:10000";

/// Returns status, headers and text of a page.
async fn page(
    client: &Client,
    (method, host, path): (&str, &str, &str),
    headers: &[(&str, &str)],
) -> (u16, HeaderMap, String) {
    let request = Request::builder()
        .method(method)
        .uri(format!("http://{host}{path}"));
    let request = headers.iter().fold(request, |request, (name, value)| {
        request.header(*name, *value)
    });
    let answer = client
        .emulator()
        .call(request.body(body::empty()).unwrap())
        .await
        .unwrap();
    let (head, body) = answer.into_parts();
    let text = body.collect().await.unwrap().to_bytes();
    (
        head.status.as_u16(),
        head.headers,
        String::from_utf8(text.to_vec()).unwrap(),
    )
}

async fn enable(client: &Client, documents: &str) {
    let text = format!(
        "<StorageServiceProperties><StaticWebsite><Enabled>true</Enabled>{documents}\
         </StaticWebsite></StorageServiceProperties>"
    );
    let set = client
        .send("PUT", "/?restype=service&comp=properties", &[], text)
        .await;
    assert_eq!(set.status, 202);
}

/// Creates a website of four pages in a private container, which exists once it is enabled.
async fn site(documents: &str) -> Client {
    let client = Client::new();
    enable(&client, documents).await;
    for name in ["index.html", "docs/index.html", "404.html", "a%20b.css"] {
        let headers = [
            ("x-ms-blob-type", "BlockBlob"),
            ("x-ms-blob-content-type", "text/html"),
        ];
        let put = client
            .send("PUT", &format!("/$web/{name}"), &headers, name)
            .await;
        assert_eq!(put.status, 201);
    }
    client
}

const INDEX: &str = "<IndexDocument>index.html</IndexDocument>";
const ERROR: &str = "<ErrorDocument404Path>404.html</ErrorDocument404Path>";
const DEFAULT: &str = "<DefaultIndexDocumentPath>index.html</DefaultIndexDocumentPath>";

#[tokio::test]
async fn website_serves_its_pages_to_everybody() {
    let client = site(&format!("{INDEX}{ERROR}")).await;
    for (path, status, text) in [
        ("/", 200, "index.html"),
        ("/index.html", 200, "index.html"),
        ("/docs/", 200, "docs/index.html"),
        ("/a%20b.css?v=2", 200, "a%20b.css"),
        ("/docs", 404, "404.html"),
        ("/none.html", 404, "404.html"),
        ("/none/", 404, "404.html"),
    ] {
        for host in [HOST, "devstoreaccount1.z13.web.core.windows.net"] {
            let found = page(&client, ("GET", host, path), &[]).await;
            assert_eq!((found.0, found.2.as_str()), (status, text), "{host}{path}");
            assert_eq!(found.1["content-type"], "text/html");
        }
    }
    // The same container is private at the service.
    let read = page(
        &client,
        (
            "GET",
            "devstoreaccount1.blob.localhost:10000",
            "/$web/index.html",
        ),
        &[],
    );
    assert_eq!(read.await.0, 404);
}

#[tokio::test]
async fn website_answers_conditions_ranges_and_methods() {
    let client = site(INDEX).await;
    let (_, headers, _) = page(&client, ("HEAD", HOST, "/"), &[]).await;
    assert_eq!(headers["content-length"], "10");
    let etag = headers["etag"].to_str().unwrap();
    let same = [("if-none-match", etag)];
    assert_eq!(page(&client, ("GET", HOST, "/"), &same).await.0, 304);
    let (status, _, text) = page(&client, ("GET", HOST, "/"), &[("range", "bytes=0-4")]).await;
    assert_eq!((status, text.as_str()), (206, "index"));
    assert_eq!(
        page(&client, ("PUT", HOST, "/index.html"), &[]).await.0,
        405
    );
    let (status, _, text) = page(&client, ("GET", HOST, "/none"), &[]).await;
    assert_eq!(
        (status, text.as_str()),
        (404, "The requested content does not exist.")
    );
}

#[tokio::test]
async fn website_of_one_page_answers_every_path_and_a_disabled_one_none() {
    let client = site(&format!("{INDEX}{DEFAULT}")).await;
    for host in [HOST, "devstoreaccount1-secondary.web.localhost:10000"] {
        let (status, _, text) = page(&client, ("GET", host, "/user/7"), &[]).await;
        assert_eq!((status, text.as_str()), (200, "index.html"), "{host}");
    }
    let off = "<StorageServiceProperties><StaticWebsite><Enabled>false</Enabled></StaticWebsite>\
               </StorageServiceProperties>";
    client
        .send("PUT", "/?restype=service&comp=properties", &[], off)
        .await;
    assert_eq!(page(&client, ("GET", HOST, "/"), &[]).await.0, 404);
    let other = "other.web.localhost:10000";
    assert_eq!(page(&client, ("GET", other, "/"), &[]).await.0, 404);
}
