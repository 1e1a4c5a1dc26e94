//! Typed, checked launches.

#[cfg(feature = "mlir")]
mod observed;
#[cfg(feature = "mlir")]
mod typed;

use std::fmt;
use std::sync::Arc;

use half::{bf16, f16};
use lacewing_core::types::{self, Scalar, Tensor, TensorMut};
use lacewing_core::{KernelMeta, ParamKind, ScalarType, Target};
use smallvec::SmallVec;

use crate::cuda::{CudaKernel, Descriptor, Manner, Value};
use crate::device::{Backend, Device};
use crate::element::{Element, ElementOf};
#[cfg(feature = "mlir")]
use crate::emulator::ArgValue;
use crate::error::Error;
use crate::storage::Storage;
use crate::tensor::{DevTensor, span};
use crate::tensor_map::{Plan, TensorMap, View};

#[cfg(feature = "mlir")]
pub use typed::{KernelExt, Launch, Prepared};

/// A kernel that is ready to run on a device, with its grid checked: a launch needs nothing more than arguments.
#[derive(Clone)]
pub(crate) struct Ready {
    device: Device,
    compiled: Arc<Compiled>,
    grid: [u32; 3],
    manner: Manner,
}

/// A kernel ready to run, with what a launch must know of it.
pub(crate) struct Compiled {
    pub(crate) code: Code,
    pub(crate) meta: KernelMeta,
}

/// What runs.
pub(crate) enum Code {
    /// Bytecode of the emulator.
    #[cfg(feature = "mlir")]
    Emulated(Box<crate::emulator::Program>),
    /// A function that the driver has loaded.
    Cuda(CudaKernel),
}

/// What is known of a launch: only the emulator knows anything.
#[cfg(feature = "mlir")]
pub(crate) type Ran = crate::emulator::LaunchStats;
#[cfg(not(feature = "mlir"))]
#[derive(Default)]
pub(crate) struct Ran {}

impl Ready {
    /// Checks grid, block and manner.
    pub(crate) fn new(
        device: &Device,
        compiled: Arc<Compiled>,
        grid: [usize; 3],
        manner: Manner,
    ) -> Result<Self, Error> {
        let meta = &compiled.meta;
        let refuse = |reason: String| Error::Launch { kernel: meta.name.clone(), reason };
        let grid = check_grid(grid).map_err(refuse)?;
        check_block(meta, device.target()).map_err(refuse)?;
        check_cluster(meta, grid).map_err(refuse)?;
        if manner.overlapping && !meta.waits_for_previous {
            return Err(refuse(
                "it would overlap the launch before it, and never calls `wait_for_previous_grid()`".to_owned(),
            ));
        }
        let blocks: u64 = grid.iter().map(|blocks| u64::from(*blocks)).product();
        if manner.cooperative && blocks > 1 {
            let room = match (&compiled.code, device.gpu()) {
                (Code::Cuda(kernel), Some(gpu)) => kernel.resident_blocks(gpu)?,
                _ => {
                    return Err(refuse(format!(
                        "{device} does not run all blocks at once, as a cooperative launch needs; a grid of one block can \
                         be tried there"
                    )));
                }
            };
            if blocks > room {
                return Err(refuse(format!(
                    "its grid has {blocks} blocks, and {device} holds {room} of them at once, as a cooperative launch needs"
                )));
            }
        }
        // Code for chips before sm_90 has no way to wait: there a launch never overlaps.
        let overlapping = manner.overlapping && meta.target.generation() >= 90;
        Ok(Self { device: device.clone(), compiled, grid, manner: Manner { overlapping, ..manner } })
    }

