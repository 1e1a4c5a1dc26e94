//! What is known of a kernel: its attributes, parameters and traced module.
//!
//! The traced module describes itself: everything here is read back from the attributes of its
//! `gpu.func`, so that a module parsed from text is as good as one just traced.

mod alignment;

use std::panic::AssertUnwindSafe;

use melior::ir::attribute::{
    DenseI32ArrayAttribute, DenseI64ArrayAttribute, DictionaryAttribute, IntegerAttribute, StringAttribute,
    TypeAttribute,
};
use melior::ir::operation::{OperationBuilder, OperationLike, OperationMutLike, OperationRef, WalkOrder, WalkResult};
use melior::ir::r#type::FunctionType;
use melior::ir::{Attribute, AttributeLike, Block, BlockLike, Identifier, Module, Region, RegionLike};

use crate::dialect;
use crate::mlir::{self, IrModule, array_elements};
use crate::rt::{EndlessRecursion, Kernel, KernelParams, ParamBuilder, ParamValues};
use crate::trace::{self, Agreement, IrType, Loc, Trace};
use crate::types::{MapUse, cluster};
use crate::{
    Diagnostic, Error, KernelAttributes, KernelMeta, ParamDesc, ParamKind, ScalarType, SourceLocation, Target,
};

/// A kernel as MLIR, before any lowering.
#[derive(Debug)]
pub struct Traced {
    /// The module, in the form that ARCHITECTURE.md describes.
    pub module: IrModule,
    /// What its attributes say.
    pub meta: KernelMeta,
}

impl Traced {
    /// Reads the description of a traced module from its attributes.
    ///
    /// # Errors
    /// When the module holds no kernel or an attribute is missing or malformed.
    pub fn from_module(module: IrModule) -> Result<Self, Error> {
        let meta = KernelMeta::read(&module)?;
        Ok(Self { module, meta })
    }

    /// The textual form, without locations.
    pub fn text(&self) -> String {
        self.module.text(false)
    }
}

impl KernelMeta {
    /// Reads the attributes of the module's only `gpu.func`.
    fn read(module: &IrModule) -> Result<Self, Error> {
        let mut found: Vec<Result<Self, String>> = Vec::new();
        let mut waits = false;
        module.module().as_operation().walk(WalkOrder::PreOrder, |operation| {
            if operation.name().as_string_ref().as_str() == Ok("gpu.func") {
                found.push(Self::read_function(&operation));
                return WalkResult::Skip;
            }
            WalkResult::Advance
        });
        module.module().as_operation().walk(WalkOrder::PreOrder, |operation| {
            let is_wait = operation.name().as_string_ref().as_str() == Ok("lw.grid_dependency")
                && string(&operation, "kind").is_ok_and(|kind| kind == "wait");
            waits |= is_wait;
            WalkResult::Advance
        });
        match found.len() {
            1 => match found.remove(0) {
                Ok(mut meta) => {
                    let known = alignment::of_arguments(module);
                    // Scalars are one argument, tensors one for the address and two for each dimension.
                    let mut argument = 0;
                    for param in &meta.params {
                        meta.alignments.push(known.get(argument).copied().unwrap_or(1));
                        argument += param.kind.arguments();
                    }
                    Ok(Self { waits_for_previous: waits, ..meta })
                }
                Err(message) => Err(Diagnostic::error(message).into()),
            },
            0 => Err(Error::new("the module holds no kernel (`gpu.func`)")),
            n => Err(Error::new(format!("the module holds {n} kernels; one is expected"))),
        }
    }

