//! What each construct of the language becomes, and what is refused.

mod collectives;
mod ids;
mod math;
mod memory;
mod mma;
mod print;
mod shared;
