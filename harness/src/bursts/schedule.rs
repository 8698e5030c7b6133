//! Runs clients and the commit path on one thread, in an order determined by a seed.
//!
//! Every client is a future, and so is each call whose answer is ignored. One step polls one future
//! that was woken, or lets the emulator take one step of its commit path. The same seed gives the
//! same steps.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore as _, SeedableRng as _};

/// Number of steps after which a schedule counts as stuck; a burst takes some hundreds.
const STEPS_MAX: usize = 100_000;
/// Percentages of steps for the commit path when both it and clients can proceed; one is drawn per
/// schedule, so that some schedules have long queues and others short ones.
const COMMIT_PERCENT: [u32; 4] = [15, 35, 60, 85];
/// Percentages of steps that continue with the previous client; one is drawn per schedule.
const STICK_PERCENT: [u32; 3] = [0, 30, 70];
/// Maximum sizes of a commit group; one is drawn per schedule.
const GROUPS: [usize; 4] = [1, 2, 3, usize::MAX];

/// A client, or a call whose answer is ignored.
pub type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Collects the tasks that other tasks start.
#[derive(Clone, Default)]
pub struct Starts<'a>(Rc<RefCell<Vec<Task<'a>>>>);

impl<'a> Starts<'a> {
    /// Starts a task.
    pub fn start(&self, task: Task<'a>) {
        self.0.borrow_mut().push(task);
    }
}

/// Order of execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One call after the other, each until its end, as in tests without schedules.
    Plain,
    /// An order determined by this seed.
    Seeded(u64),
}

/// Nothing can proceed, or the steps never end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Number of tasks that have not ended.
    pub tasks: usize,
    /// Number of steps taken.
    pub steps: usize,
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

struct Running<'a> {
    task: Task<'a>,
    woken: Arc<Woken>,
}

impl<'a> Running<'a> {
    fn new(task: Task<'a>) -> Self {
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        Running { task, woken }
    }

    fn is_ready(&self) -> bool {
        self.woken.0.load(Ordering::Acquire)
    }

    fn poll(&mut self) -> Poll<()> {
        self.woken.0.store(false, Ordering::Release);
        let waker = Waker::from(Arc::clone(&self.woken));
        self.task.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

/// The choices of one schedule.
struct Choices {
    random: Option<ChaCha8Rng>,
    commit_percent: u32,
    stick_percent: u32,
    group: usize,
    last: usize,
}

impl Choices {
    fn new(order: Order) -> Self {
        let Order::Seeded(seed) = order else {
            return Choices {
                random: None,
                commit_percent: 100,
                stick_percent: 0,
                group: usize::MAX,
                last: 0,
            };
        };
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut one = |of: usize| random.next_u32() as usize % of;
        let commit_percent = COMMIT_PERCENT[one(COMMIT_PERCENT.len())];
        let stick_percent = STICK_PERCENT[one(STICK_PERCENT.len())];
        let group = GROUPS[one(GROUPS.len())];
        Choices {
            commit_percent,
            stick_percent,
            group,
            last: usize::MAX,
            random: Some(random),
        }
    }

    fn chance(&mut self, percent: u32) -> bool {
        let random = self.random.as_mut();
        random.is_none_or(|random| random.next_u32() % 100 < percent)
    }

    /// Picks one of these indexes.
    fn one(&mut self, ready: &[usize]) -> usize {
        if ready.contains(&self.last) && self.chance(self.stick_percent) {
            return self.last;
        }
        let random = self.random.as_mut();
        let chosen = random.map_or(0, |random| random.next_u32() as usize % ready.len());
        self.last = ready[chosen];
        self.last
    }
}

/// Runs tasks, and those that they start, until they end. `step` lets the commit path take one step
/// with a group of at most the given size, and returns false when there was nothing to do.
///
/// # Errors
/// When nothing can proceed.
pub fn run<'a>(
    tasks: Vec<Task<'a>>,
    starts: &Starts<'a>,
    order: Order,
    step: impl FnMut(usize) -> bool,
) -> Result<usize, Stuck> {
    run_within(STEPS_MAX, tasks, starts, order, step)
}

/// Like [`run`], with a limit on the number of steps.
///
/// # Errors
/// As [`run`].
pub fn run_within<'a>(
    steps_max: usize,
    tasks: Vec<Task<'a>>,
    starts: &Starts<'a>,
    order: Order,
    mut step: impl FnMut(usize) -> bool,
) -> Result<usize, Stuck> {
    let mut choices = Choices::new(order);
    let mut running: Vec<Running<'a>> = tasks.into_iter().map(Running::new).collect();
    for steps in 0..steps_max {
        running.extend(starts.0.borrow_mut().drain(..).map(Running::new));
        if running.is_empty() {
            return Ok(steps);
        }
        let ready: Vec<usize> = (0..running.len())
            .filter(|at| running[*at].is_ready())
            .collect();
        let commits = ready.is_empty() || choices.chance(choices.commit_percent);
        if commits && step(choices.group) {
            continue;
        }
        if ready.is_empty() {
            return Err(Stuck {
                tasks: running.len(),
                steps,
            });
        }
        let chosen = choices.one(&ready);
        if running[chosen].poll().is_ready() {
            drop(running.remove(chosen));
        }
    }
    Err(Stuck {
        tasks: running.len(),
        steps: steps_max,
    })
}

/// Lets other tasks run first.
pub async fn pause() {
    let mut has_paused = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut has_paused, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the order in which two tasks take their three steps each.
    fn trace(order: Order) -> Vec<usize> {
        let trace = Rc::new(RefCell::new(Vec::new()));
        let starts = Starts::default();
        let task = |name: usize| {
            let trace = Rc::clone(&trace);
            Box::pin(async move {
                for _ in 0..3 {
                    trace.borrow_mut().push(name);
                    pause().await;
                }
            }) as Task<'_>
        };
        let steps = run(vec![task(0), task(1)], &starts, order, |_| false);
        assert_eq!(steps, Ok(8));
        trace.take()
    }

    #[test]
    fn seed_determines_the_order() {
        assert_eq!(trace(Order::Plain), [0, 0, 0, 1, 1, 1]);
        let all: std::collections::BTreeSet<_> =
            (0..100).map(|seed| trace(Order::Seeded(seed))).collect();
        assert!(all.len() > 10, "{} of 20 orders", all.len());
        assert_eq!(trace(Order::Seeded(7)), trace(Order::Seeded(7)));
    }

    #[test]
    fn stuck_task_is_detected() {
        let starts = Starts::default();
        let waits = Box::pin(std::future::pending());
        let stuck = run(vec![waits], &starts, Order::Seeded(1), |_| false);
        assert_eq!(stuck, Err(Stuck { tasks: 1, steps: 1 }));
    }

    #[test]
    fn tasks_start_tasks() {
        let starts = Starts::default();
        let ended = Rc::new(RefCell::new(0));
        let (inner, count) = (starts.clone(), Rc::clone(&ended));
        let outer = Box::pin(async move {
            inner.start(Box::pin(async move { *count.borrow_mut() += 1 }));
        });
        assert!(run(vec![outer], &starts, Order::Seeded(1), |_| false).is_ok());
        assert_eq!(*ended.borrow(), 1);
    }
}
