//! Operations on blobs.
