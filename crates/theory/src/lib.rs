//! didact-theory
