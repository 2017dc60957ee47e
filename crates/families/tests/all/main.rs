//! Every registered family, over its examples.
//!
//! One program holds all tests of the crate that cross its modules: each program more would link everything once more.

mod averages;
mod rules;
