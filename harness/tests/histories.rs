//! Random histories of one client, with every answer compared with the model.
use smalt_harness::histories::campaign::{About, Campaign, Outcome};

/// Histories of at most 50 operations.
const ACCOUNT: Campaign = Campaign {
    about: About::Account,
    seed: 1,
    histories: 2_000,
    operations: 50,
    restarts: false,
    invariants_every: 10,
    dry: false,
};

/// Histories of tables, of at most 40 operations.
const TABLES: Campaign = Campaign {
    about: About::Tables,
    histories: 300,
    operations: 40,
    ..ACCOUNT
};

fn judge(campaign: Campaign) -> Outcome {
    let outcome = campaign.run(&|| ());
    if let Some(failed) = &outcome.failed {
        panic!("{failed}");
    }
    outcome
}

/// The generator must reach enough outcomes and keep to its shares: an empty campaign proves
/// nothing.
#[test]
fn answers_match_the_model() {
    let coverage = judge(ACCOUNT).coverage;
    assert!(
        coverage.reached() > 700,
        "only {} cells",
        coverage.reached()
    );
    let (open, places) = coverage.unreached_places();
    assert!(places - open.len() > 220, "never reached: {open:?}");
    for mix in [coverage.intended(), coverage.actual()] {
        assert!((65.0..75.0).contains(&mix.valid), "{mix}");
        assert!((20.0..30.0).contains(&mix.near), "{mix}");
        assert!((3.0..8.0).contains(&mix.malformed), "{mix}");
    }
}

#[test]
fn answers_match_the_model_across_restarts() {
    let campaign = Campaign {
        seed: 2,
        histories: 40,
        restarts: true,
        ..ACCOUNT
    };
    let coverage = judge(campaign).coverage;
    assert!(coverage.steps() > 500, "only {} steps", coverage.steps());
}

/// The generator must reach every outcome that the model declares.
#[test]
fn answers_about_tables_match_the_model() {
    let coverage = judge(TABLES).coverage;
    let mut unreached = coverage.unreached();
    unreached.retain(smalt_model::outcomes::Cell::is_of_tables);
    assert!(unreached.is_empty(), "{unreached:?}");
    let mix = coverage.actual();
    assert!((65.0..75.0).contains(&mix.valid), "{mix}");
    assert!((20.0..30.0).contains(&mix.near), "{mix}");
    assert!((3.0..7.0).contains(&mix.malformed), "{mix}");
}

#[test]
fn answers_about_tables_match_the_model_across_restarts() {
    let campaign = Campaign {
        histories: 15,
        restarts: true,
        ..TABLES
    };
    let coverage = judge(campaign).coverage;
    assert!(coverage.steps() > 150, "only {} steps", coverage.steps());
}

/// Histories of a hierarchical account, through both of its interfaces.
const LAKE: Campaign = Campaign {
    about: About::Lake,
    histories: 600,
    ..ACCOUNT
};

#[test]
fn answers_of_both_interfaces_match_the_model() {
    let coverage = judge(LAKE).coverage;
    let mut unreached = coverage.unreached();
    unreached.retain(smalt_model::outcomes::Cell::is_of_lake);
    assert!(unreached.len() < 10, "{unreached:?}");
    let mix = coverage.actual();
    assert!((60.0..80.0).contains(&mix.valid), "{mix}");
}

#[test]
fn answers_of_both_interfaces_match_the_model_across_restarts() {
    let campaign = Campaign {
        histories: 15,
        restarts: true,
        ..LAKE
    };
    let coverage = judge(campaign).coverage;
    assert!(coverage.steps() > 150, "only {} steps", coverage.steps());
}
