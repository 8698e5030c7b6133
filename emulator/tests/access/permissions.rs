//! The register against the documents: which permission opens which operation.

use smalt::Service;
use smalt::register::{self, Anonymous};

/// Title; resource type and letters of an account SAS; letters of a service SAS and of a user
/// delegation SAS; public access that opens it. From the tables of "Create an account SAS" and
/// "Create a service SAS" and from the page of each operation. A dash stands for "cannot".
const BLOB: &[(&str, &str, &str, &str, Anonymous)] = &[
    ("List Containers", "s", "l", "-", Anonymous::No),
    ("Get Blob Service Properties", "s", "r", "-", Anonymous::No),
    ("Set Blob Service Properties", "s", "w", "-", Anonymous::No),
    ("Get Blob Service Stats", "s", "r", "-", Anonymous::No),
    ("Get User Delegation Key", "s", "-", "-", Anonymous::No),
    ("Find Blobs by Tags", "s", "f", "-", Anonymous::No),
    ("Preflight Blob Request", "c", "-", "-", Anonymous::Always),
    ("Create Container", "c", "cw", "-", Anonymous::No),
    (
        "Get Container Properties",
        "c",
        "r",
        "-",
        Anonymous::Container,
    ),
    (
        "Get Container Metadata",
        "c",
        "r",
        "-",
        Anonymous::Container,
    ),
    ("Set Container Metadata", "c", "w", "-", Anonymous::No),
    ("Get Container ACL", "c", "-", "-", Anonymous::No),
    ("Set Container ACL", "c", "-", "-", Anonymous::No),
    ("Delete Container", "c", "d", "-", Anonymous::No),
    ("Restore Container", "c", "cw", "-", Anonymous::No),
    ("Rename Container", "c", "w", "-", Anonymous::No),
    ("List Blobs", "c", "l", "l", Anonymous::Container),
    (
        "Find Blobs by Tags in Container",
        "c",
        "f",
        "f",
        Anonymous::No,
    ),
    ("Get Blob", "o", "r", "r", Anonymous::Blob),
    ("Get Blob Properties", "o", "r", "r", Anonymous::Blob),
    ("Get Blob Metadata", "o", "r", "r", Anonymous::Blob),
    ("Get Block List", "o", "r", "r", Anonymous::Blob),
    ("Get Page Ranges", "o", "r", "r", Anonymous::Blob),
    (
        "Get Page Ranges (difference)",
        "o",
        "r",
        "r",
        Anonymous::Blob,
    ),
    ("Query Blob Contents", "o", "r", "r", Anonymous::No),
    ("Put Blob", "o", "cw", "cw", Anonymous::No),
    ("Put Blob (page)", "o", "cw", "cw", Anonymous::No),
    ("Put Blob (append)", "o", "cw", "cw", Anonymous::No),
    ("Put Blob From URL", "o", "cw", "cw", Anonymous::No),
    ("Copy Blob", "o", "cw", "cw", Anonymous::No),
    ("Copy Blob From URL", "o", "cw", "cw", Anonymous::No),
    ("Incremental Copy Blob", "o", "cw", "cw", Anonymous::No),
    ("Snapshot Blob", "o", "cw", "cw", Anonymous::No),
    ("Abort Copy Blob", "o", "w", "w", Anonymous::No),
    ("Set Blob Properties", "o", "w", "w", Anonymous::No),
    ("Set Blob Properties (resize)", "o", "w", "w", Anonymous::No),
    (
        "Set Blob Properties (sequence number)",
        "o",
        "w",
        "w",
        Anonymous::No,
    ),
    ("Set Blob Metadata", "o", "w", "w", Anonymous::No),
    ("Set Blob Tier", "o", "w", "w", Anonymous::No),
    ("Set Blob Expiry", "o", "w", "w", Anonymous::No),
    ("Put Block", "o", "w", "w", Anonymous::No),
    ("Put Block From URL", "o", "w", "w", Anonymous::No),
    ("Put Block List", "o", "w", "w", Anonymous::No),
    ("Put Page", "o", "w", "w", Anonymous::No),
    ("Put Page (clear)", "o", "w", "w", Anonymous::No),
    ("Put Page From URL", "o", "w", "w", Anonymous::No),
    ("Append Block", "o", "aw", "aw", Anonymous::No),
    ("Append Block From URL", "o", "aw", "aw", Anonymous::No),
    ("Append Blob Seal", "o", "w", "w", Anonymous::No),
    // The version and what is deleted for good have letters of their own.
    ("Delete Blob", "o", "d", "d", Anonymous::No),
    ("Undelete Blob", "o", "w", "w", Anonymous::No),
    ("Get Blob Tags", "o", "t", "t", Anonymous::No),
    ("Set Blob Tags", "o", "t", "t", Anonymous::No),
    ("Set Blob Immutability Policy", "o", "i", "i", Anonymous::No),
    (
        "Delete Blob Immutability Policy",
        "o",
        "i",
        "i",
        Anonymous::No,
    ),
    ("Set Blob Legal Hold", "o", "i", "i", Anonymous::No),
];

