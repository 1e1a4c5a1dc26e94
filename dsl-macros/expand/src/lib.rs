//! The expansion behind Lacewing's macros, as an ordinary library.
//!
//! Tracing runs the body of a kernel once, so a run-time region needs no closure: the body becomes
//! straight-line code between `begin` and `end` calls, which take the variables that the region
//! changes as a list of slots and swap their handles in place. Everything else (arithmetic, calls,
//! field access, `match`) stays as it was written, so that types, borrows and messages are rustc's own.
//!
//! How the parts fit:
//!
//! * [`mod@kernel`] and [`mod@device`] turn an item into items, [`mod@carried`] and [`mod@shared`] are
//!   the derives;
//! * `lower` rewrites a body. It walks it once, bottom up: what a region changes and which jumps leave it
//!   is collected while the region is lowered, and the slots are written when it is done;
//! * `analysis` holds what needs no rewriting: scopes, places, jumps, and the marks of compile time.
//!
//! *Invariant:* this crate knows no kernel type. It decides by syntax alone, and leaves every question
//! of types to the traits of `rt`.
//!
//! *Invariant:* expansion never fails. It returns the lowered item beside the errors that it found, or,
//! where the item does not parse, the item as it was written.

mod analysis;
mod attributes;
pub mod carried;
pub mod device;
mod errors;
mod generated;
pub mod kernel;
mod lower;
pub mod shared;

pub use generated::Root;

#[cfg(test)]
mod tests;
