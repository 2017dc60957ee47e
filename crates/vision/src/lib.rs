//! Small vision transformers that are pre-trained, kept at checkpoints, frozen, and adapted by LoRA to another task: the last experiments of
//! the paper on LoRA (its Table 1 and Figures 10 to 12), with our own training.
//!
//! Many networks of one shape are trained side by side ([`network`]) by the operations of a [`device`].
//! Results are tables of epochs × loss and accuracy, which `didact` reads by `engine = "recorded"`.

pub mod alignment;
pub mod bench;
pub mod check;
pub mod data;
pub mod demo;
pub mod device;
pub mod experiment;
pub mod network;
pub mod protocol;
pub mod safetensors;
pub mod train;
