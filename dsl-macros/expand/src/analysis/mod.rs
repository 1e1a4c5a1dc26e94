//! What the lowering asks of a body: which names stand for what, what a region changes, which jumps
//! leave it, and what is marked as compile time. All of it is syntactic.

pub(crate) mod effects;
pub(crate) mod jumps;
pub(crate) mod marks;
pub(crate) mod scopes;
