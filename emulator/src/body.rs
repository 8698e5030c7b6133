//! Request and response bodies, the same in process and over a socket.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt, Empty, Full, combinators::UnsyncBoxBody};

use crate::store::PayloadReader;

/// A streamed body.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Returns an empty body.
pub fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// Returns a body of bytes in memory.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// Returns the first `after_bytes` of a body, followed by a connection error.
pub fn cut(body: Body, after_bytes: u64) -> Body {
    Cut {
        body,
        left: after_bytes,
    }
    .boxed_unsync()
}

struct Cut {
    body: Body,
    left: u64,
}

impl http_body::Body for Cut {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.left == 0 {
            return Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into())));
        }
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)) else {
            return Poll::Ready(None);
        };
        let Ok(mut data) = frame?.into_data() else {
            return Poll::Ready(None);
        };
        data.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= data.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(data))))
    }
}

/// Returns `length` bytes of a body after its first `skip`; the bytes after them are not read.
pub fn part(body: Body, skip: u64, length: u64) -> Body {
    Part {
        body,
        skip,
        left: length,
    }
    .boxed_unsync()
}

struct Part {
    body: Body,
    skip: u64,
    left: u64,
}

impl http_body::Body for Part {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        while self.left > 0 {
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)) else {
                return Poll::Ready(None);
            };
            let Ok(mut data) = frame?.into_data() else {
                continue;
            };
            let skipped = self.skip.min(data.len() as u64);
            self.skip -= skipped;
            // Both are at most the length of the data.
            let mut data = data.split_off(skipped as usize);
            data.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
            if !data.is_empty() {
                self.left -= data.len() as u64;
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
        }
        Poll::Ready(None)
    }
}

/// Returns a range of a stored payload, which is read while it is sent.
pub fn payload(reader: PayloadReader) -> Body {
    reader.boxed_unsync()
}
