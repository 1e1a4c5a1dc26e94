//! The open trace of this thread: where ops go while a kernel's body runs.
//!
//! A trace runs a kernel's Rust body once. Every value of the language is a [`RawValue`], a number
//! that stands for an SSA value of the trace; every operation on it appends an op to the innermost
//! open region. Regions are opened and closed by `crate::rt`.

mod agreement;
mod ir_type;
mod once;

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::Location;
use std::rc::Rc;

use melior::ir::attribute::{FloatAttribute, IntegerAttribute};
use melior::ir::operation::OperationBuilder;
use melior::ir::{Attribute, Block, BlockLike, Identifier, Region, Type, Value};

use crate::mlir::{self, IrContext};
use crate::{Diagnostic, Error, ScalarType, SourceLocation, Target};

pub(crate) use agreement::Agreement;
pub use ir_type::{IrType, Space};
pub(crate) use once::{Operand, once};

/// A place in the user's source, as `#[track_caller]` hands it down.
pub type Loc = &'static Location<'static>;

/// A traced value. Copying it copies the number; it means something only in the trace that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RawValue {
    index: u32,
    /// Which trace made it: 0 for none.
    epoch: u32,
}

impl RawValue {
    /// A value of no trace: the result of an operation outside a kernel, or of one that was refused.
    pub const DEAD: RawValue = RawValue { index: 0, epoch: 0 };
}

/// An attribute to be put on an op.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Attr {
    /// A 64-bit integer.
    Int(i64),
    /// A 32-bit integer.
    Int32(i32),
    /// `true` or `false`.
    Bool(bool),
    /// A string.
    Str(String),
    /// An attribute in MLIR's spelling.
    Text(String),
}

struct Info {
    /// `None` stands for a value that was refused: what uses it is refused silently.
    value: Option<Value<'static, 'static>>,
    ty: IrType,
    region: u32,
    known: Option<i64>,
    agreement: Agreement,
    loc: Loc,
}

struct OpenRegion {
    id: u32,
    block: Block<'static>,
    /// Whether it is the body of a loop, or its condition.
    repeats: bool,
    /// Constants that this region already has.
    constants: HashMap<(IrType, u64), RawValue>,
    /// Operations that are made once, of this region.
    once: HashMap<once::Key, RawValue>,
    /// Whether one lane of a warp at most comes here.
    one_lane: bool,
}

impl OpenRegion {
    fn new(id: u32, block: Block<'static>, repeats: bool) -> Self {
        Self { id, block, repeats, constants: HashMap::new(), once: HashMap::new(), one_lane: false }
    }
}

/// A region whose end has been reached, not yet part of an op.
pub(crate) struct ClosedRegion {
    id: u32,
    repeats: bool,
    pub(crate) block: Block<'static>,
}

/// The state of a trace.
pub struct Trace {
    // Values and blocks go before the context that they live in.
    values: Vec<Info>,
    open: Vec<OpenRegion>,
    /// By region id: where it was opened, and whether it is closed.
    regions: Vec<(Loc, bool)>,
    frames: Vec<Loc>,
    diagnostics: Vec<Diagnostic>,
    epoch: u32,
    /// Shared memory handed out so far.
    pub(crate) shared: crate::types::SharedLayout,
    /// Threads of the kernel's block in x, y, z; zero while no kernel has said so.
    pub(crate) block: [u32; 3],
    /// Blocks of a cluster in x, y, z, if the kernel asks for clusters.
    pub(crate) cluster: Option<[u32; 3]>,
    /// Whether the kernel asks for clusters, be it of one block.
    pub(crate) in_cluster: bool,
    /// Registers that a thread starts with, where the kernel's attributes decide it.
    pub(crate) entry_registers: Option<u32>,
    /// How the kernel uses its tensor maps, so far.
    pub(crate) maps: Vec<crate::types::MapUse>,
    /// Operations and regions so far.
    made: usize,
    /// Attributes by their spelling: parsing one takes longer than making an op.
    texts: RefCell<HashMap<String, Attribute<'static>>>,
    target: Target,
    context: Rc<IrContext>,
}

