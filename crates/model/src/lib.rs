//! didact-model
