//! Kernels as the macro emits them, and how their parameters become arguments of a `gpu.func`.

use std::panic::Location;

use crate::KernelAttributes;
use crate::trace::{IrType, Loc, RawValue};
use crate::types::{
    BF16, Bool, F8E4M3, F8E5M2, F16, F32, F64, I8, I16, I32, I64, Index, Scalar, U8, U16, U32, U64, Uniform,
};
use crate::{ParamDesc, ParamKind, ScalarType};

/// A kernel: a function under `#[kernel]` with its compile-time parameters chosen.
///
/// It is `'static`, because its type tells it from every other kernel: two closures, or two types of one name in two
/// blocks, have one *name*, and are two types.
pub trait Kernel: Clone + 'static {
    /// The types of the run-time parameters, as a tuple.
    type Params: KernelParams;
    /// Name of the function.
    fn name(&self) -> &'static str;
    /// Where it is written.
    fn location(&self) -> &'static Location<'static>;
    /// Name and value of each compile-time parameter, then of each generic parameter.
    fn comptime(&self) -> Vec<(&'static str, String)>;
    /// Names of the run-time parameters.
    fn param_names() -> &'static [&'static str];
    /// Block size and resource wishes.
    fn attributes(&self) -> KernelAttributes;
    /// Runs the body, which builds the kernel in the open trace.
    fn trace(&self, params: Self::Params);
}

/// A count in a kernel attribute.
#[diagnostic::on_unimplemented(
    message = "a kernel attribute takes host integers, found `{Self}`",
    label = "not a host integer",
    note = "attributes are decided when the kernel is compiled: use constants and `#[comptime]` parameters"
)]
pub trait HostCount {
    #[doc(hidden)]
    fn count(self) -> u32;
}
macro_rules! host_counts {
    ($($ty:ty)*) => { $(
        impl HostCount for $ty {
            fn count(self) -> u32 {
                u32::try_from(self).unwrap_or(u32::MAX)
            }
        }
    )* };
}
host_counts! { usize u64 u16 u8 isize i64 i32 i16 i8 }
impl HostCount for u32 {
    fn count(self) -> u32 {
        self
    }
}

/// A count of any host integer type. One that is no `u32` becomes the largest, which no target allows.
pub fn count(value: impl HostCount) -> u32 {
    value.count()
}

/// The arguments of a kernel's function while they are declared.
#[derive(Debug, Default)]
pub struct ParamBuilder {
    pub(crate) arguments: Vec<Argument>,
    pub(crate) params: Vec<ParamDesc>,
}

/// One argument of the `gpu.func`.
#[derive(Debug)]
pub(crate) struct Argument {
    pub(crate) ty: IrType,
    /// The dictionary of its attributes, in MLIR's spelling.
    pub(crate) attributes: String,
}

impl ParamBuilder {
    /// Declares a scalar.
    pub(crate) fn scalar(&mut self, name: &str, ty: ScalarType) {
        // A condition is passed as a byte.
        let passed = if ty == ScalarType::Bool { ScalarType::U8 } else { ty };
        self.arguments.push(Argument {
            ty: IrType::Scalar(passed),
            attributes: format!("{{lw.elem = \"{ty}\", lw.name = \"{name}\"}}"),
        });
        self.params.push(ParamDesc { name: name.to_owned(), kind: ParamKind::Scalar(ty) });
    }

    /// Declares a tensor map, whose box the trace finds.
    pub(crate) fn tensor_map(&mut self, name: &str, elem: ScalarType, rank: usize) {
        self.arguments.push(Argument {
            ty: IrType::TensorMap,
            attributes: format!(
                "{{lw.elem = \"{elem}\", lw.name = \"{name}\", lw.rank = {rank} : i64, lw.role = \"tensor_map\"}}"
            ),
        });
        let kind = ParamKind::TensorMap { elem, rank, box_shape: [0; 5], swizzle: 0, mutable: false };
        self.params.push(ParamDesc { name: name.to_owned(), kind });
    }

