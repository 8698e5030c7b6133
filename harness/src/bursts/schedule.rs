//! Who goes on next: clients and the commit path on one thread, in an order that a seed chooses.
//!
//! Every client is a future, and so is each call whose answer nobody waits for. One step polls one
//! future that was woken, or lets the emulator pass one point of its commit path. The same seed
//! makes the same steps.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore as _, SeedableRng as _};

/// Steps after which a schedule counts as stuck: a burst takes some hundreds.
const STEPS_MAX: usize = 100_000;
/// Of a hundred steps, so many go to the commit path if it and clients can go on: one is drawn for
/// each schedule, so that some see long queues and others short ones.
const COMMIT_PERCENT: [u32; 4] = [15, 35, 60, 85];
/// Of a hundred steps, so many go on with the client that went before.
const STICK_PERCENT: [u32; 3] = [0, 30, 70];
/// Most commits of a group.
const GROUPS: [usize; 4] = [1, 2, 3, usize::MAX];

/// A client, or a call that nobody waits for.
pub type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Where tasks leave those that they start.
#[derive(Clone, Default)]
pub struct Starts<'a>(Rc<RefCell<Vec<Task<'a>>>>);

impl<'a> Starts<'a> {
    /// Starts a task.
    pub fn start(&self, task: Task<'a>) {
        self.0.borrow_mut().push(task);
    }
}

/// In which order things happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One call after the other, each to its end: what tests without schedules see.
    Plain,
    /// As this seed has it.
    Seeded(u64),
}

/// Nothing can go on, or it goes on for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Tasks that have not ended.
    pub tasks: usize,
    /// Steps taken.
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

/// How one schedule chooses.
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

    /// One of these places.
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

/// Runs tasks, and those that they start, to their ends. `step` lets the commit path take one step,
/// forming a group of at most so many; false when it had nothing to do.
///
/// # Errors
/// When nothing can go on any more.
pub fn run<'a>(
    tasks: Vec<Task<'a>>,
    starts: &Starts<'a>,
    order: Order,
    step: impl FnMut(usize) -> bool,
) -> Result<usize, Stuck> {
    run_within(STEPS_MAX, tasks, starts, order, step)
}

/// As [`run`], for who knows how many steps it takes at most.
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

/// Lets others go first.
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

    /// The order in which two tasks of three steps each take them.
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
    fn a_seed_chooses_and_repeats() {
        assert_eq!(trace(Order::Plain), [0, 0, 0, 1, 1, 1]);
        let all: std::collections::BTreeSet<_> =
            (0..100).map(|seed| trace(Order::Seeded(seed))).collect();
        assert!(all.len() > 10, "{} of 20 orders", all.len());
        assert_eq!(trace(Order::Seeded(7)), trace(Order::Seeded(7)));
    }

    #[test]
    fn who_waits_for_nothing_is_found() {
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
