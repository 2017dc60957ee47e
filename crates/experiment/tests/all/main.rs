//! Experiments from their description to their folder.
//!
//! One program holds all tests of the crate that cross its modules: each program more would link everything once more.

mod common;
mod divergence;
mod engines_agree;
mod fluctuations_agree;
mod fluctuations_runs;
mod formula;
mod found_by_use;
mod full_batch_agrees;
mod full_batch_schedule;
mod kept;
mod lora;
mod low_rank;
mod optimise;
mod probability;
mod quantity_edges;
mod recorded;
mod restart;
mod scans;
mod schema_values;
mod stale;
mod sweep;
mod taken_over;
mod trained_levels;
mod ways_agree;
mod ways_matrix;
mod ways_messages;
mod within;
