//! What truly happened, told to whoever asked to know: for tests that judge a client.
//!
//! An observer sees each exchange as the service does, so it also knows what a client whose answer
//! was lost does not. Bodies are read whole for it; without an observer nothing is.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, request};
use http_body_util::BodyExt as _;
use smalt_protocol::Timestamp;

use crate::body::{self, Body};

/// A request that ran or was refused, with the service's answer to it.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// When it was answered, on the emulator's clock.
    pub at: Timestamp,
    /// Operation id of the register (`BlockBlob_Upload`), if the request named one.
    pub operation: Option<&'static str>,
    /// The request. Of a body that broke off there is what arrived.
    pub request: Request<Bytes>,
    /// The answer.
    pub response: Response<Bytes>,
    /// Whether the answer was sent whole: no fault rule lost or cut it.
    pub delivered: bool,
}

/// Who is told of every exchange, if anybody.
#[derive(Clone, Default)]
pub struct Observer(Option<Arc<dyn Fn(Exchange) + Send + Sync>>);

impl Observer {
    /// Tells this function, in the order in which requests are answered.
    pub fn new(tell: impl Fn(Exchange) + Send + Sync + 'static) -> Self {
        Observer(Some(Arc::new(tell)))
    }

    /// Reads the request for the observer, and leaves it as it was.
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

/// A request that the observer will be told of when it is answered.
pub(crate) struct Noted {
    tell: Arc<dyn Fn(Exchange) + Send + Sync>,
    request: Request<Bytes>,
}

impl Noted {
    /// Tells the observer, and gives the answer back as it was.
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

/// Reads a body, and makes one that reads the same, a break included.
async fn read(mut body: Body) -> (Bytes, Body) {
    let mut bytes = bytes::BytesMut::new();
    while let Some(frame) = body.frame().await {
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(data)) => bytes.extend_from_slice(&data),
            // Trailers, which nobody here sends.
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
