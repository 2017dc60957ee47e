//! The closed forms as quantities: `committee/linear-error`, `committee/feature-asymptote`, …
//!
//! Inputs have the names of the paper: `L`, `beta` (a normalised power law) or `lam`, `weights` or `file` or `measured` for the spectrum,
//! `eta`, `sigma_J2` = σ_J², `noise_var` = s², `N`, `Nl`, `K`, `M`, `alpha` = examples/N.

mod feature;
mod inputs;
mod inverse;
mod late;
mod linear;
mod plateau;
mod spectrum;
mod symmetric_plateau;

use didact_model::quantity::Quantity;

/// All of them.
pub(super) fn all() -> Vec<Quantity> {
    [
        symmetric_plateau::QUANTITIES,
        spectrum::QUANTITIES,
        linear::QUANTITIES,
        feature::QUANTITIES,
        inverse::QUANTITIES,
        plateau::QUANTITIES,
        late::QUANTITIES,
    ]
    .concat()
}
