//! Closures as handlers, over bytes or a decoded type.

use std::future::Future;

use async_trait::async_trait;

use super::{Context, Handler, Message, Verdict};

/// A handler from an async closure over owned values; see [`function`].
pub struct FunctionHandler<F>(F);

/// Makes a handler from an async closure.
///
/// ```
/// use smalt_listener::handler::{Verdict, function};
///
/// let handler = function(|message, _ctx| async move {
///     match std::str::from_utf8(&message.body) {
///         Ok(text) if text.starts_with("order:") => Verdict::Ok,
///         Ok(_) => Verdict::reject("not an order"),
///         Err(_) => Verdict::reject("not text"),
///     }
/// });
/// # let _ = handler;
/// ```
pub fn function<F, R>(f: F) -> FunctionHandler<F>
where
    F: Fn(Message, Context) -> R + Send + Sync + 'static,
    R: Future<Output = Verdict> + Send + 'static,
{
    FunctionHandler(f)
}

/// Makes a handler from an async closure over another body type, which [`json`](super::json) or
/// [`text`](super::text) decodes.
///
/// ```
/// use smalt_listener::handler::{Message, Verdict, json, typed_function};
///
/// #[derive(Clone, serde::Deserialize)]
/// struct Order {
///     id: u64,
/// }
///
/// let handler = json(typed_function(|order: Message<Order>, _ctx| async move {
///     println!("order {}", order.body.id);
///     Verdict::Ok
/// }));
/// # let _ = handler;
/// ```
pub fn typed_function<T, F, R>(f: F) -> FunctionHandler<F>
where
    T: Clone + Send + Sync + 'static,
    F: Fn(Message<T>, Context) -> R + Send + Sync + 'static,
    R: Future<Output = Verdict> + Send + 'static,
{
    FunctionHandler(f)
}

#[async_trait]
impl<T, F, R> Handler<T> for FunctionHandler<F>
where
    T: Clone + Send + Sync + 'static,
    F: Fn(Message<T>, Context) -> R + Send + Sync + 'static,
    R: Future<Output = Verdict> + Send + 'static,
{
    async fn handle(&self, message: &Message<T>, ctx: &Context) -> Verdict {
        (self.0)(message.clone(), ctx.clone()).await
    }
}
