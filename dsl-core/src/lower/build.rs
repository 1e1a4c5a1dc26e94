//! Building replacement ops: types read back from MLIR, and an inserter of `arith`, `scf` and
//! intrinsic calls at one place and location.

use melior::Context;
use melior::ir::attribute::{
    BoolAttribute, DenseI32ArrayAttribute, DenseI64ArrayAttribute, FlatSymbolRefAttribute, IntegerAttribute,
    StringAttribute, TypeAttribute,
};
use melior::ir::block::BlockLike;
use melior::ir::operation::{OperationBuilder, OperationLike, OperationRef, OperationResult};
use melior::ir::r#type::IntegerType;
use melior::ir::{
    Attribute, Block, BlockRef, Identifier, Location, Region, RegionLike, Type, TypeLike, Value, ValueLike,
};

use super::numeric::{Kind, Numeric};
use crate::mlir::{internal, name_of, pointer_space, source_location, splat, vector_parts};
use crate::{Diagnostic, Error, Target};

pub(super) type Op<'m> = OperationRef<'m, 'm>;
pub(super) type Val<'m> = Value<'m, 'm>;

/// An element type of the traced form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elem {
    Int(u32),
    F16,
    Bf16,
    F32,
    F64,
    F8E4M3,
    F8E5M2,
    /// A pointer into this address space.
    Pointer(u32),
    Index,
}

/// A scalar, vector or pointer type of the traced form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ty {
    pub elem: Elem,
    /// Length of a vector.
    pub lanes: Option<u32>,
}

pub(super) const I1: Ty = Ty::int(1);
pub(super) const I8: Ty = Ty::int(8);
pub(super) const I16: Ty = Ty::int(16);
pub(super) const I32: Ty = Ty::int(32);
pub(super) const I64: Ty = Ty::int(64);
pub(super) const F16: Ty = Ty::scalar(Elem::F16);
pub(super) const F32: Ty = Ty::scalar(Elem::F32);

impl Ty {
    pub const fn scalar(elem: Elem) -> Self {
        Self { elem, lanes: None }
    }

    pub const fn int(bits: u32) -> Self {
        Self::scalar(Elem::Int(bits))
    }

    pub const fn vector(self, lanes: u32) -> Self {
        Self { elem: self.elem, lanes: Some(lanes) }
    }

    /// The same shape of other elements.
    pub const fn with(self, elem: Elem) -> Self {
        Self { elem, lanes: self.lanes }
    }

    /// The element as a type of its own.
    pub const fn element(self) -> Self {
        Self::scalar(self.elem)
    }

    pub fn lane_count(self) -> u32 {
        self.lanes.unwrap_or(1)
    }

    /// Bits of an element.
    pub fn bits(self) -> u32 {
        match self.elem {
            Elem::Int(bits) => bits,
            Elem::F16 | Elem::Bf16 => 16,
            Elem::F32 => 32,
            Elem::F64 | Elem::Index => 64,
            Elem::F8E4M3 | Elem::F8E5M2 => 8,
            Elem::Pointer(3 | 5) => 32,
            Elem::Pointer(_) => 64,
        }
    }

    /// Bytes of an element in memory.
    pub fn element_bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Bytes of the whole.
    pub fn bytes(self) -> u32 {
        self.element_bytes() * self.lane_count()
    }

    pub fn is_float(self) -> bool {
        !matches!(self.elem, Elem::Int(_) | Elem::Pointer(_) | Elem::Index)
    }

    pub fn is_fp8(self) -> bool {
        matches!(self.elem, Elem::F8E4M3 | Elem::F8E5M2)
    }

    /// The type that LLVM holds it in: 8-bit floats are bytes there.
    pub fn storage(self) -> Self {
        if self.is_fp8() { self.with(Elem::Int(8)) } else { self }
    }