thread_local! {
    static CURRENT: RefCell<Option<Trace>> = const { RefCell::new(None) };
    static EPOCHS: RefCell<u32> = const { RefCell::new(0) };
}

/// Runs `f` on the open trace; `None` where no kernel is being traced.
pub fn with<R>(f: impl FnOnce(&mut Trace) -> R) -> Option<R> {
    CURRENT.with(|current| current.try_borrow_mut().ok()?.as_mut().map(f))
}

/// Opens a trace on this thread, runs `body`, and returns the trace with what it found.
///
/// # Errors
/// When a trace is open already, or the context cannot be made.
pub(crate) fn run<R>(target: Target, body: impl FnOnce() -> R) -> Result<(Trace, R), Error> {
    struct Close;
    impl Drop for Close {
        // A panic of the user's host code must not leave the trace open for the next kernel.
        fn drop(&mut self) {
            CURRENT.with(|current| current.take());
        }
    }

    if with(|_| ()).is_some() {
        return Err(Diagnostic::error("a kernel cannot be traced inside the trace of another")
            .help("make the inner one a `#[device] fn` and call it")
            .into());
    }
    let context = IrContext::shared()?;
    let epoch = EPOCHS.with(|epochs| {
        let mut epochs = epochs.borrow_mut();
        *epochs = epochs.wrapping_add(1).max(1);
        *epochs
    });
    let trace = Trace {
        values: Vec::new(),
        open: Vec::new(),
        regions: Vec::new(),
        frames: Vec::new(),
        diagnostics: Vec::new(),
        epoch,
        shared: crate::types::SharedLayout::default(),
        block: [0; 3],
        cluster: None,
        in_cluster: false,
        entry_registers: None,
        maps: Vec::new(),
        made: 0,
        texts: RefCell::default(),
        target,
        context,
    };
    CURRENT.with(|current| current.replace(Some(trace)));
    let close = Close;
    let result = body();
    let trace = CURRENT.with(|current| current.take());
    std::mem::forget(close);
    trace.map(|trace| (trace, result)).ok_or_else(|| mlir::internal("the trace was lost", vec![]))
}

impl Drop for Trace {
    fn drop(&mut self) {
        // Inner blocks use values of outer ones, so they go first.
        while self.open.pop().is_some() {}
    }
}

impl Trace {
    /// The chip that the kernel is traced for.
    pub fn target(&self) -> Target {
        self.target
    }

