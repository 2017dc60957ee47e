//! Simulators against each other and against exact laws.
//!
//! One program holds all tests of the crate that cross its modules: each program more would link everything once more.

mod full_batch;
mod group;
mod law;
mod lora_law;
mod low_rank;
mod quadratic;
mod ways;
