//! The texts that a message may have: all text that XML allows, and nothing else.

use bytes::Bytes;
use proptest::prelude::*;

use super::client::with_queue;
use crate::support::config;

const INVALID: &str = "400 InvalidXmlDocument";

fn framed(bytes: &[u8]) -> Bytes {
    let mut body = b"<QueueMessage><MessageText>".to_vec();
    body.extend_from_slice(bytes);
    body.extend_from_slice(b"</MessageText></QueueMessage>");
    body.into()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any bytes as a text are accepted and returned again, or refused; peek answers.
    #[test]
    fn arbitrary_bytes_are_kept_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let client = with_queue(config()).await;
            let put = client.send("POST", "/que/messages", &[], framed(&bytes)).await;
            let is_taken = put.outcome() == "201";
            assert!(is_taken || put.outcome() == INVALID, "{}", put.text());
            assert_eq!(client.visible_messages().await.len(), usize::from(is_taken));
        });
    }
}
