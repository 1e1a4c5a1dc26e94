//! Moving the elements of a tiled copy: which instruction, and how wide.

use std::panic::Location;

use super::fragment::extract;
use super::global_tile::{Bounded, Inside, run_type};
use super::tiled_copy::{CopyAtom, GlobalPart, SharedPart, TiledCopy, pieces};
use crate::trace::{self, Attr, IrType, Loc, RawValue};
use crate::types::{Access, Scalar, Writable, place};
use crate::{Diagnostic, ScalarType};

/// Source and destination of a [`copy`].
pub trait CopyPair<T: Scalar> {
    #[doc(hidden)]
    fn run(self, copy: &TiledCopy<T>, loc: Loc);
}

/// Copies this thread's part of a tile from global to shared memory or back.
///
/// Elements outside the tensor arrive in shared memory as zeros, and are not written to global memory. The width of each
/// access is the widest that both layouts and the copy's values allow. With [`CopyAtom::CpAsync`] the copy belongs to the
/// open group: `cp_async_commit` closes it.
#[track_caller]
pub fn copy<T: Scalar, S, D>(copy: &TiledCopy<T>, source: &S, destination: &D)
where
    for<'a> (&'a S, &'a D): CopyPair<T>,
{
    (source, destination).run(copy, Location::caller());
}

