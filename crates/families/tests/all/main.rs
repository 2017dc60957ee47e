//! Every registered family, over its examples.
//!
//! One program holds all tests of the crate that cross its modules: each program more would link everything once more.

mod averages;
mod rules;

use didact_families::Model;
use didact_math::random::{RngAddress, Stream};

/// The examples of all families, each with random numbers of its own: they depend on the name of the family and on the place of the
/// example in it, so that a new family leaves the numbers of the others as they are.
fn examples(seed: u64) -> impl Iterator<Item = (Model, Stream)> {
    let mut family = ("", 0);
    Model::examples().into_iter().map(move |model| {
        let name = model.family();
        family = if family.0 == name { (name, family.1 + 1) } else { (name, 0) };
        let replica = hash(name).wrapping_add(family.1);
        (model, Stream::at(RngAddress { seed, replica, step: 0, lane: 0 }))
    })
}

/// The 32-bit hash of Fowler, Noll and Vo (FNV-1a).
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[test]
fn families_and_their_examples_have_numbers_of_their_own() {
    let mut first: Vec<u64> = examples(1).map(|(_, mut stream)| stream.normal().to_bits()).collect();
    let all = first.len();
    first.sort_unstable();
    first.dedup();
    assert_eq!(first.len(), all);
}