    /// Reads a type of MLIR; `None` for one that the traced form does not have.
    pub fn of(ty: Type<'_>) -> Option<Self> {
        if let Some((lanes, element)) = vector_parts(ty) {
            return Some(Self::of(element)?.vector(lanes));
        }
        let elem = if ty.is_integer() {
            Elem::Int(IntegerType::try_from(ty).ok()?.width())
        } else if ty.is_f32() {
            Elem::F32
        } else if ty.is_f16() {
            Elem::F16
        } else if ty.is_bf16() {
            Elem::Bf16
        } else if let Some(space) = pointer_space(ty) {
            Elem::Pointer(space)
        } else if ty.is_index() {
            Elem::Index
        } else if ty.is_f64() {
            Elem::F64
        } else if ty.is_float8e4m3fn() {
            Elem::F8E4M3
        } else if ty.is_float8e5m2() {
            Elem::F8E5M2
        } else {
            return None;
        };
        Some(Self::scalar(elem))
    }

    /// The type in a context.
    pub fn mlir(self, context: &Context) -> Type<'_> {
        let element = match self.elem {
            Elem::Int(bits) => IntegerType::new(context, bits).into(),
            Elem::F16 => Type::float16(context),
            Elem::Bf16 => Type::bfloat16(context),
            Elem::F32 => Type::float32(context),
            Elem::F64 => Type::float64(context),
            Elem::F8E4M3 => Type::float8_e4m3fn(context),
            Elem::F8E5M2 => Type::float8_e5m2(context),
            Elem::Pointer(space) => melior::dialect::llvm::r#type::pointer(context, space),
            Elem::Index => Type::index(context),
        };
        match self.lanes {
            Some(lanes) => Type::vector(&[u64::from(lanes)], element),
            None => element,
        }
    }

    /// Reads MLIR's spelling; `None` for a type that the traced form does not have.
    #[cfg(test)]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(inner) = text.strip_prefix("vector<").and_then(|t| t.strip_suffix('>')) {
            let (lanes, element) = inner.split_once('x')?;
            return Some(Self::parse(element)?.vector(lanes.parse().ok()?));
        }
        let elem = match text {
            "f16" => Elem::F16,
            "bf16" => Elem::Bf16,
            "f32" => Elem::F32,
            "f64" => Elem::F64,
            "f8E4M3FN" => Elem::F8E4M3,
            "f8E5M2" => Elem::F8E5M2,
            "index" => Elem::Index,
            "!llvm.ptr" => Elem::Pointer(0),
            _ => match text.strip_prefix("!llvm.ptr<").and_then(|t| t.strip_suffix('>')) {
                Some(space) => Elem::Pointer(space.parse().ok()?),
                None => Elem::Int(text.strip_prefix('i')?.parse().ok()?),
            },
        };
        Some(Self::scalar(elem))
    }

    /// MLIR's spelling.
    pub fn spelling(self) -> String {
        let element = match self.elem {
            Elem::Int(bits) => format!("i{bits}"),
            Elem::F16 => "f16".into(),
            Elem::Bf16 => "bf16".into(),
            Elem::F32 => "f32".into(),
            Elem::F64 => "f64".into(),
            Elem::F8E4M3 => "f8E4M3FN".into(),
            Elem::F8E5M2 => "f8E5M2".into(),
            Elem::Index => "index".into(),
            Elem::Pointer(0) => "!llvm.ptr".into(),
            Elem::Pointer(space) => format!("!llvm.ptr<{space}>"),
        };
        match self.lanes {
            Some(lanes) => format!("vector<{lanes}x{element}>"),
            None => element,
        }
    }
}

/// The type of a value.
pub(super) fn type_of(value: Val<'_>) -> Result<Ty, Error> {
    let ty = value.r#type();
    Ty::of(ty).ok_or_else(|| internal(&format!("the type `{ty}` does not occur in a trace"), vec![]))
}

/// An error at an op.
pub(super) fn refuse(op: Op<'_>, message: impl Into<String>, help: impl Into<String>) -> Error {
    let (location, chain) = source_location(op.location());
    let mut diagnostic = Diagnostic::error(message).at(location).help(help);
    diagnostic.call_chain = chain;
    diagnostic.into()
}

/// An integer attribute of an op.
pub(super) fn integer(op: Op<'_>, name: &str) -> Result<i64, Error> {
    let found = op.attribute(name).ok().and_then(|a| IntegerAttribute::try_from(a).ok());
    found.map(|a| a.value()).ok_or_else(|| refuse(op, format!("`{}` lacks `{name}`", name_of(op)), "this is a fault"))
}

/// The element that an `llvm.getelementptr` counts in; `None` for an aggregate.
pub(super) fn pointed_to(op: Op<'_>) -> Option<Ty> {
    Ty::of(TypeAttribute::try_from(op.attribute("elem_type").ok()?).ok()?.value())
}

