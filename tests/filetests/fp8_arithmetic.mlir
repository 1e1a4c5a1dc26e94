// run: lower target=all
// error: `arith.addf` does not exist for 8-bit floats
// error: q.rs:3:5
// error: cast to F32 first
gpu.func @k(%a: f8E4M3FN) kernel attributes {$attributes} {
  %b = arith.addf %a, %a : f8E4M3FN loc("q.rs":3:5)
  gpu.return
}
