//! didact-figure
