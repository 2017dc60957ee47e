//! didact-bench