    /// Checks the arguments against the kernel and runs it. They are some kilobytes, which are not moved.
    pub(crate) fn launch(&self, arguments: &mut Arguments) -> Result<Ran, Error> {
        let Ready { device, compiled, grid, manner } = self;
        let refuse = |reason: String| Error::Launch { kernel: compiled.meta.name.clone(), reason };
        arguments.check(&compiled.meta, device).map_err(refuse)?;
        if grid.contains(&0) {
            return Ok(Ran::default());
        }
        #[cfg(feature = "mlir")]
        if let Some(recorder) = device.recorder() {
            recorder.note(self, arguments)?;
        }
        match (&compiled.code, device.backend()) {
            #[cfg(feature = "mlir")]
            (Code::Emulated(program), _) => {
                let views = if device.is_recording() { arguments.views(&compiled.meta, program) } else { Vec::new() };
                device.emulate(program, *grid, std::mem::take(arguments).for_emulator(), views)
            }
            (Code::Cuda(kernel), Backend::Cuda(gpu)) => {
                arguments.encode().map_err(refuse)?;
                device.submit(gpu, kernel, *grid, *manner, arguments.for_gpu())?;
                Ok(Ran::default())
            }
            #[cfg(feature = "mlir")]
            (Code::Cuda(_), Backend::Emulator) => {
                Err(refuse("it was compiled for another device (a fault in Lacewing)".to_owned()))
            }
        }
    }
}

#[cfg(feature = "mlir")]
impl Ready {
    /// The same launch on another handle of its device.
    pub(crate) fn on(&self, device: &Device) -> Self {
        Self { device: device.clone(), ..self.clone() }
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn kernel(&self) -> &str {
        &self.compiled.meta.name
    }
}

impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} on {}", self.compiled.meta.name, self.grid, self.device)
    }
}

/// Largest grid in x, y and z: CUDA C++ Programming Guide, "Technical Specifications per Compute
/// Capability". AMD allows more; the same limits keep kernels portable.
const GRID_LIMITS: [u32; 3] = [i32::MAX as u32, 65535, 65535];

fn check_grid(grid: [usize; 3]) -> Result<[u32; 3], String> {
    let mut checked = [0; 3];
    for (((blocks, limit), axis), out) in grid.into_iter().zip(GRID_LIMITS).zip(["x", "y", "z"]).zip(&mut checked) {
        match u32::try_from(blocks) {
            Ok(blocks) if blocks <= limit => *out = blocks,
            _ => return Err(format!("the grid has {blocks} blocks in {axis}, and at most {limit} are possible")),
        }
    }
    Ok(checked)
}

fn check_block(meta: &KernelMeta, target: Target) -> Result<(), String> {
    let block = meta.attributes.block;
    let threads = meta.attributes.threads();
    if threads == 0 {
        return Err(format!("its block {block:?} has no thread"));
    }
    if threads > u64::from(target.max_block_threads()) {
        return Err(format!(
            "its block {block:?} has {threads} threads, and {target} allows {}",
            target.max_block_threads()
        ));
    }
    if block.iter().zip(target.max_block_dims()).any(|(have, limit)| *have > limit) {
        return Err(format!("its block {block:?} is longer than {target} allows, {:?}", target.max_block_dims()));
    }
    if meta.shared_bytes > target.max_shared_bytes() {
        return Err(format!(
            "it needs {} bytes of shared memory, and {target} has {} for a block",
            meta.shared_bytes,
            target.max_shared_bytes()
        ));
    }
    Ok(())
}

/// A grid is made of whole clusters (CUDA C++ Programming Guide, "Thread Block Clusters").
fn check_cluster(meta: &KernelMeta, grid: [u32; 3]) -> Result<(), String> {
    let Some(cluster) = meta.attributes.cluster else { return Ok(()) };
    if grid.iter().zip(cluster).all(|(blocks, cluster)| cluster > 0 && blocks.is_multiple_of(cluster)) {
        return Ok(());
    }
    let ([x, y, z], [cx, cy, cz]) = (grid, cluster);
    Err(format!("its grid of {x} x {y} x {z} blocks is not made of whole clusters of {cx} x {cy} x {cz}"))
}

/// The arguments of a launch, on their way to the device.
#[derive(Clone, Default)]
pub struct Arguments {
    /// A kernel has sixteen parameters at most.
    list: SmallVec<[Argument; 16]>,
}

/// One number for each dimension. Tensors of more than six dimensions are rare, and cost an allocation.
type Dims<T> = SmallVec<[T; 6]>;

#[derive(Clone)]
#[expect(clippy::large_enum_variant, reason = "a box would allocate memory in every launch")]
enum Argument {
    /// A value's bits, zero-extended, and its size in bytes.
    Scalar {
        bits: u64,
        #[cfg_attr(not(feature = "mlir"), expect(dead_code, reason = "the emulator reads it"))]
        bytes: u8,
    },
    Tensor(TensorArgument),
    Map(MapArgument),
}