const QUEUE: &[(&str, &str, &str, &str, Anonymous)] = &[
    ("List Queues", "s", "l", "-", Anonymous::No),
    ("Get Queue Service Properties", "s", "r", "-", Anonymous::No),
    ("Set Queue Service Properties", "s", "w", "-", Anonymous::No),
    ("Get Queue Service Stats", "s", "r", "-", Anonymous::No),
    ("Get User Delegation Key", "s", "-", "-", Anonymous::No),
    ("Preflight Queue Request", "c", "-", "-", Anonymous::Always),
    ("Create Queue", "c", "cw", "-", Anonymous::No),
    ("Delete Queue", "c", "d", "-", Anonymous::No),
    ("Get Queue Metadata", "c", "r", "r", Anonymous::No),
    ("Set Queue Metadata", "c", "w", "-", Anonymous::No),
    ("Get Queue ACL", "c", "-", "-", Anonymous::No),
    ("Set Queue ACL", "c", "-", "-", Anonymous::No),
    ("Put Message", "o", "a", "a", Anonymous::No),
    ("Get Messages", "o", "p", "p", Anonymous::No),
    ("Peek Messages", "o", "r", "r", Anonymous::No),
    ("Delete Message", "o", "p", "p", Anonymous::No),
    ("Clear Messages", "o", "d", "-", Anonymous::No),
    ("Update Message", "o", "u", "u", Anonymous::No),
];

/// What any letter opens, and what goes by the action of the lease.
const OTHER_RULES: &[&str] = &[
    "Get Account Information",
    "Blob Batch",
    "Lease Container",
    "Lease Blob",
];

fn letters(text: &str) -> &str {
    if text == "-" { "" } else { text }
}

#[test]
fn the_register_says_what_the_documents_say() {
    for (service, table) in [(Service::Blob, BLOB), (Service::Queue, QUEUE)] {
        for entry in register::all().filter(|entry| entry.service == service) {
            if OTHER_RULES.contains(&entry.title) {
                continue;
            }
            let row = table.iter().find(|row| row.0 == entry.title);
            let (_, scope, account, own, anonymous) = row.unwrap_or_else(|| panic!("{entry:?}"));
            let access = &entry.access;
            assert_eq!(access.scope.letter().to_string(), *scope, "{entry:?}");
            assert_eq!(access.account_sas, letters(account), "{entry:?}");
            assert_eq!(access.service_sas, letters(own), "{entry:?}");
            assert_eq!(access.anonymous, *anonymous, "{entry:?}");
        }
        for (title, ..) in table {
            let is_known = register::all().any(|e| e.service == service && e.title == *title);
            assert!(is_known, "{title} is not in the register");
        }
    }
}

/// "Lease Blob", "Lease Container": `w`, and `d` to break; no service SAS leases a container.
#[test]
fn leases_go_by_their_action() {
    for entry in register::all().filter(|entry| entry.title.starts_with("Lease ")) {
        let breaks = entry.id.ends_with("BreakLease");
        let expected = if breaks { "wd" } else { "w" };
        let is_blob = entry.title == "Lease Blob";
        assert_eq!(entry.access.account_sas, expected, "{entry:?}");
        assert_eq!(
            entry.access.service_sas,
            if is_blob { expected } else { "" }
        );
        assert_eq!(entry.access.refined.is_some(), breaks, "{entry:?}");
    }
}
