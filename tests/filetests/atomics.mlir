// Ordering and scope reach the instruction.
// run: lower target=nvidia
// check: atom.global.add.f32
// check: fence.acq_rel.cta
// check: atom.global.add.u32
// check: fence.acq_rel.cta
// check: fence.acq_rel.gpu
// check: atom.acquire.sys.global.cas.b32
// check: fence.sc.gpu
// check: atom.global.max.u64
// check: atom.relaxed.sys.global.add.f32
// run: lower target=amd
// check: global_atomic_add_f32
// check: global_atomic_cmpswap
gpu.func @k(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %x: f32, %i: i32, %l: i64, %d: f64, %h: f16, %b: bf16, %vh: vector<2xf16>) kernel attributes {$attributes} {
  %0 = "lw.atomic_rmw"(%p, %x) {kind = "fadd", ordering = "relaxed", scope = "device"} : (!llvm.ptr<1>, f32) -> f32
  %1 = "lw.atomic_rmw"(%q, %i) {kind = "add", ordering = "acq_rel", scope = "block"} : (!llvm.ptr<1>, i32) -> i32
  "lw.fence"() {scope = "device"} : () -> ()
  %2 = "lw.atomic_rmw"(%p, %x) {kind = "fmax", ordering = "relaxed", scope = "device"} : (!llvm.ptr<1>, f32) -> f32
  %3 = "lw.atomic_cas"(%q, %i, %1) {ordering = "acquire", scope = "system"} : (!llvm.ptr<1>, i32, i32) -> i32
  %4 = "lw.atomic_rmw"(%q, %l) {kind = "umax", ordering = "seq_cst", scope = "device"} : (!llvm.ptr<1>, i64) -> i64
  %5 = "lw.atomic_rmw"(%q, %d) {kind = "fadd", ordering = "release", scope = "device"} : (!llvm.ptr<1>, f64) -> f64
  %6 = "lw.atomic_rmw"(%q, %h) {kind = "fadd", ordering = "relaxed", scope = "device"} : (!llvm.ptr<1>, f16) -> f16
  %7 = "lw.atomic_rmw"(%q, %b) {kind = "fadd", ordering = "relaxed", scope = "device"} : (!llvm.ptr<1>, bf16) -> bf16
  %8 = "lw.atomic_rmw"(%q, %vh) {kind = "fadd", ordering = "relaxed", scope = "device"} : (!llvm.ptr<1>, vector<2xf16>) -> vector<2xf16>
  %9 = "lw.atomic_cas"(%p, %x, %0) {ordering = "relaxed", scope = "device"} : (!llvm.ptr<1>, f32, f32) -> f32
  %10 = "lw.atomic_rmw"(%p, %9) {kind = "exch", ordering = "relaxed", scope = "device"} : (!llvm.ptr<1>, f32) -> f32
  %11 = "lw.atomic_rmw"(%q, %3) {kind = "min", ordering = "relaxed", scope = "device"} : (!llvm.ptr<1>, i32) -> i32
  %12 = "lw.atomic_rmw"(%q, %3) {kind = "xor", ordering = "relaxed", scope = "device"} : (!llvm.ptr<1>, i32) -> i32
  %13 = "lw.atomic_rmw"(%p, %x) {kind = "fadd", ordering = "relaxed", scope = "system"} : (!llvm.ptr<1>, f32) -> f32
  %14 = "lw.atomic_rmw"(%q, %l) {kind = "sub", ordering = "acquire", scope = "system"} : (!llvm.ptr<1>, i64) -> i64
  %15 = "lw.atomic_rmw"(%p, %13) {kind = "exch", ordering = "relaxed", scope = "system"} : (!llvm.ptr<1>, f32) -> f32
  gpu.return
}