/// A boolean attribute of an op.
pub(super) fn boolean(op: Op<'_>, name: &str) -> bool {
    op.attribute(name).ok().and_then(|a| BoolAttribute::try_from(a).ok()).is_some_and(|a| a.value())
}

/// The operation that a value is a result of; `None` for an argument of a block.
pub(super) fn maker<'m>(value: Val<'m>) -> Option<Op<'m>> {
    // Asked first: a conversion that fails prints the whole kernel into its error.
    if value.is_block_argument() {
        return None;
    }
    OperationResult::try_from(value).ok().map(|result| result.owner())
}

/// A string attribute of an op.
pub(super) fn string(op: Op<'_>, name: &str) -> Result<String, Error> {
    let found = op.attribute(name).ok().and_then(|a| StringAttribute::try_from(a).ok());
    found
        .map(|a| a.value().to_owned())
        .ok_or_else(|| refuse(op, format!("`{}` lacks `{name}`", name_of(op)), "this is a fault"))
}

pub(super) fn operand<'m>(op: Op<'m>, index: usize) -> Result<Val<'m>, Error> {
    op.operand(index).map_err(|e| internal(&e.to_string(), vec![]))
}

pub(super) fn result<'m>(op: Op<'m>, index: usize) -> Result<Val<'m>, Error> {
    op.result(index).map(Into::into).map_err(|e| internal(&e.to_string(), vec![]))
}

#[derive(Clone, Copy)]
enum Point<'m> {
    Before(BlockRef<'m, 'm>, Op<'m>),
    End(BlockRef<'m, 'm>),
}

/// The fast-math flag of a math function that may be approximate, as the trace writes it.
pub(super) const APPROXIMATE: &str = "#arith.fastmath<afn>";

/// Inserts ops at one place, all with one location.
#[derive(Clone, Copy)]
pub(super) struct Builder<'m> {
    context: &'m Context,
    location: Location<'m>,
    point: Point<'m>,
    target: Target,
    approximate: Attribute<'m>,
    reaches_peers: bool,
}

impl<'m> Builder<'m> {
    /// Inserts before `op`, with its location. `approximate` is [`APPROXIMATE`] in this context.
    pub fn before(context: &'m Context, op: Op<'m>, target: Target, approximate: Attribute<'m>) -> Result<Self, Error> {
        let block = op.block().ok_or_else(|| internal("an op outside a block", vec![]))?;
        Ok(Self {
            context,
            location: op.location(),
            point: Point::Before(block, op),
            target,
            approximate,
            reaches_peers: false,
        })
    }

    /// Says whether the kernel reaches the shared memory of other blocks.
    pub fn for_peers(self, reaches_peers: bool) -> Self {
        Self { reaches_peers, ..self }
    }

    /// Whether the kernel reaches the shared memory of other blocks.
    pub fn reaches_peers(&self) -> bool {
        self.reaches_peers
    }

    /// Inserts before `op`, with its location.
    pub fn ahead_of(&self, op: Op<'m>) -> Result<Self, Error> {
        Ok(Self::before(self.context, op, self.target, self.approximate)?.for_peers(self.reaches_peers))
    }

    /// Whether an op's fast-math flags allow the target's approximate instruction.
    pub fn may_approximate(&self, op: Op<'m>) -> bool {
        let Ok(flags) = op.attribute("fastmath") else { return false };
        // Compared first: printing an attribute takes as long as lowering the op.
        flags == self.approximate || ["afn", "fast<", "<fast>"].iter().any(|flag| flags.to_string().contains(flag))
    }

    fn at_end(&self, block: BlockRef<'m, 'm>) -> Self {
        Self { point: Point::End(block), ..*self }
    }

