//! The lines of the table, and their targets from the design.

use smalt_protocol::Service;

/// Connections for lines about small requests.
pub const CONNECTIONS: usize = 64;
/// Connections for lines about large bodies: enough to keep two cores busy.
pub const CONNECTIONS_LARGE: usize = 4;
/// Size of a large body, in bytes.
pub const LARGE_BYTES: usize = 8 * 1024 * 1024;
/// Size of a small body, in bytes.
pub const SMALL_BYTES: usize = 4 * 1024;
/// Size of a message, in bytes.
pub const MESSAGE_BYTES: usize = 1024;

/// A line about a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Get Blob Properties.
    Head,
    /// Get Blob of 4 KiB.
    Get,
    /// Peek Messages, with one message of 1 KiB.
    Peek,
    /// Put Blob of 4 KiB.
    Put,
    /// Put Message of 1 KiB.
    PutMessage,
    /// Set Blob Metadata.
    SetMetadata,
    /// Query Entities by both keys, for one entity.
    GetEntity,
    /// Insert Entity, with a small entity.
    InsertEntity,
    /// Put Blob of 8 MiB.
    PutLarge,
    /// Get Blob of 8 MiB.
    GetLarge,
}

impl Rate {
    /// All lines, in the order of the table.
    pub const ALL: [Rate; 10] = [
        Rate::Head,
        Rate::Get,
        Rate::Peek,
        Rate::Put,
        Rate::PutMessage,
        Rate::SetMetadata,
        Rate::GetEntity,
        Rate::InsertEntity,
        Rate::PutLarge,
        Rate::GetLarge,
    ];

    /// Returns the name in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Rate::Head => "head",
            Rate::Get => "get 4 KiB",
            Rate::Peek => "peek",
            Rate::Put => "put 4 KiB",
            Rate::PutMessage => "put message 1 KiB",
            Rate::SetMetadata => "set metadata",
            Rate::GetEntity => "get entity",
            Rate::InsertEntity => "insert entity",
            Rate::PutLarge => "put 8 MiB",
            Rate::GetLarge => "get 8 MiB",
        }
    }

    /// Returns the service that receives the requests.
    pub const fn service(self) -> Service {
        match self {
            Rate::Peek | Rate::PutMessage => Service::Queue,
            Rate::GetEntity | Rate::InsertEntity => Service::Table,
            _ => Service::Blob,
        }
    }

    /// Whether the line counts bytes instead of operations.
    pub const fn is_large(self) -> bool {
        matches!(self, Rate::PutLarge | Rate::GetLarge)
    }

    /// Returns the number of concurrent connections.
    pub const fn connections(self) -> usize {
        if self.is_large() {
            CONNECTIONS_LARGE
        } else {
            CONNECTIONS
        }
    }

    /// Returns the unit of the value.
    pub const fn unit(self) -> &'static str {
        if self.is_large() { "MiB/s" } else { "op/s" }
    }

    /// Returns the required fraction of bare hyper's value (architecture, *Numbers*).
    pub const fn of_hyper_min(self) -> f64 {
        match self {
            Rate::Head | Rate::Get | Rate::Peek | Rate::GetEntity => 0.60,
            Rate::Put | Rate::PutMessage | Rate::SetMetadata | Rate::InsertEntity => 0.35,
            Rate::PutLarge | Rate::GetLarge => 0.50,
        }
    }

    /// Returns the required multiple of Azurite's value; `None` without a target.
    pub const fn of_azurite_min(self) -> Option<f64> {
        match self {
            Rate::Put | Rate::PutMessage | Rate::SetMetadata | Rate::InsertEntity => Some(20.0),
            _ => None,
        }
    }
}

/// A line about scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Time of a page of 5,000 blobs in a container with many.
    ListPage,
    /// Time from process start to the first answer, with an empty store.
    StartEmpty,
    /// Time from process start to the first answer, with a full store.
    StartFull,
    /// Resident memory with an empty store.
    MemoryIdle,
    /// Resident memory after putting the given number of blobs and of messages.
    MemoryFull,
}

impl Scale {
    /// All lines, in the order of the table.
    pub const ALL: [Scale; 5] = [
        Scale::ListPage,
        Scale::StartEmpty,
        Scale::StartFull,
        Scale::MemoryIdle,
        Scale::MemoryFull,
    ];

    /// Returns the name in the table.
    pub fn name(self, blobs: u64) -> String {
        match self {
            Scale::ListPage => format!("page of 5,000 of {blobs}"),
            Scale::StartEmpty => "start, empty".to_owned(),
            Scale::StartFull => format!("start, {blobs} blobs"),
            Scale::MemoryIdle => "memory, idle".to_owned(),
            Scale::MemoryFull => format!("memory, {blobs} blobs + messages"),
        }
    }

    /// Returns the unit of the value.
    pub const fn unit(self) -> &'static str {
        match self {
            Scale::ListPage | Scale::StartEmpty | Scale::StartFull => "ms",
            Scale::MemoryIdle | Scale::MemoryFull => "MiB",
        }
    }

    /// Returns the largest value that the design allows; for the page, relative to that of 10,000
    /// blobs.
    pub const fn most(self) -> f64 {
        match self {
            Scale::ListPage => 1.3,
            Scale::StartEmpty => 20.0,
            Scale::StartFull => 1_000.0,
            Scale::MemoryIdle => 15.0,
            Scale::MemoryFull => 150.0,
        }
    }
}

/// Name of the line about in-process calls.
pub const IN_PROCESS: &str = "in process, virtual clock";
/// Required in-process calls per second on one core.
pub const IN_PROCESS_MIN: f64 = 50_000.0;
