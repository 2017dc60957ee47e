//! Random numbers that are addressed, not consumed.
//!
//! Every number is a pure function of an [`Address`] (seed, replica, step, lane) and of its rank in the [`Stream`] read
//! there, by the counter-based generator [Philox](philox()). Replicas and steps may run in any order, on any thread, in
//! batches of any size, and see the same numbers.
//!
//! ```
//! use didact_math::random::{Address, Stream};
//! let address = Address { seed: 7, replica: 3, step: 1_000, lane: 0 };
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
pub use stream::{Address, Stream, normal_reference};
pub use wishart::{BartlettFactor, orthonormal_rows, unit_vector};
