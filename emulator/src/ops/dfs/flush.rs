//! Path - Update, flush: adds the bytes that were appended to a file.
//!
//! Source: "Path - Update". The position is the length of the file afterwards; the bytes up to it
//! must be there without a gap. Bytes that were appended below the length of the file, by a
//! repeated append or by a second writer, are dropped: Hadoop's tests of ABFS expect the flush to
//! succeed.
//!
//! ```http
//! PATCH /devstoreaccount1/lake/events.csv?action=flush&position=14
//!
//! 200 OK
//! ETag: "0x8D6D4173A7F45B7"
//! ```

use smalt_protocol::{ApiVersion, ErrorCode, StorageError, Timestamp};

use super::{check_empty, check_file, content_headers, flag, lay_over, number};
use crate::call::Call;
use crate::keys;
use crate::operation::Write;
use crate::ops::blob::guard::{self, Guard};
use crate::ops::blob::{content, headers, removal, replace, uncommitted};
use crate::ops::leasing;
use crate::ops::lookup::{BlobName, Found};
use crate::records::{BlobRecord, CommittedBlock, ContentHeaders, Record, UncommittedRecord};
use crate::reply::Reply;
use crate::rules::encryption::{Encryption, Requested};
use crate::rules::lease::{Action, LeaseState, Leased, act};
use crate::store::{Stamp, Transaction, View};

/// Since this version, the response says that the account's key encrypts nothing of the request, as
/// recorded.
const SAYS_UNENCRYPTED: ApiVersion = ApiVersion::V2020_02_10;

/// What the lease action of an append or a flush does.
#[derive(Clone, Copy, Debug)]
pub struct Leasing {
    before: Option<Action>,
    after: Option<Action>,
    renews: bool,
}

impl Leasing {
    /// Parses `x-ms-lease-action`.
    ///
    /// # Errors
    /// 400 `InvalidHeaderValue`, 400 `MissingRequiredHeader`.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        const NAME: &str = "x-ms-lease-action";
        let none = Leasing {
            before: None,
            after: None,
            renews: false,
        };
        let Some(text) = call.header(NAME)?.filter(|text| !text.is_empty()) else {
            return Ok(none);
        };
        let own = || {
            let id = leasing::lease_id(call)?;
            id.ok_or_else(|| StorageError::missing_header("x-ms-lease-id"))
        };
        Ok(match text.to_ascii_lowercase().as_str() {
            "auto-renew" => Leasing {
                before: Some(Action::Renew { id: own()? }),
                renews: true,
                ..none
            },
            "acquire" => Leasing {
                before: Some(leasing::acquire(call)?),
                ..none
            },
            "release" => Leasing {
                after: Some(Action::Release { id: own()? }),
                ..none
            },
            "acquire-release" => {
                let acquired = leasing::acquire(call)?;
                let after = match acquired {
                    Action::Acquire { id, .. } => Some(Action::Release { id }),
                    _ => None,
                };
                Leasing {
                    before: Some(acquired),
                    after,
                    ..none
                }
            }
            _ => return Err(StorageError::invalid_header(NAME, text)),
        })
    }

    /// Returns the state after the action; `None` when there is none.
    ///
    /// # Errors
    /// 409 for an action that the lease does not permit.
    pub fn check(
        self,
        state: LeaseState,
        now: Timestamp,
    ) -> Result<Option<LeaseState>, StorageError> {
        let mut state = Some(state).filter(|_| self.before.is_some() || self.after.is_some());
        for action in [self.before, self.after].into_iter().flatten() {
            let current = state.unwrap_or_default();
            state = Some(act(Leased::Blob, current, action, now)?.state);
        }
        Ok(state)
    }

    /// Whether the response says that the lease was renewed.
    pub fn renews(self) -> bool {
        self.renews
    }

    /// Stores the state after the action.
    ///
    /// # Errors
    /// As [`Leasing::check`], which came before.
    pub fn keep(
        self,
        name: &BlobName,
        found: &mut Found,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<(), StorageError> {
        if let Some(state) = self.check(found.blob.lease, stamp.now)? {
            found.blob.lease = state;
            found.blob.save(tx, name.key(found.container.generation))?;
        }
        Ok(())
    }
}

/// A flush, by itself or within an append.
pub struct Flush {
    position: u64,
    keeps_rest: bool,
    headers: ContentHeaders,
}

impl Flush {
    /// Parses a flush to this length of the file.
    ///
    /// # Errors
    /// 400 for a malformed header or parameter.
    pub fn at(call: &Call, position: u64) -> Result<Self, StorageError> {
        // The event of the flush has the value.
        flag(call, "close")?;
        Ok(Flush {
            position,
            keeps_rest: flag(call, "retainUncommittedData")?.unwrap_or(false),
            headers: content_headers(call)?,
        })
    }

    /// Parses a flush of an append. Recorded: the file gets the content type of the request.
    ///
    /// # Errors
    /// 400 for a malformed header or parameter.
    pub fn with_body(call: &Call, position: u64) -> Result<Self, StorageError> {
        let mut flush = Self::at(call, position)?;
        if flush.headers.content_type.is_none() {
            flush.headers.content_type = call.header("content-type")?.map(str::to_owned);
        }
        Ok(flush)
    }

