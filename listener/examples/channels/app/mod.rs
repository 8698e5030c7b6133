//! The parts of the channels example, apart from its command line: so that a test runs them in
//! process.
//!
//! - [`plan`]: channels, blogs and what writers write; pure.
//! - [`tables`]: a small client of the Table service.
//! - [`site`]: names and settings of what the processes share.
//! - [`setup`], [`worker`], [`writer`], [`audit`]: the roles.
//!
//! # Two tables, and no transaction over both
//!
//! A transaction of the Table service holds one partition of one table. A channel's row stands in
//! one table and its blogs in another, so no request deletes all of it, and none inserts a blog on
//! condition that its channel is there. What holds the two together is a job that can be repeated
//! by whoever gets its message, and writers who keep a rule.
//!
//! The worker, for each message:
//!
//! 1. (a) *mark*: the channel's row is merged with `Valid: false`, under the ETag that was read.
//! 2. (b) the partition's blogs are deleted, page by page, a transaction of up to a hundred each.
//! 3. *look*: the partition is asked for again from its front, what is there is deleted, until a
//!    pass finds nothing.
//! 4. (c) the channel's row is deleted, if its ETag is still that of the mark.
//! 5. (d) the message is deleted, by the listener.
//!
//! The writer, for each blog: *before* it reads the channel, and inserts only where it is valid;
//! *insert*; *after* it reads the channel again, and where it is not valid or not there it removes
//! its own blog. Only then does it write down that the blog is over; a writer that dies begins with
//! the same blog again.
//!
//! # Why no blog outlives its channel
//!
//! Nothing takes a mark back, and each row is linearizable by itself. Let M be the moment of the
//! mark, and L the one when the last pass begins, which finds nothing (M < L). An insert comes
//! between its *before* and its *after*.
//!
//! - *before* comes after M: the channel is not valid or not there. Nothing is inserted.
//! - *before* comes before M, the insert before L: the last pass comes by wherever the blog would
//!   stand, and there was none. So a pass had deleted it.
//! - *before* comes before M, the insert after L: then *after* comes after M, too, and the writer
//!   removes the blog. If it dies before that, its next life begins with this blog; its *before*
//!   comes after M, and it removes the blog as well.
//!
//! No time is measured in this, and no order of two processes assumed. It rests on three things:
//!
//! - Nobody writes a blog but by the rule, and a writer that died comes back some time, as a
//!   message comes back. One that never does leaves a blog if it inserted it after L: the same
//!   channel requested once more removes that one.
//! - A request is not executed after its sender has given it up and asked something else. The
//!   service ends what it works on within its time limit (30 s); only a writer that lost its
//!   network, and was back sooner, could be overtaken by its own late insert.
//! - Names are not used again. A worker that has lost its message, and does not know yet, would
//!   remove the blogs of a new channel with the old name.
//!
//! What the look is for, when the writers clean up after themselves anyway: between the scan of
//! step b and step c everything that was inserted behind the scan would stand there until its
//! writer gets round to it, and a channel of many blogs makes that a long time: with a writer that
//! is slow, or dead and not yet back, blogs without a channel are what everybody sees.
//! `--forget-second-look` shows it. What the writers' *after* is for, when the worker looks anyway:
//! there is always a moment between the last look and step c, and no look closes it.
//!
//! # Why any step may be the last
//!
//! The mark on a marked channel, a delete of what is gone and an insert of what is there are
//! successes. A channel whose row is gone still gets its look, and an attempt that finds nothing at
//! all just deletes its message. A transaction that finds a blog gone (a second worker's work, or
//! that of its own first try whose answer was lost) changes nothing, and its page is read again.
//!
//! # More work than the visibility time
//!
//! The listener renews the message while the handler works, so that no second worker gets it. One
//! that does (the renewals failed) does no harm: both do the same, each finds what the other did
//! done, and the worker that lost the message is told and stops.

pub(crate) mod audit;
pub(crate) mod plan;
pub(crate) mod setup;
pub(crate) mod site;
pub(crate) mod tables;
pub(crate) mod worker;
pub(crate) mod writer;
