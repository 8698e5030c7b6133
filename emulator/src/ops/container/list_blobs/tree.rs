//! Walks a hierarchical container: a [`Walk`] of each directory on the way, one inside of another.
//!
//! The blobs of a directory are in the order of their names. Those below a directory `a` come where
//! `a/` belongs: behind `a` and behind `a-b`, which sorts before `a/`. A walk of a flat container
//! is that of its only directory.

use smalt_protocol::Timestamp;

use super::marker::Position;
use super::walk::{Item, Range, Walk};
use crate::keys::tree::{BLOCKED, MISSING, is_hierarchical};
use crate::keys::{self, Generation};
use crate::ops::tree;
use crate::records::{BlobRecord, Record};
use crate::store::{StoreResult, View};

/// Where the contents of a directory come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Where their full paths belong.
    Paths,
    /// Right behind the directory.
    Directories,
    /// Nowhere: the walk stays in one directory.
    Children,
}

/// An iterator over the items of a range of a container, with their full paths.
pub struct TreeWalk<'a> {
    view: &'a dyn View,
    range: Range,
    now: Timestamp,
    items: Option<usize>,
    order: Order,
    levels: Vec<Level<'a>>,
}

/// The walk of one directory.
struct Level<'a> {
    /// Path of the directory with a slash, or empty.
    path: String,
    walk: Walk<'a>,
    /// Directories whose contents are still to come; the last one is the next.
    waiting: Vec<Waiting>,
}

struct Waiting {
    leaf: String,
    id: Generation,
    /// Where in the directory the walk starts.
    start: Option<Position>,
}

impl<'a> TreeWalk<'a> {
    /// Starts a walk over about `items` items: see [`Walk::new`].
    ///
    /// # Errors
    /// When the store fails.
    pub fn new(
        view: &'a dyn View,
        range: &Range,
        now: Timestamp,
        items: Option<usize>,
        order: Order,
    ) -> StoreResult<Self> {
        let mut walk = TreeWalk {
            view,
            range: range.clone(),
            now,
            items,
            order,
            levels: Vec::new(),
        };
        let root = range.generation;
        if !is_hierarchical(root) {
            let flat = Walk::new(view, range, now, items)?;
            walk.levels.push(Level {
                path: String::new(),
                walk: flat,
                waiting: Vec::new(),
            });
            return Ok(walk);
        }
        let (base, prefix) = match range.prefix.rsplit_once('/') {
            Some((base, leaf)) => (format!("{base}/"), leaf.to_owned()),
            None => (String::new(), range.prefix.clone()),
        };
        let marked = range.start.clone();
        let named = range.start_from.clone().map(|name| Position {
            name,
            time: Timestamp::MIN,
        });
        let start = match marked.max(named) {
            Some(start) if start.name.as_str() < range.prefix.as_str() => None,
            Some(Position { name, time }) => match name.strip_prefix(&base) {
                None => return Ok(walk),
                Some(rest) => Some(Position {
                    name: rest.to_owned(),
                    time,
                }),
            },
            None => None,
        };
        let id = tree::folder(view, root, &format!("{base}x"), now)?;
        if id != MISSING && id != BLOCKED {
            walk.enter(base, id, &prefix, start)?;
        }
        Ok(walk)
    }

    /// Begins the walk of a directory at the position `start` in it.
    fn enter(
        &mut self,
        path: String,
        id: Generation,
        prefix: &str,
        start: Option<Position>,
    ) -> StoreResult<()> {
        let mut waiting = Vec::new();
        let start = match start {
            Some(start) => Some(self.resume(id, prefix, start, &mut waiting)?),
            None => None,
        };
        let range = Range {
            generation: id,
            prefix: prefix.to_owned(),
            start,
            start_from: None,
            includes: self.range.includes,
        };
        let walk = Walk::new(self.view, &range, self.now, self.items)?;
        self.levels.push(Level {
            path,
            walk,
            waiting,
        });
        Ok(())
    }

