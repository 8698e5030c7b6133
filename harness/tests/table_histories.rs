//! Random histories of tables, every answer judged by the model.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use smalt_harness::table_histories::{Cells, play, steps};

const HISTORIES: u32 = 300;
const STEPS_MAX: usize = 40;

/// What the histories of one seed have to reach: a generator that reaches less proves too little.
const REACHED: [(&str, u16, &str); 24] = [
    ("create", 204, ""),
    ("create", 409, "TableAlreadyExists"),
    ("delete", 204, ""),
    ("delete", 404, "ResourceNotFound"),
    ("insert", 204, ""),
    ("insert", 404, "TableNotFound"),
    ("insert", 409, "EntityAlreadyExists"),
    ("insert or replace", 204, ""),
    ("insert or merge", 204, ""),
    ("update", 204, ""),
    ("update", 404, "ResourceNotFound"),
    ("update", 412, "UpdateConditionNotSatisfied"),
    ("merge", 204, ""),
    ("merge", 412, "UpdateConditionNotSatisfied"),
    ("delete entity", 204, ""),
    ("delete entity", 404, "ResourceNotFound"),
    ("delete entity", 412, "UpdateConditionNotSatisfied"),
    ("get", 200, ""),
    ("get", 404, "ResourceNotFound"),
    ("query", 200, ""),
    ("batch", 204, ""),
    ("batch", 400, "InvalidDuplicateRow"),
    ("batch", 400, "CommandsInBatchActOnDifferentPartitions"),
    ("batch", 409, "EntityAlreadyExists"),
];

#[test]
fn answers_are_the_models() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap_or_else(|error| panic!("{error}"));
    let config = Config {
        cases: HISTORIES,
        failure_persistence: None,
        max_shrink_iters: 4_096,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let cells = RefCell::new(Cells::new());
    let outcome = runner.run(&steps(STEPS_MAX), |steps| {
        let reached = runtime.block_on(play(&steps));
        let reached = reached.map_err(TestCaseError::fail)?;
        cells.borrow_mut().extend(reached);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    let cells = cells.into_inner();
    for (operation, status, code) in REACHED {
        let cell = (operation, status, code.to_owned());
        assert!(cells.contains(&cell), "{cell:?} was not reached: {cells:?}");
    }
}
