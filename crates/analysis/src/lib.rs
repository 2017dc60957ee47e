//! didact-analysis
