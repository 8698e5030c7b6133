//! Owner, group and access control list of a path in a hierarchical namespace.
//!
//! Sources: "Access control lists (ACLs) in Azure Data Lake Storage", "Path - Create", "Path -
//! Update"; recordings for the defaults of new paths.

use serde::{Deserialize, Serialize};
use smalt_protocol::limits::ACL_ENTRIES_MAX;
use smalt_protocol::{ErrorCode, StorageError};

/// The owner and the group of paths that the account's key creates, as recorded.
pub const SUPERUSER: &str = "$superuser";
/// `x-ms-umask` of a request that has none. "Path - Create".
pub const UMASK_DEFAULT: u16 = 0o027;
/// Permissions of a file before the umask.
const FILE_MODE: u16 = 0o666;
/// Permissions of a directory before the umask.
const DIRECTORY_MODE: u16 = 0o777;
const STICKY: u16 = 0o1000;

/// Permission to read a file or list a directory.
pub const READ: u8 = 4;
/// Permission to change a file or the contents of a directory.
pub const WRITE: u8 = 2;
/// Permission to reach what is in a directory.
pub const EXECUTE: u8 = 1;

/// Parameter of checkAccess: the permissions that the user asks about.
pub const FS_ACTION: &str = "fsAction";

/// What a request needs of a path when access control lists decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// To reach it.
    Reach,
    /// Permissions on it; to add it, on its directory.
    Have(u8),
    /// To remove it from its directory.
    Remove,
    /// To move another path there.
    Rename,
    /// To own it.
    Own,
    /// A role: no list permits the request.
    Role,
}

/// Number of entries that every list has: owner, owning group and others.
const BASES: usize = 3;

const ACL: &str = "x-ms-acl";
const PERMISSIONS: &str = "x-ms-permissions";
/// Header of the permissions that a new path does not get.
pub const UMASK: &str = "x-ms-umask";

/// Owner, group and access control list of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posix {
    /// `x-ms-owner`.
    pub owner: String,
    /// `x-ms-group`.
    pub group: String,
    /// Whether only an owner may remove or rename the children of the directory.
    pub sticky: bool,
    /// Access entries in order, then default entries in order.
    pub acl: Vec<AclEntry>,
}

/// An entry of an access control list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AclEntry {
    /// Whether new children of the directory get the entry.
    pub is_default: bool,
    /// The kind of identity.
    pub class: Class,
    /// Id of a named user or group; empty for the owner, the owning group, mask and others.
    pub id: String,
    /// Read 4, write 2 and execute 1.
    pub bits: u8,
}

/// The kind of identity of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Class {
    /// `user`.
    User,
    /// `group`.
    Group,
    /// `mask`.
    Mask,
    /// `other`.
    Other,
}

impl Class {
    const ALL: [(Class, &'static str); 4] = [
        (Class::User, "user"),
        (Class::Group, "group"),
        (Class::Mask, "mask"),
        (Class::Other, "other"),
    ];

    fn name(self) -> &'static str {
        let mut all = Class::ALL.into_iter();
        all.find(|(class, _)| *class == self)
            .map_or("", |(_, name)| name)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut all = Class::ALL.into_iter();
        all.find(|(_, name)| text.eq_ignore_ascii_case(name))
            .map(|(class, _)| class)
    }
}

/// How a list changes one that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AclMode {
    /// Replaces it.
    Set,
    /// Adds its entries, and replaces those of the same identity.
    Modify,
    /// Removes the entries of its identities.
    Remove,
}

fn entry(class: Class, bits: u16) -> AclEntry {
    AclEntry {
        is_default: false,
        class,
        id: String::new(),
        // Three bits.
        bits: (bits & 7) as u8,
    }
}

