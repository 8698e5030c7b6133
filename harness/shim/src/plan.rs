//! Selects the calls that fail: `SMALT_SHIM_FAIL=call:ending:nth:how`.
//!
//! - `call`: the hooked kind: `write`, `sync`, `read`, `open` or `rename`.
//! - `ending`: the end of the path.
//! - `nth`: the first such call that fails, counted from 1.
//! - `how`: `enospc`, `eio` (that call and all later ones of the kind), `eio-once`, `enospc-late`
//!   (only that call, long after the calls that followed it have finished), or `short`: from that
//!   call on every second one writes half of its bytes.

use std::ffi::c_int;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The delay of an `enospc-late` call.
const LATE: Duration = Duration::from_millis(100);

/// The outcome of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The call proceeds normally.
    Pass,
    /// The call fails with this `errno`.
    Fail(c_int),
    /// The call writes half of its bytes.
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

/// Decides the outcome of this call on this file.
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
