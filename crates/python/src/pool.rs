//! Thread pools, one set per process.
//!
//! A process that is forked keeps the memory of its parent's pools, but not their threads: work given to them would wait for
//! ever. So pools belong to the process id that made them; a child makes its own and leaves those of its parent alone. Every
//! piece of work has a pool for itself while it runs, so that two experiments never wait for each other's tasks.

use pyo3::prelude::*;
use rayon::ThreadPool;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex};

/// Threads that may be asked for.
const MOST_THREADS: usize = 1024;

/// The pools of one process that are not in use, by their number of threads.
struct Pools {
    process: u32,
    idle: Mutex<BTreeMap<usize, Vec<Arc<ThreadPool>>>>,
}

/// The pools of this process. Those of a parent are never freed: their threads do not exist here and could not be joined.
fn pools() -> &'static Pools {
    static CURRENT: AtomicPtr<Pools> = AtomicPtr::new(std::ptr::null_mut());
    let process = std::process::id();
    let current = CURRENT.load(Ordering::Acquire);
    // SAFETY: the pointer is null or comes from `Box::leak` below, so that it is valid for ever.
    if let Some(pools) = unsafe { current.as_ref() }.filter(|pools| pools.process == process) {
        return pools;
    }
    let own: &'static mut Pools = Box::leak(Box::new(Pools { process, idle: Mutex::default() }));
    // If another thread of this process was faster its pools are used, and the empty set of this one is left behind.
    let _ = CURRENT.compare_exchange(current, own, Ordering::AcqRel, Ordering::Acquire);
    pools()
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
    match idle {
        Some(pool) => Ok(pool),
        None => {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .thread_name(|i| format!("didact-{i}"))
                .build();
            pool.map(Arc::new).map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))
        }
    }
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