impl Posix {
    /// Returns what a new path gets: of its parent's default list, if it has one, or of the given
    /// permissions and umask.
    pub fn of_new(
        is_directory: bool,
        mode: Option<u16>,
        umask: u16,
        parent: Option<&Posix>,
    ) -> Self {
        let usual = if is_directory {
            DIRECTORY_MODE
        } else {
            FILE_MODE
        };
        let mode = mode.unwrap_or(usual);
        let mut new = Posix {
            owner: SUPERUSER.to_owned(),
            group: SUPERUSER.to_owned(),
            sticky: mode & STICKY != 0,
            acl: Vec::new(),
        };
        let inherited = parent.map_or(&[][..], |parent| &parent.acl);
        let inherited: Vec<_> = inherited.iter().filter(|e| e.is_default).cloned().collect();
        if inherited.is_empty() {
            new.set_mode(mode & !umask);
            return new;
        }
        new.acl = inherited.iter().cloned().map(of_access).collect();
        let has_mask = new.acl.iter().any(|e| e.class == Class::Mask);
        for found in &mut new.acl {
            let shift = match (found.class, found.id.is_empty()) {
                (Class::User, true) => 6,
                (Class::Mask, _) => 3,
                (Class::Group, true) if !has_mask => 3,
                (Class::Other, _) => 0,
                _ => continue,
            };
            found.bits &= (mode >> shift) as u8 & 7;
        }
        if is_directory {
            new.acl.extend(inherited);
        }
        new.acl.sort();
        new
    }

    /// Sets the permissions of owner, group and others. The group's are those of the mask, if there
    /// is one.
    pub fn set_mode(&mut self, mode: u16) {
        self.sticky = mode & STICKY != 0;
        let has_mask = self.has(Class::Mask);
        let group = if has_mask { Class::Mask } else { Class::Group };
        for new in [
            entry(Class::User, mode >> 6),
            entry(group, mode >> 3),
            entry(Class::Other, mode),
        ] {
            self.put(new);
        }
    }

    /// Gives a new path to the user who creates it; its group is that of its directory.
    #[must_use]
    pub fn created_by(mut self, user: Option<&str>, parent: &Posix) -> Self {
        if let Some(user) = user {
            user.clone_into(&mut self.owner);
            self.group.clone_from(&parent.group);
        }
        self
    }

    /// Returns whether a user has all of these permissions: as the owner, by an entry for it, or as
    /// one of the others.
    pub fn allows(&self, user: &str, bits: u8) -> bool {
        let of = |class: Class, id: &str| {
            let mut access = self.acl.iter().filter(|e| !e.is_default);
            let found = access.find(|e| e.class == class && e.id.eq_ignore_ascii_case(id));
            found.map(|e| e.bits)
        };
        let granted = if self.owner.eq_ignore_ascii_case(user) {
            of(Class::User, "")
        } else if let Some(named) = of(Class::User, user) {
            Some(named & of(Class::Mask, "").unwrap_or(u8::MAX))
        } else {
            of(Class::Other, "")
        };
        granted.is_some_and(|granted| granted & bits == bits)
    }

    fn has(&self, class: Class) -> bool {
        let mut access = self.acl.iter().filter(|e| !e.is_default);
        access.any(|e| e.class == class)
    }

    fn put(&mut self, new: AclEntry) {
        self.acl.retain(|old| !is_same(old, &new));
        self.acl.push(new);
        self.acl.sort();
    }

    /// Changes the list. Owner, group and others that a new list leaves out stay; default entries
    /// without them get those of the path. A list with named entries gets a mask that permits all
    /// of them.
    ///
    /// # Errors
    /// 400 `InvalidHeaderValue` for more than 32 entries of a kind, and where owner, group or
    /// others would be removed.
    pub fn change(&mut self, mode: AclMode, given: &[AclEntry]) -> Result<(), StorageError> {
        match mode {
            AclMode::Set => {
                self.acl.retain(|old| !old.is_default && old.is_base());
                given.iter().cloned().for_each(|new| self.put(new));
            }
            AclMode::Modify => given.iter().cloned().for_each(|new| self.put(new)),
            AclMode::Remove => {
                for gone in given {
                    self.acl.retain(|old| !is_same(old, gone));
                }
            }
        }
        self.complete_defaults();
        self.complete_mask();
        let bases = self.acl.iter().filter(|e| !e.is_default && e.is_base());
        let is_whole = bases.count() == BASES;
        let too_many = |is_default: bool| {
            let kind = self.acl.iter().filter(|e| e.is_default == is_default);
            kind.count() > ACL_ENTRIES_MAX
        };
        if !is_whole || too_many(false) || too_many(true) {
            return Err(StorageError::invalid_header(ACL, ""));
        }
        Ok(())
    }

