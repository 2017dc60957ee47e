//! The module `didact._core`: what the Python package `didact` is built on.
//!
//! The boundary is thin. A description goes in as text or as plain Python data, tables come back as NumPy arrays. Nothing here
//! reads a description or computes anything: all of it is in `didact::experiment`.
//!
//! | file | what it does |
//! |---|---|
//! | `pool.rs` | one set of thread pools per process id |
//! | `task.rs` | work on a pool while the calling thread waits for it and for Ctrl-C |
//! | `plain.rs` | Python data to JSON and back, tables to arrays |
//! | `errors.rs` | diagnostics to exceptions |
//! | `description.rs`, `job.rs` | descriptions, prepared experiments, running jobs |
//! | `lists.rs` | quantities, families, engines, the schema |
//! | `function.rs` | NumPy functions as formulas |

mod description;
mod errors;
mod function;
mod job;
mod lists;
mod plain;
mod pool;
mod task;

use pyo3::prelude::pymodule;

/// Descriptions in, tables out.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::description::{Description, Prepared};
    #[pymodule_export]
    use crate::function::fit;
    #[pymodule_export]
    use crate::job::{Job, ShareJob, SolveJob};
    #[pymodule_export]
    use crate::lists::{command, compute, lists, mean_and_error, quantities, schema, version};
    #[pymodule_export]
    use crate::pool::default_threads;
}
