//! Visibility, expiry and delivery of many messages at once.

use proptest::prelude::*;
use smalt::Config;

use super::client::with_queue;
use crate::support::config;

/// Only the clock matters: messages expire in the moment in which it is set.
#[tokio::test]
async fn expired_messages_are_not_returned_or_counted() {
    let client = with_queue(config()).await;
    for number in 0..2_500 {
        client
            .put_message(&number.to_string(), "?messagettl=604800")
            .await;
    }
    client.put_message("stays", "?messagettl=-1").await;
    client.advance_s(604_800);
    assert_eq!(client.count_messages().await, 1);
    assert_eq!(client.visible_messages().await, ["stays"]);
    let got = client.get_messages("?numofmessages=32").await;
    assert_eq!(got.elements("MessageText"), ["stays"]);
    assert_eq!(client.count_messages().await, 1);
}

/// With shuffled ties every message is still delivered once, in another order for another seed of
/// ids, and still by visible time.
#[tokio::test]
async fn ties_can_be_shuffled() {
    let client = with_queue(Config {
        shuffle_messages: true,
        ..config()
    })
    .await;
    let put: Vec<String> = (0..32).map(|number| number.to_string()).collect();
    for text in &put {
        client.put_message(text, "").await;
    }
    client.put_message("late", "?visibilitytimeout=1").await;
    let first = client.visible_messages().await;
    assert_ne!(first, put, "32 messages in order by chance");
    let mut sorted = first.clone();
    sorted.sort_by_key(|text| text.parse::<u32>().unwrap());
    assert_eq!(sorted, put);
    client.advance_s(1);
    assert_eq!(
        client
            .get_messages("?numofmessages=32")
            .await
            .elements("MessageText"),
        first
    );
    assert_eq!(client.visible_messages().await, ["late"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// For any delays and times to live, at any time exactly those messages are visible whose delay
    /// is over and which have not expired, each once.
    #[test]
    fn visible_messages_follow_from_their_times(
        messages in proptest::collection::vec((0_u64..50, 1_u64..50), 1..30),
        steps in proptest::collection::vec(1_u64..20, 1..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let client = with_queue(config()).await;
            for (at, (delay_s, rest_s)) in messages.iter().enumerate() {
                let ttl_s = delay_s + rest_s;
                let query = format!("?visibilitytimeout={delay_s}&messagettl={ttl_s}");
                client.put_message(&at.to_string(), &query).await;
            }
            let mut now_s = 0;
            for step in steps {
                now_s += step;
                client.advance_s(step);
                let mut seen = client.visible_messages().await;
                seen.sort();
                let is_visible = |(delay_s, rest_s): &(u64, u64)| {
                    *delay_s <= now_s && now_s < delay_s + rest_s
                };
                let expected = messages.iter().enumerate().filter(|(_, m)| is_visible(m));
                let mut expected: Vec<_> = expected.map(|(at, _)| at.to_string()).collect();
                expected.sort();
                assert_eq!(seen, expected);
                let alive = messages.iter().filter(|(d, r)| now_s < d + r).count();
                assert_eq!(client.count_messages().await, alive as u64);
            }
        });
    }
}
