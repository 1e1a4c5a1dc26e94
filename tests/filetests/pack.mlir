// Two f32 become a pair of 16-bit floats by one instruction where the chip has it.
// run: lower target=nvidia
// check: cvt.rn.bf16x2.f32
// check: cvt.rn.f16x2.f32
// run: lower target=gfx950
// check: v_cvt_pk_bf16_f32
gpu.func @k(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %a : f32, %b: f32) kernel attributes {$attributes} {
  %v = vector.from_elements %a, %b : vector<2xf32>
  %w = arith.truncf %v : vector<2xf32> to vector<2xbf16>
  %h = arith.truncf %v : vector<2xf32> to vector<2xf16>
  "lw.store"(%w, %x) {align = 4 : i64} : (vector<2xbf16>, !llvm.ptr<1>) -> ()
  "lw.store"(%h, %y) {align = 4 : i64} : (vector<2xf16>, !llvm.ptr<1>) -> ()
  gpu.return
}