    /// The context, with the lifetime of what is built here.
    pub(crate) fn context(&self) -> &'static melior::Context {
        self.context.get_static()
    }

    pub(crate) fn shared_context(&self) -> Rc<IrContext> {
        Rc::clone(&self.context)
    }

    /// Notes that the kernel is wrong; tracing goes on, to find more.
    pub fn error(&mut self, diagnostic: Diagnostic) {
        let mut diagnostic = diagnostic;
        if diagnostic.call_chain.is_empty() {
            diagnostic.call_chain = self.frames.iter().rev().map(|f| SourceLocation::from_caller(f)).collect();
        }
        if !self.diagnostics.contains(&diagnostic) {
            self.diagnostics.push(diagnostic);
        }
    }

    pub(crate) fn take_diagnostics(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.diagnostics)
    }

    /// Enters a helper called from `loc`; returns whether the chain is still of a sane depth.
    pub(crate) fn push_frame(&mut self, loc: Loc) -> bool {
        self.frames.push(loc);
        self.frames.len() <= MAX_FRAMES
    }

    pub(crate) fn pop_frame(&mut self) {
        self.frames.pop();
    }

    /// The MLIR location of `loc`, with the call sites of the helpers around it.
    pub(crate) fn location(&self, loc: Loc) -> melior::ir::Location<'static> {
        let context = self.context();
        let place =
            |loc: Loc| melior::ir::Location::new(context, loc.file(), loc.line() as usize, loc.column() as usize);
        let caller = self.frames.iter().fold(None, |outer: Option<melior::ir::Location<'static>>, frame| {
            Some(match outer {
                None => place(frame),
                Some(outer) => melior::ir::Location::call_site(place(frame), outer),
            })
        });
        match caller {
            None => place(loc),
            Some(caller) => melior::ir::Location::call_site(place(loc), caller),
        }
    }

    /// Ends a trace that does not end by itself: a loop of the host over something that no run-time branch can change.
    /// What was found before is the cause, and is reported alone.
    fn check_size(&mut self, loc: Loc) {
        self.made += 1;
        if self.made < MAX_OPS {
            return;
        }
        if self.diagnostics.is_empty() {
            self.error(
                Diagnostic::error(format!(
                    "this kernel has more than {MAX_OPS} operations: does a compile-time loop end?"
                ))
                .at(SourceLocation::from_caller(loc))
                .label("made again and again")
                .help("loops over host values are unrolled; for one that runs on the device, write `range(..)`"),
            );
        }
        // `trace_kernel` catches it; no panic message is printed.
        std::panic::resume_unwind(Box::new(Stopped(self.take_diagnostics())));
    }

    /// Opens a region whose block has arguments of the given types.
    pub(crate) fn open_region(&mut self, arguments: &[IrType], loc: Loc) -> Vec<RawValue> {
        self.open(arguments, false, loc)
    }

    /// [`Trace::open_region`] of a loop: of its body, or of its condition.
    pub(crate) fn open_loop(&mut self, arguments: &[IrType], loc: Loc) -> Vec<RawValue> {
        self.open(arguments, true, loc)
    }

    fn open(&mut self, arguments: &[IrType], repeats: bool, loc: Loc) -> Vec<RawValue> {
        self.check_size(loc);
        let location = self.location(loc);
        let context = self.context();
        let typed: Vec<_> = arguments.iter().map(|ty| (ty.mlir(context), location)).collect();
        let block = Block::new(&typed);
        let id = self.regions.len() as u32;
        self.regions.push((loc, false));
        let mut handles = Vec::with_capacity(arguments.len());
        for (index, ty) in arguments.iter().enumerate() {
            let value = block.argument(index).ok().map(mlir::extend_value);
            let agreement = Agreement::NONE;
            handles.push(self.push_value(Info { value, ty: *ty, region: id, known: None, agreement, loc }));
        }
        self.open.push(OpenRegion::new(id, block, repeats));
        handles
    }

    /// Closes the innermost region. Its values cannot be used from here on.
    pub(crate) fn close_region(&mut self) -> Option<ClosedRegion> {
        let region = self.open.pop()?;
        if let Some(entry) = self.regions.get_mut(region.id as usize) {
            entry.1 = true;
        }
        Some(ClosedRegion { id: region.id, repeats: region.repeats, block: region.block })
    }

    /// Opens a region again, to append to it.
    pub(crate) fn reopen_region(&mut self, region: ClosedRegion) {
        if let Some(entry) = self.regions.get_mut(region.id as usize) {
            entry.1 = false;
        }
        self.open.push(OpenRegion::new(region.id, region.block, region.repeats));
    }

    fn push_value(&mut self, info: Info) -> RawValue {
        let index = self.values.len() as u32;
        self.values.push(info);
        RawValue { index, epoch: self.epoch }
    }

    /// The same value as one of the innermost region.
    pub(super) fn renamed_here(&mut self, value: RawValue, loc: Loc) -> RawValue {
        let Some(&Info { value: there, ty, known, agreement, .. }) = self.info(value) else { return value };
        let region = self.open.last().map_or(u32::MAX, |region| region.id);
        self.push_value(Info { value: there, ty, region, known, agreement, loc })
    }

    fn info(&self, value: RawValue) -> Option<&Info> {
        (value.epoch == self.epoch).then(|| self.values.get(value.index as usize))?
    }

    /// The type of a value; `None` for one of another trace.
    pub fn type_of(&self, value: RawValue) -> Option<IrType> {
        self.info(value).map(|info| info.ty)
    }

    /// The value of an integer or boolean that the trace knows to be constant; of a vector of one
    /// constant, that constant.
    pub fn known(&self, value: RawValue) -> Option<i64> {
        self.info(value)?.known
    }

    /// Makes `old` stand for what `new` stands for.
    pub(crate) fn alias(&mut self, old: RawValue, new: RawValue) {
        let Some(new) = self.info(new) else { return };
        let (value, region, known, agreement) = (new.value, new.region, new.known, new.agreement);
        if old.epoch == self.epoch
            && let Some(info) = self.values.get_mut(old.index as usize)
        {
            (info.value, info.region, info.known, info.agreement) = (value, region, known, agreement);
        }
    }

    /// The SSA value behind a handle, whatever its region.
    pub(crate) fn peek(&self, value: RawValue) -> Option<Value<'static, 'static>> {
        self.info(value)?.value
    }

    /// The SSA value behind a handle, checked: made by this trace, in a region that is still open.
    pub(crate) fn resolve(&mut self, value: RawValue, loc: Loc) -> Option<Value<'static, 'static>> {
        if value.epoch != self.epoch {
            self.error(
                Diagnostic::error("this value was not made by the kernel that uses it")
                    .at(SourceLocation::from_caller(loc))
                    .help("kernel values exist only while their kernel is traced: pass host values as parameters"),
            );
            return None;
        }
        let info = self.values.get(value.index as usize)?;
        if let Some((opened, true)) = self.regions.get(info.region as usize) {
            let diagnostic = Diagnostic::error("this value was made inside run-time control flow that has ended")
                .at(SourceLocation::from_caller(loc))
                .label("used here, where it may not exist")
                .note(format!("it was made at {}", SourceLocation::from_caller(info.loc)))
                .note(format!("inside the region that starts at {}", SourceLocation::from_caller(opened)))
                .help("assign it to a `let mut` variable of the outer scope; a value kept in a `Cell` is not seen");
            self.error(diagnostic);
            return None;
        }
        info.value
    }

    /// Appends an op to the innermost region and returns its results.
    ///
    /// An operand that was refused makes the results refused too, without a further message.
    pub(crate) fn emit(
        &mut self,
        name: &str,
        operands: &[RawValue],
        results: &[IrType],
        attributes: &[(&str, Attr)],
        loc: Loc,
    ) -> Vec<RawValue> {
        self.emit_with_regions(name, operands, results, attributes, Vec::new(), loc)
    }

    /// [`Trace::emit`] of an op with one result.
    pub(crate) fn emit1(
        &mut self,
        name: &str,
        operands: &[RawValue],
        ty: IrType,
        attributes: &[(&str, Attr)],
        loc: Loc,
    ) -> RawValue {
        self.emit(name, operands, &[ty], attributes, loc).first().copied().unwrap_or(RawValue::DEAD)
    }

    /// `!value` of a condition.
    pub(crate) fn not(&mut self, value: RawValue, loc: Loc) -> RawValue {
        match self.known(value) {
            Some(known) => self.constant(ScalarType::Bool, Constant::Int(i64::from(known == 0)), loc),
            None => {
                let one = self.constant(ScalarType::Bool, Constant::Int(1), loc);
                self.emit1("arith.xori", &[value, one], IrType::BOOL, &[], loc)
            }
        }
    }

    pub(crate) fn emit_with_regions(
        &mut self,
        name: &str,
        operands: &[RawValue],
        results: &[IrType],
        attributes: &[(&str, Attr)],
        regions: Vec<Region<'static>>,
        loc: Loc,
    ) -> Vec<RawValue> {
        let innermost = self.open.len().saturating_sub(1);
        self.emit_at(innermost, (name, operands, results, attributes), regions, loc)
    }

    /// Appends an op to an open region, counted from the outermost.
    fn emit_at(
        &mut self,
        depth: usize,
        (name, operands, results, attributes): OpParts<'_>,
        regions: Vec<Region<'static>>,
        loc: Loc,
    ) -> Vec<RawValue> {
        self.check_size(loc);
        let resolved: Option<Vec<_>> = operands.iter().map(|&operand| self.resolve(operand, loc)).collect();
        let context = self.context();
        let built = resolved.and_then(|resolved| {
            let types: Vec<_> = results.iter().map(|ty| ty.mlir(context)).collect();
            let attributes: Vec<_> = attributes
                .iter()
                .filter_map(|(name, attr)| Some((Identifier::new(context, name), self.attribute(attr)?)))
                .collect();
            let builder = OperationBuilder::new(name, self.location(loc))
                .add_operands(&resolved)
                .add_results(&types)
                .add_attributes(&attributes)
                .add_regions_vec(regions);
            builder.build().ok()
        });
        let region = self.open.get(depth).map_or(u32::MAX, |region| region.id);
        let agreement =
            if results.is_empty() { Agreement::NONE } else { self.agreement_of(name, operands, attributes) };
        let values: Vec<Option<Value<'static, 'static>>> = match (built, self.open.get(depth)) {
            (Some(operation), Some(region)) => {
                let operation = region.block.append_operation(operation);
                (0..results.len()).map(|index| operation.result(index).ok().map(mlir::extend_value)).collect()
            }
            _ => vec![None; results.len()],
        };
        results
            .iter()
            .zip(values)
            .map(|(ty, value)| self.push_value(Info { value, ty: *ty, region, known: None, agreement, loc }))
            .collect()
    }

    fn attribute(&self, attr: &Attr) -> Option<Attribute<'static>> {
        let context = self.context();
        Some(match attr {
            Attr::Int(value) => IntegerAttribute::new(IrType::integer(context, 64), *value).into(),
            Attr::Int32(value) => IntegerAttribute::new(IrType::integer(context, 32), i64::from(*value)).into(),
            Attr::Bool(value) => melior::ir::attribute::BoolAttribute::new(context, *value).into(),
            Attr::Str(text) => melior::ir::attribute::StringAttribute::new(context, text).into(),
            Attr::Text(text) => {
                let known = self.texts.borrow().get(text).copied();
                match known {
                    Some(attribute) => attribute,
                    None => {
                        let attribute = Attribute::parse(context, text)?;
                        self.texts.borrow_mut().insert(text.clone(), attribute);
                        attribute
                    }
                }
            }
        })
    }

    /// A constant of an integer, boolean or float type, given by its bits.
    pub(crate) fn constant(&mut self, ty: ScalarType, constant: Constant, loc: Loc) -> RawValue {
        self.constant_at(self.open.len().saturating_sub(1), ty, constant, loc)
    }

    /// [`Trace::constant`] in an open region, counted from the outermost.
    fn constant_at(&mut self, depth: usize, ty: ScalarType, constant: Constant, loc: Loc) -> RawValue {
        let key = (IrType::Scalar(ty), constant.key());
        let around = self.open.iter().take(depth + 1).rev();
        if let Some(known) = around.filter_map(|region| region.constants.get(&key)).next() {
            return *known;
        }
        let context = self.context();
        let mlir_type: Type<'static> = ty.mlir(context);
        let (attribute, known): (Attribute<'static>, _) = match constant {
            Constant::Int(value) => {
                // MLIR wants the bits of an unsigned value as a signed number of the same width.
                let value = match ty {
                    ScalarType::Bool => i64::from(value != 0),
                    _ => sign_extend(value, 8 * ty.bytes() as u32),
                };
                let attribute = match ty {
                    ScalarType::Bool => melior::ir::attribute::BoolAttribute::new(context, value != 0).into(),
                    _ => IntegerAttribute::new(mlir_type, value).into(),
                };
                (attribute, Some(value))
            }
            Constant::Float(value) => (FloatAttribute::new(context, mlir_type, value).into(), None),
        };
        let Some(region) = self.open.get(depth) else { return RawValue::DEAD };
        let operation = OperationBuilder::new("arith.constant", self.location(loc))
            .add_results(&[mlir_type])
            .add_attributes(&[(Identifier::new(context, "value"), attribute)])
            .build();
        let value = operation
            .ok()
            .and_then(|operation| region.block.append_operation(operation).result(0).ok().map(mlir::extend_value));
        let id = region.id;
        let agreement = Agreement::EVIDENT;
        let handle = self.push_value(Info { value, ty: IrType::Scalar(ty), region: id, known, agreement, loc });
        if let Some(region) = self.open.get_mut(depth) {
            region.constants.insert(key, handle);
        }
        handle
    }

    /// Records that the trace knows `value` to be a constant; for a vector, each of its elements.
    pub(crate) fn set_known(&mut self, value: RawValue, known: i64) {
        if value.epoch == self.epoch
            && let Some(info) = self.values.get_mut(value.index as usize)
        {
            info.known = Some(known);
        }
    }
}

