//! Operations on blobs.

