//! Themes: some histories have few names and few kinds of operations, so that what needs several
//! steps on one resource is common enough.

use super::Space;

/// A theme.
#[derive(Debug)]
pub(super) struct Theme {
    /// The kinds of operations, by name.
    pub(super) kinds: &'static [&'static str],
    /// Percentage of steps that let time pass.
    pub(super) advance_percent: u8,
    /// Number of names of blobs.
    pub(super) blobs: usize,
    /// Percentage of texts, contents and properties that are long.
    pub(super) long_percent: u8,
}

const QUIET: Theme = Theme {
    kinds: &[],
    advance_percent: 4,
    blobs: 2,
    long_percent: 12,
};

/// Of this many histories one has a theme.
const THEMED_EVERY: u8 = 2;

static ACCOUNT: [Theme; 14] = [
    Theme {
        kinds: &[
            "account set retention",
            "blob put",
            "blob delete",
            "blob undelete",
            "blob snapshot",
        ],
        ..QUIET
    },
    Theme {
        kinds: &["blob set tier"],
        advance_percent: 20,
        ..QUIET
    },
    Theme {
        kinds: &[
            "account set retention",
            "account find blobs",
            "blob set tags",
            "blob put",
            "blob delete",
            "blob undelete",
        ],
        ..QUIET
    },
    Theme {
        kinds: &[
            "account find blobs",
            "blob set tags",
            "blob put",
            "blob put block",
            "blob put block list",
            "blob copy",
            "blob copy from url",
            "container delete",
        ],
        ..QUIET
    },
    Theme {
        kinds: &[
            "queue create",
            "message put",
            "message update",
            "message get",
            "message peek",
            "message delete",
            "message clear",
        ],
        long_percent: 60,
        ..QUIET
    },
    Theme {
        kinds: &[
            "account set retention",
            "blob put",
            "blob put append",
            "blob append",
            "blob put block",
            "blob put block list",
            "blob copy",
            "blob copy from url",
            "blob get",
            "blob snapshot",
            "blob delete",
            "blob undelete",
        ],
        long_percent: 60,
        ..QUIET
    },
    Theme {
        kinds: &[
            "blob put",
            "blob lease acquire",
            "blob lease renew",
            "blob lease change",
            "blob lease break",
        ],
        advance_percent: 30,
        blobs: 1,
        ..QUIET
    },
    Theme {
        kinds: &[
            "container delete",
            "container lease acquire",
            "container lease break",
        ],
        advance_percent: 30,
        ..QUIET
    },
    Theme {
        kinds: &[
            "container lease acquire",
            "container lease renew",
            "container lease change",
            "container lease break",
        ],
        advance_percent: 30,
        ..QUIET
    },
    Theme {
        kinds: &[
            "queue create",
            "queue get",
            "message put",
            "message get",
            "message peek",
            "message update",
            "message delete",
        ],
        advance_percent: 25,
        ..QUIET
    },
    Theme {
        kinds: &[
            "account set retention",
            "blob put",
            "blob snapshot",
            "blob delete",
            "blob undelete",
            "container list",
        ],
        advance_percent: 20,
        ..QUIET
    },
    Theme {
        kinds: &["container set policy", "container signed list"],
        advance_percent: 12,
        ..QUIET
    },
    Theme {
        kinds: &[
            "blob put pages",
            "blob put pages data",
            "blob clear pages",
            "blob resize",
            "blob get page ranges",
            "blob get",
            "blob snapshot",
        ],
        ..QUIET
    },
    Theme {
        kinds: &["queue create", "queue set policy", "queue signed peek"],
        advance_percent: 12,
        ..QUIET
    },
];

static TABLES: [Theme; 4] = [
    Theme {
        kinds: &["entity group transaction", "entity query"],
        ..QUIET
    },
    Theme {
        kinds: &["entity group transaction"],
        ..QUIET
    },
    Theme {
        kinds: &[
            "table create",
            "table delete",
            "entity insert",
            "entity insert or replace",
            "entity insert or merge",
            "entity update",
            "entity merge",
            "entity delete",
            "entity get",
            "entity query one page",
        ],
        long_percent: 60,
        ..QUIET
    },
    Theme {
        kinds: &["table set policy", "table signed query"],
        advance_percent: 12,
        ..QUIET
    },
];

impl Space {
    /// Returns the space of one history: usually the same, sometimes one of a theme.
    #[must_use]
    pub fn themed(self, byte: u8) -> Self {
        let all: &'static [Theme] = match self.tables {
            true => &TABLES,
            false => &ACCOUNT,
        };
        let number = usize::from(byte / THEMED_EVERY) % all.len();
        let is_themed = self.wide && !self.lake && byte % THEMED_EVERY == THEMED_EVERY - 1;
        match all.get(number).filter(|_| is_themed) {
            Some(theme) => Space {
                theme: Some(theme),
                containers: 1,
                blobs: theme.blobs,
                queues: 1,
                ..self
            },
            None => self,
        }
    }
}
