//! A body that is forwarded while a copy is kept.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};

/// Maximum size of a body to keep, in bytes; an exchange with a larger one is forwarded but not
/// recorded.
pub const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The copy at the end of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Copy {
    /// The complete body.
    Whole(Bytes),
    /// The body exceeds [`KEPT_BYTES_MAX`].
    TooLarge,
    /// The body was cut, or not read to its end.
    Cut,
}

/// Receives the copy, once.
type Done = Box<dyn FnOnce(Copy) + Send + Sync>;

/// A body and its copy.
pub struct Tee<B: Body> {
    inner: B,
    kept: BytesMut,
    is_too_large: bool,
    done: Option<Done>,
}

impl<B: Body> Tee<B> {
    /// Calls `done` when the body has ended or is dropped.
    pub fn new(inner: B, done: impl FnOnce(Copy) + Send + Sync + 'static) -> Self {
        Tee {
            inner,
            kept: BytesMut::new(),
            is_too_large: false,
            done: Some(Box::new(done)),
        }
    }

    fn finish(&mut self, is_whole: bool) {
        let Some(done) = self.done.take() else {
            return;
        };
        done(match (is_whole, self.is_too_large) {
            (false, _) => Copy::Cut,
            (true, true) => Copy::TooLarge,
            (true, false) => Copy::Whole(std::mem::take(&mut self.kept).freeze()),
        });
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Tee<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    if self.kept.len() + data.len() > KEPT_BYTES_MAX {
                        self.is_too_large = true;
                        self.kept.clear();
                    }
                    if !self.is_too_large {
                        self.kept.extend_from_slice(data);
                    }
                }
                // With a known length, nobody polls after the last byte.
                if self.inner.is_end_stream() {
                    self.finish(true);
                }
            }
            Poll::Ready(None) => self.finish(true),
            Poll::Ready(Some(Err(_))) => self.finish(false),
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl<B: Body> Drop for Tee<B> {
    fn drop(&mut self) {
        let is_whole = self.inner.is_end_stream();
        self.finish(is_whole);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http_body_util::{BodyExt as _, Full};

    use super::*;

    fn tee(content: &[u8]) -> (Tee<Full<Bytes>>, Arc<Mutex<Vec<Copy>>>) {
        let copies = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&copies);
        let body = Full::new(Bytes::copy_from_slice(content));
        let tee = Tee::new(body, move |copy| kept.lock().unwrap().push(copy));
        (tee, copies)
    }

    #[tokio::test]
    async fn completely_read_body_is_kept() {
        let (body, copies) = tee(b"abc");
        assert_eq!(body.collect().await.unwrap().to_bytes(), "abc");
        assert_eq!(*copies.lock().unwrap(), [Copy::Whole(Bytes::from("abc"))]);
    }

    #[test]
    fn unread_body_is_cut_unless_it_is_empty() {
        let (body, copies) = tee(b"abc");
        drop(body);
        assert_eq!(*copies.lock().unwrap(), [Copy::Cut]);
        let (body, copies) = tee(b"");
        drop(body);
        assert_eq!(*copies.lock().unwrap(), [Copy::Whole(Bytes::new())]);
    }
}
