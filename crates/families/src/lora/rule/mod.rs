//! The learning rules: one adapter on a neuron, R adapters on a two-layer network.

mod batch;
mod single_index;
mod two_layer;
mod two_layer_averages;

pub(super) use single_index::{Neuron, SingleIndexRule};
pub(super) use two_layer::AdapterRule;
