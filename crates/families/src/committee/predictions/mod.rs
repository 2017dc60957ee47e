//! Committee machines on inputs with a spectrum: closed forms of learning curves and scaling laws.
//!
//! R. Worschech and B. Rosenow, arXiv:2410.09005 (2024), derived anew and corrected in
//! docs/derivations/power-law-spectra.md. Linear units: [`regression`] (exact at any learning rate and dimension),
//! [`small_rate`] (sums and integrals), [`feature`] and [`correlated`] (few trainable directions). erf units:
//! [`teacher`] (plateaus of any teacher), [`specialised`] and [`late`] (the phase after it), [`symmetric`] (the whole
//! curve for typical teachers). [`inverse`] turns the curves around.
//!
//! Notation of the paper: N inputs, eigenvalues λ_a with weights w_a = n_a/N, η the learning rate, α = examples/N,
//! components of the student N(0, σ_J²) and of the teacher N(0, 1) at the start, errors with the factor 1/2, output
//! weights √M/K and 1/√M (`scaled`).

pub mod correlated;
pub mod feature;
pub mod inverse;
pub mod late;
pub mod regression;
pub mod small_rate;
pub mod specialised;
pub mod symmetric;
pub mod teacher;
