// One block of assembly: fence, a product for each step of k, commit. The descriptor's parts follow from the layout.
// run: lower target=sm_90a
// check: wgmma.fence.sync.aligned; setp.ne.b32 add, 0, 0; add.s32 la, %r
// check: mov.b64 da, {la, 1073741888};
// check: wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r
// check: }, da, db, add, 1, 1, 0, 0; setp.ne.b32 add, 1, 0;
// check: wgmma.commit_group.sync.aligned; }
// check: wgmma.wait_group.sync.aligned 1;
// check: setp.ne.b32 add, 1, 0; add.s32 lb
// check: wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r
// check: db, add, 1, 1, 1;
// check: wgmma.wait_group.sync.aligned 0;
// run: lower target=sm_100a
// error: `lw.wgmma` does not exist on sm_100a
// error: wgmma is an instruction of sm_90a alone
// run: lower target=gfx942
// error: use `mfma_32x32x8` or `mfma_16x16x16`
gpu.func @k(%p: !llvm.ptr<1>, %a0: vector<2xbf16>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 10240 : i64} {
  %a = "lw.shared"() {offset = 0 : i64, bytes = 8192 : i64, align = 1024 : i64, name = "a"} : () -> !llvm.ptr<3>
  %b = "lw.shared"() {offset = 8192 : i64, bytes = 1024 : i64, align = 1024 : i64, name = "b"} : () -> !llvm.ptr<3>
  %v = "lw.shared"() {offset = 9216 : i64, bytes = 1024 : i64, align = 1024 : i64, name = "v"} : () -> !llvm.ptr<3>
  %s:4 = "lw.wgmma"(%a, %b) {m = 64 : i64, n = 8 : i64, k = 64 : i64, kind = "bf16", zero = true, a_layout = "k:128:64", b_layout = "k:128:8", operandSegmentSizes = array<i32: 1, 1, 0>} : (!llvm.ptr<3>, !llvm.ptr<3>) -> (f32, f32, f32, f32)
  %t:4 = "lw.wgmma_wait"(%s#0, %s#1, %s#2, %s#3) {groups = 1 : i64} : (f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %o:4 = "lw.wgmma"(%a0, %a0, %a0, %a0, %v, %t#0, %t#1, %t#2, %t#3) {m = 64 : i64, n = 8 : i64, k = 16 : i64, kind = "bf16", zero = false, a_layout = "reg", b_layout = "mn:32:16", operandSegmentSizes = array<i32: 4, 1, 4>} : (vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, !llvm.ptr<3>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %w:4 = "lw.wgmma_wait"(%o#0, %o#1, %o#2, %o#3) {groups = 0 : i64} : (f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %r = vector.from_elements %w#0, %w#1, %w#2, %w#3 : vector<4xf32>
  "lw.store"(%r, %p) {align = 16 : i64} : (vector<4xf32>, !llvm.ptr<1>) -> ()
  gpu.return
}
