//! The service through requests, in process and over sockets: what cases (`fixtures/cases`) do not
//! show. One program, because each more is linked with the whole emulator.

mod access;
mod blobs;
mod containers;
mod damage;
mod events;
mod faults;
mod operations_doc;
mod queues;
mod repeat;
#[cfg(feature = "server")]
mod sockets;
mod state;
mod support;
mod tables;
#[cfg(feature = "sdk")]
mod testing_page;
mod web_pages;
