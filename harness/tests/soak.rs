//! Long runs, in memory and over real connections: everything is accounted for.

use std::time::Duration;

use smalt_harness::soak::account::Account;
use smalt_harness::soak::loopback::{self, Until};
use smalt_harness::soak::memory;

#[test]
fn a_long_run_in_memory_adds_up() {
    for (calls, shuffled) in [(20_000, false), (5_000, true)] {
        let events = memory::run(3, calls, 8, shuffled);
        let account = Account::of(&events.unwrap_or_else(|reason| unreachable!("{reason}")));
        assert!(account.is_clean(), "{account:?}");
        assert!(account.got > calls / 4, "{account}");
    }
}

#[test]
fn eight_connections_add_up() {
    let until = Until {
        calls: 4_000,
        time: Duration::from_secs(60),
    };
    let events = loopback::run(1, until, 8, None);
    let account = Account::of(&events.unwrap_or_else(|reason| unreachable!("{reason}")));
    assert!(account.is_clean(), "{account:?}");
    assert!(account.got > 500 && account.deleted > 100, "{account}");
}
