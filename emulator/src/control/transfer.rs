//! `/state/export` and `/state/import`: stream the whole state, off the reactor.

use std::io::{self, BufWriter, Read, Write};

use bytes::Bytes;
use futures_util::stream;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tokio::sync::mpsc;

use super::{Refusal, failed};
use crate::body::Body;
use crate::emulator::Emulator;
use crate::state::archive::{self, ArchiveError, Imported};
use crate::store::StoreError;

/// Number of pieces buffered between the reactor and the thread that reads or writes the state.
const PIECES: usize = 8;
const PIECE_BYTES: usize = 64 * 1024;

type Piece = io::Result<Bytes>;

/// Streams the state. If the export fails, the connection breaks.
pub(super) fn export(emulator: &Emulator) -> Response<Body> {
    let (sender, pieces) = mpsc::channel::<Piece>(PIECES);
    let emulator = emulator.clone();
    tokio::task::spawn_blocking(move || {
        let writer = BufWriter::with_capacity(PIECE_BYTES, Sender(sender.clone()));
        if let Err(error) = archive::export(emulator.core(), writer) {
            tracing::warn!(%error, "cannot export the state");
            // The send fails if the client has disconnected.
            let _ = sender.blocking_send(Err(io::Error::other(error)));
        }
    });
    let pieces = stream::unfold(pieces, |mut pieces| async {
        let piece = pieces.recv().await?;
        Some((piece.map(Frame::data), pieces))
    });
    let mut response = Response::new(StreamBody::new(pieces).boxed_unsync());
    let content_type = HeaderValue::from_static("application/x-tar");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// Replaces the state with the one in a stream.
pub(super) async fn import(emulator: &Emulator, mut body: Body) -> Result<Imported, Refusal> {
    let (sender, pieces) = mpsc::channel::<Piece>(PIECES);
    let emulator = emulator.clone();
    let work = tokio::task::spawn_blocking(move || {
        let reader = Receiver {
            pieces,
            piece: Bytes::new(),
        };
        archive::import(emulator.core(), reader)
    });
    // Read the body to its end even if the import has failed: a client that is still sending then
    // gets the error.
    while let Some(frame) = body.frame().await {
        let piece = frame.map(|frame| frame.into_data().unwrap_or_default());
        let is_broken = piece.is_err();
        let _ = sender.send(piece).await;
        if is_broken {
            break;
        }
    }
    drop(sender);
    let imported = work.await.map_err(|error| failed(&error))?;
    imported.map_err(|error| match error {
        ArchiveError::Store(error @ StoreError::Refused(_)) => {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
        }
        ArchiveError::Store(error) => failed(&error),
        refused => Refusal::new(StatusCode::BAD_REQUEST, refused.to_string()),
    })
}

struct Sender(mpsc::Sender<Piece>);

impl Write for Sender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(bytes)));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Receiver {
    pieces: mpsc::Receiver<Piece>,
    piece: Bytes,
}

impl Read for Receiver {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.pieces.blocking_recv() {
                Some(piece) => self.piece = piece?,
                None => return Ok(0),
            }
        }
        let len = buffer.len().min(self.piece.len());
        buffer[..len].copy_from_slice(&self.piece.split_to(len));
        Ok(len)
    }
}
