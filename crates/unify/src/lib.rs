//! One choice of features of shared packages for every crate of didact; no code.
//!
//! Cargo builds a package once for every set of its features that is asked for, and which set that is depends on the crates of the
//! workspace that a command names: `cargo build`, `cargo test -p didact-math` and `cargo test --workspace` would compile most
//! packages below them three times, because a small one at the bottom (`num-traits`, `syn`) has one feature more. Every crate of the
//! workspace depends on this one, which asks for the union of these features, so that all commands share what one of them has built.
//! A test of `didact-cli` (`tests/all/dependencies.rs`) says which feature is missing here.