/// Name, operands, types of results and attributes of an op.
type OpParts<'a> = (&'a str, &'a [RawValue], &'a [IrType], &'a [(&'a str, Attr)]);

/// Operations and regions of the largest kernel that is traced. The largest bundled one has some ten thousand.
const MAX_OPS: usize = 200_000;
/// Deepest chain of `#[device]` calls: endless host recursion would overflow the stack.
const MAX_FRAMES: usize = 256;

/// The value of a constant.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Constant {
    /// Bits of an integer, sign- or zero-extended.
    Int(i64),
    /// Exactly representable in the constant's type, or rounded to nearest even once.
    Float(f64),
}

impl Constant {
    fn key(self) -> u64 {
        match self {
            Self::Int(value) => value as u64,
            Self::Float(value) => value.to_bits(),
        }
    }
}

fn sign_extend(value: i64, bits: u32) -> i64 {
    let unused = 64 - bits.clamp(1, 64);
    (value << unused) >> unused
}

/// Appends an op with one result to the open trace.
pub(crate) fn emit1(name: &str, operands: &[RawValue], ty: IrType, attributes: &[(&str, Attr)], loc: Loc) -> RawValue {
    with(|trace| trace.emit1(name, operands, ty, attributes, loc)).unwrap_or(RawValue::DEAD)
}

