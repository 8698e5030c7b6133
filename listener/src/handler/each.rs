//! Bundles: many bodies in one message, which then cost its requests only once (L5).

use async_trait::async_trait;

use super::{Context, Handler, Message, Verdict};

/// A handler of bundles; see [`each`].
pub struct Each<H>(H);

/// Handles the parts of a bundle one after the other; [`json`](super::json) decodes a bundle that
/// is a JSON array. A part has the id of its message and its place there: `ID/0`. The first part
/// that is not handled gives its verdict to the whole bundle, so parts before it are handled again
/// at a retry.
///
/// ```
/// use smalt_listener::handler::{Message, Verdict, each, json, typed_function};
///
/// let order = typed_function(|order: Message<u64>, _ctx| async move {
///     println!("order {} of {}", order.body, order.id);
///     Verdict::Ok
/// });
/// let handler = json(each(order)); // takes messages such as `[1,2,3]`
/// # let _ = handler;
/// ```
pub fn each<H>(handler: H) -> Each<H> {
    Each(handler)
}

#[async_trait]
impl<T, H> Handler<Vec<T>> for Each<H>
where
    T: Clone + Send + Sync + 'static,
    H: Handler<T>,
{
    async fn handle(&self, message: &Message<Vec<T>>, ctx: &Context) -> Verdict {
        for (place, body) in message.body.iter().enumerate() {
            let mut part = message.with_body(body.clone());
            part.id = format!("{}/{place}", message.id);
            match self.0.handle(&part, ctx).await {
                Verdict::Ok => {}
                verdict => return verdict,
            }
        }
        Verdict::Ok
    }
}
