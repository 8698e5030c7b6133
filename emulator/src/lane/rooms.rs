//! Rooms for answers that hold much memory as long as they are sent.
//!
//! There are so many and no more. Who finds none free waits, first come, first served. Meanwhile
//! whoever has not come for more of its answer for a while loses its room: a reader that stands
//! still keeps nobody else out.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use smalt_protocol::{ErrorCode, StorageError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Answers at once: ours. Each holds less than 100 MiB, a usual one a few hundred KiB.
const ROOMS: usize = 8;
/// How long a request waits for a room: the time that the service gives a request whose client
/// names none. "Setting timeouts for Blob service operations".
const WAITING: Duration = Duration::from_secs(30);
/// How long a reader may stand still while others wait: ours, a third of what they wait.
const STANDING_STILL: Duration = Duration::from_secs(10);
/// How often those that wait look for one that stands still.
const LOOKING: Duration = Duration::from_secs(1);

/// Whoever has a room.
pub trait Guest: Send + Sync {
    /// Gives everything up that is held, if nobody has come for it for so long. Whether it did.
    fn leave(&self, standing_still: Duration) -> bool;
}

/// The rooms.
pub struct Rooms {
    free: Arc<Semaphore>,
    guests: Arc<Mutex<Vec<Weak<dyn Guest>>>>,
}

/// One room; it is free again when this is dropped.
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
    /// 503 `ServerBusy` when none becomes free in time.
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
        let mut guests = self.guests.lock();
        guests.retain(|guest| guest.strong_count() > 0);
        let guests: Vec<_> = guests.iter().filter_map(Weak::upgrade).collect();
        // What is given up here is dropped without the lock.
        guests.iter().any(|guest| guest.leave(STANDING_STILL));
    }
}

impl Room {
    /// Notes who has it.
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

    /// Only when others wait, and only after a while.
    #[tokio::test(start_paused = true)]
    async fn who_stands_still_makes_room_for_who_waits() {
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
    async fn who_finds_no_room_is_told_so() {
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
