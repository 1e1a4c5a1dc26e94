// run: lower target=nvidia
// check: vprintf
// run: lower target=amd emit=llvm
// check: %d %f %u %f %lld
// check: call i64 @__ockl_printf_begin
// check: call i64 @__ockl_printf_append_args
gpu.func @k(%i: i32, %x: f32, %b: i8, %h: f16, %l: i64) kernel attributes {$attributes} {
  gpu.printf "%d %f %u %f %lld\n", %i, %x, %b, %h, %l : i32, f32, i8, f16, i64 loc("p.rs":9:5)
  gpu.return
}
