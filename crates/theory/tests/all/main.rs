//! Predictions against closed forms, other engines and their own invariances.
//!
//! One program holds all tests of the crate that cross its modules: each program more would link everything once more.

mod common;
mod dmft;
mod fluctuations;
mod invariances;
mod landscape;
mod linear_units;
mod lora;
mod population_landscape;
mod power_law_phases;
mod quadratic;
mod runs;
mod whole_hessian;
