// run: lower target=nvidia
// check: cp.async.cg.shared.global
// check: cp.async.ca.shared.global
// check: cp.async.commit_group
// check: cp.async.wait_group 	1
// run: lower target=amd
// error: `lw.cp_async` does not exist on gfx9
// error: copy.rs:7:9
// error: store_vec
gpu.func @k(%p: !llvm.ptr<1>, %n: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 4096 : i64} {
  %a = "lw.shared"() {offset = 0 : i64, bytes = 4096 : i64, align = 16 : i64, name = "a"} : () -> !llvm.ptr<3>
  %z = arith.constant 0 : i32
  %m = arith.cmpi sgt, %n, %z : i32
  "lw.cp_async"(%a, %p, %m) {bytes = 16 : i64} : (!llvm.ptr<3>, !llvm.ptr<1>, i1) -> () loc("copy.rs":7:9)
  "lw.cp_async"(%a, %p, %m) {bytes = 4 : i64} : (!llvm.ptr<3>, !llvm.ptr<1>, i1) -> ()
  "lw.cp_async"(%a, %p, %m) {bytes = 8 : i64} : (!llvm.ptr<3>, !llvm.ptr<1>, i1) -> ()
  "lw.cp_async_commit"() : () -> ()
  "lw.cp_async_wait"() {groups = 1 : i64} : () -> ()
  gpu.return
}
