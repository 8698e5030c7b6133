//! The scenarios over sockets: time is real there, so plans keep only what shows quickly.

use std::future::Future;

use smalt_sweeper::Collision;

use super::campaign::{Run, Scenario};
use super::history::{Event, Happening};
use super::listen::{self, Arrival, Behaviour, Listen, ListenPlan, Mode, Wave};
use super::sweep::{self, Life, Sweep, SweepPlan};
use super::world::{Trouble, Which, World};

/// A scenario that can run over sockets.
pub trait OverSockets: Scenario {
    /// Runs a reduced plan; `name` separates its resources from all others in the service.
    fn run_over(
        world: &World,
        plan: &Self::Plan,
        name: &str,
    ) -> impl Future<Output = Result<Run, String>>;

    /// Returns the line on which two services must agree.
    fn result(run: &Run) -> String {
        let counted: Vec<String> = run
            .marks
            .iter()
            .filter(|(mark, _)| Self::COMPARED.contains(mark))
            .map(|(mark, count)| format!("{mark} {count}"))
            .collect();
        let requests = |event: &&Event| matches!(event.what, Happening::Exchange(_));
        let any = run.history.iter().filter(requests).count() > 0;
        format!(
            "{} [{}]",
            if any { "ran" } else { "NOTHING RAN" },
            counted.join(", ")
        )
    }

    /// Marks that do not depend on timing.
    const COMPARED: &'static [&'static str];
}

impl OverSockets for Sweep {
    const COMPARED: &'static [&'static str] = &["deleted", "moved", "cycle completed"];

    async fn run_over(world: &World, plan: &SweepPlan, name: &str) -> Result<Run, String> {
        let mut plan = plan.clone();
        plan.lasts = false;
        plan.acts.clear();
        plan.trouble = Trouble::default();
        plan.dead_account = Some(Which::Dead);
        plan.grace_h = 0;
        plan.extras = sweep::Extras::default();
        for (number, blob) in plan.blobs.iter_mut().enumerate() {
            blob.life = match blob.life {
                // In the past, or after the end of this run: nothing becomes due during the run.
                Life::In(_) | Life::InElsewhere(_) | Life::AtMark(_) | Life::Now
                    if number % 2 == 0 =>
                {
                    Life::Past
                }
                Life::In(_)
                | Life::InElsewhere(_)
                | Life::AtMark(_)
                | Life::Now
                | Life::AfterChange => Life::Far,
                other => other,
            };
        }
        if plan.on_collision == Collision::Overwrite {
            // Timing decides which of two concurrent requests wins.
            plan.parallelism = 1;
        }
        let prefix = format!("{name}-");
        sweep::run_in(world, &plan, &sweep::Names { prefix }).await
    }
}

impl OverSockets for Listen {
    const COMPARED: &'static [&'static str] = &[
        "copy in the poison queue",
        "handler done",
        "handler panicked",
        "handler rejected",
    ];

    async fn run_over(world: &World, plan: &ListenPlan, name: &str) -> Result<Run, String> {
        let mut plan = plan.clone();
        plan.trouble = Trouble::default();
        plan.acts.clear();
        plan.wave = Wave::None;
        plan.shape.visibility_s = 6;
        plan.shape.renew = true;
        plan.shape.max_dequeue = plan.shape.max_dequeue.min(2);
        plan.shape.mode = Mode::Poll(1);
        plan.shape.idle_ms = (200, 1_000);
        plan.shape.idle_rounds = 1;
        plan.shape.skew_s = [0; 3];
        plan.shape.lag_ms = 0;
        for message in &mut plan.messages {
            message.ttl_s = None;
            message.arrival = match message.arrival {
                Arrival::First => Arrival::First,
                Arrival::Hidden(_) | Arrival::Later(..) => Arrival::Hidden(1),
            };
            message.behaviour = match message.behaviour {
                Behaviour::Ok(ms) => Behaviour::Ok(ms % 200),
                // Longer than the visibility timeout: the lock is renewed twice.
                Behaviour::Slow(_) => Behaviour::Slow(8),
                Behaviour::RetryAfter(n, _) => Behaviour::RetryAfter(n, 1),
                Behaviour::Hang => Behaviour::Reject,
                other => other,
            };
        }
        listen::run_in(world, &plan, &listen::Names::fresh(name)).await
    }
}