    /// Declares a tensor: pointer, then extents, then strides.
    pub(crate) fn tensor(&mut self, name: &str, elem: ScalarType, rank: usize, mutable: bool) {
        let access = if mutable { "write" } else { "read" };
        self.arguments.push(Argument {
            ty: IrType::Pointer(crate::trace::Space::Global),
            attributes: format!(
                "{{lw.access = \"{access}\", lw.elem = \"{elem}\", lw.name = \"{name}\", lw.rank = {rank} : i64}}"
            ),
        });
        for (role, ty) in [("extent", IrType::I32), ("stride", IrType::I64)] {
            for _ in 0..rank {
                self.arguments.push(Argument { ty, attributes: format!("{{lw.role = \"{role}\"}}") });
            }
        }
        self.params.push(ParamDesc { name: name.to_owned(), kind: ParamKind::Tensor { elem, rank, mutable } });
    }
}

/// Hands out the values of the declared arguments, in order.
pub struct ParamValues {
    values: std::vec::IntoIter<RawValue>,
    count: usize,
    pub(crate) loc: Loc,
}

impl ParamValues {
    pub(crate) fn new(values: Vec<RawValue>, loc: Loc) -> Self {
        Self { count: values.len(), values: values.into_iter(), loc }
    }

    /// How many arguments have been taken: the position of the next one.
    pub(crate) fn taken(&self) -> usize {
        self.count - self.values.len()
    }

    /// The next argument.
    pub(crate) fn next(&mut self) -> RawValue {
        self.values.next().unwrap_or(RawValue::DEAD)
    }
}

/// A type that a kernel can take as a run-time parameter.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a run-time parameter of a kernel",
    label = "not a kernel parameter",
    note = "run-time parameters are scalars (`F32`, `I32`, ..), `Tensor<T, RANK>`, `TensorMut<T, RANK>` and `TensorMap<T, RANK>`",
    note = "a value that is known when the kernel is compiled is marked `#[comptime]`"
)]
pub trait KernelParam: Sized {
    /// Declares the arguments that it is passed in.
    fn declare(name: &str, builder: &mut ParamBuilder);
    /// Takes their values.
    fn take(values: &mut ParamValues) -> Self;
}

/// The parameters of a kernel, as a tuple.
pub trait KernelParams: Sized {
    /// Declares all arguments.
    fn declare(names: &[&str], builder: &mut ParamBuilder);
    /// Takes their values.
    fn take(values: &mut ParamValues) -> Self;
}

macro_rules! scalar_params {
    ($($ty:ident)*) => { $(
        impl KernelParam for $ty {
            fn declare(name: &str, builder: &mut ParamBuilder) {
                builder.scalar(name, <$ty as Scalar>::TYPE);
            }
            fn take(values: &mut ParamValues) -> Self {
                $ty::from_raw(values.next())
            }
        }
    )* };
}
scalar_params! { I8 I16 I32 I64 Index U8 U16 U32 U64 F16 BF16 F32 F64 F8E4M3 F8E5M2 }

impl KernelParam for Bool {
    fn declare(name: &str, builder: &mut ParamBuilder) {
        builder.scalar(name, ScalarType::Bool);
    }
    fn take(values: &mut ParamValues) -> Self {
        let byte = values.next();
        let zero = crate::trace::constant(ScalarType::U8, crate::trace::Constant::Int(0), values.loc);
        Bool::from_raw(crate::types::arith::compare(crate::types::Cmp::Ne, ScalarType::U8, byte, zero, values.loc))
    }
}

/// A launch gives a scalar to all threads alike.
impl<T: Scalar + KernelParam> KernelParam for Uniform<T> {
    fn declare(name: &str, builder: &mut ParamBuilder) {
        T::declare(name, builder);
    }
    fn take(values: &mut ParamValues) -> Self {
        Uniform::assume(T::take(values))
    }
}

impl KernelParams for () {
    fn declare(_: &[&str], _: &mut ParamBuilder) {}
    fn take(_: &mut ParamValues) {}
}

macro_rules! tuple_params {
    ($(($($name:ident)*))*) => { $(
        impl<$($name: KernelParam),*> KernelParams for ($($name,)*) {
            fn declare(names: &[&str], builder: &mut ParamBuilder) {
                let mut names = names.iter();
                $( $name::declare(names.next().copied().unwrap_or("_"), builder); )*
            }
            fn take(values: &mut ParamValues) -> Self {
                ($($name::take(values),)*)
            }
        }
    )* };
}
tuple_params! {
    (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H)
    (A B C D E F G H I) (A B C D E F G H I J) (A B C D E F G H I J K) (A B C D E F G H I J K L)
    (A B C D E F G H I J K L M) (A B C D E F G H I J K L M N) (A B C D E F G H I J K L M N O)
    (A B C D E F G H I J K L M N O P)
}