    fn read_function(function: &OperationRef<'_, '_>) -> Result<Self, String> {
        let name = string(function, "sym_name")?;
        let wrong = |attribute: &str| format!("kernel `{name}`: attribute `{attribute}` is missing or malformed");
        let target = string(function, "lw.target")?;
        let target = Target::from_name(&target).map_err(|_| format!("kernel `{name}`: unknown target `{target}`"))?;
        let block = dims(function, "known_block_size").ok_or_else(|| wrong("known_block_size"))?;
        let shared_bytes = integer(function, "lw.shared_bytes").ok_or_else(|| wrong("lw.shared_bytes"))?;
        let arguments = function.attribute("arg_attrs").ok().and_then(array_elements).unwrap_or_default();
        let mut params = Vec::new();
        for (index, argument) in arguments.into_iter().enumerate() {
            let dictionary = DictionaryAttribute::try_from(argument).map_err(|_| wrong("arg_attrs"))?;
            params.extend(ParamDesc::read(&dictionary).map_err(|e| format!("kernel `{name}`, argument {index}: {e}"))?);
        }
        let optional = |attribute| integer(function, attribute).and_then(|n| u32::try_from(n).ok());
        Ok(Self {
            target,
            attributes: KernelAttributes {
                block,
                min_blocks: optional("lw.min_blocks"),
                max_regs: optional("lw.max_regs"),
                waves_per_eu: optional("lw.waves_per_eu"),
                cluster: dims(function, "lw.cluster"),
            },
            shared_bytes: u32::try_from(shared_bytes).map_err(|_| wrong("lw.shared_bytes"))?,
            params,
            name,
            alignments: Vec::new(),
            waits_for_previous: false,
        })
    }
}

impl ParamDesc {
    /// A parameter starts at an argument that has `lw.elem`; extents and strides follow without it.
    fn read(dictionary: &DictionaryAttribute<'_>) -> Result<Option<Self>, String> {
        let text = |name: &str| {
            let attribute = dictionary.element_by_name(name)?;
            Some(StringAttribute::try_from(attribute).ok()?.value().to_owned())
        };
        let Some(elem) = text("lw.elem") else { return Ok(None) };
        let elem = ScalarType::from_name(&elem).ok_or_else(|| format!("unknown element type `{elem}`"))?;
        let name = text("lw.name").ok_or("`lw.name` is missing")?;
        let number = |name: &str| {
            let attribute = dictionary.element_by_name(name)?;
            Some(IntegerAttribute::try_from(attribute).ok()?.value())
        };
        let rank = || number("lw.rank").ok_or("`lw.rank` is missing");
        let kind = match text("lw.access") {
            _ if text("lw.role").as_deref() == Some("tensor_map") => {
                let shape = dictionary.element_by_name("lw.box").and_then(|a| DenseI64ArrayAttribute::try_from(a).ok());
                let shape = shape.ok_or("`lw.box` is missing")?;
                let mut box_shape = [0; 5];
                for (index, extent) in box_shape.iter_mut().enumerate().take(shape.len()) {
                    let value = shape.element(index).map_err(|e| e.to_string())?;
                    *extent = u32::try_from(value).map_err(|_| format!("a box of {value} elements"))?;
                }
                let swizzle = number("lw.swizzle").and_then(|n| u32::try_from(n).ok());
                let swizzle = swizzle.ok_or("`lw.swizzle` is missing")?;
                let mutable = text("lw.access").as_deref() == Some("write");
                ParamKind::TensorMap { elem, rank: rank()? as usize, box_shape, swizzle, mutable }
            }
            None => ParamKind::Scalar(elem),
            Some(access) => ParamKind::Tensor { elem, rank: rank()? as usize, mutable: access == "write" },
        };
        Ok(Some(Self { name, kind }))
    }
}

fn string(operation: &OperationRef<'_, '_>, name: &str) -> Result<String, String> {
    let attribute = operation.attribute(name).ok().and_then(|a| StringAttribute::try_from(a).ok());
    attribute.map(|a| a.value().to_owned()).ok_or_else(|| format!("attribute `{name}` is missing on `gpu.func`"))
}

fn integer(operation: &OperationRef<'_, '_>, name: &str) -> Option<i64> {
    let attribute = operation.attribute(name).ok()?;
    attribute.is_integer().then(|| IntegerAttribute::try_from(attribute).ok().map(|a| a.value()))?
}

fn dims(operation: &OperationRef<'_, '_>, name: &str) -> Option<[u32; 3]> {
    let attribute = DenseI32ArrayAttribute::try_from(operation.attribute(name).ok()?).ok()?;
    let mut dims = [0; 3];
    if attribute.len() != 3 {
        return None;
    }
    for (index, dim) in dims.iter_mut().enumerate() {
        *dim = u32::try_from(attribute.element(index).ok()?).ok()?;
    }
    Some(dims)
}

