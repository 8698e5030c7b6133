//! The parts of the channels example, without its command line, so that a test can run them in
//! process.
//!
//! - [`plan`]: channels, blogs and what writers write; pure.
//! - [`tables`]: a small client of the Table service; [`context`]: what a process remembers of
//!   entities between its requests.
//! - [`site`]: names and settings that the processes share.
//! - [`setup`], [`worker`], [`writer`], [`audit`]: the roles.
//!
//! # Two tables, and no transaction over both
//!
//! A transaction of the Table service covers one partition of one table. A channel's row is in one
//! table and its blogs in another, so no request deletes both, and none inserts a blog on condition
//! that its channel exists. Two things keep the tables consistent: a job that any worker with its
//! message can repeat, and a rule that the writers follow.
//!
//! The worker, for each message:
//!
//! 1. (a) *mark*: merges the channel's row with `Valid: false`, under the ETag that was read.
//! 2. (b) deletes the partition's blogs page by page, in transactions of up to a hundred.
//! 3. *look*: queries the partition again from its beginning and deletes what it finds, until a
//!    pass finds nothing.
//! 4. (c) deletes the channel's row if its ETag is still that of the mark.
//! 5. (d) the listener deletes the message.
//!
//! The writer, for each blog: *before* it reads the channel, and inserts only if it is valid;
//! *insert*; *after* it reads the channel again, and removes its own blog if the channel is invalid
//! or missing. Only then does it record that the blog is finished; a writer that dies starts again
//! with the same blog.
//!
//! # Why no blog outlives its channel
//!
//! Nothing reverts a mark, and each row is linearizable by itself. Let M be the time of the mark,
//! and L the start of the last pass, which finds nothing (M < L). An insert comes between its
//! *before* and its *after*.
//!
//! - *before* comes after M: the channel is invalid or missing. Nothing is inserted.
//! - *before* comes before M, the insert before L: the last pass covers the place of the blog and
//!   found none. So an earlier pass had deleted it.
//! - *before* comes before M, the insert after L: then *after* comes after M, too, and the writer
//!   removes the blog. If it dies before that, its next run starts with this blog; its *before*
//!   comes after M, and it removes the blog as well.
//!
//! This measures no time and assumes no order between processes. It relies on three conditions:
//!
//! - Blogs are written only by this rule, and a writer that died restarts eventually, just as a
//!   message returns. A writer that never does leaves a blog if it inserted it after L; requesting
//!   the same channel again removes it.
//! - A request is not executed after its sender has given it up and sent another one. The service
//!   ends its work on a request within its time limit (30 s); only a writer that lost its network,
//!   and was back sooner, could be overtaken by its own late insert.
//! - Names are not reused. A worker that has lost its message, and does not know it yet, would
//!   remove the blogs of a new channel with the old name.
//!
//! Why the worker looks although the writers clean up: between the scan of step b and step c, every
//! blog inserted behind the scan would remain until its writer removes it, and a channel with many
//! blogs makes that a long time. With a writer that is slow, or dead and not yet restarted, every
//! reader would see blogs without a channel. `--forget-second-look` shows this. Why the writers
//! check *after* although the worker looks: there is always a moment between the last look and step
//! c, and no look closes it.
//!
//! # Why any step may be the last
//!
//! Marking a marked channel, deleting a missing row and inserting an existing blog count as
//! success. A channel whose row is gone still gets its look, and an attempt that finds nothing at
//! all only deletes its message. A transaction that finds a blog gone (deleted by a second worker,
//! or by its own first try whose answer was lost) changes nothing, and its page is read again.
//!
//! # More work than the visibility time
//!
//! The listener renews the message while the handler works, so that no second worker gets it. If
//! one does, because the renewals failed, it does no harm: both do the same, each finds the other's
//! work done, and the worker that lost the message is cancelled and stops.

pub(crate) mod audit;
pub(crate) mod context;
pub(crate) mod plan;
pub(crate) mod setup;
pub(crate) mod site;
pub(crate) mod tables;
pub(crate) mod worker;
pub(crate) mod writer;