/// A tensor for a tensor map, with what its maker thinks the kernel copies.
#[derive(Clone)]
struct MapArgument {
    tensor: TensorArgument,
    scalar: ScalarType,
    /// Box, innermost dimension first, and bytes of the swizzle.
    given: Option<(SmallVec<[u32; 5]>, u32)>,
    /// What the driver encodes; `None` until the launch is checked, and for maps that the kernel never uses.
    plan: Option<Plan>,
    descriptor: Descriptor,
}

#[derive(Clone)]
struct TensorArgument {
    device: Device,
    storage: Storage,
    offset: usize,
    extents: Dims<usize>,
    strides: Dims<i64>,
    element_bytes: usize,
    mutable: bool,
}

impl Arguments {
    fn scalar(&mut self, value: impl Element) {
        self.list.push(Argument::Scalar { bits: value.bits(), bytes: size_of_val(&value) as u8 });
    }

    fn tensor<T: Element, const R: usize>(&mut self, tensor: &DevTensor<T, R>, mutable: bool) {
        self.list.push(Argument::Tensor(TensorArgument::new(tensor, mutable)));
    }

    fn map<T: Element, const R: usize>(
        &mut self,
        tensor: &DevTensor<T, R>,
        given: Option<(SmallVec<[u32; 5]>, u32)>,
        mutable: bool,
    ) {
        let tensor = TensorArgument::new(tensor, mutable);
        let (scalar, plan, descriptor) = (T::TYPE, None, Descriptor::default());
        self.list.push(Argument::Map(MapArgument { tensor, scalar, given, plan, descriptor }));
    }

    /// The memory of every tensor.
    #[cfg(feature = "mlir")]
    pub(crate) fn storages(&self) -> impl Iterator<Item = &Storage> {
        self.tensors().map(|tensor| &tensor.storage)
    }

    /// The memory of every tensor that is written.
    #[cfg(feature = "mlir")]
    pub(crate) fn written(&self) -> impl Iterator<Item = &Storage> {
        self.tensors().filter(|tensor| tensor.mutable).map(|tensor| &tensor.storage)
    }

    #[cfg(feature = "mlir")]
    fn tensors(&self) -> impl Iterator<Item = &TensorArgument> {
        self.list.iter().filter_map(|argument| match argument {
            Argument::Tensor(tensor) | Argument::Map(MapArgument { tensor, .. }) => Some(tensor),
            Argument::Scalar { .. } => None,
        })
    }

    /// The same arguments in other memory.
    #[cfg(feature = "mlir")]
    pub(crate) fn with_storages(&self, instead: impl Fn(&Storage) -> Storage) -> Self {
        let mut other = self.clone();
        for argument in &mut other.list {
            if let Argument::Tensor(tensor) | Argument::Map(MapArgument { tensor, .. }) = argument {
                tensor.storage = instead(&tensor.storage);
            }
        }
        other
    }

