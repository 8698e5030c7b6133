//! The signature of the first versions of the service.

use smalt_protocol::ApiVersion;

use super::client::ACCOUNT;

/// The signature of the first versions is today's Shared Key Lite.
#[tokio::test]
async fn first_versions_use_shared_key_lite() {
    use smalt_protocol::Service;
    use smalt_protocol::signing::shared_key::{Scheme, SigningInput, string_to_sign};
    let input = SigningInput {
        service: Service::Queue,
        scheme: Scheme::SharedKey,
        version: ApiVersion::V2009_07_17,
        method: "PUT",
        account: ACCOUNT,
        path: "/myqueue/messages",
        query: &[("messagettl".to_owned(), "3600".to_owned())],
        headers: &[
            ("Content-Length", "3900"),
            ("x-ms-date", "Mon, 27 Oct 2008 17:00:25 GMT"),
        ],
    };
    let lines = ["PUT", "", "", "", "x-ms-date:Mon, 27 Oct 2008 17:00:25 GMT"];
    let expected = format!("{}\n/{ACCOUNT}/myqueue/messages", lines.join("\n"));
    assert_eq!(string_to_sign(&input), expected);
}
