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