    fn check(&mut self, meta: &KernelMeta, device: &Device) -> Result<(), String> {
        for (argument, parameter) in self.list.iter_mut().zip(&meta.params) {
            if let Argument::Map(map) = argument {
                map.fit(&parameter.kind).map_err(|reason| format!("tensor map `{}`: {reason}", parameter.name))?;
            }
        }
        // The emulator names the access itself.
        if let Some(gpu) = device.gpu() {
            self.check_alignment(meta).map_err(|reason| format!("{reason} ({gpu} faults on such an access)"))?;
        }
        let tensors: SmallVec<[(&str, &TensorArgument); 16]> = self
            .list
            .iter()
            .zip(&meta.params)
            .filter_map(|(argument, parameter)| match argument {
                Argument::Tensor(tensor) => Some((parameter.name.as_str(), tensor)),
                Argument::Map(map) => Some((parameter.name.as_str(), &map.tensor)),
                Argument::Scalar { .. } => None,
            })
            .collect();
        for (index, (name, tensor)) in tensors.iter().enumerate() {
            if !tensor.device.same(device) {
                return Err(format!("tensor `{name}` lies on another device than the one it is launched on"));
            }
            if let Some(extent) = tensor.extents.iter().find(|extent| i32::try_from(**extent).is_err()) {
                return Err(format!(
                    "tensor `{name}` has an extent of {extent}, and a kernel's extents are 32 bits wide (at most {})",
                    i32::MAX
                ));
            }
            if !tensor.mutable {
                continue;
            }
            if tensor.overlaps_itself() {
                return Err(format!(
                    "tensor `{name}` is written, but its view has one element at several indices (extents {:?}, \
                     strides {:?})",
                    tensor.extents, tensor.strides
                ));
            }
            for (other_index, (other_name, other)) in tensors.iter().enumerate() {
                if other_index != index && tensor.overlaps(other) {
                    return Err(format!(
                        "tensor `{name}` is written and shares memory with `{other_name}`; give it memory of its own"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether each tensor starts where the kernel's widest accesses to it can start. Buffers are aligned to 256 bytes.
    fn check_alignment(&self, meta: &KernelMeta) -> Result<(), String> {
        for ((argument, parameter), align) in self.list.iter().zip(&meta.params).zip(&meta.alignments) {
            let Argument::Tensor(tensor) = argument else { continue };
            let (offset, name) = (tensor.byte_offset(), &parameter.name);
            if !tensor.extents.contains(&0) && !offset.is_multiple_of(*align as usize) {
                return Err(format!(
                    "tensor `{name}` starts {offset} bytes into its buffer, and the kernel moves vectors of {align} bytes \
                     from its start on; copy it to the start of a tensor of its own"
                ));
            }
        }
        Ok(())
    }

    /// Pointer, extents and strides of each tensor in a row, as the traced function takes them.
    #[cfg(feature = "mlir")]
    fn for_emulator(self) -> Vec<ArgValue> {
        let mut flat = Vec::new();
        for argument in self.list {
            match argument {
                Argument::Scalar { bits, bytes } => flat.push(ArgValue::Scalar { bits, bytes }),
                Argument::Tensor(tensor) => {
                    // That the tensor lies on the device of the launch has been checked.
                    if let Storage::Emulated(buffer) = &tensor.storage {
                        let byte_offset = tensor.byte_offset() as u64;
                        flat.push(ArgValue::Buffer { buffer: buffer.clone(), byte_offset });
                    }
                    flat.extend(tensor.extents.iter().map(|extent| ArgValue::from(*extent as i32)));
                    flat.extend(tensor.canonical_strides().map(ArgValue::from));
                }
                Argument::Map(map) => flat.extend(map.for_emulator().map(|map| ArgValue::Map(Box::new(map)))),
            }
        }
        flat
    }

    /// Encodes the tensor maps for a GPU.
    fn encode(&mut self) -> Result<(), String> {
        for argument in &mut self.list {
            if let Argument::Map(MapArgument { tensor, plan: Some(plan), descriptor, .. }) = argument
                && let Some(memory) = tensor.storage.cuda()
            {
                *descriptor = crate::cuda::encode(memory, plan)?;
            }
        }
        Ok(())
    }

    /// The same for a GPU. Nothing is stored: a launch allocates no memory.
    fn for_gpu(&self) -> impl Iterator<Item = Value<'_>> + Clone {
        self.list.iter().flat_map(|argument| {
            let (single, tensor) = match argument {
                Argument::Scalar { bits, .. } => (Some(Value::Bits(*bits)), None),
                Argument::Tensor(tensor) => (None, Some(tensor)),
                Argument::Map(map) => {
                    let (descriptor, writable) = (&map.descriptor, map.tensor.mutable);
                    (map.tensor.storage.cuda().map(|memory| Value::Map { memory, descriptor, writable }), None)
                }
            };
            single.into_iter().chain(tensor.into_iter().flat_map(TensorArgument::for_gpu))
        })
    }
}

impl MapArgument {
    /// Checks the tensor, and the box that was given, against what the kernel copies.
    fn fit(&mut self, kind: &ParamKind) -> Result<(), String> {
        let ParamKind::TensorMap { box_shape, swizzle, mutable, .. } = kind else {
            return Err("the kernel takes none (a fault in Lacewing)".to_owned());
        };
        let wanted = box_shape.get(..self.tensor.extents.len()).unwrap_or_default();
        if *mutable && !self.tensor.mutable {
            return Err("the kernel stores through it: give `&mut tensor`, or `TensorMap::tiled_mut`".to_owned());
        }
        self.tensor.mutable = *mutable;
        // A kernel that never uses the map has no box.
        if wanted.first().is_none_or(|&elements| elements == 0) {
            return Ok(());
        }
        if let Some((given, given_swizzle)) = &self.given {
            if given.as_slice() != wanted {
                return Err(format!("it was made for boxes of {given:?}, and the kernel copies boxes of {wanted:?}"));
            }
            if given_swizzle != swizzle {
                return Err(format!(
                    "it was made for a swizzle of {given_swizzle} bytes, and the kernel's tiles have {swizzle}"
                ));
            }
        }
        let TensorArgument { offset, extents, strides, .. } = &self.tensor;
        let view = View { scalar: self.scalar, offset: *offset, extents, strides };
        self.plan = Some(Plan::new(&view, wanted, *swizzle)?);
        Ok(())
    }

    #[cfg(feature = "mlir")]
    fn for_emulator(&self) -> Option<crate::emulator::TensorMap> {
        // That the tensor lies on the device of the launch has been checked.
        let Storage::Emulated(buffer) = &self.tensor.storage else { return None };
        let plan = self.plan.as_ref();
        Some(crate::emulator::TensorMap {
            buffer: buffer.clone(),
            byte_offset: plan.map_or(0, |plan| plan.byte_offset),
            element_bytes: self.scalar.bytes() as u32,
            extents: plan.map(|plan| plan.extents.to_vec()).unwrap_or_default(),
            strides: plan.map(|plan| plan.strides.to_vec()).unwrap_or_default(),
            box_shape: plan.map(|plan| plan.box_shape.to_vec()).unwrap_or_default(),
            swizzle: plan.map_or(0, |plan| plan.swizzle),
        })
    }
}

impl TensorArgument {
    fn new<T: Element, const R: usize>(tensor: &DevTensor<T, R>, mutable: bool) -> Self {
        TensorArgument {
            device: tensor.device.clone(),
            storage: tensor.storage.clone(),
            offset: tensor.offset,
            extents: Dims::from_slice(&tensor.extents),
            strides: Dims::from_slice(&tensor.strides),
            element_bytes: T::TYPE.bytes(),
            mutable,
        }
    }

    /// Address, extents and strides.
    fn for_gpu(&self) -> impl Iterator<Item = Value<'_>> + Clone {
        let pointer = match &self.storage {
            Storage::Cuda(memory) => {
                let (byte_offset, writable) = (self.byte_offset(), self.mutable);
                Some(Value::Pointer { memory, byte_offset, writable })
            }
            // That the tensor lies on the device of the launch has been checked.
            #[cfg(feature = "mlir")]
            Storage::Emulated(_) => None,
        };
        let extents = self.extents.iter().map(|extent| Value::Bits(*extent as u64));
        pointer.into_iter().chain(extents).chain(self.canonical_strides().map(|stride| Value::Bits(stride as u64)))
    }

    /// Where its first element is.
    fn byte_offset(&self) -> usize {
        self.offset * self.element_bytes
    }

    /// The strides, with 0 for dimensions of at most one element: no index but 0 is valid there, and
    /// an odd stride that is never used must not decide about alignment. A last dimension of one
    /// element has stride 1, as any contiguous one.
    fn canonical_strides(&self) -> impl Iterator<Item = i64> + Clone + '_ {
        let last = self.extents.len().saturating_sub(1);
        self.extents
            .iter()
            .zip(&self.strides)
            .enumerate()
            .map(move |(dimension, (extent, stride))| if *extent > 1 { *stride } else { i64::from(dimension == last) })
    }

    /// Whether two indices may mean one element. With the dimensions sorted by stride, each must
    /// step over all that the smaller ones reach; a view that fails this and has no overlap is too
    /// rare to be worth an exact test.
    fn overlaps_itself(&self) -> bool {
        if self.extents.contains(&0) {
            return false;
        }
        let mut steps: Dims<(u64, usize)> = self
            .strides
            .iter()
            .map(|stride| stride.unsigned_abs())
            .zip(self.extents.iter().copied())
            .filter(|(_, extent)| *extent > 1)
            .collect();
        steps.sort_unstable();
        let mut reach = 0u128;
        for (step, extent) in steps {
            if u128::from(step) <= reach {
                return true;
            }
            reach += u128::from(step) * (extent as u128 - 1);
        }
        false
    }

    /// Whether the byte ranges of two tensors meet.
    fn overlaps(&self, other: &TensorArgument) -> bool {
        if !self.storage.same(&other.storage) {
            return false;
        }
        match (self.byte_span(), other.byte_span()) {
            (Some(a), Some(b)) => a.0 < b.1 && b.0 < a.1,
            _ => false,
        }
    }

    fn byte_span(&self) -> Option<(i128, i128)> {
        let (low, high) = span(self.offset, &self.extents, &self.strides)?;
        let size = self.element_bytes as i128;
        Some((low * size, (high + 1) * size))
    }
}

/// A host value that can be given for the kernel parameter `P`: a host number for a scalar (`f32`
/// for `F32`), `&DevTensor` for `Tensor`, `&mut DevTensor` for `TensorMut`, either or a [`&TensorMap`](TensorMap) for
/// `TensorMap`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be given for the kernel parameter `{P}`",
    label = "this launch gives `{Self}` where the kernel takes `{P}`",
    note = "a scalar takes its host type (`F32` takes `f32`), `Tensor<T, RANK>` takes `&DevTensor` of that element \
            type and rank, `TensorMut` takes `&mut DevTensor`, and `TensorMap` takes either or a `&TensorMap`; nothing \
            is converted"
)]
pub trait Arg<P> {
    /// Adds the value to a launch.
    fn pass(self, arguments: &mut Arguments);
}

macro_rules! scalars {
    ($($host:ty => $name:ident),* $(,)?) => {$(
        impl Arg<types::$name> for $host {
            fn pass(self, arguments: &mut Arguments) {
                arguments.scalar(self);
            }
        }
    )*};
}

scalars! {
    bool => Bool, i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    f16 => F16, bf16 => BF16, f32 => F32, f64 => F64, float8::F8E4M3 => F8E4M3, float8::F8E5M2 => F8E5M2,
}

impl<T: Scalar, H: Arg<T>> Arg<types::Uniform<T>> for H {
    fn pass(self, arguments: &mut Arguments) {
        <H as Arg<T>>::pass(self, arguments);
    }
}

/// A position is a signed number of 64 bits in the kernel, so lengths that a host can have are the same there.
impl Arg<types::Index> for usize {
    fn pass(self, arguments: &mut Arguments) {
        arguments.scalar(self as i64);
    }
}

impl<T: Scalar, H: ElementOf<T>, const RANK: usize> Arg<Tensor<T, RANK>> for &DevTensor<H, RANK> {
    fn pass(self, arguments: &mut Arguments) {
        arguments.tensor(self, false);
    }
}

impl<T: Scalar, H: ElementOf<T>, const RANK: usize> Arg<TensorMut<T, RANK>> for &mut DevTensor<H, RANK> {
    fn pass(self, arguments: &mut Arguments) {
        arguments.tensor(self, true);
    }
}

impl<T: Scalar, H: ElementOf<T>, const RANK: usize> Arg<types::TensorMap<T, RANK>> for &DevTensor<H, RANK> {
    fn pass(self, arguments: &mut Arguments) {
        arguments.map(self, None, false);
    }
}

impl<T: Scalar, H: ElementOf<T>, const RANK: usize> Arg<types::TensorMap<T, RANK>> for &mut DevTensor<H, RANK> {
    fn pass(self, arguments: &mut Arguments) {
        arguments.map(self, None, true);
    }
}

impl<T: Scalar, H: ElementOf<T>, const RANK: usize> Arg<types::TensorMap<T, RANK>> for &TensorMap<H, RANK> {
    fn pass(self, arguments: &mut Arguments) {
        let given = (SmallVec::from_slice(&self.box_shape), self.swizzle.bytes());
        arguments.map(&self.tensor, Some(given), self.mutable);
    }
}

/// A tuple of arguments for the parameters `P` (a tuple of as many).
#[diagnostic::on_unimplemented(
    message = "these arguments are not those of the kernel",
    label = "the kernel takes `{P}`",
    note = "a launch takes a tuple with one argument for each run-time parameter, in order; `(x,)` for a single one"
)]
pub trait Args<P> {
    /// Adds the values to a launch.
    fn pass(self, arguments: &mut Arguments);
}

