//! What is known of LoRA without a simulation.
//!
//! A single neuron: [`population`] (the loss as a function of the law of two fields), [`landscape`] (the same in u, m and q), [`flow`],
//! [`search_phase`] (the escape from small overlaps), [`hermite`] (units He_k), [`two_stage`] (pre-training and fine-tuning as one
//! protocol), [`large_batch`]. Networks of rank R: [`two_layer`].

pub mod flow;
pub mod hermite;
mod labels;
pub mod landscape;
pub mod large_batch;
mod noise;
pub mod population;
pub mod search_phase;
pub mod two_layer;
pub mod two_stage;