fn align(element: ScalarType, width: usize) -> [(&'static str, Attr); 1] {
    [("align", Attr::Int((element.bytes() * width) as i64))]
}

impl<T: Scalar, A: Access> CopyPair<T> for (&GlobalPart<T, A>, &SharedPart<T>) {
    fn run(self, copy: &TiledCopy<T>, loc: Loc) {
        let (source, destination) = self;
        if source.tile.shape() != destination.shape() && destination.part.is_some() {
            let message = format!("a tile of {:?} elements to one of {:?}", source.tile.shape(), destination.shape());
            trace::error(loc, Diagnostic::error(message).label("both must have one shape"));
            return;
        }
        if destination.part.is_none()
            || !copy.owns([&source.threads, &destination.threads], loc)
            || !copy.divides(source.tile.shape(), loc)
        {
            return;
        }
        let direct =
            destination.direct.as_ref().filter(|direct| copy.atom() == CopyAtom::LoadToLds && direct.fits(source));
        let bounded = match direct {
            Some(direct) => direct.needs_bounds(source),
            None => copy.atom() == CopyAtom::Buffer,
        };
        let bounded = bounded.then(|| source.whole.bounded(loc));
        for groups in copy.groups(source.tile.shape()) {
            copy.guarded(groups.bounds, loc, || match direct {
                Some(direct) => {
                    groups.starts.iter().for_each(|&at| direct.copy((source, destination), bounded, at, loc));
                }
                None => fill(copy, (source, destination), bounded, &groups.starts, loc),
            });
        }
    }
}

/// The element as it lies in memory.
fn stored<T: Scalar>() -> ScalarType {
    run_type(T::TYPE, 1).element().unwrap_or(T::TYPE)
}

/// The most of `widest` elements that divide a thread's `values`: vectors have a power of two of them.
fn vector_width(widest: usize, values: usize) -> usize {
    widest.min(1 << values.trailing_zeros().min(20)).max(1)
}

/// From global to shared memory.
fn fill<T: Scalar, A: Access>(
    copy: &TiledCopy<T>,
    (source, destination): (&GlobalPart<T, A>, &SharedPart<T>),
    bounded: Option<Bounded>,
    groups: &[[usize; 2]],
    loc: Loc,
) {
    // The dimension in which global memory is contiguous, and how many elements go together there.
    let along = source.tile.contiguous().unwrap_or(1);
    let values = copy.values();
    let load_width = vector_width(source.tile.widest(), values[along]);
    // Elements of a group that could not be loaded together may still be stored together.
    let across = vector_width(destination.widest(along), values[along]);
    let store = across.min(load_width);
    let asynchronous = copy.atom() == CopyAtom::CpAsync && matches!(store * T::BYTES, 4 | 8 | 16);
    for group in groups {
        if asynchronous {
            for piece in pieces(values, along, store) {
                let at = [group[0] + piece[0], group[1] + piece[1]];
                let from = source.at(at, loc);
                let valid = source.tile.inside(from, loc).mask(loc);
                let operands = [destination.address(at, loc), source.tile.address(from, loc), valid];
                let bytes = [("bytes", Attr::Int((store * T::BYTES) as i64))];
                trace::emit0("lw.cp_async", &operands, &bytes, loc);
            }
            continue;
        }
        let mut loaded = Vec::new();
        for piece in pieces(values, along, load_width) {
            let from = source.at([group[0] + piece[0], group[1] + piece[1]], loc);
            let value = match &bounded {
                Some(bounded) => source.whole.load_bounded(bounded, from, load_width, loc),
                None => source.tile.load(from, load_width, loc),
            };
            loaded.push((piece, value));
        }
        if across == load_width {
            for (piece, value) in loaded {
                let address = destination.address([group[0] + piece[0], group[1] + piece[1]], loc);
                trace::emit0("lw.store", &[value, address], &align(T::TYPE, load_width), loc);
            }
            continue;
        }
        // Take apart, put together again in the order of storing.
        let mut elements = std::collections::BTreeMap::new();
        for (piece, value) in loaded {
            for part in 0..load_width {
                let mut at = piece;
                at[along] += part;
                let element = if load_width == 1 { value } else { extract(stored::<T>(), value, part, loc) };
                elements.insert(at, element);
            }
        }
        for piece in pieces(values, along, across) {
            let values: Vec<RawValue> = (0..across)
                .filter_map(|part| {
                    let mut at = piece;
                    at[along] += part;
                    elements.get(&at).copied()
                })
                .collect();
            let value = match values[..] {
                [one] => one,
                _ => trace::emit1("vector.from_elements", &values, run_type(T::TYPE, across), &[], loc),
            };
            let address = destination.address([group[0] + piece[0], group[1] + piece[1]], loc);
            trace::emit0("lw.store", &[value, address], &align(T::TYPE, across), loc);
        }
    }
}

impl<T: Scalar, A: Writable> CopyPair<T> for (&SharedPart<T>, &GlobalPart<T, A>) {
    fn run(self, copy: &TiledCopy<T>, loc: Loc) {
        let (source, destination) = self;
        if destination.tile.shape() != source.shape() && source.part.is_some() {
            let message = format!("a tile of {:?} elements to one of {:?}", source.shape(), destination.tile.shape());
            trace::error(loc, Diagnostic::error(message).label("both must have one shape"));
            return;
        }
        if source.part.is_none()
            || !copy.owns([&destination.threads, &source.threads], loc)
            || !copy.divides(source.shape(), loc)
        {
            return;
        }
        let bounded = (copy.atom() == CopyAtom::Buffer).then(|| destination.whole.bounded(loc));
        for groups in copy.groups(source.shape()) {
            copy.guarded(groups.bounds, loc, || drain(copy, (source, destination), bounded, &groups.starts, loc));
        }
    }
}

/// From shared to global memory.
fn drain<T: Scalar, A: Access>(
    copy: &TiledCopy<T>,
    (source, destination): (&SharedPart<T>, &GlobalPart<T, A>),
    bounded: Option<Bounded>,
    groups: &[[usize; 2]],
    loc: Loc,
) {
    let along = destination.tile.contiguous().unwrap_or(1);
    let values = copy.values();
    let width = vector_width(destination.tile.widest().min(source.widest(along)), values[along]);
    for group in groups {
        for piece in pieces(values, along, width) {
            let at = [group[0] + piece[0], group[1] + piece[1]];
            let to = destination.at(at, loc);
            let inside = destination.tile.inside(to, loc);
            if inside == Inside::Never {
                continue;
            }
            let load = (source.address(at, loc), run_type(T::TYPE, width), align(T::TYPE, width));
            let value = trace::emit1("lw.load", &[load.0], load.1, &load.2, loc);
            if let Some(bounded) = &bounded {
                destination.whole.store_bounded(bounded, to, value, loc);
                continue;
            }
            let address = destination.tile.address(to, loc);
            match inside {
                Inside::Where(mask) => trace::emit0("lw.store_masked", &[value, address, mask], &load.2, loc),
                _ => trace::emit0("lw.store", &[value, address], &load.2, loc),
            }
        }
    }
}

impl<T: Scalar> SharedPart<T> {
    /// Replaces each element of this thread's part by `f` of it, in place. `copy` is the copy that made the part.
    ///
    /// Each access is the widest that the layout and the copy's values allow.
    #[track_caller]
    pub fn map(&self, copy: &TiledCopy<T>, f: impl Fn(T) -> T) {
        let loc = Location::caller();
        if self.part.is_none() || !copy.owns([&self.threads, &self.threads], loc) || !copy.divides(self.shape(), loc) {
            return;
        }
        let along = usize::from(self.widest(1) >= self.widest(0));
        let width = vector_width(self.widest(along).min(16 / T::BYTES), copy.values()[along]);
        for groups in copy.groups(self.shape()) {
            copy.guarded(groups.bounds, loc, || {
                for (start, piece) in groups
                    .starts
                    .iter()
                    .flat_map(|start| pieces(copy.values(), along, width).into_iter().map(move |piece| (start, piece)))
                {
                    let address = self.address([start[0] + piece[0], start[1] + piece[1]], loc);
                    self.map_at(address, width, &f, loc);
                }
            });
        }
    }

    /// Some neighbours from an address on.
    fn map_at(&self, address: RawValue, width: usize, f: impl Fn(T) -> T, loc: Loc) {
        let (ty, whole) = (
            run_type(T::TYPE, width),
            if width == 1 { IrType::Scalar(T::TYPE) } else { IrType::Vector(T::TYPE, width) },
        );
        let align = align(T::TYPE, width);
        let loaded = place::from_memory(whole, trace::emit1("lw.load", &[address], ty, &align, loc), loc);
        let value = match width {
            1 => f(T::from_raw(loaded)).raw(),
            _ => {
                let each = (0..width).map(|part| f(T::from_raw(extract(T::TYPE, loaded, part, loc))).raw());
                trace::emit1("vector.from_elements", &each.collect::<Vec<_>>(), whole, &[], loc)
            }
        };
        trace::emit0("lw.store", &[place::to_memory(whole, value, loc), address], &align, loc);
    }
}
