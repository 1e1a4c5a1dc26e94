//! Copies straight to LDS: what each lane loads, so that a wave's bytes land side by side.

use super::copy_spec::CopySpec;
use super::flat::{Flat, linear};
use super::global_tile::Bounded;
use super::offset::Offset;
use super::shared_tensor::{SharedTensor, or_stop};
use super::tiled_copy::{GlobalPart, SharedPart, TiledCopy};
use crate::Target;
use crate::layout::Swizzle;
use crate::trace::{self, Attr, IrType, Loc};
use crate::types::{Access, Scalar, ids};

/// How the waves of a block copy straight to a tile.
#[derive(Clone, Debug)]
pub(super) struct Direct {
    /// The dimension in which a lane's elements are neighbours, and how many there are.
    along: usize,
    width: usize,
    /// Where the wave's bytes begin, the same in all its lanes.
    wave: Offset,
    /// Where the lane's own bytes land, from the tile's first element on.
    lane: Offset,
    swizzle: Swizzle,
    /// Elements from one row to the next, or with `along` 0 from one column to the next.
    pitch: i64,
}

impl Direct {
    /// `None` where lanes do not land side by side, or the chip has no such copy.
    pub(super) fn of<T: Scalar>(copy: &TiledCopy<T>, tile: &SharedTensor<T>, flat: &Flat, loc: Loc) -> Option<Self> {
        let target = trace::with(|t| t.target()).filter(|target: &Target| target.is_amd())?;
        let along = (0..2).find(|&dimension| flat.stride(dimension) == Some(1))?;
        let (values, shape) = (copy.values(), flat.shape());
        let width = values[along];
        let bytes = width * T::BYTES;
        let spec = CopySpec::to_lds(bytes, false).filter(|spec| spec.pitch == 8 * bytes)?;
        spec.legal_on(target).ok()?;
        if values[1 - along] != 1 || flat.run(along).min(tile.unit()) < width as i64 {
            return None;
        }
        let swizzle = tile.layout().swizzle();
        let pitch = flat.stride(1 - along)?;
        if swizzle.bits() > 0 {
            // A swizzle is its own inverse. It must permute the tile itself, whose elements are numbered by rows of a power
            // of two.
            let elements = (shape[0] * shape[1]) as i64;
            let rows = pitch == shape[along] as i64 && pitch.count_ones() == 1 && flat.offset() == 0;
            if !rows || elements % swizzle.block() != 0 {
                return None;
            }
        }
        let warp = target.warp_size() as usize;
        let at = |t: usize| flat.at(copy.first(t)) - flat.at([0, 0]);
        let threads = copy.threads();
        if (0..threads).any(|t| at(t) != at(t - t % warp) + (t % warp * width) as i64) {
            return None;
        }
        let (first, waves) = linear(threads.div_ceil(warp), |wave| at(wave * warp))?;
        let thread = ids::linear_thread(loc);
        let number = super::offset::quotient(thread, warp as i64, loc);
        let number = if threads > warp {
            trace::once("lw.uniform", &[number.into()], IrType::I32, &[], loc)
        } else {
            super::offset::int(0, loc)
        };
        let wave = or_stop(Offset::of_thread(&waves, number, loc), loc)?.plus(Offset::known(first), loc);
        let (first, lanes) = linear(threads, at)?;
        let lane = or_stop(Offset::of_thread(&lanes, thread, loc), loc)?.plus(Offset::known(first), loc);
        Some(Self { along, width, wave, lane, swizzle, pitch })
    }

    /// Whether the source has what a lane loads together.
    pub(super) fn fits<T: Scalar, A: Access>(&self, source: &GlobalPart<T, A>) -> bool {
        let together = source.tile.contiguous() == Some(self.along) && source.tile.widest() >= self.width;
        together || self.width == 1
    }

    /// Whether lanes load from a bounded buffer: some may lie outside, or the swizzle permutes what they load.
    pub(super) fn needs_bounds<T: Scalar, A: Access>(&self, source: &GlobalPart<T, A>) -> bool {
        self.swizzle.bits() > 0 || source.whole.has_residue()
    }

    /// Copies one group.
    pub(super) fn copy<T: Scalar, A: Access>(
        &self,
        (source, destination): (&GlobalPart<T, A>, &SharedPart<T>),
        bounded: Option<Bounded>,
        group: [usize; 2],
        loc: Loc,
    ) {
        let Some((_, flat)) = &destination.part else { return };
        let known = Offset::known(flat.at(group) - flat.at([0, 0]));
        let start = Offset::known(flat.offset());
        let to = destination.tile.address(self.wave.plus(known, loc).plus(start, loc), loc);
        let bytes = ("bytes", Attr::Int((self.width * T::BYTES) as i64));
        let own = source.at(group, loc);
        let Some(bounded) = bounded else {
            let from = source.tile.address(own, loc);
            trace::emit0("lw.load_lds", &[to, from], &[bytes], loc);
            return;
        };
        // What the swizzle moves to where the lane's bytes land.
        let at = match self.swizzle.bits() == 0 {
            true => own,
            false => {
                let moved = self.lane.plus(known, loc).swizzled(self.swizzle, loc);
                let [outer, inner] = moved.split(self.pitch, loc);
                if self.along == 1 { [outer, inner] } else { [inner, outer] }
            }
        };
        let mask = source.whole.inside(at, loc).mask(loc);
        let offset = source.whole.bounded_offset(at, loc);
        let unit = ("unit", Attr::Int(T::BYTES as i64));
        trace::emit0("lw.buffer_load_lds", &[to, bounded.base, bounded.bytes, offset, mask], &[bytes, unit], loc);
    }
}
