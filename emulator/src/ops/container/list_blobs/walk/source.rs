//! A range of keys, read ahead in chunks.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use bytes::Bytes;

use crate::store::{StoreResult, View};

/// Length of the first chunk of a walk that skips prefixes, and of the first one after each skip;
/// later chunks double.
pub(super) const JUMPING_CHUNK: usize = 2;
const CHUNK_MAX: usize = 5_001;

pub(super) struct Source {
    from: Vec<u8>,
    to: Vec<u8>,
    ahead: VecDeque<(Vec<u8>, Bytes)>,
    chunk: usize,
}

impl Source {
    pub(super) fn new(from: Vec<u8>, to: Vec<u8>, chunk: usize) -> Self {
        Source {
            from,
            to,
            ahead: VecDeque::new(),
            chunk,
        }
    }

    pub(super) fn peek(&mut self, view: &dyn View) -> StoreResult<Option<&(Vec<u8>, Bytes)>> {
        if self.ahead.is_empty() && self.from < self.to {
            self.read(view)?;
        }
        Ok(self.ahead.front())
    }

    pub(super) fn pop(&mut self) -> Option<(Vec<u8>, Bytes)> {
        self.ahead.pop_front()
    }

    fn read(&mut self, view: &dyn View) -> StoreResult<()> {
        let (ahead, chunk) = (&mut self.ahead, self.chunk);
        view.scan(&self.from, &self.to, &mut |key, value| {
            ahead.push_back((key.to_vec(), value.clone()));
            if ahead.len() < chunk {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        // The key after the last one, or the end of the range.
        self.from = match self.ahead.back() {
            Some((key, _)) if self.ahead.len() == chunk => [key.as_slice(), &[0]].concat(),
            _ => self.to.clone(),
        };
        self.chunk = (chunk * 2).min(CHUNK_MAX);
        Ok(())
    }

    pub(super) fn seek(&mut self, key: Vec<u8>) {
        while self.ahead.front().is_some_and(|(head, _)| *head < key) {
            self.ahead.pop_front();
        }
        if self.ahead.is_empty() {
            self.from = std::mem::take(&mut self.from).max(key);
            self.chunk = JUMPING_CHUNK;
        }
    }
}
