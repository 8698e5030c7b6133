//! Bugs of the listener: the defects of its source (DL1 to DL26) that one line can make, and breaks
//! of its promises (LS1 to LS10, LL1 to LL5).

use crate::{Bug, Detector};

/// One that the simulation must catch, or else the listener's own tests.
const fn bug(
    id: &'static str,
    place: &'static str,
    wrong: &'static str,
    source: &'static str,
) -> Bug {
    Bug {
        id,
        place,
        wrong,
        source,
        caught_by: &[Detector::Listen, Detector::ListenerTests],
    }
}

/// One that a test must catch: at its place the simulation sees nothing wrong, or hardly ever.
const fn tested(
    id: &'static str,
    place: &'static str,
    wrong: &'static str,
    source: &'static str,
) -> Bug {
    Bug {
        caught_by: &[Detector::ListenerTests],
        ..bug(id, place, wrong, source)
    }
}

/// The list.
pub const BUGS: &[Bug] = &[
    bug(
        "deleted-without-its-copy",
        "listener/src/poison.rs",
        "A message is deleted although its copy could not be put into the poison queue.",
        "LS1",
    ),
    bug(
        "deleted-before-its-copy",
        "listener/src/poison.rs",
        "A message is deleted first and copied into the poison queue afterwards.",
        "DL17, LS1",
    ),
    bug(
        "poison-copy-expires",
        "listener/src/calls.rs",
        "The copy in the poison queue gets the default time to live of seven days.",
        "DL17; the known defect of another listener",
    ),
    bug(
        "poison-copy-trimmed",
        "listener/src/poison.rs",
        "The copy in the poison queue loses white space at its ends.",
        "LS6: byte for byte",
    ),
    bug(
        "failed-message-deleted",
        "listener/src/rules/dispatch.rs",
        "A message whose handler failed is deleted.",
        "LS1",
    ),
    bug(
        "panic-is-success",
        "listener/src/run.rs",
        "A handler that panics counts as done.",
        "LS1, LS3",
    ),
    bug(
        "failed-delete-is-done",
        "listener/src/settle.rs",
        "A delete that fails counts as done.",
        "DL16",
    ),
    bug(
        "own-delete-not-recognised",
        "listener/src/settle.rs",
        "The 404 after the listener's own delete, whose answer was lost, is no success.",
        "DL16; a lost delete answer followed by 404 counts as done",
    ),
    bug(
        "done-is-forgotten",
        "listener/src/settle.rs",
        "A message that was handled and could not be deleted runs again in the same process.",
        "DL16",
    ),
    bug(
        "old-receipt-after-renewal",
        "listener/src/renew.rs",
        "After a renewal the receipt of the get is used on.",
        "DL15, LS2",
    ),
    bug(
        "never-renewed",
        "listener/src/message.rs",
        "The visibility of a running message is not renewed.",
        "DL15",
    ),
    bug(
        "renewal-given-up",
        "listener/src/renew.rs",
        "A renewal that fails once is not tried again.",
        "DL15; the known defect of another listener",
    ),
    bug(
        "lost-lock-ignored",
        "listener/src/message.rs",
        "A handler goes on after its lock is lost, and what it says is acknowledged.",
        "LS4",
    ),
    bug(
        "started-too-late",
        "listener/src/message.rs",
        "A handler starts although the visibility is nearly over.",
        "DL15, LS4",
    ),
    bug(
        "hang-never-ends",
        "listener/src/message.rs",
        "A hanging handler is never cancelled.",
        "LS3, LL2",
    ),
    bug(
        "one-attempt-too-many",
        "listener/src/rules/dispatch.rs",
        "A message goes to a handler once more than allowed.",
        "DL17, LS5",
    ),
    bug(
        "last-attempt-retried",
        "listener/src/rules/dispatch.rs",
        "A message that failed at its last attempt is hidden for one more.",
        "DL17, LS5",
    ),
    bug(
        "retry-delay-of-the-next",
        "listener/src/rules/retry_curve.rs",
        "A retry waits as long as the one after it should.",
        "failure policy: the curve by attempt",
    ),
    bug(
        "no-expiry-alarm",
        "listener/src/rules/dispatch.rs",
        "Nobody is told that a message is about to expire.",
        "LL2",
    ),
    bug(
        "batch-abandoned",
        "listener/src/poller.rs",
        "A message that was tried before ends its batch; the rest waits for its timeout.",
        "DL6, DL9",
    ),
    bug(
        "more-than-its-slots",
        "listener/src/poller.rs",
        "A get asks for a full batch, however few slots are free.",
        "DL15, LS7",
    ),
    bug(
        "errors-without-a-pause",
        "listener/src/poller.rs",
        "A failed get is repeated at once.",
        "DL24",
    ),
    bug(
        "missing-queue-ends-polling",
        "listener/src/poller.rs",
        "A queue that was deleted is never looked at again.",
        "failure policy: 404; LL1",
    ),
    bug(
        "trigger-name-taken-literally",
        "listener/src/listener.rs",
        "A trigger for the queue's name in other letters is ignored.",
        "DL21",
    ),
    bug(
        "no-watchdog",
        "listener/src/controller.rs",
        "Nobody looks any more when a trigger is lost while no task polls.",
        "DL18, LL1",
    ),
    bug(
        "ended-tasks-counted",
        "listener/src/pool.rs",
        "A task that has ended is still counted as one that polls.",
        "DL11",
    ),
    bug(
        "last-poller-leaves",
        "listener/src/controller.rs",
        "The pool shrinks to no task although it is to poll for ever.",
        "DL12, LS10",
    ),
    tested(
        "blind-while-busy",
        "listener/src/controller.rs",
        "The pool does not grow while there is work in flight.",
        "DL10, LL3",
    ),
    bug(
        "no-hysteresis",
        "listener/src/rules/scaling.rs",
        "The pool follows every change of the load at once.",
        "DL20, LL3",
    ),
    bug(
        "jitter-shared",
        "listener/src/pool.rs",
        "All tasks draw the same random numbers.",
        "DL5",
    ),
    bug(
        "backoff-overflows",
        "listener/src/rules/backoff.rs",
        "From the 25th empty get on a poller sleeps as good as for ever.",
        "DL4, LS8",
    ),
    bug(
        "depth-asked-while-idle",
        "listener/src/controller.rs",
        "The depth of an idle queue is asked for again and again.",
        "DL2",
    ),
    bug(
        "bucket-ignored",
        "listener/src/throttle.rs",
        "Requests go out although the bucket is empty.",
        "DL14, LS9",
    ),
    bug(
        "unstarted-kept-at-drain",
        "listener/src/message.rs",
        "What was taken and not begun when the listener stops is not given back.",
        "DL23, LL4",
    ),
    tested(
        "batch-fails-together",
        "listener/src/handler/batch.rs",
        "After a panic in a batch all of it comes as a batch again.",
        "LS3",
    ),
    tested(
        "missing-verdict-is-ok",
        "listener/src/handler/batch.rs",
        "A message that a batch handler says nothing about is done.",
        "LS1",
    ),
    bug(
        "follower-polls-too",
        "listener/src/rules/sentinel.rs",
        "Who knows that another listener polls for the fleet looks all the same.",
        "DL3",
    ),
    bug(
        "sentinel-never-replaced",
        "listener/src/rules/sentinel.rs",
        "Nobody takes the lease of a sentinel that died.",
        "LL1",
    ),
    bug(
        "account-limit-ignored",
        "listener/src/throttle.rs",
        "The budget of the account is not drawn from.",
        "DL14, LS9",
    ),
    bug(
        "no-alarm-while-running",
        "listener/src/message.rs",
        "A handler that runs into its message's end hides that.",
        "LL2",
    ),
    tested(
        "empty-queue-asks-for-ten",
        "listener/src/rules/scaling.rs",
        "The article's rule starts ten tasks for an empty queue.",
        "DL13",
    ),
    tested(
        "own-messages-are-backlog",
        "listener/src/rules/load.rs",
        "What is in flight counts as waiting.",
        "DL22",
    ),
    bug(
        "trigger-lost-before-sleep",
        "listener/src/poller.rs",
        "A trigger between a get and the sleep after it is lost.",
        "DL18, LL1",
    ),
    bug(
        "payload-left-for-good",
        "listener/src/settle.rs",
        "A payload whose message never expires has no end when its message is deleted.",
        "DL26, LS6",
    ),
    bug(
        "poisoned-payload-expires",
        "listener/src/poison.rs",
        "The payload of a copy in the poison queue keeps its time to live.",
        "LS6",
    ),
    tested(
        "drained-too-early",
        "listener/src/partition/map.rs",
        "A queue that drains is dropped although senders may still write it.",
        "LL2; D2, drain-safe resize",
    ),
    tested(
        "stop-waits-for-the-sleep",
        "listener/src/poller.rs",
        "A task that sleeps hears the order to stop when it wakes.",
        "DL7, DL23",
    ),
    bug(
        "asleep-after-a-trigger",
        "listener/src/controller.rs",
        "A trigger does not keep the listener awake for what follows it.",
        "DL19",
    ),
    tested(
        "counts-lost-at-the-end",
        "listener/src/controller.rs",
        "What ends while the listener drains is not counted.",
        "DL8",
    ),
    tested(
        "misprint-believed",
        "listener/src/rules/cost.rs",
        "Costs come out as in the document's misprint: 457.20 for 475.20.",
        "DL1",
    ),
    tested(
        "weekend-as-workday",
        "listener/src/rules/cost.rs",
        "A day without work counts as one with work.",
        "DL25",
    ),
];
