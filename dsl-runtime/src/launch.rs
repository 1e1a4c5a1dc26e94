//! Typed, checked launches.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use half::{bf16, f16};
use lacewing_core::types::{self, Scalar, Tensor, TensorMut};
use lacewing_core::{KernelMeta, Target, Traced, rt, trace_kernel};
use smallvec::SmallVec;

use crate::cache::{self, Code, Compiled};
use crate::cuda::Value;
use crate::device::{Backend, Device};
use crate::element::ElementOf;
use crate::emulator::{ArgValue, LaunchStats};
use crate::error::Error;
use crate::storage::Storage;
use crate::tensor::{DevTensor, span};

/// What every kernel can do on the host.
///
/// ```ignore
/// axpy::<F32>::new(256).grid([n.div_ceil(256), 1, 1]).launch(&dev, (2.0f32, &x, &mut y))?;
/// ```
pub trait KernelExt: rt::Kernel {
    /// A launch of the kernel on a grid of blocks (x, y, z).
    fn grid(&self, grid: [usize; 3]) -> Launch<Self> {
        Launch { kernel: self.clone(), grid }
    }

    /// Traces the kernel for a target.
    ///
    /// # Errors
    /// When the trace or the verifier refuses it.
    fn traced(&self, target: impl Borrow<Target>) -> Result<Traced, Error> {
        Ok(trace_kernel(self, *target.borrow())?)
    }

    /// The kernel's traced MLIR as text.
    ///
    /// # Errors
    /// When the trace or the verifier refuses the kernel.
    fn mlir(&self, target: impl Borrow<Target>) -> Result<String, Error> {
        Ok(self.traced(target)?.text())
    }
}

impl<K: rt::Kernel> KernelExt for K {}

/// A launch that has not happened yet.
#[must_use = "nothing runs until `.launch(&device, arguments)` is called"]
#[derive(Clone, Debug)]
pub struct Launch<K> {
    kernel: K,
    grid: [usize; 3],
}

impl<K: rt::Kernel> Launch<K> {
    /// Checks the arguments against the kernel and runs it. A grid without blocks does nothing. On a GPU the kernel
    /// is put on the device's stream, and the host goes on.
    ///
    /// # Errors
    /// [`Error::Kernel`] when the kernel does not compile, [`Error::Launch`] when grid, block,
    /// shared memory or arguments break a rule of the device, [`Error::Report`] when a check of the
    /// emulator ends the run, [`Error::Fault`] when this or an earlier kernel has failed on the GPU.
    pub fn launch<A: Args<K::Params>>(&self, device: &Device, args: A) -> Result<LaunchStats, Error> {
        self.prepare(device)?.launch(args)
    }

    /// Compiles the kernel for a device, unless that has been done, and checks grid and block: what is left is cheap
    /// and can be done many times.
    ///
    /// # Errors
    /// [`Error::Kernel`] when the kernel does not compile, [`Error::Launch`] when grid, block or shared memory break
    /// a rule of the device.
    pub fn prepare(&self, device: &Device) -> Result<Prepared<K>, Error> {
        let compiled = cache::compiled(&self.kernel, device)?;
        let refuse = |reason: String| Error::Launch { kernel: compiled.meta.name.clone(), reason };
        let grid = check_grid(self.grid).map_err(refuse)?;
        check_block(&compiled.meta, device.target()).map_err(refuse)?;
        Ok(Prepared { device: device.clone(), compiled, grid, kernel: PhantomData })
    }
}

/// A launch that needs nothing more than its arguments, for launching one kernel many times: the kernel is looked up
/// once, and a launch allocates no memory.
#[must_use = "nothing runs until `.launch(arguments)` is called"]
pub struct Prepared<K> {
    device: Device,
    compiled: Arc<Compiled>,
    grid: [u32; 3],
    kernel: PhantomData<fn() -> K>,
}

impl<K: rt::Kernel> Prepared<K> {
    /// Checks the arguments against the kernel and runs it, as [`Launch::launch`].
    ///
    /// # Errors
    /// [`Error::Launch`] when the arguments break a rule of the device, [`Error::Report`] when a check of the emulator
    /// ends the run, [`Error::Fault`] when this or an earlier kernel has failed on the GPU.
    pub fn launch<A: Args<K::Params>>(&self, args: A) -> Result<LaunchStats, Error> {
        let mut arguments = Arguments::default();
        args.pass(&mut arguments);
        let Prepared { device, compiled, grid, .. } = self;
        let refuse = |reason: String| Error::Launch { kernel: compiled.meta.name.clone(), reason };
        arguments.check(&compiled.meta, device).map_err(refuse)?;
        if grid.contains(&0) {
            return Ok(LaunchStats::default());
        }
        match (&compiled.code, device.backend()) {
            (Code::Emulated(program), _) => device.emulate(program, *grid, arguments.for_emulator()),
            (Code::Cuda(kernel), Backend::Cuda(gpu)) => device.submit(gpu, kernel, *grid, &arguments.for_gpu()),
            (Code::Cuda(_), Backend::Emulator) => {
                Err(refuse("it was compiled for another device (a fault in Lacewing)".to_owned()))
            }
        }
    }
}

impl<K> Clone for Prepared<K> {
    fn clone(&self) -> Self {
        let Prepared { device, compiled, grid, .. } = self;
        Prepared { device: device.clone(), compiled: Arc::clone(compiled), grid: *grid, kernel: PhantomData }
    }
}

impl<K> fmt::Debug for Prepared<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prepared({} {:?} on {})", self.compiled.meta.name, self.grid, self.device)
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

