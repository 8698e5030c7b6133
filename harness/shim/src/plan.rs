//! Which calls fail: `SMALT_SHIM_FAIL=call:ending:nth:how`.
//!
//! - `call`: `write`, `sync`, `read`, `open` or `rename`: the kinds that there are hooks for.
//! - `ending`: what the path must end with.
//! - `nth`: the first such call that fails, counted from 1.
//! - `how`: `enospc`, `eio` (that call and all later ones of the kind), `eio-once`, `enospc-late`
//!   (that call alone, when those that came after it are long done), or `short`: from that call on
//!   every second one does half of what it was asked.

use std::ffi::c_int;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// So late is a call that is late.
const LATE: Duration = Duration::from_millis(100);

/// What a call is to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// What it was asked.
    Pass,
    /// Fail with this `errno`.
    Fail(c_int),
    /// Half of it.
    Short,
}

struct Plan {
    call: String,
    ending: String,
    nth: u64,
    how: String,
    seen: AtomicU64,
}

static PLAN: OnceLock<Option<Plan>> = OnceLock::new();

fn plan() -> Option<&'static Plan> {
    let made = PLAN.get_or_init(|| {
        let text = std::env::var("SMALT_SHIM_FAIL").ok()?;
        let mut fields = text.split(':').map(str::to_owned);
        Some(Plan {
            call: fields.next()?,
            ending: fields.next()?,
            nth: fields.next()?.parse().ok()?,
            how: fields.next()?,
            seen: AtomicU64::new(0),
        })
    });
    made.as_ref()
}

/// What this call on this file is to do.
pub(crate) fn judge(call: &str, path: &Path) -> Verdict {
    let Some(plan) = plan() else {
        return Verdict::Pass;
    };
    if plan.call != call || !path.to_string_lossy().ends_with(&plan.ending) {
        return Verdict::Pass;
    }
    let seen = plan.seen.fetch_add(1, Ordering::Relaxed) + 1;
    match plan.how.as_str() {
        _ if seen < plan.nth => Verdict::Pass,
        "enospc" => Verdict::Fail(libc::ENOSPC),
        "eio" => Verdict::Fail(libc::EIO),
        "enospc-late" if seen == plan.nth => {
            wait();
            Verdict::Fail(libc::ENOSPC)
        }
        "eio-once" if seen == plan.nth => Verdict::Fail(libc::EIO),
        "short" if (seen - plan.nth).is_multiple_of(2) => Verdict::Short,
        _ => Verdict::Pass,
    }
}

#[expect(clippy::disallowed_methods, reason = "a slow disk takes real time")]
fn wait() {
    std::thread::sleep(LATE);
}
