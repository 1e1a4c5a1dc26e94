// run: lower target=amd
// check: v_mfma_f32_32x32x8_f16
// check: v_mfma_f32_32x32x8_bf16
// check: v_mfma_f32_16x16x16_f16
// check: v_mfma_f32_16x16x16_bf16
// run: lower target=nvidia
// error: `lw.mfma` does not exist on sm_
// error: use `mma_m16n8k16`
gpu.func @k(%p: !llvm.ptr<1>, %h: vector<4xf16>, %b: vector<4xbf16>, %x: f32) kernel attributes {$attributes} {
  %0:16 = "lw.mfma"(%h, %h, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x) {m = 32 : i64, n = 32 : i64, k = 8 : i64, kind = "f16"} : (vector<4xf16>, vector<4xf16>, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
  %1:16 = "lw.mfma"(%b, %b, %0#0, %0#1, %0#2, %0#3, %0#4, %0#5, %0#6, %0#7, %0#8, %0#9, %0#10, %0#11, %0#12, %0#13, %0#14, %0#15) {m = 32 : i64, n = 32 : i64, k = 8 : i64, kind = "bf16"} : (vector<4xbf16>, vector<4xbf16>, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
  %2:4 = "lw.mfma"(%h, %h, %1#0, %1#5, %1#10, %1#15) {m = 16 : i64, n = 16 : i64, k = 16 : i64, kind = "f16"} : (vector<4xf16>, vector<4xf16>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %3:4 = "lw.mfma"(%b, %b, %2#0, %2#1, %2#2, %2#3) {m = 16 : i64, n = 16 : i64, k = 16 : i64, kind = "bf16"} : (vector<4xbf16>, vector<4xbf16>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  "lw.store"(%3#3, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  gpu.return
}
