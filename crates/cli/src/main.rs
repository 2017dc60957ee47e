//! The command line of didact.
fn main() {}
