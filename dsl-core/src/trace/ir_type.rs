//! Types of traced values.

use melior::Context;
use melior::ir::Type;
use melior::ir::r#type::IntegerType;

use crate::ScalarType;

/// Address spaces that a kernel can point into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Global memory: `!llvm.ptr<1>`.
    Global,
    /// Shared memory (LDS): `!llvm.ptr<3>`.
    Shared,
    /// Shared memory of any block of the cluster: `!llvm.ptr<7>`.
    Cluster,
}

/// The MLIR type of a traced value, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IrType {
    /// An element type; signedness is not part of the MLIR type.
    Scalar(ScalarType),
    /// `index`, the type of thread and block ids before their cast.
    Index,
    /// A vector of so many elements.
    Vector(ScalarType, usize),
    /// A pointer.
    Pointer(Space),
    /// The address of a tensor map among the kernel's parameters: `!llvm.ptr`.
    TensorMap,
}

impl IrType {
    /// `i1`.
    pub const BOOL: IrType = IrType::Scalar(ScalarType::Bool);
    /// `i32`.
    pub const I32: IrType = IrType::Scalar(ScalarType::I32);
    /// `i64`.
    pub const I64: IrType = IrType::Scalar(ScalarType::I64);
    /// `f32`.
    pub const F32: IrType = IrType::Scalar(ScalarType::F32);

    /// The type in a context.
    pub fn mlir(self, context: &Context) -> Type<'_> {
        match self {
            Self::Scalar(scalar) => scalar.mlir(context),
            Self::Index => Type::index(context),
            Self::Vector(scalar, count) => Type::vector(&[count as u64], scalar.mlir(context)),
            Self::TensorMap => melior::dialect::llvm::r#type::pointer(context, 0),
            Self::Pointer(space) => melior::dialect::llvm::r#type::pointer(
                context,
                match space {
                    Space::Global => 1,
                    Space::Shared => 3,
                    Space::Cluster => 7,
                },
            ),
        }
    }

    /// The element type of a scalar or vector.
    pub fn element(self) -> Option<ScalarType> {
        match self {
            Self::Scalar(scalar) | Self::Vector(scalar, _) => Some(scalar),
            Self::Index | Self::Pointer(_) | Self::TensorMap => None,
        }
    }

    /// The same shape with another element type.
    #[must_use]
    pub fn with_element(self, element: ScalarType) -> Self {
        match self {
            Self::Vector(_, count) => Self::Vector(element, count),
            _ => Self::Scalar(element),
        }
    }

    /// `i1` or a vector of it: the type of a comparison.
    #[must_use]
    pub fn as_bool(self) -> Self {
        self.with_element(ScalarType::Bool)
    }

    /// An integer type of `bits` bits (8, 16, 32 or 64) as an MLIR type.
    pub fn integer(context: &Context, bits: u32) -> Type<'_> {
        IntegerType::new(context, bits).into()
    }
}
