//! Copies within the account. Sources: "Copy Blob", "Copy Blob From URL", "Put Blob From URL".

use smalt_protocol::ErrorCode;

use crate::conditions;
use crate::content::Bytes;
use crate::expected::{Answer, Fact, Refusal};
use crate::lease::Lease;
use crate::state::{Model, State};
use crate::vocabulary::{BlobId, Condition, Guard, Labels, Moment};

/// The parameters of a copy.
pub(crate) struct Wanted<'a> {
    pub(crate) source: &'a BlobId,
    pub(crate) snapshot: Option<Moment>,
    pub(crate) condition: Option<Condition>,
    pub(crate) labels: &'a Labels,
    pub(crate) guard: Guard,
}

impl Model {
    /// Copy Blob, which within an account completes at once.
    pub(crate) fn copy(&mut self, id: &BlobId, wanted: &Wanted<'_>) -> Answer {
        let there = self.find(&id.container)?.blobs.get(&id.blob).cloned();
        self.check_create(
            there.as_ref(),
            wanted.guard,
            ErrorCode::TargetConditionNotMet,
        )?;
        let lease = there.as_ref().map(|blob| blob.lease.at(self.now_s));
        if matches!(lease, Some(Lease::Leased { term: Some(_), .. })) {
            return Err(ErrorCode::InfiniteLeaseDurationRequired.into());
        }
        // The source is read with its own signature, so its error becomes the copy's.
        let found = self.state(wanted.source, wanted.snapshot).cloned();
        let found = found.map_err(|Refusal(code, _)| unverified(code.status()))?;
        let unmet = ErrorCode::SourceConditionNotMet;
        conditions::check_source(wanted.condition, found.current(), unmet)?;
        // "The destination must be of the source's type."
        let kind = there.map(|blob| blob.state.content.kind());
        if kind.is_some_and(|kind| kind != found.content.kind()) {
            return Err(ErrorCode::InvalidBlobType.into());
        }
        // Recorded: a copy of a sealed blob is sealed.
        let content = found.content.clone();
        Ok(self.paste(id, wanted, content, &found, true, 202))
    }

    /// A copy that reads the source's bytes: the result is a block blob, whatever the source is.
    pub(crate) fn copy_bytes(&mut self, id: &BlobId, wanted: &Wanted<'_>, sync: bool) -> Answer {
        let there = self.find(&id.container)?.blobs.get(&id.blob).cloned();
        let unmet = ErrorCode::TargetConditionNotMet;
        self.check_create(there.as_ref(), wanted.guard, unmet)?;
        let found = self.state(wanted.source, None).cloned();
        let found = found.map_err(|Refusal(code, _)| unverified(code.status()))?;
        conditions::check_read(wanted.condition, found.current())
            .map_err(|Refusal(code, status)| unverified(status.unwrap_or(code.status())))?;
        // Copy Blob From URL keeps the blocks of a block blob; Put Blob From URL does not: "the
        // block list isn't preserved".
        let content = match &found.content {
            blocks @ Bytes::Blocks(_) if sync => blocks.clone(),
            other => Bytes::Blocks(vec![(None, other.bytes())]),
        };
        let status = if sync { 202 } else { 201 };
        Ok(self.paste(id, wanted, content, &found, sync, status))
    }

    fn paste(
        &mut self,
        id: &BlobId,
        wanted: &Wanted<'_>,
        content: Bytes,
        found: &State,
        tells: bool,
        status: u16,
    ) -> crate::Expected {
        let mut labels = wanted.labels.clone();
        if labels.metadata.is_empty() {
            labels.metadata.clone_from(&found.metadata);
        }
        let made = State {
            headers: found.headers,
            copied: tells,
            ..self.new_state(content, &labels)
        };
        let done = tells.then(|| "success".to_owned());
        let answer = made
            .written(status)
            .with(Fact::Header("x-ms-copy-status", done));
        self.replace(id, made);
        answer
    }
}

fn unverified(status: u16) -> Refusal {
    Refusal(ErrorCode::CannotVerifyCopySource, Some(status))
}