macro_rules! tuples {
    ($(($($arg:ident $param:ident),*))*) => {$(
        impl<$($arg: Arg<$param>, $param),*> Args<($($param,)*)> for ($($arg,)*) {
            #[allow(non_snake_case, unused_variables, reason = "one name serves as type and variable; () uses neither")]
            fn pass(self, arguments: &mut Arguments) {
                let ($($arg,)*) = self;
                $($arg.pass(arguments);)*
            }
        }
    )*};
}

tuples! {
    ()
    (A0 P0)
    (A0 P0, A1 P1)
    (A0 P0, A1 P1, A2 P2)
    (A0 P0, A1 P1, A2 P2, A3 P3)
    (A0 P0, A1 P1, A2 P2, A3 P3, A4 P4)
    (A0 P0, A1 P1, A2 P2, A3 P3, A4 P4, A5 P5)
    (A0 P0, A1 P1, A2 P2, A3 P3, A4 P4, A5 P5, A6 P6)
    (A0 P0, A1 P1, A2 P2, A3 P3, A4 P4, A5 P5, A6 P6, A7 P7)
    (A0 P0, A1 P1, A2 P2, A3 P3, A4 P4, A5 P5, A6 P6, A7 P7, A8 P8)
    (A0 P0, A1 P1, A2 P2, A3 P3, A4 P4, A5 P5, A6 P6, A7 P7, A8 P8, A9 P9)
    (A0 P0, A1 P1, A2 P2, A3 P3, A4 P4, A5 P5, A6 P6, A7 P7, A8 P8, A9 P9, A10 P10)
    (A0 P0, A1 P1, A2 P2, A3 P3, A4 P4, A5 P5, A6 P6, A7 P7, A8 P8, A9 P9, A10 P10, A11 P11)
    (A0 P0, A1 P1, A2 P2, A3 P3, A4 P4, A5 P5, A6 P6, A7 P7, A8 P8, A9 P9, A10 P10, A11 P11, A12 P12)
    (A0 P0, A1 P1, A2 P2, A3 P3, A4 P4, A5 P5, A6 P6, A7 P7, A8 P8, A9 P9, A10 P10, A11 P11, A12 P12, A13 P13)
    (A0 P0, A1 P1, A2 P2, A3 P3, A4 P4, A5 P5, A6 P6, A7 P7, A8 P8, A9 P9, A10 P10, A11 P11, A12 P12, A13 P13,
     A14 P14)
    (A0 P0, A1 P1, A2 P2, A3 P3, A4 P4, A5 P5, A6 P6, A7 P7, A8 P8, A9 P9, A10 P10, A11 P11, A12 P12, A13 P13,
     A14 P14, A15 P15)
}

