//! `[[optimise]]`: a search is a run whose engine finds a protocol and whose table is the protocol, with all that it is compared with.
//!
//! ```text
//! OptimiseSpec ──► plan (checks) ──► Run "optimise-<name>" ──► table: controls, p.f1, p.f2, H, observables, baselines; notes: Summary
//!                                                                 │
//! [[run]] protocol = "<name>" ◄── Summary::changes ◄──────────────┘   planned with the protocol when the search is done
//! ```
//!
//! Keys, journals, resuming, files, figures and measures are therefore those of runs.

mod courses;
mod plan;
mod statics;
mod summary;

pub(crate) use plan::{placeholder, plan};
pub(crate) use summary::{ENTRIES, SearchMemory, Summary};