/// The arguments of a launch, on their way to the device.
#[derive(Default)]
pub struct Arguments {
    list: SmallVec<[Argument; 8]>,
}

/// One number for each dimension. Tensors of more than six dimensions are rare, and cost an allocation.
type Dims<T> = SmallVec<[T; 6]>;

enum Argument {
    Scalar(ArgValue),
    Tensor(TensorArgument),
}

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
    fn tensor<T: crate::element::Element, const R: usize>(&mut self, tensor: &DevTensor<T, R>, mutable: bool) {
        self.list.push(Argument::Tensor(TensorArgument {
            device: tensor.device.clone(),
            storage: tensor.storage.clone(),
            offset: tensor.offset,
            extents: Dims::from_slice(&tensor.extents),
            strides: Dims::from_slice(&tensor.strides),
            element_bytes: T::TYPE.bytes(),
            mutable,
        }));
    }

    fn check(&self, meta: &KernelMeta, device: &Device) -> Result<(), String> {
        let tensors: SmallVec<[(&str, &TensorArgument); 8]> = self
            .list
            .iter()
            .zip(&meta.params)
            .filter_map(|(argument, parameter)| match argument {
                Argument::Tensor(tensor) => Some((parameter.name.as_str(), tensor)),
                Argument::Scalar(_) => None,
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

    /// Pointer, extents and strides of each tensor in a row, as the traced function takes them.
    fn for_emulator(self) -> Vec<ArgValue> {
        let mut flat = Vec::new();
        for argument in self.list {
            match argument {
                Argument::Scalar(value) => flat.push(value),
                Argument::Tensor(tensor) => {
                    // That the tensor lies on the device of the launch has been checked.
                    if let Storage::Emulated(buffer) = &tensor.storage {
                        let byte_offset = tensor.byte_offset() as u64;
                        flat.push(ArgValue::Buffer { buffer: buffer.clone(), byte_offset });
                    }
                    flat.extend(tensor.extents.iter().map(|extent| ArgValue::from(*extent as i32)));
                    flat.extend(tensor.canonical_strides().map(ArgValue::from));
                }
            }
        }
        flat
    }

    /// The same for a GPU.
    fn for_gpu(&self) -> SmallVec<[Value<'_>; 64]> {
        let mut flat = SmallVec::new();
        for argument in &self.list {
            match argument {
                Argument::Scalar(ArgValue::Scalar { bits, .. }) => flat.push(Value::Bits(*bits)),
                Argument::Scalar(ArgValue::Buffer { .. }) => {}
                Argument::Tensor(tensor) => {
                    if let Storage::Cuda(memory) = &tensor.storage {
                        let (byte_offset, writable) = (tensor.byte_offset(), tensor.mutable);
                        flat.push(Value::Pointer { memory, byte_offset, writable });
                    }
                    flat.extend(tensor.extents.iter().map(|extent| Value::Bits(*extent as u64)));
                    flat.extend(tensor.canonical_strides().map(|stride| Value::Bits(stride as u64)));
                }
            }
        }
        flat
    }
}

impl TensorArgument {
    /// Where its first element is.
    fn byte_offset(&self) -> usize {
        self.offset * self.element_bytes
    }

    /// The strides, with 0 for dimensions of at most one element: no index but 0 is valid there, and
    /// an odd stride that is never used must not decide about alignment. A last dimension of one
    /// element has stride 1, as any contiguous one.
    fn canonical_strides(&self) -> impl Iterator<Item = i64> + '_ {
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
/// for `F32`), `&DevTensor` for `Tensor`, `&mut DevTensor` for `TensorMut`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be given for the kernel parameter `{P}`",
    label = "this launch gives `{Self}` where the kernel takes `{P}`",
    note = "a scalar takes its host type (`F32` takes `f32`), `Tensor<T, RANK>` takes `&DevTensor` of that element \
            type and rank, and `TensorMut` takes `&mut DevTensor`; nothing is converted"
)]
pub trait Arg<P> {
    /// Adds the value to a launch.
    fn pass(self, arguments: &mut Arguments);
}

macro_rules! scalars {
    ($($host:ty => $name:ident),* $(,)?) => {$(
        impl Arg<types::$name> for $host {
            fn pass(self, arguments: &mut Arguments) {
                arguments.list.push(Argument::Scalar(ArgValue::from(self)));
            }
        }
    )*};
}

scalars! {
    bool => Bool, i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    f16 => F16, bf16 => BF16, f32 => F32, f64 => F64,
}

/// A position is a signed number of 64 bits in the kernel, so lengths that a host can have are the same there.
impl Arg<types::Index> for usize {
    fn pass(self, arguments: &mut Arguments) {
        arguments.list.push(Argument::Scalar(ArgValue::from(self as i64)));
    }
}

macro_rules! float8 {
    ($($name:ident),*) => {$(
        impl Arg<types::$name> for float8::$name {
            fn pass(self, arguments: &mut Arguments) {
                let value = ArgValue::Scalar { bits: self.to_bits().into(), bytes: 1 };
                arguments.list.push(Argument::Scalar(value));
            }
        }
    )*};
}

float8! { F8E4M3, F8E5M2 }

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
mod tests {
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

    #[test]
    fn grids_have_limits() {
        assert_eq!(check_grid([7, 65535, 0]), Ok([7, 65535, 0]));
        assert!(check_grid([1, 65536, 1]).unwrap_err().contains("65536 blocks in y, and at most 65535"));
        assert!(check_grid([1 << 31, 1, 1]).unwrap_err().contains("in x"));
        assert!(check_grid([1, 1, usize::MAX]).unwrap_err().contains("in z"));
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
