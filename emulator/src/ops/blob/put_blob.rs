//! Put Blob: a block blob in one shot.
