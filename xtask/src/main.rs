//! `cargo xtask`: setup, demo, test, ci.
fn main() {}
