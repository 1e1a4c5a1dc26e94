//! `scf`: structured regions to jumps and masks.

use lacewing_core::Error;
use lacewing_core::mlir::ir::{BlockLike, BlockRef, OperationLike, OperationRef, RegionLike};

use super::attributes;
use super::deciding::deciding;
use super::emit::Decoder;
use super::lifetime::{op_name, value_key};
use super::types::{Elem, Place};
use crate::emulator::exec::progress::Watch;
use crate::emulator::op::{LoopKind, Op};
use crate::emulator::program::ParameterKind;

impl Decoder {
    /// Decodes the operations of a block up to its terminator, which is returned.
    pub(crate) fn block<'c, 'a>(
        &mut self,
        owner: &OperationRef<'c, 'a>,
        block: BlockRef<'c, 'a>,
    ) -> Result<OperationRef<'c, 'a>, Error> {
        let mut current = block.first_operation();
        while let Some(op) = current {
            self.locate(&op);
            let name = op_name(&op);
            let next = op.next_in_block();
            if next.is_none() && matches!(name.as_str(), "scf.yield" | "scf.condition" | "gpu.return") {
                return Ok(op);
            }
            self.operation(&op, &name)?;
            let (start, end) = self.lifetimes.number(&op);
            self.expire(start);
            if end != start {
                self.expire(end);
            }
            current = next;
        }
        Err(self.fail(owner, "a region ends without a terminator"))
    }

