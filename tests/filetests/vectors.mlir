// run: lower target=all
gpu.func @k(%p: !llvm.ptr<1>, %x: f32, %h: f16) kernel attributes {$attributes} {
  %0 = vector.from_elements %x, %x, %x, %x : vector<4xf32>
  %1 = vector.broadcast %x : f32 to vector<4xf32>
  %2 = arith.addf %0, %1 : vector<4xf32>
  %3 = vector.extract %2[2] : f32 from vector<4xf32>
  %4 = vector.insert %3, %2 [0] : f32 into vector<4xf32>
  %5 = vector.bitcast %4 : vector<4xf32> to vector<8xf16>
  %6 = vector.broadcast %h : f16 to vector<8xf16>
  %7 = arith.mulf %5, %6 : vector<8xf16>
  %8 = arith.bitcast %7 : vector<8xf16> to vector<8xi16>
  %9 = arith.bitcast %8 : vector<8xi16> to vector<8xbf16>
  "lw.store"(%9, %p) {align = 16 : i64} : (vector<8xbf16>, !llvm.ptr<1>) -> ()
  %10 = ub.poison : vector<8xbf16>
  %11 = vector.extract %9[0] : bf16 from vector<8xbf16>
  %12 = vector.from_elements %11 : vector<1xbf16>
  %off1 = arith.constant 64 : i64
  %p1 = llvm.getelementptr %p[%off1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%12, %p1) {align = 2 : i64} : (vector<1xbf16>, !llvm.ptr<1>) -> ()
  gpu.return
}