/// Traces a kernel for a chip.
///
/// # Errors
/// What is wrong with the kernel, at the user's lines: misuse of the language, resources that the chip
/// lacks, or what MLIR's verifier finds.
pub fn trace_kernel<K: Kernel>(kernel: &K, target: Target) -> Result<Traced, Error> {
    let loc = kernel.location();
    let mut attributes = kernel.attributes();
    let in_cluster = attributes.cluster.is_some();
    // Clusters of one block are no clusters: kernels may compute the extents.
    attributes.cluster = attributes.cluster.filter(|extents| *extents != [1, 1, 1]);
    let traced = std::panic::catch_unwind(AssertUnwindSafe(|| {
        trace::run(target, || {
            trace::with(|t| {
                t.block = attributes.block;
                t.cluster = attributes.cluster;
                t.in_cluster = in_cluster;
                t.entry_registers = attributes.entry_registers();
            });
            let mut builder = ParamBuilder::default();
            K::Params::declare(K::param_names(), &mut builder);
            let types: Vec<_> = builder.arguments.iter().map(|argument| argument.ty).collect();
            let values = trace::with(|t| t.open_region(&types, loc)).unwrap_or_default();
            // A launch gives them to all threads alike.
            values.iter().for_each(|value| trace::set_agreement(*value, Agreement::EVIDENT));
            let params = K::Params::take(&mut ParamValues::new(values, loc));
            kernel.trace(params);
            builder
        })
    }));
    let (mut trace, builder) = match traced {
        Ok(result) => result?,
        Err(payload) if payload.is::<EndlessRecursion>() => {
            return Err(Diagnostic::error(format!(
                "kernel `{}`: a `#[device] fn` calls itself without end",
                kernel.name()
            ))
            .at(SourceLocation::from_caller(loc))
            .help("recursion must end by a compile-time condition: `if const_expr(depth > 0)`")
            .into());
        }
        // The user's own host code panicked: not ours to swallow.
        Err(payload) => match payload.downcast::<trace::Stopped>() {
            Ok(stopped) => return Err(stopped.0.into()),
            Err(payload) => std::panic::resume_unwind(payload),
        },
    };
    check_resources(kernel.name(), &attributes, target, &mut trace, loc);
    let diagnostics = trace.take_diagnostics();
    if diagnostics.iter().any(|d| d.severity == crate::Severity::Error) {
        return Err(diagnostics.into());
    }
    let module = build_module(kernel.name(), &attributes, target, &mut trace, &builder, loc)?;
    module.verify()?;
    dialect::check_target(&module, target)?;
    Traced::from_module(module)
}

/// Blocks and threads that a multiprocessor holds at once, and registers of a thread (CUDA C++ Programming Guide, "Technical
/// Specifications per Compute Capability": the same for 8.0, 9.0 and 10.0).
const MAX_BLOCKS_AT_ONCE: u32 = 32;
const MAX_THREADS_AT_ONCE: u64 = 2048;
const MAX_REGISTERS: u32 = 255;
/// Waves of an execution unit (CDNA3 ISA, "Wave State": 8 of each SIMD).
const MAX_WAVES: u32 = 8;

/// Why a kernel cannot have a name: it is the name of the function in assembly.
fn unspeakable(name: &str) -> Option<&'static str> {
    if !name.is_ascii() {
        return Some("assemblers know names of ASCII letters, digits and `_` only");
    }
    // PTX ISA, "Identifiers", and what `printf!` and `device_assert!` call.
    ["WARP_SZ", "vprintf", "__assertfail"]
        .contains(&name)
        .then_some("the name belongs to PTX, or to the system calls of CUDA")
}

