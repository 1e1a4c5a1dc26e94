//! Roles of warpgroups, and the registers that each takes.

use std::panic::Location;

use super::pipeline::WARPGROUP;
use super::swizzled::int;
use crate::trace::{self, Attr, IrType};
use crate::types::arith::{self, Binary};
use crate::types::uniform::agreed;
use crate::types::{Bool, Cmp, I32, Scalar, Uniform, ids};
use crate::{Diagnostic, ScalarType};

/// Some neighbouring warpgroups (128 threads) of a block with one task; [`warpgroup_roles`] makes them.
#[derive(Clone, Copy, Debug)]
pub struct WarpgroupRole {
    first: usize,
    count: usize,
    last: bool,
    registers: u32,
    /// Registers of a thread when the kernel starts.
    entry: u32,
    warpgroup: Uniform<I32>,
}

/// Splits the block's warpgroups into roles, each of so many warpgroups with so many registers a thread.
///
/// Registers are multiples of 8 from 24 to 256. A warpgroup gets its share at [`WarpgroupRole::begin`], and
/// there it waits until others have given up theirs: so the sum must not be above what the block starts with,
/// which `min_blocks` or `max_regs` of the kernel decide. Anything else is a trace error.
#[track_caller]
pub fn warpgroup_roles<const N: usize>(roles: [(usize, u32); N]) -> [WarpgroupRole; N] {
    let loc = Location::caller();
    let entry = trace::with(|t| t.entry_registers).flatten();
    if let Some(problem) = problem(&roles, ids::block_threads() as usize, entry) {
        trace::error(loc, problem);
    }
    let warp = agreed(ScalarType::I32, ids::warp(loc), loc);
    let warpgroup = arith::binary(Binary::Shr, ScalarType::U32, warp, int(2, loc), loc);
    let warpgroup = Uniform::assume(I32::from_raw(warpgroup));
    let mut first = 0;
    let mut index = 0;
    roles.map(|(count, registers)| {
        index += 1;
        let entry = entry.unwrap_or(registers);
        let role = WarpgroupRole { first, count, last: index == N, registers, entry, warpgroup };
        first += count;
        role
    })
}

/// What breaks the sum rule or its kin.
fn problem(roles: &[(usize, u32)], threads: usize, entry: Option<u32>) -> Option<Diagnostic> {
    let warpgroups: usize = roles.iter().map(|(count, _)| count).sum();
    if warpgroups * WARPGROUP != threads {
        let message = format!("roles for {warpgroups} warpgroups in a block of {threads} threads");
        return Some(Diagnostic::error(message).help(format!("a warpgroup has {WARPGROUP} threads")));
    }
    if let Some((_, registers)) = roles.iter().find(|(_, n)| n % 8 != 0 || !(24..=256).contains(n)) {
        let message = format!("a role with {registers} registers a thread");
        return Some(Diagnostic::error(message).help("shares are multiples of 8 from 24 to 256"));
    }
    let Some(entry) = entry else {
        return Some(
            Diagnostic::error("roles with registers in a kernel that does not limit them")
                .help("add `min_blocks = 1` to `#[kernel(..)]`: it decides how many registers a thread starts with"),
        );
    };
    let wanted: usize = roles.iter().map(|(count, registers)| count * *registers as usize).sum();
    let available = warpgroups * entry as usize;
    if wanted > available {
        let terms: Vec<_> = roles.iter().map(|(count, registers)| format!("{count} x {registers}")).collect();
        let message = format!("these roles want {} = {wanted} registers a lane", terms.join(" + "));
        return Some(
            Diagnostic::error(message)
                .label(format!("{warpgroups} warpgroups start with {entry} each: {available}"))
                .help("the kernel would wait forever: give a role less"),
        );
    }
    None
}

impl WarpgroupRole {
    /// Whether this warpgroup has the role.
    #[track_caller]
    pub fn is_mine(&self) -> Uniform<Bool> {
        let loc = Location::caller();
        let compare = |op, limit| arith::compare(op, ScalarType::I32, self.warpgroup.raw(), int(limit, loc), loc);
        let starts = compare(Cmp::Ge, self.first);
        let ends = compare(Cmp::Lt, self.first + self.count);
        let mine = match (self.first, self.last) {
            (0, _) => ends,
            (_, true) => starts,
            _ => trace::emit1("arith.andi", &[starts, ends], IrType::BOOL, &[], loc),
        };
        Uniform::assume(Bool::from_raw(mine))
    }

    /// Takes the role's registers, as the first thing under [`WarpgroupRole::is_mine`].
    #[track_caller]
    pub fn begin(&self) {
        let loc = Location::caller();
        if self.registers != self.entry {
            let kind = if self.registers > self.entry { "inc" } else { "dec" };
            let attributes = [("regs", Attr::Int(self.registers.into())), ("kind", Attr::Str(kind.to_owned()))];
            trace::emit0("lw.setmaxnreg", &[], &attributes, loc);
        }
    }

    /// The warpgroup's number in the role, from 0 on.
    #[track_caller]
    pub fn number(&self) -> Uniform<I32> {
        let loc = Location::caller();
        match self.first {
            0 => self.warpgroup,
            first => {
                let own = arith::binary(Binary::Sub, ScalarType::I32, self.warpgroup.raw(), int(first, loc), loc);
                Uniform::assume(I32::from_raw(own))
            }
        }
    }

    /// Warpgroups of the role.
    pub fn count(&self) -> usize {
        self.count
    }
}