    /// Decodes a `scf` operation. False when it is none.
    pub(crate) fn control(&mut self, op: &OperationRef<'_, '_>, name: &str) -> Result<bool, Error> {
        match name {
            "scf.if" => self.scf_if(op)?,
            "scf.for" => self.scf_for(op)?,
            "scf.while" => self.scf_while(op)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn results(&mut self, op: &OperationRef<'_, '_>) -> Result<Vec<Place>, Error> {
        (0..op.result_count()).map(|index| self.result(op, index)).collect()
    }

    fn enter(&mut self) {
        self.depth += 1;
        self.program.frame_depth = self.program.frame_depth.max(self.depth);
    }

    /// The block of a region with one block, if it has any.
    fn region_block<'c: 'a, 'a>(&self, op: &OperationRef<'c, 'a>, index: usize) -> Option<BlockRef<'c, 'a>> {
        op.region(index).ok().and_then(|region| region.first_block())
    }

    fn scf_if(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let cond = self.operand(op, 0)?.mask(0);
        let results = self.results(op)?;
        let (start, _) = self.lifetimes.number(op);
        let enter = self.emit(Op::If { cond, otherwise: 0 });
        self.expire(start);
        self.enter();
        let then = self.region_block(op, 0).ok_or_else(|| self.unknown(op))?;
        let last = self.block(op, then)?;
        // The other arm overwrites its lanes under its mask: the first need not care for them.
        self.yield_to(&last, 0, &results, false)?;
        self.locate(op);
        let turn = self.emit(Op::Else { end: 0 });
        if let Some(otherwise) = self.region_block(op, 1) {
            let last = self.block(op, otherwise)?;
            self.yield_to(&last, 0, &results, true)?;
        }
        self.locate(op);
        let end = self.emit(Op::EndIf);
        self.patch(enter, Op::If { cond, otherwise: turn });
        self.patch(turn, Op::Else { end });
        self.depth -= 1;
        Ok(())
    }

    fn scf_for(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let (low, high, step) = (self.operand(op, 0)?, self.operand(op, 1)?, self.operand(op, 2)?);
        let unsigned = attributes::flag(op, "unsignedCmp");
        let kind = match (low.ty.elem, unsigned) {
            (Elem::I32 | Elem::Index, false) => LoopKind::I32,
            (Elem::I32 | Elem::Index, true) => LoopKind::U32,
            (Elem::I64, false) => LoopKind::I64,
            (Elem::I64, true) => LoopKind::U64,
            _ => return Err(self.unknown(op)),
        };
        let results = self.results(op)?;
        for (index, result) in results.iter().enumerate() {
            let init = self.operand(op, 3 + index)?;
            self.copy(*result, init);
        }
        let body = self.region_block(op, 0).ok_or_else(|| self.unknown(op))?;
        let iv_value = body.argument(0).map_err(|_| self.unknown(op))?;
        let iv_type = self.type_of(op, iv_value)?;
        let iv = self.own(value_key(iv_value), iv_type).base;
        for (index, result) in results.iter().enumerate() {
            let argument = body.argument(1 + index).map_err(|_| self.unknown(op))?;
            self.bind(value_key(argument), *result);
        }

        let wave = self.halves == 2;
        let (low, low_copy) = self.adjacent(low);
        let (high, high_copy) = self.adjacent(high);
        let (step, step_copy) = self.adjacent(step);
        let enter = self.emit(Op::For { kind, wave, iv, low, high, step, end: 0 });
        let (start, _) = self.lifetimes.number(op);
        self.expire(start);
        self.enter();
        let first = self.here();
        let last = self.block(op, body)?;
        self.yield_to(&last, 0, &results, true)?;
        self.locate(op);
        self.emit(Op::Next { kind, wave, iv, high, step, body: first });
        let end = self.here();
        self.patch(enter, Op::For { kind, wave, iv, low, high, step, end });
        for copy in [low_copy, high_copy, step_copy].into_iter().flatten() {
            self.release(copy);
        }
        self.depth -= 1;
        Ok(())
    }

    fn scf_while(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let results = self.results(op)?;
        let before = self.region_block(op, 0).ok_or_else(|| self.unknown(op))?;
        let after = self.region_block(op, 1).ok_or_else(|| self.unknown(op))?;
        let mut state = Vec::new();
        for index in 0..before.argument_count() {
            let argument = before.argument(index).map_err(|_| self.unknown(op))?;
            let ty = self.type_of(op, argument)?;
            let place = self.own(value_key(argument), ty);
            let init = self.operand(op, index)?;
            self.copy(place, init);
            state.push(place);
        }
        for (index, result) in results.iter().enumerate() {
            let argument = after.argument(index).map_err(|_| self.unknown(op))?;
            self.bind(value_key(argument), *result);
        }
        self.emit(Op::While);
        let (start, _) = self.lifetimes.number(op);
        self.expire(start);
        self.enter();
        let first = self.here();
        let condition = self.block(op, before)?;
        // Lanes that leave now keep what is forwarded here; those that go on read it in the body.
        let cond = self.operand(&condition, 0)?.mask(0);
        self.yield_to(&condition, 1, &results, true)?;
        let (number, _) = self.lifetimes.number(&condition);
        self.locate(op);
        let test = self.emit(Op::WhileTest { cond, end: 0 });
        self.expire(number);
        let last = self.block(op, after)?;
        // Lanes that have left read their state no more.
        self.yield_to(&last, 0, &state, false)?;
        self.locate(op);
        let watch = self.watch(op, &state);
        self.emit(Op::Repeat { body: first, watch });
        let end = self.here();
        self.patch(test, Op::WhileTest { cond, end });
        self.depth -= 1;
        Ok(())
    }

    /// The number of a loop's watch; none where memory that may change decides about its rounds. What a tensor holds that
    /// is only read does not change: a launch in which another argument writes there is refused.
    fn watch(&mut self, op: &OperationRef<'_, '_>, state: &[Place]) -> u32 {
        let stays = |address| {
            let parameter = self.origins.get(&address).and_then(|&number| self.program.parameters.get(number as usize));
            parameter.is_some_and(|parameter| matches!(parameter.kind, ParameterKind::Pointer { writable: false }))
        };
        let Some(deciding) = deciding(op, stays) else { return u32::MAX };
        let mut watch = Watch::default();
        for place in deciding.iter().filter_map(|&index| state.get(index)) {
            if place.is_mask() {
                watch.masks.extend((0..place.ty.count).map(|element| place.mask(element)));
                continue;
            }
            let wide = place.ty.elem.is_wide();
            let step = if wide { 2 } else { 1 };
            let slots = (0..place.ty.slots()).step_by(step);
            watch.numbers.extend(slots.map(|slot| (place.base + slot, place.stride, wide)));
        }
        self.program.watches.push(watch);
        self.program.watches.len() as u32 - 1
    }

    /// Moves a terminator's operands, from the `skip`th on, to the places of the region's results.
    fn yield_to(
        &mut self,
        terminator: &OperationRef<'_, '_>,
        skip: usize,
        targets: &[Place],
        masked: bool,
    ) -> Result<(), Error> {
        if terminator.operand_count() < skip + targets.len() {
            return Err(self.fail(terminator, "a terminator gives too few values"));
        }
        let mut moves = Vec::new();
        for (index, &target) in targets.iter().enumerate() {
            let source = self.operand(terminator, skip + index)?;
            if source.base != target.base || source.is_mask() != target.is_mask() {
                moves.push((target, source));
            }
        }
        // Values that trade places go through a copy.
        let overlaps = |a: &Place, b: &Place| {
            let end = |p: &Place| p.base + if p.is_mask() { p.ty.count } else { p.stride + p.ty.slots() };
            a.is_mask() == b.is_mask() && a.base < end(b) && b.base < end(a)
        };
        let mut copies = Vec::new();
        for index in 0..moves.len() {
            let Some((_, source)) = moves.get(index).copied() else { continue };
            let overwritten = moves.iter().enumerate().any(|(i, (target, _))| i < index && overlaps(target, &source));
            if overwritten {
                let copy = self.allocate(source.ty);
                copies.push((index, copy, source));
            }
        }
        for (index, copy, source) in &copies {
            self.copy(*copy, *source);
            if let Some(entry) = moves.get_mut(*index) {
                entry.1 = *copy;
            }
        }
        for (target, source) in moves {
            if masked {
                self.copy_masked(target, source);
            } else {
                self.copy(target, source);
            }
        }
        for (_, copy, _) in copies {
            self.release(copy);
        }
        let (number, _) = self.lifetimes.number(terminator);
        if skip == 0 {
            self.expire(number);
        }
        Ok(())
    }

    fn patch(&mut self, at: u32, op: Op) {
        if let Some(slot) = self.program.ops.get_mut(at as usize) {
            *slot = op;
        }
    }
}