    pub fn context(&self) -> &'m Context {
        self.context
    }

    pub fn target(&self) -> Target {
        self.target
    }

    pub fn ty(&self, ty: Ty) -> Result<Type<'m>, Error> {
        Ok(ty.mlir(self.context))
    }

    /// An LLVM struct of the fields.
    pub fn struct_type(&self, fields: &[Ty]) -> Type<'m> {
        let fields: Vec<_> = fields.iter().map(|field| field.mlir(self.context)).collect();
        melior::dialect::llvm::r#type::r#struct(self.context, &fields, false)
    }

    pub fn attr(&self, text: &str) -> Result<Attribute<'m>, Error> {
        Attribute::parse(self.context, text).ok_or_else(|| internal(&format!("no such attribute: {text}"), vec![]))
    }

    pub fn i32_attr(&self, value: i64) -> Attribute<'m> {
        IntegerAttribute::new(IntegerType::new(self.context, 32).into(), value).into()
    }

    pub fn i64_attr(&self, value: i64) -> Attribute<'m> {
        IntegerAttribute::new(IntegerType::new(self.context, 64).into(), value).into()
    }

    pub fn symbol_attr(&self, name: &str) -> Attribute<'m> {
        FlatSymbolRefAttribute::new(self.context, name).into()
    }

    /// Sizes of an op's groups of operands.
    pub fn sizes_attr(&self, sizes: &[i32]) -> Attribute<'m> {
        DenseI32ArrayAttribute::new(self.context, sizes).into()
    }

    pub fn unit_attr(&self) -> Attribute<'m> {
        Attribute::unit(self.context)
    }

    pub fn string_attr(&self, value: &str) -> Attribute<'m> {
        StringAttribute::new(self.context, value).into()
    }

    pub fn type_attr(&self, ty: Ty) -> Result<Attribute<'m>, Error> {
        Ok(TypeAttribute::new(self.ty(ty)?).into())
    }

    /// Inserts an op.
    pub fn op(
        &self,
        name: &str,
        operands: &[Val<'m>],
        results: &[Type<'m>],
        attributes: &[(&str, Attribute<'m>)],
    ) -> Result<Op<'m>, Error> {
        self.op_with_regions(name, operands, results, attributes, Vec::new())
    }

    fn op_with_regions(
        &self,
        name: &str,
        operands: &[Val<'m>],
        results: &[Type<'m>],
        attributes: &[(&str, Attribute<'m>)],
        regions: Vec<Region<'m>>,
    ) -> Result<Op<'m>, Error> {
        let attributes: Vec<_> =
            attributes.iter().map(|(name, value)| (Identifier::new(self.context, name), *value)).collect();
        let operation = OperationBuilder::new(name, self.location)
            .add_operands(operands)
            .add_results(results)
            .add_attributes(&attributes)
            .add_regions_vec(regions)
            .build()
            .map_err(|e| internal(&format!("`{name}` cannot be built: {e}"), vec![]))?;
        Ok(match self.point {
            Point::Before(block, next) => block.insert_operation_before(next, operation),
            Point::End(block) => block.append_operation(operation),
        })
    }

    /// Inserts an op of one result.
    pub fn value(
        &self,
        name: &str,
        operands: &[Val<'m>],
        ty: Ty,
        attributes: &[(&str, Attribute<'m>)],
    ) -> Result<Val<'m>, Error> {
        let op = self.op(name, operands, &[self.ty(ty)?], attributes)?;
        result(op, 0)
    }

    /// Inserts an op of two operands and a result of one type.
    pub fn binary(&self, name: &str, a: Val<'m>, b: Val<'m>) -> Result<Val<'m>, Error> {
        self.value(name, &[a, b], type_of(a)?, &[])
    }

    /// Inserts an op of one operand with another type.
    pub fn cast(&self, name: &str, a: Val<'m>, ty: Ty) -> Result<Val<'m>, Error> {
        self.value(name, &[a], ty, &[])
    }

    /// An integer constant; for a vector type, of equal elements.
    pub fn constant(&self, ty: Ty, value: i64) -> Result<Val<'m>, Error> {
        let (whole, element) = (ty.mlir(self.context), ty.element().mlir(self.context));
        let attribute = match ty.elem {
            Elem::Int(1) => BoolAttribute::new(self.context, value & 1 != 0).into(),
            _ => IntegerAttribute::new(element, value).into(),
        };
        let attribute = if ty.lanes.is_some() { splat(whole, attribute) } else { Some(attribute) };
        let attribute = attribute.ok_or_else(|| internal("no such constant", vec![]))?;
        self.value("arith.constant", &[], ty, &[("value", attribute)])
    }

    /// A floating constant of the type, from its bits.
    pub fn float_bits(&self, ty: Ty, bits: u64) -> Result<Val<'m>, Error> {
        let digits = ty.bits() as usize / 4;
        let text = format!("0x{bits:0digits$X}");
        let text = if ty.lanes.is_some() { format!("dense<{text}>") } else { text };
        self.value("arith.constant", &[], ty, &[("value", self.attr(&format!("{text} : {}", ty.spelling()))?)])
    }

    /// Zero of any type.
    pub fn zero(&self, ty: Ty) -> Result<Val<'m>, Error> {
        if ty.is_fp8() {
            let bytes = self.constant(ty.storage(), 0)?;
            return self.bitcast(bytes, ty);
        }
        if ty.is_float() { self.float_bits(ty, 0) } else { self.constant(ty, 0) }
    }

    /// `arith.cmpi`; predicates 0 eq, 1 ne, 2 slt, 3 sle, 4 sgt, 5 sge, 6 ult, 7 ule, 8 ugt, 9 uge.
    pub fn compare(&self, predicate: i64, a: Val<'m>, b: Val<'m>) -> Result<Val<'m>, Error> {
        let ty = type_of(a)?.with(Elem::Int(1));
        self.value("arith.cmpi", &[a, b], ty, &[("predicate", self.i64_attr(predicate))])
    }

    /// `arith.cmpf`; predicates 1 oeq, 2 ogt, 3 oge, 4 olt, 5 ole, 14 uno.
    pub fn compare_float(&self, predicate: i64, a: Val<'m>, b: Val<'m>) -> Result<Val<'m>, Error> {
        let ty = type_of(a)?.with(Elem::Int(1));
        self.value("arith.cmpf", &[a, b], ty, &[("predicate", self.i64_attr(predicate))])
    }

    pub fn pick(&self, condition: Val<'m>, a: Val<'m>, b: Val<'m>) -> Result<Val<'m>, Error> {
        self.value("arith.select", &[condition, a, b], type_of(a)?, &[])
    }

    /// Reinterprets bits; vectors may change the number of elements.
    pub fn bitcast(&self, a: Val<'m>, ty: Ty) -> Result<Val<'m>, Error> {
        let from = type_of(a)?;
        if from == ty {
            return Ok(a);
        }
        if from.lanes == ty.lanes {
            return self.cast("arith.bitcast", a, ty);
        }
        // LLVM knows 8-bit floats as bytes only.
        let (bytes, wanted) = (self.bitcast(a, from.storage())?, ty.storage());
        self.bitcast(self.cast("llvm.bitcast", bytes, wanted)?, ty)
    }

    /// Calls an LLVM intrinsic by name. Overloads follow from the types.
    ///
    /// The `llvm.intr.*` ops are not used: `convert-gpu-to-nvvm` declares many of them illegal.
    pub fn intrinsic(&self, name: &str, operands: &[Val<'m>], ty: Option<Ty>) -> Result<Option<Val<'m>>, Error> {
        self.intrinsic_with_flags(name, operands, ty, None)
    }

    /// [`Builder::intrinsic`] that gives a value.
    pub fn call(&self, name: &str, operands: &[Val<'m>], ty: Ty) -> Result<Val<'m>, Error> {
        self.intrinsic(name, operands, Some(ty))?.ok_or_else(|| internal("an intrinsic without its result", vec![]))
    }

    /// [`Builder::call`] with fast-math flags.
    pub fn call_fast(&self, name: &str, operands: &[Val<'m>], ty: Ty, flags: &str) -> Result<Val<'m>, Error> {
        self.intrinsic_with_flags(name, operands, Some(ty), Some(flags))?
            .ok_or_else(|| internal("an intrinsic without its result", vec![]))
    }

    fn intrinsic_with_flags(
        &self,
        name: &str,
        operands: &[Val<'m>],
        ty: Option<Ty>,
        flags: Option<&str>,
    ) -> Result<Option<Val<'m>>, Error> {
        let results = ty.map(|ty| self.ty(ty)).transpose()?;
        let mut attributes = vec![
            ("intrin", self.string_attr(name)),
            ("op_bundle_sizes", self.sizes_attr(&[])),
            ("operandSegmentSizes", self.sizes_attr(&[operands.len() as i32, 0])),
        ];
        if let Some(flags) = flags {
            attributes.push(("fastmathFlags", self.attr(&format!("#llvm.fastmath<{flags}>"))?));
        }
        let op = self.op("llvm.call_intrinsic", operands, results.as_slice(), &attributes)?;
        if ty.is_some() { result(op, 0).map(Some) } else { Ok(None) }
    }

    pub fn extract(&self, vector: Val<'m>, index: u32) -> Result<Val<'m>, Error> {
        let ty = type_of(vector)?.element();
        self.value("vector.extract", &[vector], ty, &[("static_position", self.position(index as usize))])
    }

    pub fn vector_of(&self, elements: &[Val<'m>]) -> Result<Val<'m>, Error> {
        let first = elements.first().ok_or_else(|| internal("a vector of no elements", vec![]))?;
        let ty = type_of(*first)?.vector(elements.len() as u32);
        self.value("vector.from_elements", elements, ty, &[])
    }

    /// Field of an LLVM struct.
    pub fn field(&self, aggregate: Val<'m>, index: usize, ty: Ty) -> Result<Val<'m>, Error> {
        self.value("llvm.extractvalue", &[aggregate], ty, &[("position", self.position(index))])
    }

    fn position(&self, index: usize) -> Attribute<'m> {
        DenseI64ArrayAttribute::new(self.context, &[index as i64]).into()
    }

    /// Address `index` elements further.
    pub fn element_address(&self, base: Val<'m>, index: Val<'m>, element: Ty) -> Result<Val<'m>, Error> {
        self.value(
            "llvm.getelementptr",
            &[base, index],
            type_of(base)?,
            &[
                ("elem_type", self.type_attr(element.storage())?),
                // The index is an operand: MLIR's mark for that.
                ("rawConstantIndices", DenseI32ArrayAttribute::new(self.context, &[i32::MIN]).into()),
            ],
        )
    }

    /// `scf.if` with both arms; each arm gives the results' values.
    pub fn if_else(
        &self,
        condition: Val<'m>,
        results: &[Ty],
        then: impl FnOnce(&Self) -> Result<Vec<Val<'m>>, Error>,
        otherwise: impl FnOnce(&Self) -> Result<Vec<Val<'m>>, Error>,
    ) -> Result<Vec<Val<'m>>, Error> {
        let types = results.iter().map(|ty| self.ty(*ty)).collect::<Result<Vec<_>, _>>()?;
        let op =
            self.op_with_regions("scf.if", &[condition], &types, &[], vec![block_region(&[]), block_region(&[])])?;
        let arm = self.at_end(region_block(op, 0)?);
        let values = then(&arm)?;
        arm.op("scf.yield", &values, &[], &[])?;
        let arm = self.at_end(region_block(op, 1)?);
        let values = otherwise(&arm)?;
        arm.op("scf.yield", &values, &[], &[])?;
        (0..results.len()).map(|i| result(op, i)).collect()
    }

    /// `scf.if` without results or else arm.
    pub fn if_then(&self, condition: Val<'m>, then: impl FnOnce(&Self) -> Result<(), Error>) -> Result<(), Error> {
        let op = self.op_with_regions("scf.if", &[condition], &[], &[], vec![block_region(&[]), Region::new()])?;
        let arm = self.at_end(region_block(op, 0)?);
        then(&arm)?;
        arm.op("scf.yield", &[], &[], &[])?;
        Ok(())
    }
}

fn block_region<'m>(arguments: &[(Type<'m>, Location<'m>)]) -> Region<'m> {
    let region = Region::new();
    region.append_block(Block::new(arguments));
    region
}

fn region_block<'m>(op: Op<'m>, index: usize) -> Result<BlockRef<'m, 'm>, Error> {
    let region = op.region(index).map_err(|e| internal(&e.to_string(), vec![]))?;
    region.first_block().ok_or_else(|| internal("a region without a block", vec![]))
}

impl<'m> Numeric for Builder<'m> {
    type Value = Val<'m>;
    type Error = Error;

    fn float(&self, x: f32) -> Result<Val<'m>, Error> {
        self.float_bits(F32, u64::from(x.to_bits()))
    }
    fn int(&self, x: i32) -> Result<Val<'m>, Error> {
        self.constant(I32, i64::from(x))
    }
    fn long(&self, x: i64) -> Result<Val<'m>, Error> {
        self.constant(I64, x)
    }
    fn add(&self, a: Val<'m>, b: Val<'m>) -> Result<Val<'m>, Error> {
        self.binary("arith.addf", a, b)
    }
    fn sub(&self, a: Val<'m>, b: Val<'m>) -> Result<Val<'m>, Error> {
        self.binary("arith.subf", a, b)
    }
    fn mul(&self, a: Val<'m>, b: Val<'m>) -> Result<Val<'m>, Error> {
        self.binary("arith.mulf", a, b)
    }
    fn div(&self, a: Val<'m>, b: Val<'m>) -> Result<Val<'m>, Error> {
        self.binary("arith.divf", a, b)
    }
    fn fma(&self, a: Val<'m>, b: Val<'m>, c: Val<'m>) -> Result<Val<'m>, Error> {
        self.call("llvm.fma", &[a, b, c], type_of(a)?)
    }
    fn neg(&self, a: Val<'m>) -> Result<Val<'m>, Error> {
        self.cast("arith.negf", a, type_of(a)?)
    }
    fn abs(&self, a: Val<'m>) -> Result<Val<'m>, Error> {
        self.call("llvm.fabs", &[a], type_of(a)?)
    }
    fn copysign(&self, a: Val<'m>, b: Val<'m>) -> Result<Val<'m>, Error> {
        self.call("llvm.copysign", &[a, b], type_of(a)?)
    }
    fn round(&self, a: Val<'m>) -> Result<Val<'m>, Error> {
        self.call("llvm.roundeven", &[a], type_of(a)?)
    }
    fn sqrt(&self, a: Val<'m>) -> Result<Val<'m>, Error> {
        self.call("llvm.sqrt", &[a], type_of(a)?)
    }
    fn exp2_near_zero(&self, a: Val<'m>) -> Result<Val<'m>, Error> {
        if self.target.is_nvidia() {
            self.call("llvm.nvvm.ex2.approx", &[a], F32)
        } else {
            self.cast("rocdl.exp2", a, F32)
        }
    }
    fn less(&self, a: Val<'m>, b: Val<'m>) -> Result<Val<'m>, Error> {
        self.compare_float(4, a, b)
    }
    fn equal(&self, a: Val<'m>, b: Val<'m>) -> Result<Val<'m>, Error> {
        self.compare_float(1, a, b)
    }
    fn iadd(&self, a: Val<'m>, b: Val<'m>) -> Result<Val<'m>, Error> {
        self.binary("arith.addi", a, b)
    }
    fn isub(&self, a: Val<'m>, b: Val<'m>) -> Result<Val<'m>, Error> {
        self.binary("arith.subi", a, b)
    }
    fn imul(&self, a: Val<'m>, b: Val<'m>) -> Result<Val<'m>, Error> {
        self.binary("arith.muli", a, b)
    }
    fn iand(&self, a: Val<'m>, b: Val<'m>) -> Result<Val<'m>, Error> {
        self.binary("arith.andi", a, b)
    }
    fn ior(&self, a: Val<'m>, b: Val<'m>) -> Result<Val<'m>, Error> {
        self.binary("arith.ori", a, b)
    }
    fn ishl(&self, a: Val<'m>, n: Val<'m>) -> Result<Val<'m>, Error> {
        self.binary("arith.shli", a, n)
    }
    fn ishr(&self, a: Val<'m>, n: Val<'m>) -> Result<Val<'m>, Error> {
        self.binary("arith.shrui", a, n)
    }
    fn isar(&self, a: Val<'m>, n: Val<'m>) -> Result<Val<'m>, Error> {
        self.binary("arith.shrsi", a, n)
    }
    fn ictlz(&self, a: Val<'m>) -> Result<Val<'m>, Error> {
        let zero_is_defined = self.constant(I1, 0)?;
        self.call("llvm.ctlz", &[a, zero_is_defined], type_of(a)?)
    }
    fn iless(&self, a: Val<'m>, b: Val<'m>) -> Result<Val<'m>, Error> {
        self.compare(2, a, b)
    }
    fn uless(&self, a: Val<'m>, b: Val<'m>) -> Result<Val<'m>, Error> {
        self.compare(6, a, b)
    }
    fn iequal(&self, a: Val<'m>, b: Val<'m>) -> Result<Val<'m>, Error> {
        self.compare(0, a, b)
    }
    fn bits(&self, a: Val<'m>) -> Result<Val<'m>, Error> {
        self.bitcast(a, I32)
    }
    fn float_of(&self, a: Val<'m>) -> Result<Val<'m>, Error> {
        self.bitcast(a, F32)
    }
    fn to_int(&self, a: Val<'m>) -> Result<Val<'m>, Error> {
        self.call("llvm.fptosi.sat", &[a], I32)
    }
    fn to_float(&self, a: Val<'m>) -> Result<Val<'m>, Error> {
        self.cast("arith.sitofp", a, F32)
    }
    fn widen(&self, a: Val<'m>) -> Result<Val<'m>, Error> {
        self.cast("arith.extui", a, I64)
    }
    fn narrow(&self, a: Val<'m>) -> Result<Val<'m>, Error> {
        self.cast("arith.trunci", a, I32)
    }
    fn select(&self, condition: Val<'m>, a: Val<'m>, b: Val<'m>) -> Result<Val<'m>, Error> {
        self.pick(condition, a, b)
    }

    fn branch(
        &self,
        condition: Val<'m>,
        kinds: [Kind; 2],
        then: impl FnOnce(&Self) -> Result<[Val<'m>; 2], Error>,
        otherwise: impl FnOnce(&Self) -> Result<[Val<'m>; 2], Error>,
    ) -> Result<[Val<'m>; 2], Error> {
        let types = kinds.map(|kind| if kind == Kind::Float { F32 } else { I32 });
        let values = self.if_else(condition, &types, |b| Ok(then(b)?.to_vec()), |b| Ok(otherwise(b)?.to_vec()))?;
        values.try_into().map_err(|_| internal("a branch of other than two values", vec![]))
    }

    fn repeat(
        &self,
        start: [Val<'m>; 2],
        condition: impl FnOnce(&Self, [Val<'m>; 2]) -> Result<Val<'m>, Error> + Copy,
        body: impl FnOnce(&Self, [Val<'m>; 2]) -> Result<[Val<'m>; 2], Error> + Copy,
    ) -> Result<[Val<'m>; 2], Error> {
        let int = self.ty(I32)?;
        let arguments = [(int, self.location); 2];
        let regions = vec![block_region(&arguments), block_region(&arguments)];
        let op = self.op_with_regions("scf.while", &start, &[int; 2], &[], regions)?;
        let state = |block: BlockRef<'m, 'm>| -> Result<[Val<'m>; 2], Error> {
            let argument = |i| block.argument(i).map(Into::into).map_err(|e| internal(&e.to_string(), vec![]));
            Ok([argument(0)?, argument(1)?])
        };
        let block = region_block(op, 0)?;
        let inner = self.at_end(block);
        let [first, second] = state(block)?;
        let holds = condition(&inner, [first, second])?;
        inner.op("scf.condition", &[holds, first, second], &[], &[])?;
        let block = region_block(op, 1)?;
        let inner = self.at_end(block);
        let next = body(&inner, state(block)?)?;
        inner.op("scf.yield", &next, &[], &[])?;
        Ok([result(op, 0)?, result(op, 1)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mlir::IrContext;

    #[test]
    fn spellings_round_trip() {
        for text in ["i1", "f32", "vector<4xbf16>", "!llvm.ptr<3>", "!llvm.ptr", "vector<2xf8E4M3FN>", "index"] {
            assert_eq!(Ty::parse(text).unwrap().spelling(), text);
        }
        assert_eq!(Ty::parse("memref<4xf32>"), None);
        let context = IrContext::new().unwrap();
        for text in
            ["i1", "f32", "f64", "vector<4xbf16>", "!llvm.ptr<3>", "!llvm.ptr", "vector<2xf8E4M3FN>", "f8E5M2", "index"]
        {
            let ty = Ty::parse(text).unwrap();
            let there = ty.mlir(context.get());
            assert_eq!((there.to_string().as_str(), Ty::of(there)), (text, Some(ty)));
        }
        for text in ["memref<4xf32>", "vector<2x2xf32>", "tf32"] {
            assert_eq!(Ty::of(Type::parse(context.get(), text).unwrap()), None);
        }
        assert_eq!(Ty::parse("vector<4xf16>").unwrap().bytes(), 8);
    }
}
