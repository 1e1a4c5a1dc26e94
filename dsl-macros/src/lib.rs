//! The attribute and derive macros of Lacewing: a thin shell over `lacewing-expand`.
//!
//! Use them through the prelude of `lacewing`.

use lacewing_expand::Root;
use proc_macro::TokenStream;

/// Makes a kernel of a free function: `#[kernel(block = [x, y, z])]`.
///
/// The function becomes a type of the same name. `name::new(..)` takes the parameters marked
/// `#[comptime]`; the others are given at launch.
///
/// | argument | meaning |
/// |---|---|
/// | `block` | threads of a block in each dimension; required |
/// | `min_blocks` | blocks that shall fit on one multiprocessor at a time |
/// | `max_regs` | the most registers of a thread |
/// | `waves_per_eu` | waves that shall fit on one execution unit (AMD) |
/// | `cluster` | blocks of a cluster in each dimension |
///
/// Each is an expression over compile-time parameters and generics.
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    lacewing_expand::kernel::expand(arguments.into(), item.into(), &Root::find()).into()
}

/// Makes a helper of a function, a method or a method of a trait: kernels may call it, and its operations
/// are reported with the chain of calls that led to them.
#[proc_macro_attribute]
pub fn device(arguments: TokenStream, item: TokenStream) -> TokenStream {
    lacewing_expand::device::expand(arguments.into(), item.into(), &Root::find()).into()
}

/// Lets run-time control flow change the values of a struct.
#[proc_macro_derive(Carried)]
pub fn carried(item: TokenStream) -> TokenStream {
    lacewing_expand::carried::expand(item.into(), &Root::find()).into()
}

/// Lays a struct of tiles and arrays out in the shared memory of a block.
///
/// Members stand in order. `#[shared(align = BYTES)]` on a member raises its alignment,
/// `#[shared(overlap = "other")]` lets it begin where an earlier member does; `#[shared(union)]` on the
/// struct lets all members begin at one place.
#[proc_macro_derive(Shared, attributes(shared))]
pub fn shared(item: TokenStream) -> TokenStream {
    lacewing_expand::shared::expand(item.into(), &Root::find()).into()
}
