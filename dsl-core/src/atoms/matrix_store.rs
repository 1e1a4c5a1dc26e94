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

/// Values of a thread that lie in one matrix, two neighbours, and how many matrices go together at most.
type Order = (Vec<[Element; 2]>, usize);

/// The orders in which the matrices may be stored, the best first: by rows and by columns of atoms, and each atom alone.
/// Four that go together must lie alike for all groups, which depends on the grid.
fn orders(elements: &[Element]) -> [Order; 3] {
    let rows: Vec<[Element; 2]> = elements.chunks_exact(2).filter_map(|pair| pair.try_into().ok()).collect();
    let mut columns = rows.clone();
    columns.sort_by_key(|[first, _]| (first.atom[1], first.atom[0]));
    let odd = |atoms: usize| atoms % 2 == 1;
    let [across, down] = [1, 0].map(|i| rows.iter().map(|[first, _]| first.atom[i] + 1).max().unwrap_or(1));
    match odd(across) && !odd(down) {
        true => [(columns, 4), (rows.clone(), 4), (rows, 2)],
        false => [(rows.clone(), 4), (columns, 4), (rows, 2)],
    }
}

/// What each instruction stores.
fn groups((pairs, size): &Order) -> Vec<&[[Element; 2]]> {
    let mut groups = Vec::new();
    let mut rest = pairs.as_slice();
    while !rest.is_empty() {
        let (group, after) = rest.split_at(at_once(rest.len().min(*size)));
        groups.push(group);
        rest = after;
    }
    groups
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
    let elements = sums.elements();
    let Some((plan, lanes)) = orders(&elements).into_iter().find_map(|(pairs, size)| {
        let matrices: Vec<_> = pairs.iter().map(|[first, _]| [first.row, first.column]).collect();
        let lanes = lane_rows(mma, partition, (Role::C, part), (&matrices, size), trans, loc)?;
        Some(((pairs, size), lanes))
    }) else {
        return false;
    };
    for group in groups(&plan) {
        let Some([first, _]) = group.first() else { continue };
        let offset = lanes.plus(Offset::known(partition.flat.at([first.row, first.column])), loc);
        let mut operands = vec![tile.address(offset.swizzled(tile.layout().swizzle(), loc), loc)];
        operands.extend(group.iter().map(|pair| converted::<M, T>(sums, pair, loc)));
        trace::emit0("lw.stmatrix", &operands, &[("trans", Attr::Bool(trans))], loc);
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
    let elements = sums.elements();
    let mut accesses = Vec::new();
    for warp in (0..mma.threads()).step_by(M::SPEC.threads()) {
        let [i, j] = mma.part_of(Role::C, warp);
        for group in orders(&elements).first().into_iter().flat_map(groups) {
            let lane = |lane: usize| {
                let [first, _] = group.get(lane / 8)?;
                let (row, column) = (i * part[0] + first.row, j * part[1] + first.column);
                Some(if trans { [column + lane % 8, row] } else { [row + lane % 8, column] })
            };
            accesses.push(WarpAccess { lanes: (0..32).map_while(lane).collect(), bytes: ROW_BYTES, store: true });
        }
    }
    accesses
}
