//! How a store is opened.

use std::path::PathBuf;

use crate::clock::Clock;

/// Cache of the metadata engine unless told otherwise: small, for a server beside a build.
/// Measured with a million keys written twice and read at random: 122 MiB resident with 16 MiB,
/// 180 with 32, 79 with 4 at a third of the speed.
const CACHE_BYTES: u64 = 16 * 1024 * 1024;
/// A segment of extents is closed at this size: small enough to compact in one go, large enough
/// that a million payloads of 64 KiB are a thousand files.
const SEGMENT_BYTES: u64 = 64 * 1024 * 1024;

/// What [`Mode::Fast`] may lose of the time before a kill -9.
pub const FAST_LOSS_MS_MAX: u64 = 100;

/// What an acknowledged commit has survived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It survives kill -9 and the loss of power.
    Durable,
    /// It survives kill -9 after at most [`FAST_LOSS_MS_MAX`], or a sync that takes longer. Order
    /// is kept: what is lost is the end, and its ETags and ids are not given again. After a loss of
    /// power the system decides, and may keep a later thing without an earlier one.
    Fast,
    /// It lives as long as the process; commits run inline and in a deterministic order.
    Memory,
}

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// What an acknowledged commit has survived.
    pub mode: Mode,
    /// Where state is kept; unused in [`Mode::Memory`].
    pub dir: Option<PathBuf>,
    /// The source of `now`.
    pub clock: Clock,
    /// Cache of the metadata engine.
    pub cache_bytes: u64,
    /// How often the metadata engine writes out what no sync asked for, in milliseconds: in
    /// [`Mode::Fast`] every [`FAST_LOSS_MS_MAX`]. `None` leaves a commit unwritten until a later
    /// one, or a sync, has it written.
    pub flush_every_ms: Option<u64>,
    /// A segment of extents is closed at this size; a larger payload gets one of its own.
    pub segment_bytes: u64,
    /// What payloads in extents may take together in [`Mode::Memory`], in bytes.
    pub memory_limit: Option<u64>,
    /// Commits go on only when they are told to: [`Store::step`](super::Store::step).
    #[cfg(any(test, feature = "schedule"))]
    pub stepped: bool,
}

impl StoreConfig {
    /// A store that keeps nothing.
    pub fn memory(clock: Clock) -> Self {
        Self::new(Mode::Memory, None, clock)
    }

    /// A store in `dir` that loses nothing that it acknowledged.
    pub fn durable(dir: impl Into<PathBuf>, clock: Clock) -> Self {
        Self::new(Mode::Durable, Some(dir.into()), clock)
    }

    /// A store in `dir` that trades the last moments before a crash for speed.
    pub fn fast(dir: impl Into<PathBuf>, clock: Clock) -> Self {
        Self::new(Mode::Fast, Some(dir.into()), clock)
    }

    fn new(mode: Mode, dir: Option<PathBuf>, clock: Clock) -> Self {
        StoreConfig {
            mode,
            dir,
            clock,
            cache_bytes: CACHE_BYTES,
            flush_every_ms: (mode == Mode::Fast).then_some(FAST_LOSS_MS_MAX),
            segment_bytes: SEGMENT_BYTES,
            memory_limit: None,
            #[cfg(any(test, feature = "schedule"))]
            stepped: false,
        }
    }
}