#[cfg(test)]
#[cfg(feature = "mlir")]
mod tests {
    use lacewing_core::{KernelAttributes, ParamDesc, ParamKind, ScalarType};

    use super::*;
    use crate::emulator::Buffer;

    fn argument(extents: &[usize], strides: &[i64], offset: usize, mutable: bool) -> TensorArgument {
        let device = Device::emulator(Target::SM_80).unwrap();
        TensorArgument {
            device,
            storage: Storage::Emulated(Buffer::zeroed(4096)),
            offset,
            extents: Dims::from_slice(extents),
            strides: Dims::from_slice(strides),
            element_bytes: 4,
            mutable,
        }
    }

    /// A kernel of so many tensors, which it reads by vectors of so many bytes.
    fn meta(tensors: usize, align: u32) -> KernelMeta {
        let kind = ParamKind::Tensor { elem: ScalarType::F32, rank: 1, mutable: false };
        KernelMeta {
            name: "k".to_owned(),
            target: Target::SM_80,
            attributes: KernelAttributes {
                block: [32, 1, 1],
                min_blocks: None,
                max_regs: None,
                waves_per_eu: None,
                cluster: Some([2, 1, 1]),
            },
            shared_bytes: 0,
            params: (0..tensors).map(|_| ParamDesc { name: "x".to_owned(), kind }).collect(),
            alignments: vec![align; tensors],
            waits_for_previous: false,
        }
    }

