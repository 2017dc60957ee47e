//! The program as its users meet it. The golden numbers are a test of their own, `golden`.
//!
//! One program holds all tests of the crate that cross its modules: each program more would link everything once more.

mod bad_input;
mod bad_quantities;
mod citations;
mod closed_pipe;
mod common;
mod dependencies;
mod examples;
mod exit_codes;
mod hostile;
mod killed;
mod lists;
mod readme;
mod seams;
#[cfg(unix)]
mod sweep;
mod verify;
