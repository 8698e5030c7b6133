//! Checks moves: where copies are made, of which version, and whether they exist when their source
//! is removed (SS3, SS4, SS5, SS8, SS9).

use smalt_sweeper::Collision;

use super::super::model::{self, Key, Version};
use super::{Judge, unquoted};
use crate::scenario::history::{Answer, Event, Exchange};
use crate::scenario::world::Which;

impl Judge<'_> {
    /// SS3 and SS4: checks that a copy of exactly this version is at its destination, and that the
    /// worker looked at it.
    pub(super) fn moved(&mut self, number: usize, key: &Key, version: &Version) {
        let etag = unquoted(&version.etag);
        let wanted = self.destination(key, version);
        let copy = wanted.and_then(|wanted| {
            self.model.blobs.iter().find(|(at, there)| {
                let beside = self.plan.on_collision != Collision::Overwrite
                    && at.2.starts_with(&format!("{}~", wanted.2));
                at.0 == wanted.0
                    && at.1 == wanted.1
                    && (at.2 == wanted.2 || beside)
                    && there.value("sourceetag") == Some(etag)
            })
        });
        let replaced = self.replaced.contains(etag) && self.verified.contains(etag);
        let problem = match copy {
            _ if replaced => None,
            None => Some("no copy of it exists at its destination"),
            Some((_, copy)) if copy.pending => Some("the copy is pending"),
            Some((_, copy)) if copy.content != version.content => {
                Some("the copy has another content")
            }
            Some((_, copy))
                if copy.value("timetolive").is_some()
                    || copy.value("deadblobcontainer").is_some() =>
            {
                Some("the copy would expire itself")
            }
            Some((_, copy)) if copy.value("owner") != Some("scenario") => {
                Some("the copy has lost metadata of its owner")
            }
            Some(_) => None,
        };
        match problem {
            Some(what) => self.violated("SS4", number, format!("{key:?}: {what}")),
            None => self.notes.mark("moved"),
        }
    }

    /// Returns the destination of a version; `None` without a valid one.
    pub(super) fn destination(&self, key: &Key, version: &Version) -> Option<Key> {
        let value = version.value("deadblobcontainer")?;
        let (container, name) = model::resolve(value, &key.2)?;
        let account = self.plan.dead_account? as usize;
        let place = (self.accounts[account].to_owned(), container, name);
        (!self.is_swept(&place)).then_some(place)
    }

    /// SS3, SS5 and SS8: checks the start of a copy.
    pub(super) fn copied(
        &mut self,
        number: usize,
        event: &Event,
        exchange: &Exchange,
        answer: &Answer,
    ) {
        let key = model::key(exchange);
        self.under_claim(number, event, exchange);
        let account = self
            .plan
            .dead_account
            .map(|which: Which| self.accounts[which as usize]);
        if self.is_swept(&key) || Some(key.0.as_str()) != account {
            return self.violated("SS5", number, format!("a copy into {key:?}"));
        }
        let said = exchange.header("x-ms-meta-sourceetag");
        let source = model::source_key(exchange);
        let source = source.and_then(|source| self.model.blobs.get(&source));
        let source = source.map(|version| unquoted(&version.etag).to_owned());
        let condition = exchange.header("x-ms-source-if-match").map(unquoted);
        if condition != said {
            let what = format!("a copy of {condition:?} says it is of {said:?}");
            self.violated("SS3", number, what);
        }
        if source.as_deref() != said {
            let what = format!("a copy of {source:?} says it is of {said:?}");
            self.violated("SS3", number, what);
        }
        if answer.header("x-ms-copy-status") == Some("pending") {
            self.notes.mark("copy pending");
        }
        if let Some(there) = self.model.blobs.get(&key) {
            // A copy of exactly this version that failed or is damaged may be replaced.
            let own = there.value("sourceetag") == said && there.broken;
            let allowed = self.plan.on_collision == Collision::Overwrite || own;
            let others = there.value("sourceetag").filter(|etag| Some(*etag) != said);
            let others = others.map(str::to_owned);
            if !allowed || exchange.header("if-match").is_none() {
                let what = format!("{key:?} existed and is overwritten");
                self.violated("SS8", number, what);
            }
            self.replaced.extend(others);
            self.notes.mark("overwritten by policy");
        }
        let secret = exchange
            .headers
            .iter()
            .any(|(name, value)| name.starts_with("x-ms-meta-") && value.contains("sig="));
        if secret {
            self.violated("SS9", number, "a signature in the metadata of a copy");
        }
    }
}
