//! Room for long messages: so many bytes of them are under way at a time, whoever sends them, so that many at once cannot
//! take all memory. Short ones, which are nearly all, are not counted.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What is shorter is not counted.
const SHORT: usize = 64 << 10;

/// The room that there is, in KiB.
#[derive(Debug)]
pub(crate) struct Room(Arc<Semaphore>);

/// There is no room at the moment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

impl Room {
    /// Room for so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new((bytes >> 10).min(Semaphore::MAX_PERMITS))))
    }

    /// Room for a message of that length, until what is given back is dropped; nothing where none is needed.
    pub(crate) fn take(&self, length: usize) -> Result<Option<OwnedSemaphorePermit>, NoRoom> {
        if length <= SHORT {
            return Ok(None);
        }
        let needed = u32::try_from(length.div_ceil(1 << 10)).unwrap_or(u32::MAX);
        Arc::clone(&self.0).try_acquire_many_owned(needed).map(Some).map_err(|_| NoRoom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_take_room_and_give_it_back() {
        let room = Room::new(1 << 20);
        let first = room.take(700 << 10).unwrap();
        assert_eq!(room.take(700 << 10).unwrap_err(), NoRoom);
        assert!(room.take(SHORT).unwrap().is_none());
        assert!(room.take(300 << 10).unwrap().is_some());
        drop(first);
        assert!(room.take(700 << 10).is_ok());
    }
}