    #[test]
    fn grids_have_limits() {
        assert_eq!(check_grid([7, 65535, 0]), Ok([7, 65535, 0]));
        assert!(check_grid([1, 65536, 1]).unwrap_err().contains("65536 blocks in y, and at most 65535"));
        assert!(check_grid([1 << 31, 1, 1]).unwrap_err().contains("in x"));
        assert!(check_grid([1, 1, usize::MAX]).unwrap_err().contains("in z"));
    }

    #[test]
    fn arguments_are_gathered_and_checked_without_memory() {
        let device = Device::emulator(Target::SM_80).unwrap();
        let tensors: Vec<DevTensor<f32, 4>> =
            (0..14).map(|_| device.tensor_zeros::<f32, 4>([2, 3, 4, 5]).unwrap()).collect();
        let meta = meta(15, 16);
        let mut bits = 0;
        let counted = allocation_counter::measure(|| {
            let mut arguments = Arguments::default();
            arguments.scalar(1.0f32);
            tensors.iter().for_each(|tensor| arguments.tensor(tensor, true));
            arguments.check(&meta, &device).unwrap();
            bits = arguments.for_gpu().count();
        });
        assert_eq!((counted.count_total, bits), (0, 1 + 14 * 8));
    }

    #[test]
    fn a_tensor_starts_where_its_vectors_can() {
        let check = |align, offset, extent: usize| {
            let list = [Argument::Tensor(argument(&[extent], &[1], offset, false))].into_iter().collect();
            Arguments { list }.check_alignment(&meta(1, align))
        };
        assert_eq!(check(16, 4, 8), Ok(()));
        assert_eq!(check(4, 3, 8), Ok(()));
        assert_eq!(check(16, 3, 0), Ok(()));
        assert_eq!(
            check(16, 3, 8).unwrap_err(),
            "tensor `x` starts 12 bytes into its buffer, and the kernel moves vectors of 16 bytes from its start on; copy \
             it to the start of a tensor of its own"
        );

        assert_eq!(check_cluster(&meta(1, 4), [4, 3, 1]), Ok(()));
        assert_eq!(
            check_cluster(&meta(1, 4), [5, 3, 1]).unwrap_err(),
            "its grid of 5 x 3 x 1 blocks is not made of whole clusters of 2 x 1 x 1"
        );
    }

