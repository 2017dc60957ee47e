//! What crosses modules.

mod demo;
mod figures;
mod gradients;
mod pytorch;
mod resume;
mod tiny;