    /// Checks that the file can be flushed; `more` is the place of bytes that come with the flush.
    ///
    /// # Errors
    /// 400 `InvalidFlushPosition`.
    pub fn check(
        &self,
        view: &dyn View,
        name: &BlobName,
        found: &Found,
        more: Option<(u64, u64)>,
        stamp: &Stamp,
    ) -> Result<(), StorageError> {
        guard::check_appendable(found)?;
        let folder = found.container.generation;
        let waiting = uncommitted::read(view, folder, &name.blob, stamp.now)?;
        let mut ends: Vec<(u64, u64)> = waiting
            .iter()
            .filter_map(|(id, block)| Some((position(id)?, block.length)))
            .filter(|(at, _)| more.is_none_or(|(other, _)| *at != other))
            .chain(more)
            .collect();
        ends.sort_unstable();
        let mut end = found.blob.length;
        let is_new = |(at, _): &(u64, u64)| *at >= found.blob.length;
        if more.is_some_and(|more| !is_new(&more)) {
            return Err(ErrorCode::InvalidFlushPosition.into());
        }
        for (at, length) in ends.into_iter().filter(is_new) {
            if at >= self.position {
                break;
            }
            if at != end {
                return Err(ErrorCode::InvalidFlushPosition.into());
            }
            end += length;
        }
        if end == self.position {
            Ok(())
        } else {
            Err(ErrorCode::InvalidFlushPosition.into())
        }
    }

    /// Adds the bytes.
    ///
    /// # Errors
    /// When the store fails.
    pub fn apply(
        self,
        name: &BlobName,
        found: Found,
        lease: Leasing,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<BlobRecord, StorageError> {
        let folder = found.container.generation;
        let mut blob = found.blob;
        let waiting = uncommitted::read(tx, folder, &name.blob, stamp.now)?;
        let flushed = blob.length;
        let mut gone = 0;
        for (id, block) in waiting {
            let Some(at) = position(&id).filter(|at| *at < self.position) else {
                continue;
            };
            let key = keys::block(folder, &name.blob, &id);
            gone += 1;
            if at < flushed {
                removal::drop_block(tx, key)?;
                continue;
            }
            let committed = CommittedBlock {
                id: Vec::new(),
                length: block.length,
                payload: block.payload,
            };
            let fresh_id = stamp.tick.ticks();
            blob.content = content::append(tx, blob.content, blob.length, committed, fresh_id)?;
            blob.length += block.length;
            tx.delete(key);
        }
        let key = keys::uncommitted(folder, &name.blob);
        match UncommittedRecord::load(tx, &key)? {
            Some(mut record) if self.keeps_rest && record.blocks > gone => {
                record.blocks -= gone;
                record.save(tx, key)?;
            }
            _ => removal::drop_uncommitted(tx, folder, &name.blob)?,
        }
        if blob.length > flushed {
            blob.headers.content_md5 = None;
        }
        lay_over(&mut blob.headers, self.headers);
        if let Some(state) = lease.check(blob.lease, stamp.now)? {
            blob.lease = state;
        }
        replace::touch(tx, name, folder, blob, stamp)
    }
}

/// Returns the position of an appended part from the id of its block.
fn position(id: &[u8]) -> Option<u64> {
    id.try_into().ok().map(u64::from_be_bytes)
}

/// The flush action of Path - Update.
pub struct FlushPath {
    name: BlobName,
    guard: Guard,
    encryption: Requested,
    lease: Leasing,
    flush: Flush,
}

impl Write for FlushPath {
    type Checked = Found;
    type Output = (BlobRecord, bool);

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let position = number(call, "position")?;
        let position = position.ok_or_else(|| StorageError::missing_query("position"))?;
        check_empty(call)?;
        Ok(FlushPath {
            name: BlobName::of_write(call)?,
            guard: Guard::of_write(call)?,
            encryption: headers::encryption(call)?,
            lease: Leasing::of(call)?,
            flush: Flush::at(call, position)?,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Found, StorageError> {
        let found = self.name.find(view, stamp.now)?;
        check_file(&found.blob)?;
        let leased = self.lease.check(found.blob.lease, stamp.now)?;
        if leased.is_none() {
            self.guard.check_write(&found.blob)?;
        } else {
            self.guard.check_conditions(&found.blob)?;
        }
        guard::check_encryption(&self.encryption, &found)?;
        self.flush.check(view, &self.name, &found, None, stamp)?;
        Ok(found)
    }

    fn apply(
        self,
        found: Found,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<(BlobRecord, bool), StorageError> {
        let blob = self.flush.apply(&self.name, found, self.lease, tx, stamp)?;
        Ok((blob, self.lease.renews()))
    }

    fn render((blob, is_renewed): (BlobRecord, bool), call: &Call) -> Result<Reply, StorageError> {
        let is_told = blob.encryption.is_some() || call.version < SAYS_UNENCRYPTED;
        let reply = Reply::new(200)
            .version(blob.etag, blob.last_modified)
            .header("x-ms-request-server-encrypted", is_told.to_string())
            .maybe("x-ms-lease-renewed", is_renewed.then_some("true"));
        Ok(match blob.encryption.as_ref().map(Encryption::header) {
            Some((name, value)) => reply.header(name, value),
            None => reply,
        })
    }
}