/// Refuses what the chip can never run (F8).
fn check_resources(name: &str, attributes: &KernelAttributes, target: Target, trace: &mut Trace, loc: Loc) {
    let here = || Some(SourceLocation::from_caller(loc));
    let [x, y, z] = attributes.block;
    let threads = attributes.threads();
    let limits = target.max_block_dims();
    if attributes.block.contains(&0) {
        trace.error(Diagnostic::error(format!("kernel `{name}`: the block {x} x {y} x {z} has no threads")).at(here()));
    } else if threads > u64::from(target.max_block_threads()) {
        let message = format!(
            "kernel `{name}`: a block of {threads} threads ({x} x {y} x {z}); {target} allows {}",
            target.max_block_threads()
        );
        trace.error(Diagnostic::error(message).at(here()).help("make the block smaller and loop over the rest"));
    } else if attributes.block.iter().zip(limits).any(|(&n, limit)| n > limit) {
        let [lx, ly, lz] = limits;
        let message =
            format!("kernel `{name}`: a block of {x} x {y} x {z}; {target} allows {lx} x {ly} x {lz} at most");
        trace.error(Diagnostic::error(message).at(here()));
    }
    let (shared, limit) = (trace.shared.bytes, u64::from(target.max_shared_bytes()));
    if shared > limit {
        let message = format!("kernel `{name}`: {shared} bytes of shared memory; {target} has {limit} a block");
        trace.error(Diagnostic::error(message).at(here()).help("use smaller tiles or fewer stages"));
    }
    if let Some(problem) = unspeakable(name) {
        trace.error(
            Diagnostic::error(format!("kernel `{name}`: {problem}")).at(here()).help("give the function another name"),
        );
    }
    let wishes = [
        ("min_blocks", attributes.min_blocks, MAX_BLOCKS_AT_ONCE.min((MAX_THREADS_AT_ONCE / threads.max(1)) as u32)),
        ("max_regs", attributes.max_regs, MAX_REGISTERS),
        ("waves_per_eu", attributes.waves_per_eu, MAX_WAVES),
    ];
    for (wish, given, limit) in wishes {
        let Some(given) = given.filter(|given| !(1..=limit.max(1)).contains(given)) else { continue };
        let message = format!("kernel `{name}`: `{wish}` is {given}: from 1 to {} can be had", limit.max(1));
        let help = match wish {
            "min_blocks" => {
                format!("a block has {threads} threads, and a multiprocessor {MAX_THREADS_AT_ONCE} at once")
            }
            "max_regs" => "a thread can name 255 registers".to_owned(),
            _ => "an execution unit holds 8 waves".to_owned(),
        };
        trace.error(Diagnostic::error(message).at(here()).help(help));
    }
    if attributes.waves_per_eu.is_some() && !target.is_amd() {
        let message = format!("kernel `{name}`: `waves_per_eu` is a wish for AMD chips; {target} cannot honour it");
        trace.error(Diagnostic::error(message).at(here()).help("on NVIDIA use `min_blocks`"));
    }
    for (wish, given) in [("min_blocks", attributes.min_blocks.is_some()), ("max_regs", attributes.max_regs.is_some())]
    {
        if given && !target.is_nvidia() {
            let message = format!("kernel `{name}`: `{wish}` is a wish for NVIDIA chips; {target} cannot honour it");
            trace.error(Diagnostic::error(message).at(here()).help("on AMD use `waves_per_eu`"));
        }
    }
    if attributes.cluster.is_some() && !cluster::exist_on(target) {
        let message = format!("kernel `{name}`: {target} has no clusters");
        trace.error(Diagnostic::error(message).at(here()).help("clusters need sm_90a or later"));
    }
}

/// The attributes of a tensor map, with the box that its uses have shown.
fn map_attributes(declared: &str, found: Option<&MapUse>) -> String {
    let (shape, swizzle, written) = match found {
        Some(found) => (found.shape.as_slice(), found.swizzle, found.written),
        None => (&[][..], 0, false),
    };
    let shape: Vec<_> = shape.iter().map(usize::to_string).collect();
    let shape = if shape.is_empty() { "array<i64>".to_owned() } else { format!("array<i64: {}>", shape.join(", ")) };
    let access = if written { "write" } else { "read" };
    let rest = declared.trim_start_matches('{');
    format!("{{lw.access = \"{access}\", lw.box = {shape}, lw.swizzle = {swizzle} : i64, {rest}")
}

