//! What the tests of the Queue service ask of a client.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use smalt::{Config, Service};

use crate::support::{Answer, Client};

/// Creates an emulator with the queue `que`.
pub(crate) async fn with_queue(config: Config) -> Client {
    let client = Client::with(config).at(Service::Queue);
    assert_eq!(client.try_("PUT", "/que", &[]).await, "201");
    client
}

impl Client {
    /// Puts a message, which must succeed; the text is already XML.
    pub(crate) async fn put_message(&self, text: &str, query: &str) {
        let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
        let path = format!("/que/messages{query}");
        let answer = self.send("POST", &path, &[], body).await;
        assert_eq!(answer.outcome(), "201", "{}", answer.text());
    }

    pub(crate) async fn get_messages(&self, query: &str) -> Answer {
        self.get(&format!("/que/messages{query}")).await
    }

    /// Returns the texts of all visible messages.
    pub(crate) async fn visible_messages(&self) -> Vec<String> {
        let answer = self.get_messages("?peekonly=true&numofmessages=32").await;
        assert_eq!(answer.outcome(), "200");
        // An empty text is an empty element.
        let (empty, long) = ("<MessageText />", "<MessageText></MessageText>");
        let answer = Answer {
            body: answer.text().replace(empty, long).into(),
            ..answer
        };
        let texts = answer.elements("MessageText").into_iter();
        texts.map(str::to_owned).collect()
    }

    /// Returns the approximate message count.
    pub(crate) async fn count_messages(&self) -> u64 {
        let answer = self.get("/que?comp=metadata").await;
        let count = answer.header("x-ms-approximate-messages-count");
        count.parse().unwrap()
    }
}
