//! STUB, replaced on merge.
#![allow(missing_docs)]
use std::fmt;
use std::marker::PhantomData;
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScalarType { Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64, F8E4M3, F8E5M2 }
impl ScalarType {
    pub fn bytes(self) -> usize {
        use ScalarType::*;
        match self { Bool | I8 | U8 | F8E4M3 | F8E5M2 => 1, I16 | U16 | F16 | BF16 => 2, I32 | U32 | F32 => 4, _ => 8 }
    }
    pub fn name(self) -> &'static str {
        use ScalarType::*;
        match self { Bool => "bool", I8 => "i8", I16 => "i16", I32 => "i32", I64 => "i64", U8 => "u8", U16 => "u16", U32 => "u32", U64 => "u64", F16 => "f16", BF16 => "bf16", F32 => "f32", F64 => "f64", F8E4M3 => "f8e4m3", F8E5M2 => "f8e5m2" }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target(u8);
impl Target {
    pub const SM_80: Target = Target(0);
    pub const SM_90A: Target = Target(1);
    pub const SM_100A: Target = Target(2);
    pub const GFX942: Target = Target(3);
    pub const GFX950: Target = Target(4);
    pub const ALL: &'static [Target] = &[Self::SM_80, Self::SM_90A, Self::SM_100A, Self::GFX942, Self::GFX950];
    pub fn name(self) -> &'static str { ["sm_80", "sm_90a", "sm_100a", "gfx942", "gfx950"][self.0 as usize] }
    pub fn from_name(n: &str) -> Result<Target, Error> { Self::ALL.iter().copied().find(|t| t.name() == n).ok_or_else(|| Error(n.to_string())) }
    pub fn is_nvidia(self) -> bool { self.0 < 3 }
    pub fn max_shared_bytes(self) -> u32 { 65536 }
}
#[derive(Clone, Debug)]
pub struct Error(pub String);
impl fmt::Display for Error { fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result { f.write_str(&self.0) } }
impl std::error::Error for Error {}
pub trait Scalar: Copy + 'static { type Host: Copy; const TYPE: ScalarType; }
macro_rules! sc { ($($n:ident $h:ty),*) => { $( #[derive(Clone, Copy)] pub struct $n; impl Scalar for $n { type Host = $h; const TYPE: ScalarType = ScalarType::$n; } )* } }
sc!(I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F16 half::f16, BF16 half::bf16, F32 f32, F64 f64, Bool bool);
pub struct Tensor<T, const R: usize>(PhantomData<T>);
pub struct TensorMut<T, const R: usize>(PhantomData<T>);
pub mod rt {
    use super::*;
    pub trait KernelParams {}
    macro_rules! kp { ($($t:ident)*) => { impl<$($t),*> KernelParams for ($($t,)*) {} } }
    kp!(); kp!(A); kp!(A B); kp!(A B C); kp!(A B C D);
    pub struct KernelAttributes { pub block: [u32; 3] }
    pub trait Kernel: Clone {
        type Params: KernelParams;
        fn name(&self) -> &'static str;
        fn location(&self) -> &'static std::panic::Location<'static>;
        fn comptime(&self) -> Vec<(&'static str, String)>;
        fn param_names() -> &'static [&'static str];
        fn attributes(&self) -> KernelAttributes;
        fn trace(&self, params: Self::Params);
    }
}
#[derive(Clone, Debug)]
pub enum ParamKind { Scalar(ScalarType), Tensor { elem: ScalarType, rank: usize, mutable: bool } }
#[derive(Clone, Debug)]
pub struct ParamDesc { pub name: String, pub kind: ParamKind }
#[derive(Clone, Debug)]
pub struct KernelMeta { pub name: String, pub block: [u32; 3], pub shared_bytes: u32, pub params: Vec<ParamDesc>, pub target: Target }
pub struct Traced { pub meta: KernelMeta }
impl Traced { pub fn text(&self) -> String { String::new() } }
pub fn trace_kernel<K: rt::Kernel>(_k: &K, _t: Target) -> Result<Traced, Error> { Err(Error("stub".into())) }
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit { Trace, Lowered, Llvm, Ptx, Cubin, Amdgcn, Hsaco }
