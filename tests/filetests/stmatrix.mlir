// run: lower target=sm_90a
// check: stmatrix.sync.aligned.m8n8.x4.shared.b16
// check: stmatrix.sync.aligned.m8n8.x2.trans.shared.b16
// check: stmatrix.sync.aligned.m8n8.x1.shared.b16
// check: stmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// check: stmatrix.sync.aligned.m8n8.x1.trans.shared.b16
// check: stmatrix.sync.aligned.m8n8.x2.shared.b16
// run: lower target=sm_80
// error: `lw.stmatrix` does not exist on sm_80
// run: lower target=gfx950
// error: `lw.stmatrix` does not exist on gfx950
gpu.func @k(%h: vector<2xf16>, %b: vector<2xbf16>, %w: vector<4xi8>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 4096 : i64} {
  %a = "lw.shared"() {offset = 0 : i64, bytes = 4096 : i64, align = 16 : i64, name = "a"} : () -> !llvm.ptr<3>
  "lw.stmatrix"(%a, %h, %h, %h, %h) {trans = false} : (!llvm.ptr<3>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>) -> ()
  "lw.stmatrix"(%a, %b, %b) {trans = true} : (!llvm.ptr<3>, vector<2xbf16>, vector<2xbf16>) -> ()
  "lw.stmatrix"(%a, %h) {trans = false} : (!llvm.ptr<3>, vector<2xf16>) -> ()
  "lw.stmatrix"(%a, %w, %w, %w, %w) {trans = true} : (!llvm.ptr<3>, vector<4xi8>, vector<4xi8>, vector<4xi8>, vector<4xi8>) -> ()
  "lw.stmatrix"(%a, %h) {trans = true} : (!llvm.ptr<3>, vector<2xf16>) -> ()
  "lw.stmatrix"(%a, %b, %b) {trans = false} : (!llvm.ptr<3>, vector<2xbf16>, vector<2xbf16>) -> ()
  gpu.return
}