    fn complete_defaults(&mut self) {
        if !self.acl.iter().any(|e| e.is_default) {
            return;
        }
        let bases = self.acl.iter().filter(|e| !e.is_default && e.is_base());
        let missing = bases.map(|base| AclEntry {
            is_default: true,
            ..base.clone()
        });
        let missing = missing.filter(|new| !self.acl.iter().any(|old| is_same(old, new)));
        for new in missing.collect::<Vec<_>>() {
            self.put(new);
        }
    }

    fn complete_mask(&mut self) {
        for is_default in [false, true] {
            let of_kind = |e: &&AclEntry| e.is_default == is_default;
            let named = self.acl.iter().filter(of_kind).any(|e| !e.id.is_empty());
            let has_mask = self
                .acl
                .iter()
                .filter(of_kind)
                .any(|e| e.class == Class::Mask);
            if named && !has_mask {
                let masked = self.acl.iter().filter(of_kind);
                let masked = masked.filter(|e| e.class == Class::Group || !e.id.is_empty());
                let bits = masked.fold(0, |all, e| all | e.bits);
                self.put(AclEntry {
                    is_default,
                    ..entry(Class::Mask, u16::from(bits))
                });
            }
        }
    }

    /// Returns `x-ms-permissions`: `rwxr-x---`, with `t` or `T` for the sticky bit, and `+` when
    /// there are more entries than owner, group and others.
    pub fn permissions(&self) -> String {
        let bits = |class: Class| {
            let mut access = self.acl.iter().filter(|e| !e.is_default && e.id.is_empty());
            access.find(|e| e.class == class).map_or(0, |e| e.bits)
        };
        let group = if self.has(Class::Mask) {
            Class::Mask
        } else {
            Class::Group
        };
        let mut text: String = [Class::User, group, Class::Other]
            .map(|class| letters(bits(class)))
            .concat();
        if self.sticky {
            let last = if text.pop() == Some('x') { 't' } else { 'T' };
            text.push(last);
        }
        if self.acl.len() > 3 {
            text.push('+');
        }
        text
    }

    /// Returns `x-ms-acl`.
    pub fn acl_text(&self) -> String {
        let texts: Vec<_> = self.acl.iter().map(AclEntry::text).collect();
        texts.join(",")
    }
}

impl AclEntry {
    /// Whether the entry is that of the owner, the owning group or all others.
    fn is_base(&self) -> bool {
        self.id.is_empty() && self.class != Class::Mask
    }

    fn text(&self) -> String {
        let scope = if self.is_default { "default:" } else { "" };
        let (class, bits) = (self.class.name(), letters(self.bits));
        format!("{scope}{class}:{}:{bits}", self.id)
    }
}

fn of_access(entry: AclEntry) -> AclEntry {
    AclEntry {
        is_default: false,
        ..entry
    }
}

fn is_same(one: &AclEntry, other: &AclEntry) -> bool {
    (one.is_default, one.class, &one.id) == (other.is_default, other.class, &other.id)
}

fn letters(bits: u8) -> String {
    let letter = |bit: u8, letter: char| if bits & bit != 0 { letter } else { '-' };
    [letter(4, 'r'), letter(2, 'w'), letter(1, 'x')]
        .iter()
        .collect()
}

/// Checks that only a directory gets default entries.
///
/// # Errors
/// 400 `InvalidHeaderValue`.
pub fn check_default(given: &[AclEntry], is_directory: bool) -> Result<(), StorageError> {
    if is_directory || !given.iter().any(|e| e.is_default) {
        return Ok(());
    }
    Err(StorageError::invalid_header(ACL, ""))
}

