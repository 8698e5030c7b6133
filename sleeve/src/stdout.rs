//! A standard output that nobody reads any more, as before `head`.

/// Exit code of a program whose reader went away, as shells have it: 128 and the number of SIGPIPE.
pub const NOBODY_READS: i32 = 141;

/// From now on a print into a pipe that nobody reads ends the process quietly. The standard
/// library panics there, for it cannot tell anybody else. For binaries, before anything is printed.
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

/// Whether a panic says that, by the words of the standard library.
fn is_of_a_closed_pipe(text: &str) -> bool {
    text.starts_with("failed printing to stdout") && text.contains("Broken pipe")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_other_panic_is_taken_for_it() {
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
