//! What each construct of the language becomes, and what is refused.

mod blackwell;
mod collectives;
mod hopper;
mod ids;
mod kernels;
mod math;
mod memory;
mod mma;
mod print;
mod shared;
