//! What is measured, and what the design must reach.

use smalt_protocol::Service;

/// Connections of the lines about small requests.
pub const CONNECTIONS: usize = 64;
/// Connections of the lines about large bodies: enough to keep both cores busy.
pub const CONNECTIONS_LARGE: usize = 4;
/// Bytes of a large body.
pub const LARGE_BYTES: usize = 8 * 1024 * 1024;
/// Bytes of a small body.
pub const SMALL_BYTES: usize = 4 * 1024;
/// Bytes of a message.
pub const MESSAGE_BYTES: usize = 1024;

/// A line about a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Get Blob Properties.
    Head,
    /// Get Blob of 4 KiB.
    Get,
    /// Peek Messages: one of 1 KiB.
    Peek,
    /// Put Blob of 4 KiB.
    Put,
    /// Put Message of 1 KiB.
    PutMessage,
    /// Set Blob Metadata.
    SetMetadata,
    /// Query Entities for one entity by its keys.
    GetEntity,
    /// Insert Entity, a small one.
    InsertEntity,
    /// Put Blob of 8 MiB.
    PutLarge,
    /// Get Blob of 8 MiB.
    GetLarge,
}

impl Rate {
    /// All, in the order of the table.
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

    /// Its name in the table.
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

    /// The service that is asked.
    pub const fn service(self) -> Service {
        match self {
            Rate::Peek | Rate::PutMessage => Service::Queue,
            Rate::GetEntity | Rate::InsertEntity => Service::Table,
            _ => Service::Blob,
        }
    }

    /// Whether bytes are counted in place of operations.
    pub const fn is_large(self) -> bool {
        matches!(self, Rate::PutLarge | Rate::GetLarge)
    }

    /// Connections at the same time.
    pub const fn connections(self) -> usize {
        if self.is_large() {
            CONNECTIONS_LARGE
        } else {
            CONNECTIONS
        }
    }

    /// Unit of the value.
    pub const fn unit(self) -> &'static str {
        if self.is_large() { "MiB/s" } else { "op/s" }
    }

    /// What part of bare hyper's value must be reached (architecture, *Numbers*).
    pub const fn of_hyper_min(self) -> f64 {
        match self {
            Rate::Head | Rate::Get | Rate::Peek | Rate::GetEntity => 0.60,
            Rate::Put | Rate::PutMessage | Rate::SetMetadata | Rate::InsertEntity => 0.35,
            Rate::PutLarge | Rate::GetLarge => 0.50,
        }
    }

    /// How many times Azurite's value must be reached, where that is a target.
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
    /// Time of a page of 5,000 blobs, many of which there are.
    ListPage,
    /// From the start of the process to its first answer, nothing stored.
    StartEmpty,
    /// The same, much stored.
    StartFull,
    /// Resident memory, nothing stored.
    MemoryIdle,
    /// Resident memory after as many blobs and messages were put.
    MemoryFull,
}

impl Scale {
    /// All, in the order of the table.
    pub const ALL: [Scale; 5] = [
        Scale::ListPage,
        Scale::StartEmpty,
        Scale::StartFull,
        Scale::MemoryIdle,
        Scale::MemoryFull,
    ];

    /// Its name in the table.
    pub fn name(self, blobs: u64) -> String {
        match self {
            Scale::ListPage => format!("page of 5,000 of {blobs}"),
            Scale::StartEmpty => "start, empty".to_owned(),
            Scale::StartFull => format!("start, {blobs} blobs"),
            Scale::MemoryIdle => "memory, idle".to_owned(),
            Scale::MemoryFull => format!("memory, {blobs} blobs + messages"),
        }
    }

    /// Unit of the value.
    pub const fn unit(self) -> &'static str {
        match self {
            Scale::ListPage | Scale::StartEmpty | Scale::StartFull => "ms",
            Scale::MemoryIdle | Scale::MemoryFull => "MiB",
        }
    }

    /// The most that the design allows; for the page, times that of 10,000 blobs.
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

/// Name of the line about calls in process.
pub const IN_PROCESS: &str = "in process, virtual clock";
/// Calls a second in process that the design must reach on one core.
pub const IN_PROCESS_MIN: f64 = 50_000.0;
