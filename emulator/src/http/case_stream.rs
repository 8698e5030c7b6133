//! A stream that keeps the case of metadata names: it records names as they are read and restores
//! them as they are written. See [`crate::header_case`].
//!
//! Both directions work on the bytes in transit and never change a length, so that hyper does not
//! notice. Names without capitals, nearly all of them, cost one search per read.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use memchr::memchr;
use parking_lot::Mutex;
use smalt_protocol::metadata::HEADER_PREFIX;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::header_case::HeaderCase;

/// Longest name that is kept. All metadata of a resource together may have 8 KiB.
const NAME_BYTES_MAX: usize = 8 * 1024;

/// The case of metadata names on one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    read: HeaderCase,
    /// A name of which the end has not been read yet.
    unfinished: Vec<u8>,
    to_write: HeaderCase,
}

impl Names {
    /// Returns the names that were read with capitals.
    pub(super) fn read(&self) -> HeaderCase {
        self.0.lock().read.clone()
    }

    /// Sets the names to restore in the next head that is written.
    pub(super) fn restore(&self, case: HeaderCase) {
        self.0.lock().to_write = case;
    }
}

impl State {
    /// Records the names in `bytes`, which were just read.
    fn note(&mut self, bytes: &[u8]) {
        let joined;
        let text = if self.unfinished.is_empty() {
            bytes
        } else {
            joined = [self.unfinished.as_slice(), bytes].concat();
            &joined
        };
        let prefix = HEADER_PREFIX.as_bytes();
        let mut from = 0;
        let mut kept = text.len() - begun(text, prefix);
        while let Some(at) = find(&text[from..], prefix).map(|at| from + at) {
            let name = &text[at..];
            match name
                .iter()
                .position(|byte| matches!(byte, b':' | b'\r' | b'\n' | b' '))
            {
                Some(end) => {
                    if let Some(name) = std::str::from_utf8(&name[..end]).ok()
                        && name
                            .bytes()
                            .skip(prefix.len())
                            .any(|b| b.is_ascii_uppercase())
                    {
                        self.read.add(name);
                    }
                    from = at + end;
                }
                None => {
                    kept = at;
                    break;
                }
            }
        }
        let rest = text[kept.max(from)..].to_vec();
        self.unfinished = if rest.len() > NAME_BYTES_MAX {
            Vec::new()
        } else {
            rest
        };
    }

    /// Returns the head with the names restored; `None` when there are none to restore.
    fn restored(&mut self, head: &[u8]) -> Option<Vec<u8>> {
        if self.to_write.is_empty() {
            return None;
        }
        let end = find(head, b"\r\n\r\n").unwrap_or(head.len());
        let mut restored = head.to_vec();
        for name in std::mem::take(&mut self.to_write).iter() {
            let line = format!("\r\n{name}:");
            if let Some(at) = find(&restored[..end], line.as_bytes()) {
                restored[at..at + line.len()].copy_from_slice(line.as_bytes());
            }
        }
        Some(restored)
    }
}

/// Returns how many bytes at the end of `text` may be the start of `wanted`.
fn begun(text: &[u8], wanted: &[u8]) -> usize {
    let most = text.len().min(wanted.len() - 1);
    let starts =
        |length: &usize| text[text.len() - length..].eq_ignore_ascii_case(&wanted[..*length]);
    (1..=most).rev().find(starts).unwrap_or(0)
}

/// Finds `wanted` in `text`, ignoring ASCII case.
fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let mut from = 0;
    // The last byte of `wanted` is rarer in heads and bodies than its first.
    let last = *wanted.last()?;
    while let Some(at) = memchr(last, &text[from..]).map(|at| from + at) {
        let end = at + 1;
        if end >= wanted.len() && text[end - wanted.len()..end].eq_ignore_ascii_case(wanted) {
            return Some(end - wanted.len());
        }
        from = end;
    }
    None
}

pub(super) struct CaseStream<S> {
    inner: S,
    names: Names,
    /// A restored head that is not fully written yet; it replaces as many bytes of the original.
    restored: Vec<u8>,
}

impl<S> CaseStream<S> {
    pub(super) fn new(inner: S, names: Names) -> Self {
        CaseStream {
            inner,
            names,
            restored: Vec::new(),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CaseStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        self.names.0.lock().note(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> CaseStream<S> {
    /// Writes part of the restored head; `None` when there is none and the bytes are written
    /// unchanged.
    fn poll_restored(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Option<Poll<io::Result<usize>>> {
        if self.restored.is_empty() {
            self.restored = self.names.0.lock().restored(bytes)?;
        }
        let written = Pin::new(&mut self.inner).poll_write(cx, &self.restored);
        if let Poll::Ready(Ok(count)) = written {
            self.restored.drain(..count);
        }
        Some(written)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CaseStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.poll_restored(cx, bytes) {
            Some(written) => written,
            None => Pin::new(&mut self.inner).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let head = parts
            .iter()
            .find(|part| !part.is_empty())
            .map_or(&[][..], |part| &part[..]);
        match self.poll_restored(cx, head) {
            Some(written) => written,
            None => Pin::new(&mut self.inner).poll_write_vectored(cx, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAD: &str = "PUT /c/b HTTP/1.1\r\nHost: h\r\nx-ms-meta-TimeToLive: t\r\n\
                        X-Ms-Meta-UP: u\r\nx-ms-meta-low: l\r\n\r\n";

    #[test]
    fn names_in_a_head_are_restored_in_place() {
        let mut state = State::default();
        state.note(HEAD.as_bytes());
        state.to_write = state.read.clone();
        let folded =
            "HTTP/1.1 200 OK\r\nx-ms-meta-timetolive: t\r\nx-ms-meta-up: u\r\n\r\nx-ms-meta-up:";
        let restored = state.restored(folded.as_bytes()).unwrap();
        assert_eq!(
            String::from_utf8(restored).unwrap(),
            "HTTP/1.1 200 OK\r\nx-ms-meta-TimeToLive: t\r\nX-Ms-Meta-UP: u\r\n\r\nx-ms-meta-up:"
        );
        assert_eq!(state.restored(folded.as_bytes()), None);
    }

    proptest! {
        /// Finds the names wherever the network splits a head.
        #[test]
        fn names_are_found_across_reads(cuts in proptest::collection::vec(1..HEAD.len(), 0..6)) {
            let mut cuts = cuts;
            cuts.extend([0, HEAD.len()]);
            cuts.sort_unstable();
            let mut state = State::default();
            for pair in cuts.windows(2) {
                state.note(&HEAD.as_bytes()[pair[0]..pair[1]]);
            }
            let names: Vec<&str> = state.read.iter().collect();
            prop_assert_eq!(names, ["x-ms-meta-TimeToLive", "X-Ms-Meta-UP"]);
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut state = State::default();
            state.note(&bytes);
            state.note(&bytes);
        }
    }
}
