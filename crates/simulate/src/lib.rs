//! didact-simulate
