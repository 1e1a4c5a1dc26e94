// run: lower target=nvidia
// check: ld.global.b8
// check: ld.global.b16
// check: ld.global.b32
// check: ld.global.v
// check: st.shared.b8
// check: ld.shared.b8
// check: st.shared.v
// check: ld.shared.v
// check: st.global
// run: lower target=amd
// check: global_load_ubyte
// check: global_load_ushort
// check: global_load_dword v
// check: global_load_dwordx2
// check: global_load_dwordx4
// check: ds_write_b8
// check: ds_read_u8
// check: ds_write_b128
// check: ds_read_b128
// check: global_store
gpu.func @k(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 4096 : i64} {
  %s = "lw.shared"() {offset = 0 : i64, bytes = 4096 : i64, align = 16 : i64, name = "s"} : () -> !llvm.ptr<3>
  %t = gpu.thread_id x
  %i = arith.index_cast %t : index to i64
  %j = arith.trunci %i : i64 to i32
  %p0 = llvm.getelementptr %p[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %v0 = "lw.load"(%p0) {align = 1 : i64} : (!llvm.ptr<1>) -> i8
  %p1 = llvm.getelementptr %p[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
  %v1 = "lw.load"(%p1) {align = 2 : i64} : (!llvm.ptr<1>) -> f16
  %p2 = llvm.getelementptr %p[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
  %v2 = "lw.load"(%p2) {align = 4 : i64} : (!llvm.ptr<1>) -> f32
  %p3 = llvm.getelementptr %p[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  %v3 = "lw.load"(%p3) {align = 8 : i64} : (!llvm.ptr<1>) -> vector<2xf32>
  %p4 = llvm.getelementptr %p[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, vector<2xi64>
  %v4 = "lw.load"(%p4) {align = 16 : i64} : (!llvm.ptr<1>) -> vector<4xf32>
  %s0 = llvm.getelementptr %s[%j] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
  "lw.store"(%v0, %s0) {align = 1 : i64} : (i8, !llvm.ptr<3>) -> ()
  gpu.barrier
  %w0 = "lw.load"(%s0) {align = 1 : i64} : (!llvm.ptr<3>) -> i8
  %s1 = llvm.getelementptr %s[%j] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i16
  "lw.store"(%v1, %s1) {align = 2 : i64} : (f16, !llvm.ptr<3>) -> ()
  gpu.barrier
  %w1 = "lw.load"(%s1) {align = 2 : i64} : (!llvm.ptr<3>) -> f16
  %s2 = llvm.getelementptr %s[%j] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  "lw.store"(%v2, %s2) {align = 4 : i64} : (f32, !llvm.ptr<3>) -> ()
  gpu.barrier
  %w2 = "lw.load"(%s2) {align = 4 : i64} : (!llvm.ptr<3>) -> f32
  %s3 = llvm.getelementptr %s[%j] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
  "lw.store"(%v3, %s3) {align = 8 : i64} : (vector<2xf32>, !llvm.ptr<3>) -> ()
  gpu.barrier
  %w3 = "lw.load"(%s3) {align = 8 : i64} : (!llvm.ptr<3>) -> vector<2xf32>
  %s4 = llvm.getelementptr %s[%j] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<2xi64>
  "lw.store"(%v4, %s4) {align = 16 : i64} : (vector<4xf32>, !llvm.ptr<3>) -> ()
  gpu.barrier
  %w4 = "lw.load"(%s4) {align = 16 : i64} : (!llvm.ptr<3>) -> vector<4xf32>
  %q0 = llvm.getelementptr %q[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%w0, %q0) {align = 1 : i64} : (i8, !llvm.ptr<1>) -> ()
  %q1 = llvm.getelementptr %q[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
  "lw.store"(%w1, %q1) {align = 2 : i64} : (f16, !llvm.ptr<1>) -> ()
  %q2 = llvm.getelementptr %q[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
  "lw.store"(%w2, %q2) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %q3 = llvm.getelementptr %q[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%w3, %q3) {align = 8 : i64} : (vector<2xf32>, !llvm.ptr<1>) -> ()
  %q4 = llvm.getelementptr %q[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, vector<2xi64>
  "lw.store"(%w4, %q4) {align = 16 : i64} : (vector<4xf32>, !llvm.ptr<1>) -> ()
  gpu.return
}
