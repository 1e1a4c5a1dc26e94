//! The `lacewing` command.
fn main() {}
