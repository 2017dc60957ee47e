//! What is known of rank-one fine-tuning without a simulation.
//!
//! [`population`] (signal and loss of any instance), [`orthonormal`] (an orthonormal base, where sums of signs are all that counts),
//! [`noise`] (gradient noise), [`dynamics`] (finite steps), [`basins`] (where the flow leads), [`lazy`] (the baselines that do
//! not move their features) and [`theorem`] (the bounds of the source).

pub mod basins;
pub mod dynamics;
pub mod lazy;
pub mod noise;
pub mod orthonormal;
mod outer;
pub mod population;
pub mod theorem;

use super::network;
