//! What crosses modules.

mod demo;
mod gradients;
mod pytorch;
mod resume;
mod tiny;
