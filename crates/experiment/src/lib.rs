//! didact-experiment
