//! A limited number of slots ("rooms") for responses that use much memory while they are sent.
//!
//! A request that finds no free room waits, first come, first served. Meanwhile a response whose
//! client has not read for a while loses its room, so that a stalled reader does not block others.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use smalt_protocol::{ErrorCode, StorageError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Concurrent responses, smalt's own limit. Each uses less than 100 MiB, typically a few hundred
/// KiB.
const ROOMS: usize = 8;
/// How long a request waits for a room: the service's default time limit for a request. "Setting
/// timeouts for Blob service operations".
const WAITING: Duration = Duration::from_secs(30);
/// How long a reader may stall while others wait: smalt's own limit, a third of the waiting time.
const STANDING_STILL: Duration = Duration::from_secs(10);
/// How often waiting requests look for a stalled reader.
const LOOKING: Duration = Duration::from_secs(1);

/// The owner of a room.
pub trait Guest: Send + Sync {
    /// Releases everything if the client has not read for `standing_still`. Returns whether it did.
    fn leave(&self, standing_still: Duration) -> bool;
}

/// The rooms of an emulator.
pub struct Rooms {
    free: Arc<Semaphore>,
    guests: Arc<Mutex<Vec<Weak<dyn Guest>>>>,
}

/// A room; dropping it frees it.
pub struct Room {
    _permit: OwnedSemaphorePermit,
    guests: Arc<Mutex<Vec<Weak<dyn Guest>>>>,
}

impl Default for Rooms {
    fn default() -> Self {
        Rooms {
            free: Arc::new(Semaphore::new(ROOMS)),
            guests: Arc::default(),
        }
    }
}

impl Rooms {
    /// Waits for a room.
    ///
    /// # Errors
    /// 503 `ServerBusy` when none becomes free in 30 s.
    pub async fn enter(&self) -> Result<Room, StorageError> {
        let busy = || StorageError::from(ErrorCode::ServerBusy);
        let room = |permit| Room {
            _permit: permit,
            guests: Arc::clone(&self.guests),
        };
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            return Ok(room(permit));
        }
        let mut waiting = Box::pin(Arc::clone(&self.free).acquire_owned());
        for _ in 0..WAITING.as_secs() / LOOKING.as_secs() {
            if let Ok(permit) = tokio::time::timeout(LOOKING, &mut waiting).await {
                return permit.map(room).map_err(|_| busy());
            }
            self.clear_one();
        }
        Err(busy())
    }

    fn clear_one(&self) {
        // A guest may drop what it held, which takes time: not under the lock.
        let guests: Vec<_> = {
            let mut guests = self.guests.lock();
            guests.retain(|guest| guest.strong_count() > 0);
            guests.iter().filter_map(Weak::upgrade).collect()
        };
        guests.iter().any(|guest| guest.leave(STANDING_STILL));
    }
}

impl Room {
    /// Registers the owner, which may have to leave the room.
    pub fn of(&self, guest: Weak<dyn Guest>) {
        let mut guests = self.guests.lock();
        guests.retain(|guest| guest.strong_count() > 0);
        guests.push(guest);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    struct Standing(Mutex<Option<Room>>, Instant);

    impl Guest for Standing {
        fn leave(&self, standing_still: Duration) -> bool {
            self.1.elapsed() >= standing_still && self.0.lock().take().is_some()
        }
    }

    /// A stalled reader loses its room only when others wait, and only after a while.
    #[tokio::test(start_paused = true)]
    async fn stalled_reader_makes_room_for_waiting_request() {
        let rooms = Rooms::default();
        let mut guests = Vec::new();
        for _ in 0..ROOMS {
            let room = rooms.enter().await.unwrap();
            let guest = Arc::new(Standing(Mutex::new(None), Instant::now()));
            let weak: Weak<Standing> = Arc::downgrade(&guest);
            room.of(weak);
            *guest.0.lock() = Some(room);
            guests.push(guest);
        }
        tokio::time::sleep(STANDING_STILL).await;
        let held = |guests: &[Arc<Standing>]| {
            guests
                .iter()
                .filter(|guest| guest.0.lock().is_some())
                .count()
        };
        assert_eq!(held(&guests), ROOMS);
        let started = Instant::now();
        let room = rooms.enter().await.unwrap();
        assert_eq!((held(&guests), started.elapsed()), (ROOMS - 1, LOOKING));
        drop(room);
    }

    #[tokio::test(start_paused = true)]
    async fn request_without_room_gets_server_busy() {
        let rooms = Rooms::default();
        let mut held = Vec::new();
        for _ in 0..ROOMS {
            held.push(rooms.enter().await.unwrap());
        }
        let refused = rooms.enter().await.err().map(|error| error.status());
        assert_eq!(refused, Some(503));
        held.pop();
        assert!(rooms.enter().await.is_ok());
    }
}