    /// Finds the directories that a walk resumed at `start` has listed, and whose contents it has
    /// not. Returns where it goes on among the names of the directory.
    fn resume(
        &self,
        id: Generation,
        prefix: &str,
        start: Position,
        waiting: &mut Vec<Waiting>,
    ) -> StoreResult<Position> {
        let (name, deeper) = match start.name.split_once('/') {
            Some((name, rest)) => (name, Some(rest)),
            None => (start.name.as_str(), None),
        };
        let mut wait = |leaf: &str, start: Option<Position>| -> StoreResult<()> {
            let found = BlobRecord::load(self.view, &keys::blob(id, leaf))?;
            let found = found.filter(|found| found.is_there(self.now));
            if let Some(id) = found.and_then(|found| found.directory) {
                waiting.push(Waiting {
                    leaf: leaf.to_owned(),
                    id,
                    start,
                });
            }
            Ok(())
        };
        if self.order == Order::Paths {
            for (at, _) in name.char_indices().filter(|(_, next)| *next < '/') {
                let (leaf, _) = name.split_at(at);
                if !leaf.is_empty() && leaf.starts_with(prefix) {
                    wait(leaf, None)?;
                }
            }
        }
        let Some(rest) = deeper else {
            return Ok(start);
        };
        let inside = Position {
            name: rest.to_owned(),
            time: start.time,
        };
        wait(name, Some(inside))?;
        // The character behind the slash, or the first one that a name can have.
        let next = match self.order {
            Order::Paths => '0',
            Order::Directories | Order::Children => '\u{1}',
        };
        Ok(Position {
            name: format!("{name}{next}"),
            time: Timestamp::MIN,
        })
    }

    /// Returns the position of the next item.
    ///
    /// # Errors
    /// When the store fails.
    pub fn peek(&mut self) -> StoreResult<Option<Position>> {
        while let Some(level) = self.levels.last_mut() {
            let head = level.walk.peek()?;
            if head.is_none() && level.walk.stopped()?.is_some() {
                return Ok(None);
            }
            let order = self.order;
            let is_due = |waiting: &mut Waiting| match &head {
                Some(head) if order == Order::Paths => format!("{}/", waiting.leaf) < head.name,
                _ => true,
            };
            if let Some(due) = level.waiting.pop_if(is_due) {
                let path = format!("{}{}/", level.path, due.leaf);
                self.enter(path, due.id, "", due.start)?;
            } else if let Some(head) = head {
                return Ok(Some(level.place(head)));
            } else {
                self.levels.pop();
            }
        }
        Ok(None)
    }

    /// Returns the next item.
    ///
    /// # Errors
    /// When the store fails.
    pub fn next(&mut self) -> StoreResult<Option<(Position, Item)>> {
        if self.peek()?.is_none() {
            return Ok(None);
        }
        let order = self.order;
        let Some(level) = self.levels.last_mut() else {
            return Ok(None);
        };
        let Some((position, item)) = level.walk.next()? else {
            return Ok(None);
        };
        if let Item::Blob(blob) = &item
            && let Some(id) = blob.directory
            && order != Order::Children
        {
            level.waiting.push(Waiting {
                leaf: position.name.clone(),
                id,
                start: None,
            });
        }
        Ok(Some((level.place(position), item)))
    }

    /// Skips all names with this prefix.
    ///
    /// # Errors
    /// When the store fails.
    pub fn jump(&mut self, prefix: &str) -> StoreResult<()> {
        if let (false, Some(flat)) = (
            is_hierarchical(self.range.generation),
            self.levels.last_mut(),
        ) {
            flat.walk.jump(prefix);
            return Ok(());
        }
        while self.peek()?.is_some_and(|at| at.name.starts_with(prefix)) {
            self.next()?;
        }
        Ok(())
    }

    /// Returns where to continue a walk that stopped before its end.
    ///
    /// # Errors
    /// When the store fails.
    pub fn stopped(&mut self) -> StoreResult<Option<Position>> {
        let Some(level) = self.levels.last_mut() else {
            return Ok(None);
        };
        Ok(level.walk.stopped()?.map(|at| level.place(at)))
    }
}

impl Level<'_> {
    fn place(&self, position: Position) -> Position {
        if self.path.is_empty() {
            return position;
        }
        Position {
            name: format!("{}{}", self.path, position.name),
            time: position.time,
        }
    }
}