/// Puts the traced body into `module { gpu.module { gpu.func } }`.
fn build_module(
    name: &str,
    attributes: &KernelAttributes,
    target: Target,
    trace: &mut Trace,
    builder: &ParamBuilder,
    loc: Loc,
) -> Result<IrModule, Error> {
    trace.emit("gpu.return", &[], &[], &[], loc);
    let context = trace.context();
    let location = trace.location(loc);
    let body = trace.close_region().ok_or_else(|| mlir::internal("the body of a kernel was lost", vec![]))?;
    let types: Vec<_> = builder.arguments.iter().map(|argument| argument.ty.mlir(context)).collect();
    let argument_attributes = builder.arguments.iter().enumerate();
    let argument_attributes: Vec<_> = argument_attributes
        .map(|(index, argument)| match argument.ty {
            IrType::TensorMap => map_attributes(&argument.attributes, trace.maps.iter().find(|m| m.argument == index)),
            _ => argument.attributes.clone(),
        })
        .collect();
    let [x, y, z] = attributes.block;
    let mut texts = vec![
        ("sym_name", format!("\"{name}\"")),
        ("gpu.kernel", "unit".to_owned()),
        ("arg_attrs", format!("[{}]", argument_attributes.join(", "))),
        ("known_block_size", format!("array<i32: {x}, {y}, {z}>")),
        ("lw.target", format!("\"{target}\"")),
        ("lw.shared_bytes", format!("{} : i64", trace.shared.bytes)),
    ];
    for (key, value) in [
        ("lw.min_blocks", attributes.min_blocks),
        ("lw.max_regs", attributes.max_regs),
        ("lw.waves_per_eu", attributes.waves_per_eu),
    ] {
        texts.extend(value.map(|value| (key, format!("{value} : i32"))));
    }
    if let Some([x, y, z]) = attributes.cluster {
        texts.push(("lw.cluster", format!("array<i32: {x}, {y}, {z}>")));
    }
    let malformed = || mlir::internal("an attribute of the kernel does not parse", vec![]);
    let mut named = vec![(
        Identifier::new(context, "function_type"),
        TypeAttribute::new(FunctionType::new(context, &types, &[]).into()).into(),
    )];
    for (key, text) in &texts {
        let attribute = Attribute::parse(context, text).ok_or_else(malformed)?;
        named.push((Identifier::new(context, key), attribute));
    }
    let region = Region::new();
    region.append_block(body.block);
    let failed = |_| mlir::internal("the kernel's function cannot be built", vec![]);
    let function = OperationBuilder::new("gpu.func", location)
        .add_attributes(&named)
        .add_regions([region])
        .build()
        .map_err(failed)?;
    let gpu_region = Region::new();
    gpu_region.append_block(Block::new(&[])).append_operation(function);
    let gpu_module = OperationBuilder::new("gpu.module", location)
        .add_attributes(&[(
            Identifier::new(context, "sym_name"),
            Attribute::parse(context, &format!("\"{name}\"")).ok_or_else(malformed)?,
        )])
        .add_regions([gpu_region])
        .build()
        .map_err(failed)?;
    let mut module = Module::new(location);
    module.body().append_operation(gpu_module);
    let unit = Attribute::unit(context);
    module.as_operation_mut().set_attribute("gpu.container_module", unit);
    Ok(IrModule::from_module(trace.shared_context(), module))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mlir::IrContext;

    #[test]
    fn a_parsed_module_describes_itself() {
        let text = r#"
module attributes {gpu.container_module} { gpu.module @scale {
  gpu.func @scale(%a: f32 {lw.name = "a", lw.elem = "f32"},
      %y: !llvm.ptr<1> {lw.name = "y", lw.elem = "f16", lw.access = "write", lw.rank = 1 : i64},
      %y0: i32 {lw.role = "extent"}, %ys: i64 {lw.role = "stride"}) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "sm_80", lw.shared_bytes = 16 : i64} {
    gpu.return
  } } }"#;
        let context = IrContext::new().unwrap();
        let traced = Traced::from_module(IrModule::parse(&context, text).unwrap()).unwrap();
        assert_eq!(traced.meta.attributes.block, [128, 1, 1]);
        assert_eq!(traced.meta.shared_bytes, 16);
        let names: Vec<_> = traced.meta.params.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["a", "y"]);
        assert_eq!(traced.meta.params[1].kind, ParamKind::Tensor { elem: ScalarType::F16, rank: 1, mutable: true });
    }
}