    #[test]
    fn a_written_view_has_one_index_for_an_element() {
        assert!(!argument(&[2, 3], &[3, 1], 0, true).overlaps_itself());
        assert!(!argument(&[3, 2], &[1, 3], 0, true).overlaps_itself());
        assert!(!argument(&[3, 2], &[-1, 3], 2, true).overlaps_itself());
        assert!(argument(&[2, 3], &[0, 1], 0, true).overlaps_itself());
        assert!(argument(&[2, 3], &[2, 1], 0, true).overlaps_itself());
        assert!(!argument(&[1, 3], &[0, 1], 0, true).overlaps_itself());
        assert!(!argument(&[0, 3], &[0, 0], 0, true).overlaps_itself());
    }

    #[test]
    fn byte_ranges_in_one_buffer_meet_or_not() {
        let whole = argument(&[8], &[1], 0, true);
        let share = |offset, extent, stride| TensorArgument {
            storage: whole.storage.clone(),
            ..argument(&[extent], &[stride], offset, false)
        };
        assert!(whole.overlaps(&share(7, 1, 1)));
        assert!(!whole.overlaps(&share(8, 4, 1)));
        assert!(whole.overlaps(&share(9, 3, -1)));
        assert!(!whole.overlaps(&share(0, 0, 1)));
        assert!(!whole.overlaps(&argument(&[8], &[1], 0, false)));
    }

    #[test]
    fn strides_that_are_never_used_are_canonical() {
        let strides: Vec<i64> = argument(&[1, 2, 1], &[77, 3, 5], 0, false).canonical_strides().collect();
        assert_eq!(strides, [0, 3, 1]);
    }
}
