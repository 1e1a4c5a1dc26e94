//! The dialect `lw`: what a kernel needs and the standard dialects cannot say.
//!
//! [`TABLE`] holds one row per op; everything else follows from it. The IRDL definition that MLIR
//! verifies against is printed from the rows ([`irdl_text`]); legality per target is a column
//! ([`check_target`]); the lowerings and the emulator match on [`LwOp`] exhaustively, so that rustc
//! refuses a row that one of them does not know.

mod blackwell;
mod hopper;
mod table;

use std::fmt::Write as _;

use melior::ir::operation::{OperationLike, WalkOrder, WalkResult};

use crate::mlir::{IrModule, source_location};
use crate::{Diagnostic, Error, Target, Vendor};

pub use table::{LwOp, TABLE};

/// What a type or attribute must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constraint {
    /// Exactly this type, in MLIR's spelling.
    Is(&'static str),
    /// One of these types.
    OneOf(&'static [&'static str]),
    /// Any type; two slots of one row that use the same letter must have equal types.
    Any(char),
    /// An integer attribute.
    IntegerAttr,
    /// A string attribute.
    StringAttr,
    /// A boolean attribute.
    BoolAttr,
}

/// One operand or result of a row.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Name in the definition.
    pub name: &'static str,
    /// Its type.
    pub constraint: Constraint,
    /// Whether it stands for any number of values.
    pub variadic: bool,
}

/// One attribute of a row.
#[derive(Clone, Copy, Debug)]
pub struct Attr {
    /// Name in the op.
    pub name: &'static str,
    /// Its kind.
    pub constraint: Constraint,
    /// Unit and allowed values.
    pub about: &'static str,
}

/// What an op does to memory; decides what may be moved across it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effects {
    /// Depends on its operands alone.
    Pure,
    /// Reads memory.
    Read,
    /// Writes memory.
    Write,
    /// Reads and writes memory.
    ReadWrite,
    /// Orders other accesses or exchanges values between threads: nothing moves across it.
    Sync,
}

/// On which chips of a vendor an op exists.
#[derive(Clone, Copy, Debug)]
pub enum Legal {
    /// On every chip of the vendor.
    Always,
    /// From this [`Target::generation`] on.
    From(u32),
    /// On the chips of this generation alone; why.
    Only(u32, &'static str),
    /// On none; what to do instead.
    Never(&'static str),
}

/// One op of the dialect.
#[derive(Clone, Copy, Debug)]
pub struct OpRow {
    /// Identity, for exhaustive matches.
    pub op: LwOp,
    /// Name without the dialect, as `load`.
    pub name: &'static str,
    /// One sentence for the book.
    pub about: &'static str,
    /// Operands in order.
    pub operands: &'static [Slot],
    /// Results in order.
    pub results: &'static [Slot],
    /// Attributes.
    pub attributes: &'static [Attr],
    /// Effect on memory.
    pub effects: Effects,
    /// Where it exists on NVIDIA chips.
    pub nvidia: Legal,
    /// Where it exists on AMD chips.
    pub amd: Legal,
    /// How the emulator executes it.
    pub emulation: &'static str,
    /// What NVVM gets, with the PTX ISA section.
    pub nvvm: &'static str,
    /// What ROCDL gets.
    pub rocdl: &'static str,
}

impl OpRow {
    /// Name with the dialect, as `lw.load`.
    pub fn full_name(&self) -> String {
        format!("lw.{}", self.name)
    }

    /// Whether the op exists on `target`; otherwise the reason and what to use instead.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn legal_on(&self, target: Target) -> Result<(), String> {
        let legal = match target.vendor() {
            Vendor::Nvidia => self.nvidia,
            Vendor::Amd => self.amd,
        };
        match legal {
            Legal::Always => Ok(()),
            Legal::From(generation) if target.generation() >= generation => Ok(()),
            Legal::From(generation) => Err(format!("it needs generation {generation} or later")),
            Legal::Only(generation, _) if target.generation() == generation => Ok(()),
            Legal::Only(_, reason) | Legal::Never(reason) => Err(reason.to_owned()),
        }
    }
}

/// Finds the row of an op by its full name (`lw.load`).
pub fn row(full_name: &str) -> Option<&'static OpRow> {
    let name = full_name.strip_prefix("lw.")?;
    TABLE.iter().find(|row| row.name == name)
}

/// The IRDL definition of the dialect, printed from the table.
pub fn irdl_text() -> String {
    let mut text = String::from("irdl.dialect @lw {\n");
    for row in TABLE {
        let _ = writeln!(text, "  irdl.operation @{} {{", row.name);
        let mut printer = ConstraintPrinter { text: &mut text, shared: Vec::new(), next: 0 };
        let operands: Vec<_> = row.operands.iter().map(|slot| printer.slot(slot)).collect();
        let results: Vec<_> = row.results.iter().map(|slot| printer.slot(slot)).collect();
        let attributes: Vec<_> = row
            .attributes
            .iter()
            .map(|attr| format!("\"{}\" = {}", attr.name, printer.constraint(attr.constraint)))
            .collect();
        if !operands.is_empty() {
            let _ = writeln!(text, "    irdl.operands({})", operands.join(", "));
        }
        if !results.is_empty() {
            let _ = writeln!(text, "    irdl.results({})", results.join(", "));
        }
        if !attributes.is_empty() {
            let _ = writeln!(text, "    irdl.attributes {{ {} }}", attributes.join(", "));
        }
        text.push_str("  }\n");
    }
    text.push_str("}\n");
    text
}

