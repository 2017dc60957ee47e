//! Random numbers that are functions of an address, so that results do not depend on threads or order of execution.
//!
//! Every number is a pure function of an [`RngAddress`] (seed, replica, step, lane) and of its position in the [`Stream`]
//! that starts there. The generator is the counter-based [Philox4x32-10](philox()) of J. K. Salmon et al. (2011).
//! Replicas and steps may run in any order, on any thread, in batches of any size, and get the same numbers.
//!
//! A stream gives uniform, normal, exponential, gamma and chi-square variables, signs and permutations.
//! [`BartlettFactor`] draws Wishart matrices, [`sobol_column`] gives quasi-random points, and [`statistics`] has the tests
//! that compare a sample with a law.
//!
//! ```
//! use didact_math::random::{RngAddress, Stream};
//! let address = RngAddress { seed: 7, replica: 3, step: 1_000, lane: 0 };
//! let mut input = [0.0; 100];
//! Stream::at(address).fill_normal(&mut input);
//! assert_eq!(input[0], Stream::at(address).normal());
//! ```

mod gamma;
mod normal;
mod normal_f32;
mod philox;
mod sobol;
pub mod statistics;
mod stream;
mod wishart;

pub use philox::philox;
pub use sobol::{sobol_axes, sobol_column};
pub use stream::{RngAddress, Stream, normal_reference};
pub use wishart::{BartlettFactor, orthonormal_rows, unit_vector};
