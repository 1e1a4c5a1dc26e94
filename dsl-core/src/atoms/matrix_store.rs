//! Sums to shared memory by `stmatrix`.

use std::panic::Location;

use super::banks::WarpAccess;
use super::copy_spec::CopySpec;
use super::fragment::{Element, FragmentC};
use super::operand_load::{ROW_BYTES, at_once, lane_rows, registers_are_matrix_rows};
use super::shared_tensor::SharedTensor;
use super::spec::{MatrixOp, OperandSpec, Role};
use super::table::MmaAtom;
use super::tiled_mma::{Partition, TiledMma, converted};
use crate::ScalarType;
use crate::trace::{self, Attr, Loc};
use crate::types::CastTarget;

use super::offset::Offset;

/// Elements of 16 bits in a row.
const ROW: usize = ROW_BYTES / 2;

/// Values of a thread that lie in one matrix: two neighbours.
fn pairs(elements: &[Element]) -> Vec<[Element; 2]> {
    elements.chunks_exact(2).filter_map(|pair| <[Element; 2]>::try_from(pair).ok()).collect()
}

/// Whether each pair of sums, as 16-bit elements, is a register as `stmatrix` takes it.
fn sums_are_matrix_rows<M: MmaAtom>() -> bool {
    let sums = OperandSpec { element: ScalarType::F16, pack: 2, ..M::SPEC.c };
    M::SPEC.op == MatrixOp::MmaSync && sums.values().is_multiple_of(2) && {
        registers_are_matrix_rows(&sums, M::SPEC.extents(Role::C)[0])
    }
}

/// Stores the sums; `false` where the chip, the elements or the layouts do not allow it.
pub(super) fn store<M: MmaAtom, T: CastTarget>(
    mma: &TiledMma<M>,
    sums: &FragmentC<M>,
    tile: &SharedTensor<T>,
    partition: &Partition,
    part: [usize; 2],
    loc: Loc,
) -> bool {
    let exists = |count, trans| {
        let target = trace::with(|t| t.target())?;
        CopySpec::of_matrices(true, count, trans)?.legal_on(target).ok()
    };
    let sixteen = matches!(T::TYPE, ScalarType::F16 | ScalarType::Bf16);
    let straight = partition.widest(1) >= ROW;
    let trans = !straight;
    if !sixteen || !sums_are_matrix_rows::<M>() || (trans && partition.widest(0) < ROW) || exists(4, trans).is_none() {
        return false;
    }
    let pairs = pairs(&sums.elements());
    let matrices: Vec<_> = pairs.iter().map(|[first, _]| [first.row, first.column]).collect();
    let Some(lanes) = lane_rows(mma, partition, (Role::C, part), &matrices, trans, loc) else { return false };
    let mut rest = pairs.as_slice();
    while let Some([first, _]) = rest.first() {
        let (group, after) = rest.split_at(at_once(rest.len()));
        let offset = lanes.plus(Offset::known(partition.flat.at([first.row, first.column])), loc);
        let mut operands = vec![tile.address(offset.swizzled(tile.layout().swizzle(), loc), loc)];
        operands.extend(group.iter().map(|pair| converted::<M, T>(sums, pair, loc)));
        trace::emit0("lw.stmatrix", &operands, &[("trans", Attr::Bool(trans))], loc);
        rest = after;
    }
    true
}

/// The accesses of each warp to a tile of `shape`, `(m, n)`, by which [`store`] writes: see
/// [`TiledMma::matrix_accesses`].
#[track_caller]
pub(super) fn accesses<M: MmaAtom>(mma: &TiledMma<M>, shape: [usize; 2], trans: bool) -> Vec<WarpAccess> {
    let part = mma.part_shape(Role::C, shape, Location::caller());
    let sums = FragmentC::<M>::from_registers(Vec::new(), {
        let [rows, columns] = M::SPEC.extents(Role::C);
        [part[0] / rows, part[1] / columns]
    });
    let pairs = pairs(&sums.elements());
    let mut accesses = Vec::new();
    for warp in (0..mma.threads()).step_by(M::SPEC.threads()) {
        let [i, j] = mma.part_of(Role::C, warp);
        let mut rest = pairs.as_slice();
        while !rest.is_empty() {
            let (group, after) = rest.split_at(at_once(rest.len()));
            let lane = |lane: usize| {
                let [first, _] = group.get(lane / 8)?;
                let (row, column) = (i * part[0] + first.row, j * part[1] + first.column);
                Some(if trans { [column + lane % 8, row] } else { [row + lane % 8, column] })
            };
            accesses.push(WarpAccess { lanes: (0..32).map_while(lane).collect(), bytes: ROW_BYTES, store: true });
            rest = after;
        }
    }
    accesses
}