/// Carried by the unwinding that ends a trace: what was found up to there.
pub(crate) struct Stopped(pub(crate) Vec<Diagnostic>);

/// Notes an error at `loc` after which the kernel's host code cannot be run on. Outside a trace, nothing.
pub(crate) fn stop(loc: Loc, diagnostic: Diagnostic) {
    error(loc, diagnostic);
    if let Some(found) = with(Trace::take_diagnostics) {
        // `trace_kernel` catches it; no panic message is printed.
        std::panic::resume_unwind(Box::new(Stopped(found)));
    }
}

/// Stands for the result of an operation that was refused: what uses it is refused silently.
pub(crate) fn refused(ty: IrType, loc: Loc) -> RawValue {
    with(|trace| {
        let region = trace.open.last().map_or(u32::MAX, |region| region.id);
        trace.push_value(Info { value: None, ty, region, known: None, agreement: Agreement::EVIDENT, loc })
    })
    .unwrap_or(RawValue::DEAD)
}

/// What the open trace knows of an integer or boolean.
pub(crate) fn known(value: RawValue) -> Option<i64> {
    with(|trace| trace.known(value)).flatten()
}

/// Appends an op without a result to the open trace.
pub(crate) fn emit0(name: &str, operands: &[RawValue], attributes: &[(&str, Attr)], loc: Loc) {
    with(|trace| trace.emit(name, operands, &[], attributes, loc));
}

/// Records what the open trace knows of a value.
pub(crate) fn set_agreement(value: RawValue, agreement: Agreement) {
    with(|trace| trace.set_agreement(value, agreement));
}

/// Whether all lanes of the warp that are here have the value alike, as far as the open trace knows.
pub(crate) fn is_uniform(value: RawValue) -> bool {
    with(|trace| trace.is_uniform(value)).unwrap_or(true)
}

/// A constant in the open trace.
pub(crate) fn constant(ty: ScalarType, value: Constant, loc: Loc) -> RawValue {
    with(|trace| trace.constant(ty, value, loc)).unwrap_or(RawValue::DEAD)
}

/// Notes an error at `loc`.
pub(crate) fn error(loc: Loc, diagnostic: Diagnostic) {
    with(|trace| trace.error(diagnostic.at(SourceLocation::from_caller(loc))));
}