struct ConstraintPrinter<'t> {
    text: &'t mut String,
    /// Constraints that must be one SSA value because equal letters mean equal types.
    shared: Vec<(char, String)>,
    next: usize,
}

impl ConstraintPrinter<'_> {
    fn slot(&mut self, slot: &Slot) -> String {
        let constraint = self.constraint(slot.constraint);
        let variadic = if slot.variadic { "variadic " } else { "" };
        format!("{}: {variadic}{constraint}", slot.name)
    }

    fn define(&mut self, definition: &str) -> String {
        let name = format!("%{}", self.next);
        self.next += 1;
        let _ = writeln!(self.text, "    {name} = {definition}");
        name
    }

    fn constraint(&mut self, constraint: Constraint) -> String {
        match constraint {
            Constraint::Is(ty) => self.define(&format!("irdl.is {ty}")),
            Constraint::OneOf(types) => {
                let each: Vec<_> = types.iter().map(|ty| self.define(&format!("irdl.is {ty}"))).collect();
                self.define(&format!("irdl.any_of({})", each.join(", ")))
            }
            Constraint::Any(letter) => {
                if let Some((_, name)) = self.shared.iter().find(|(l, _)| *l == letter) {
                    return name.clone();
                }
                let name = self.define("irdl.any");
                self.shared.push((letter, name.clone()));
                name
            }
            Constraint::IntegerAttr | Constraint::BoolAttr => self.define("irdl.base \"#builtin.integer\""),
            Constraint::StringAttr => self.define("irdl.base \"#builtin.string\""),
        }
    }
}

/// Refuses a module that uses an op which `target` lacks, at the line that made it.
///
/// # Errors
/// One diagnostic for each such op.
pub fn check_target(module: &IrModule, target: Target) -> Result<(), Error> {
    let mut found = Vec::new();
    module.module().as_operation().walk(WalkOrder::PreOrder, |operation| {
        let name = operation.name();
        let name = name.as_string_ref();
        let name = name.as_str().unwrap_or_default();
        if let Some(Err(reason)) = row(name).map(|row| row.legal_on(target)) {
            let (location, chain) = source_location(operation.location());
            let mut diagnostic = Diagnostic::error(format!("`{name}` does not exist on {target}"))
                .at(location)
                .label(format!("{} has no such instruction", target.about()))
                .help(reason);
            diagnostic.call_chain = chain;
            found.push(diagnostic);
        }
        WalkResult::Advance
    });
    if found.is_empty() { Ok(()) } else { Err(found.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mlir::IrContext;

    #[test]
    fn no_column_is_blank_and_no_row_is_twice() {
        for row in TABLE {
            for (column, text) in [
                ("name", row.name),
                ("about", row.about),
                ("emulation", row.emulation),
                ("nvvm", row.nvvm),
                ("rocdl", row.rocdl),
            ] {
                assert!(!text.trim().is_empty(), "lw.{}: column `{column}` is blank", row.name);
            }
            for attr in row.attributes {
                assert!(!attr.about.is_empty(), "lw.{}: attribute `{}` is not described", row.name, attr.name);
            }
            for legal in [row.nvidia, row.amd] {
                if let Legal::Never(instead) | Legal::Only(_, instead) = legal {
                    assert!(!instead.is_empty(), "lw.{}: says no alternative", row.name);
                }
            }
            assert_eq!(TABLE.iter().filter(|other| other.name == row.name).count(), 1, "lw.{} is twice", row.name);
            assert_eq!(TABLE.iter().filter(|other| other.op == row.op).count(), 1, "{:?} is twice", row.op);
        }
        assert_eq!(TABLE.len(), LwOp::ALL.len(), "an op has no row");
    }

    #[test]
    fn the_dialect_loads_and_verifies_operands() {
        let context = IrContext::new().unwrap();
        let good =
            "func.func @f(%p: !llvm.ptr<1>) { %v = \"lw.load\"(%p) {align = 4 : i64} : (!llvm.ptr<1>) -> f32 return }";
        IrModule::parse(&context, good).unwrap();
        let bad = good.replace("!llvm.ptr<1>", "i32");
        let text = IrModule::parse(&context, &bad).unwrap_err().to_string();
        assert!(text.contains("i32"), "{text}");
    }

    #[test]
    fn an_op_that_the_target_lacks_is_refused_at_its_line() {
        let context = IrContext::new().unwrap();
        let text = "func.func @f() { \"lw.cp_async_commit\"() : () -> () loc(\"k.rs\":7:9) return }";
        let module = IrModule::parse(&context, text).unwrap();
        check_target(&module, Target::SM_80).unwrap();
        let error = check_target(&module, Target::GFX942).unwrap_err().to_string();
        assert!(error.contains("k.rs:7:9") && error.contains("gfx942"), "{error}");
    }
}
