//! Reports every exchange to an observer, for tests of clients.
//!
//! An observer sees each exchange as the service does, including responses that the client did not
//! receive. Bodies are read whole for it; without an observer they are not.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, request};
use http_body_util::BodyExt as _;
use smalt_protocol::Timestamp;

use crate::body::{self, Body};

/// A request that ran or was refused, with the service's response.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Time of the response on the emulator's clock.
    pub at: Timestamp,
    /// Operation id of the register (`BlockBlob_Upload`); `None` when the request matches none.
    pub operation: Option<&'static str>,
    /// The request, with the part of its body that arrived.
    pub request: Request<Bytes>,
    /// The response with its whole body.
    pub response: Response<Bytes>,
    /// Whether the whole response was sent; false when a fault rule lost or cut it.
    pub delivered: bool,
}

/// An optional function that receives every exchange.
#[derive(Clone, Default)]
pub struct Observer(Option<Arc<dyn Fn(Exchange) + Send + Sync>>);

impl Observer {
    /// Creates an observer that calls `tell` in the order of the responses.
    pub fn new(tell: impl Fn(Exchange) + Send + Sync + 'static) -> Self {
        Observer(Some(Arc::new(tell)))
    }

    /// Reads the request's body for the observer, and replaces it with an equal one.
    pub(crate) async fn note(&self, head: &request::Parts, body: &mut Body) -> Option<Noted> {
        let tell = Arc::clone(self.0.as_ref()?);
        let (bytes, again) = read(std::mem::replace(body, body::empty())).await;
        *body = again;
        let request = Request::from_parts(head.clone(), bytes);
        Some(Noted { tell, request })
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observer").field(&self.0.is_some()).finish()
    }
}

/// A request whose response the observer still waits for.
pub(crate) struct Noted {
    tell: Arc<dyn Fn(Exchange) + Send + Sync>,
    request: Request<Bytes>,
}

impl Noted {
    /// Passes the exchange to the observer, and returns an equal response.
    pub(crate) async fn answered(
        self,
        (at, operation): (Timestamp, Option<&'static str>),
        delivered: bool,
        response: Response<Body>,
    ) -> Response<Body> {
        let (head, sent) = response.into_parts();
        let (bytes, again) = read(sent).await;
        (self.tell)(Exchange {
            at,
            operation,
            request: self.request,
            response: Response::from_parts(head.clone(), bytes),
            delivered,
        });
        Response::from_parts(head, again)
    }
}

/// Reads a body and returns its bytes with an equal body, including an error at its end.
async fn read(mut body: Body) -> (Bytes, Body) {
    let mut bytes = bytes::BytesMut::new();
    while let Some(frame) = body.frame().await {
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(data)) => bytes.extend_from_slice(&data),
            // Trailers, which neither side sends.
            Ok(Err(_)) => {}
            Err(_) => {
                let bytes = bytes.freeze();
                let length = bytes.len() as u64;
                return (bytes.clone(), body::cut(body::full(bytes), length));
            }
        }
    }
    let bytes = bytes.freeze();
    (bytes.clone(), body::full(bytes))
}