/// Parses `x-ms-acl`. Entries that are to be removed have no permissions, and no two entries are
/// for the same.
///
/// # Errors
/// 400 `InvalidHeaderValue`.
pub fn parse_acl(text: &str, mode: AclMode) -> Result<Vec<AclEntry>, StorageError> {
    let entries = text.split(',').map(|text| parse_entry(text.trim(), mode));
    let entries = entries.collect::<Option<Vec<_>>>();
    let is_repeated = |all: &[AclEntry]| {
        let mut places = all.iter().enumerate();
        places.any(|(at, one)| all.iter().take(at).any(|other| is_same(one, other)))
    };
    let entries = entries.filter(|all| all.len() <= 2 * ACL_ENTRIES_MAX && !is_repeated(all));
    entries.ok_or_else(|| StorageError::invalid_header(ACL, text))
}

/// Rejects a request that has both permissions and a list: "Path - Create", "Path - Update".
///
/// # Errors
/// 400 `InvalidInput`.
pub fn check_one(has_permissions: bool, has_list: bool) -> Result<(), StorageError> {
    match has_permissions && has_list {
        true => Err(ErrorCode::InvalidInput.into()),
        false => Ok(()),
    }
}

fn parse_entry(text: &str, mode: AclMode) -> Option<AclEntry> {
    let (is_default, text) = match text.split_once(':') {
        Some((scope, rest)) if scope.eq_ignore_ascii_case("default") => (true, rest),
        _ => (false, text),
    };
    let mut parts = text.split(':');
    let class = Class::parse(parts.next()?)?;
    let id = parts.next().unwrap_or_default().to_owned();
    let bits = match (parts.next(), mode) {
        (None, AclMode::Remove) => 0,
        (Some(bits), _) => parse_bits(bits)?,
        (None, _) => return None,
    };
    let has_id = !id.is_empty();
    let may_have_id = matches!(class, Class::User | Class::Group);
    (parts.next().is_none() && (may_have_id || !has_id)).then_some(AclEntry {
        is_default,
        class,
        id,
        bits,
    })
}

/// Parses `rwx` with `-` for a missing permission.
pub fn parse_bits(text: &str) -> Option<u8> {
    let letters: [char; 3] = text.chars().collect::<Vec<_>>().try_into().ok()?;
    let mut bits = 0;
    for (found, (letter, bit)) in letters.into_iter().zip([('r', 4), ('w', 2), ('x', 1)]) {
        match found {
            '-' => {}
            found if found == letter => bits |= bit,
            _ => return None,
        }
    }
    Some(bits)
}

/// Parses four octal digits, or three.
fn parse_octal(text: &str) -> Option<u16> {
    // The library would accept a sign.
    let is_octal = text.bytes().all(|digit| digit.is_ascii_digit());
    let mode = u16::from_str_radix(text, 8).ok().filter(|_| is_octal)?;
    (matches!(text.len(), 3 | 4) && mode <= 0o1777).then_some(mode)
}

/// Parses `x-ms-umask`, which is octal: "Path - Create".
///
/// # Errors
/// 400 `InvalidHeaderValue`.
pub fn parse_umask(text: &str) -> Result<u16, StorageError> {
    parse_octal(text).ok_or_else(|| StorageError::invalid_header(UMASK, text))
}

/// Parses `x-ms-permissions`: four octal digits, or nine letters of which the last may be a sticky
/// bit.
///
/// # Errors
/// 400 `InvalidHeaderValue`.
pub fn parse_permissions(text: &str) -> Result<u16, StorageError> {
    let symbolic = || {
        let text = text.strip_suffix('+').unwrap_or(text);
        let (rest, last) = text.split_at_checked(8)?;
        let (last, sticky) = match last {
            "t" => ("x", STICKY),
            "T" => ("-", STICKY),
            last => (last, 0),
        };
        let text = format!("{rest}{last}");
        let mut mode = sticky;
        for (at, shift) in [(0, 6), (3, 3), (6, 0)] {
            mode |= u16::from(parse_bits(text.get(at..at + 3)?)?) << shift;
        }
        (text.len() == 9).then_some(mode)
    };
    let mode = parse_octal(text).or_else(symbolic);
    mode.ok_or_else(|| StorageError::invalid_header(PERMISSIONS, text))
}

#[cfg(test)]
mod tests;
