//! Handles a closed standard output, as in a pipe to `head`.

/// Exit code of a program whose reader closed the pipe, as in shells: 128 plus the number of
/// SIGPIPE.
pub const NOBODY_READS: i32 = 141;

/// Makes printing to a closed pipe end the process quietly, where the standard library would panic.
/// Call it in a binary before anything is printed.
pub fn end_when_nobody_reads() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload().downcast_ref::<String>();
        if text.is_some_and(|text| is_of_a_closed_pipe(text)) {
            std::process::exit(NOBODY_READS);
        }
        usual(panic);
    }));
}

/// Returns whether a panic is caused by a closed pipe, by the standard library's wording.
fn is_of_a_closed_pipe(text: &str) -> bool {
    text.starts_with("failed printing to stdout") && text.contains("Broken pipe")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_panics_are_not_mistaken_for_it() {
        let real = "failed printing to stdout: Broken pipe (os error 32)";
        assert!(is_of_a_closed_pipe(real));
        for other in [
            "failed printing to stdout: No space left on device (os error 28)",
            "failed printing to stderr: Broken pipe (os error 32)",
            "the worker met: Broken pipe",
        ] {
            assert!(!is_of_a_closed_pipe(other), "{other}");
        }
    }
}
