//! Runs every recorded input of the fuzzers through its check.

use std::fs;
use std::path::Path;

use smalt_harness::fuzz::KINDS;

/// Recorded inputs once failed, or reach code that others do not.
#[test]
#[expect(clippy::disallowed_methods, reason = "the inputs are files")]
fn recorded_inputs_are_handled() {
    let inputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/fuzz");
    for kind in &KINDS {
        let mut judged = 0;
        for entry in fs::read_dir(inputs.join(kind.name)).unwrap() {
            let path = entry.unwrap().path();
            println!("{}", path.display());
            (kind.run)(&fs::read(&path).unwrap());
            judged += 1;
        }
        assert!(judged > 0, "fixtures/fuzz/{} has no input", kind.name);
    }
}
