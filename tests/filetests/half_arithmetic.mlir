// f16 and bf16, scalar and vector, on chips with and without instructions for them.
// run: lower target=all
gpu.func @k(%p: !llvm.ptr<1>, %h: f16, %b: bf16, %vh: vector<4xf16>, %vb: vector<4xbf16>) kernel attributes {$attributes} {
  %h0 = arith.addf %h, %h : f16
  %h1 = arith.mulf %h0, %h : f16
  %h2 = arith.subf %h1, %h : f16
  %h3 = arith.divf %h2, %h : f16
  %h4 = arith.negf %h3 : f16
  %h5 = arith.maximumf %h4, %h : f16
  %h6 = arith.minnumf %h5, %h : f16
  %hc = arith.cmpf olt, %h6, %h : f16
  %h7 = arith.select %hc, %h6, %h : f16
  %h8 = arith.remf %h7, %h : f16
  "lw.store"(%h8, %p) {align = 2 : i64} : (f16, !llvm.ptr<1>) -> ()
  %b0 = arith.addf %b, %b : bf16
  %b1 = arith.mulf %b0, %b : bf16
  %b2 = arith.subf %b1, %b : bf16
  %b3 = arith.divf %b2, %b : bf16
  %b4 = arith.negf %b3 : bf16
  %b5 = arith.minimumf %b4, %b : bf16
  %b6 = arith.maxnumf %b5, %b : bf16
  %bc = arith.cmpf une, %b6, %b : bf16
  %b7 = arith.select %bc, %b6, %b : bf16
  %off1 = arith.constant 64 : i64
  %p1 = llvm.getelementptr %p[%off1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%b7, %p1) {align = 2 : i64} : (bf16, !llvm.ptr<1>) -> ()
  %v0 = arith.addf %vh, %vh : vector<4xf16>
  %v1 = arith.mulf %v0, %vh : vector<4xf16>
  %v2 = arith.divf %v1, %vh : vector<4xf16>
  %v3 = arith.negf %v2 : vector<4xf16>
  %v4 = arith.maximumf %v3, %vh : vector<4xf16>
  %v5 = arith.extf %v4 : vector<4xf16> to vector<4xf32>
  %v6 = arith.truncf %v5 : vector<4xf32> to vector<4xbf16>
  %v7 = arith.addf %v6, %vb : vector<4xbf16>
  %v8 = arith.mulf %v7, %vb : vector<4xbf16>
  %v9 = arith.subf %v8, %vb : vector<4xbf16>
  %v10 = arith.divf %v9, %vb : vector<4xbf16>
  %v11 = arith.negf %v10 : vector<4xbf16>
  %v12 = math.fma %v11, %vb, %vb : vector<4xbf16>
  %off2 = arith.constant 128 : i64
  %p2 = llvm.getelementptr %p[%off2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%v12, %p2) {align = 8 : i64} : (vector<4xbf16>, !llvm.ptr<1>) -> ()
  gpu.return
}
