//! Matrix products that sum in tensor memory: `tcgen05.mma`.
//!
//! One thread starts a product, and it runs on its own. Its token, [`MmaInFlight`], must be committed to an mbarrier;
//! the sums can be read behind a wait for that mbarrier, from the tile that [`TmemAccumulator::wait`] gives.

use std::panic::Location;

use super::tensor_memory::{LANES, TmemAccumulator};
use crate::Diagnostic;
use crate::trace::{self, Attr, Loc};
use crate::types::hopper::{Mbarrier, Operand, SwizzledTile, Transposed, WgmmaA, WgmmaB};
use crate::types::{Bool, MmaElement, Scalar};

/// A matrix that `tcgen05_mma` reads: A of 128 or 64 rows, or B. What of it is an operand is as for warpgroups' products.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an operand of `tcgen05_mma`",
    label = "not a matrix in shared memory",
    note = "it is a `SwizzledTile` of F16 or BF16, or its transpose `.t()`"
)]
pub trait Tcgen05Operand {}
impl<T: MmaElement> Tcgen05Operand for SwizzledTile<T> {}
impl<T: MmaElement> Tcgen05Operand for Transposed<T> {}

/// A product under way. It must be committed to an mbarrier; to drop it is a trace error.
#[must_use = "nobody can wait for a product that is not committed: call `.commit(barrier)`"]
#[derive(Debug)]
pub struct MmaInFlight {
    loc: Loc,
    committed: bool,
}

impl Drop for MmaInFlight {
    fn drop(&mut self) {
        if !self.committed && !std::thread::panicking() {
            let message = "nothing can wait for this product";
            trace::error(self.loc, Diagnostic::error(message).help("commit it to an mbarrier: `.commit(barrier)`"));
        }
    }
}

impl MmaInFlight {
    /// One arrival at the mbarrier when this product, and all that the thread has started before, are complete. The
    /// thread that started it calls this.
    #[track_caller]
    pub fn commit(mut self, barrier: Mbarrier) {
        self.committed = true;
        commit_at(barrier, Location::caller());
    }

    /// Leaves the commit to a later product of the same thread.
    pub fn before(mut self, later: MmaInFlight) -> MmaInFlight {
        self.committed = true;
        later
    }
}

/// One arrival at the mbarrier when all products that the thread has started so far are complete: for one more
/// mbarrier beside that of [`MmaInFlight::commit`].
#[track_caller]
pub fn tcgen05_commit(barrier: Mbarrier) {
    commit_at(barrier, Location::caller());
}

fn commit_at(barrier: Mbarrier, loc: Loc) {
    trace::emit0("lw.tcgen05_commit", &[barrier.address()], &[], loc);
}

/// Starts `d = a b`, or `d = a b + d` where `accumulate` holds, over all of k. One thread calls it, and the same one
/// commits the product: `if warp_id() == 0 && elect_one() { .. }`.
///
/// A and B are read while the product runs: they may be written again when the mbarrier that it is committed to has
/// completed. Products of one thread into one accumulator run in the order of their start.
#[track_caller]
pub fn tcgen05_mma<A: Tcgen05Operand + WgmmaA<Elem: MmaElement>>(
    a: A,
    b: impl Tcgen05Operand + WgmmaB<Elem = A::Elem>,
    d: TmemAccumulator,
    accumulate: impl Into<Bool>,
) -> MmaInFlight {
    start::<A::Elem>(a.left(), b.right(), d, accumulate.into(), Location::caller())
}

fn start<T: MmaElement>(a: Operand, b: Operand, d: TmemAccumulator, accumulate: Bool, loc: Loc) -> MmaInFlight {
    let (rows, columns) = (d.tile.rows, d.tile.columns);
    // PTX ISA, "tcgen05 supported matrix shapes".
    let step = if rows == LANES { 16 } else { 8 };
    let fault = if a.extent != rows {
        Some(format!("the left operand has {} rows, the accumulator {rows}", a.extent))
    } else if a.k != b.k {
        Some(format!("the left operand has {} columns, the right one {} rows", a.k, b.k))
    } else if b.extent != columns {
        Some(format!("the right operand has {} columns, the accumulator {columns}", b.extent))
    } else if !columns.is_multiple_of(step) || !(step..=256).contains(&columns) {
        Some(format!("{columns} columns: products of {rows} rows have a multiple of {step} up to 256"))
    } else if !a.k.is_multiple_of(16) || a.k == 0 {
        Some(format!("{} columns of the left operand: products take 16 at a time", a.k))
    } else {
        None
    };
    if let Some(message) = fault {
        trace::error(loc, Diagnostic::error(message).label("these shapes do not multiply"));
        return MmaInFlight { loc, committed: false };
    }
    let attributes = [
        ("m", Attr::Int(rows as i64)),
        ("n", Attr::Int(columns as i64)),
        ("k", Attr::Int(a.k as i64)),
        ("kind", Attr::Str(T::KIND.to_owned())),
        ("a_layout", Attr::Str(a.layout)),
        ("b_layout", Attr::Str(b.layout)),
    ];
    let operands = [a.values, b.values, vec![d.tile.address, accumulate.raw()]].concat();
    trace::emit0("lw.tcgen05_mma", &operands, &attributes, loc);
    MmaInFlight { loc, committed: false }
}
