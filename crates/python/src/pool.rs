//! Thread pools, one set per process.
//!
//! A process that is forked keeps the memory of its parent's pools, but not their threads: work given to them would wait for
//! ever. So pools belong to the process id that made them; a child makes its own and leaves those of its parent alone. Every
//! piece of work has a pool for itself while it runs, so that two experiments never wait for each other's tasks.

use pyo3::prelude::*;
use rayon::ThreadPool;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

/// Threads that may be asked for.
const MOST_THREADS: usize = 1024;

/// The pools of one process that are not in use, by their number of threads.
struct Pools {
    process: u32,
    idle: Mutex<BTreeMap<usize, Vec<Arc<ThreadPool>>>>,
    /// Those of a process that was forked from this one.
    child: OnceLock<Box<Pools>>,
}

impl Pools {
    fn new() -> Self {
        Self { process: std::process::id(), idle: Mutex::default(), child: OnceLock::new() }
    }
}

/// The pools of this process. Those of a parent are never freed: their threads do not exist here and could not be joined.
fn pools() -> &'static Pools {
    static FIRST: OnceLock<Pools> = OnceLock::new();
    let process = std::process::id();
    let mut pools = FIRST.get_or_init(Pools::new);
    while pools.process != process {
        pools = pools.child.get_or_init(|| Box::new(Pools::new()));
    }
    pools
}

/// A pool with this number of threads, to be given back by [`put_back`].
pub(crate) fn take(threads: usize) -> PyResult<Arc<ThreadPool>> {
    if threads == 0 || threads > MOST_THREADS {
        let message = format!("threads is {threads}; use a number from 1 to {MOST_THREADS}");
        return Err(pyo3::exceptions::PyValueError::new_err(message));
    }
    let idle = pools()
        .idle
        .lock()
        .expect("no thread panics while it holds the lock")
        .get_mut(&threads)
        .and_then(Vec::pop);
    if let Some(pool) = idle {
        return Ok(pool);
    }
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("didact-{i}")).build();
    pool.map(Arc::new).map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))
}

/// Gives a pool back for later work.
pub(crate) fn put_back(pool: Arc<ThreadPool>) {
    let mut idle = pools().idle.lock().expect("no thread panics while it holds the lock");
    idle.entry(pool.current_num_threads()).or_default().push(pool);
}

/// The number of threads unless one is given: the cores that this process may use.
#[pyfunction]
pub(crate) fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS)
}
