//! The service on sockets: behaviour of connections that in-process requests do not have.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails"
)]

mod broken_off;
mod hosts;
mod served;
mod unread_bodies;
