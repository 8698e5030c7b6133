//! Where mistakes are planted on purpose, to see that the checks catch them: `docs/planted.md`.
//!
//! Without the feature `planted`, which no product has, this is the constant `false`.

/// Whether the planted bug of this name is switched on.
#[cfg(feature = "planted")]
pub(crate) fn planted(id: &str) -> bool {
    smalt_planted::is_active(id)
}

/// Whether the planted bug of this name is switched on: never, this is the product.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub(crate) const fn planted(_: &str) -> bool {
    false
}

/// `run`, with the switch as it is here, for a thread of its own.
#[cfg(feature = "planted")]
pub(crate) fn carry<T>(run: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let active = smalt_planted::Active::get();
    move || {
        let _here = active.here();
        run()
    }
}

/// `run` as it is.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub(crate) const fn carry<F>(run: F) -> F {
    run
}
