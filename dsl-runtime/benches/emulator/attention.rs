//! FlashAttention-2 forward as a traced module: 64 x 64 tiles, head dimension 64, f16, four warps,
//! `cp.async`, `ldmatrix`, `mma.sync`, online softmax, tails masked.

use half::f16;
use lacewing_runtime::emulator::{ArgValue, Buffer, Launch};

const TILE: usize = 64;
const TILE_BYTES: usize = TILE * TILE * 2;

/// Writes MLIR, naming values as it goes.
#[derive(Default)]
struct Text {
    out: String,
    next: usize,
    /// Constants stand in the function's entry.
    constants: Vec<(String, String)>,
}

impl Text {
    fn line(&mut self, line: &str) {
        self.out += line;
        self.out.push('\n');
    }

    fn name(&mut self) -> String {
        self.next += 1;
        format!("%v{}", self.next)
    }

    fn value(&mut self, definition: &str) -> String {
        let name = self.name();
        self.line(&format!("{name} = {definition}"));
        name
    }

    fn constant(&mut self, text: &str) -> String {
        if let Some((_, name)) = self.constants.iter().find(|(known, _)| known == text) {
            return name.clone();
        }
        let name = format!("%c{}", self.constants.len());
        self.constants.push((text.to_owned(), name.clone()));
        name
    }

    fn int(&mut self, value: i64) -> String {
        self.constant(&format!("{value} : i32"))
    }

    fn binary(&mut self, op: &str, a: &str, b: &str) -> String {
        let ty = if op.ends_with('f') { "f32" } else { "i32" };
        self.value(&format!("arith.{op} {a}, {b} : {ty}"))
    }

    fn with(&mut self, op: &str, a: &str, constant: i64) -> String {
        let constant = self.int(constant);
        self.binary(op, a, &constant)
    }

    /// The shared pointer of a chunk of eight halves in a swizzled tile.
    fn chunk(&mut self, tile: &str, row: &str, column: &str) -> String {
        let low = self.with("andi", row, 7);
        let swizzled = self.binary("xori", column, &low);
        let pitch = self.with("muli", row, TILE as i64);
        let offset = self.with("muli", &swizzled, 8);
        let element = self.binary("addi", &pitch, &offset);
        self.value(&format!("llvm.getelementptr {tile}[{element}] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f16"))
    }

    /// Starts the copy of a tile of rows `first ..` by all threads.
    fn copy_tile(&mut self, tile: &str, source: &str, first: &str) {
        for step in 0..4 {
            let index = self.with("addi", "%tid", 128 * step);
            let row = self.with("shrui", &index, 3);
            let column = self.with("andi", &index, 7);
            let global_row = self.binary("addi", first, &row);
            let valid = self.value(&format!("arith.cmpi slt, {global_row}, %n : i32"));
            let offset = self.with("muli", &global_row, TILE as i64);
            let inner = self.with("muli", &column, 8);
            let element = self.binary("addi", &offset, &inner);
            let element = self.binary("addi", &element, "%head_offset");
            let wide = self.value(&format!("arith.extsi {element} : i32 to i64"));
            let from =
                self.value(&format!("llvm.getelementptr {source}[{wide}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f16"));
            let to = self.chunk(tile, &row, &column);
            self.line(&format!(
                "\"lw.cp_async\"({to}, {from}, {valid}) {{bytes = 16 : i64}} : (!llvm.ptr<3>, !llvm.ptr<1>, i1) -> ()"
            ));
        }
    }

    fn wait(&mut self) {
        self.line("\"lw.cp_async_commit\"() : () -> ()");
        self.line("\"lw.cp_async_wait\"() {groups = 0 : i64} : () -> ()");
        self.line("gpu.barrier");
    }

    fn ldmatrix(&mut self, pointer: &str, trans: bool) -> [String; 4] {
        let name = self.name();
        self.line(&format!(
            "{name}:4 = \"lw.ldmatrix\"({pointer}) {{trans = {trans}}} : (!llvm.ptr<3>) -> \
             (vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>)"
        ));
        std::array::from_fn(|i| format!("{name}#{i}"))
    }

    fn mma(&mut self, a: &[String; 4], b: [&String; 2], c: &[String; 4]) -> [String; 4] {
        let name = self.name();
        let h = "vector<2xf16>";
        self.line(&format!(
            "{name}:4 = \"lw.mma_sync\"({}, {}, {}, {}) {{m = 16 : i64, n = 8 : i64, k = 16 : i64, kind = \"f16\", \
             operandSegmentSizes = array<i32: 4, 2, 4>}} : ({h}, {h}, {h}, {h}, {h}, {h}, f32, f32, f32, f32) -> \
             (f32, f32, f32, f32)",
            a.join(", "),
            b[0],
            b[1],
            c.join(", ")
        ));
        std::array::from_fn(|i| format!("{name}#{i}"))
    }

    fn shuffle_xor(&mut self, value: &str, distance: i64) -> String {
        let (distance, width) = (self.int(distance), self.int(32));
        let name = self.name();
        self.line(&format!("{name}, {name}_ok = gpu.shuffle xor {value}, {distance}, {width} : f32"));
        name
    }

    fn exp2(&mut self, value: &str) -> String {
        self.value(&format!("math.exp2 {value} fastmath<afn> : f32"))
    }
}

/// The kernel's text.
pub fn kernel() -> String {
    let mut t = Text::default();
    t.line("%head_size = arith.muli %n, %c_tile : i32\n%head_offset = arith.muli %head, %head_size : i32");
    let first_row = t.with("muli", "%q_tile", TILE as i64);
    let lane = t.with("andi", "%tid", 31);
    let warp = t.with("shrui", "%tid", 5);
    let (lane15, lane_high) = (t.with("andi", &lane, 15), t.with("shrui", &lane, 4));
    t.copy_tile("%sq", "%q", &first_row);
    t.wait();
    let warp_row = t.with("muli", &warp, 16);
    let q_row = t.binary("addi", &warp_row, &lane15);
    let q: Vec<[String; 4]> = (0..4)
        .map(|k| {
            let column = t.with("addi", &lane_high, 2 * k);
            let pointer = t.chunk("%sq", &q_row, &column);
            t.ldmatrix(&pointer, false)
        })
        .collect();
    let (zero, minus_inf) = (t.constant("0.0 : f32"), t.constant("-1.0e30 : f32"));
    let scale = t.constant(&format!("{:e} : f32", 0.125 * std::f64::consts::LOG2_E));

    // Carried: 32 accumulators, two maxima, two sums.
    let carried: Vec<String> = (0..36).map(|i| format!("%s{i}")).collect();
    let inits: Vec<String> =
        (0..36).map(|i| format!("%s{i} = {}", if (32..34).contains(&i) { &minus_inf } else { &zero })).collect();
    let types = vec!["f32"; 36].join(", ");
    let (low, step) = (t.int(0), t.int(TILE as i64));
    t.line(&format!(
        "%out:36 = scf.for %kv = {low} to %n step {step} iter_args({}) -> ({types}) : i32 {{",
        inits.join(", ")
    ));
    t.line("gpu.barrier");
    t.copy_tile("%sk", "%k", "%kv");
    t.copy_tile("%sv", "%v", "%kv");
    t.wait();
    let mut scores: Vec<[String; 4]> = vec![std::array::from_fn(|_| zero.clone()); 8];
    let (lane7, lane_bit3) = (t.with("andi", &lane, 7), t.with("shrui", &lane, 3));
    let lane_bit3 = t.with("andi", &lane_bit3, 1);
    let high8 = t.with("muli", &lane_high, 8);
    let key_row = t.binary("addi", &lane7, &high8);
    for (k, q) in q.iter().enumerate() {
        for pair in 0..4 {
            let row = t.with("addi", &key_row, 16 * pair as i64);
            let column = t.with("addi", &lane_bit3, 2 * k as i64);
            let pointer = t.chunk("%sk", &row, &column);
            let b = t.ldmatrix(&pointer, false);
            for half in 0..2 {
                let tile = 2 * pair + half;
                scores[tile] = t.mma(q, [&b[2 * half], &b[2 * half + 1]], &scores[tile]);
            }
        }
    }
    let quad = t.with("andi", &lane, 3);
    let quad2 = t.with("muli", &quad, 2);
    let column = t.binary("addi", "%kv", &quad2);
    for tile in 0..8 {
        for part in 0..2 {
            let at = t.with("addi", &column, 8 * tile as i64 + part as i64);
            let inside = t.value(&format!("arith.cmpi slt, {at}, %n : i32"));
            for half in 0..2 {
                let score = scores[tile][2 * half + part].clone();
                scores[tile][2 * half + part] = t.value(&format!("arith.select {inside}, {score}, {minus_inf} : f32"));
            }
        }
    }
    let mut state = carried.clone();
    for half in 0..2 {
        let mut maximum = carried[32 + half].clone();
        for tile in 0..8 {
            for part in 0..2 {
                maximum = t.binary("maximumf", &maximum, &scores[tile][2 * half + part]);
            }
        }
        for distance in [1, 2] {
            let other = t.shuffle_xor(&maximum, distance);
            maximum = t.binary("maximumf", &maximum, &other);
        }
        let scaled = t.binary("mulf", &maximum, &scale);
        let negative = t.value(&format!("arith.negf {scaled} : f32"));
        let shift = t.value(&format!("math.fma {}, {scale}, {negative} : f32", carried[32 + half]));
        let rescale = t.exp2(&shift);
        let mut sum = t.binary("mulf", &carried[34 + half], &rescale);
        for tile in 0..8 {
            for part in 0..2 {
                let i = 2 * half + part;
                let shifted = t.value(&format!("math.fma {}, {scale}, {negative} : f32", scores[tile][i]));
                scores[tile][i] = t.exp2(&shifted);
                sum = t.binary("addf", &sum, &scores[tile][i]);
                state[4 * tile + i] = t.binary("mulf", &carried[4 * tile + i], &rescale);
            }
        }
        state[32 + half] = maximum;
        state[34 + half] = sum;
    }
    for k in 0..4 {
        let p: [String; 4] = std::array::from_fn(|i| {
            let (tile, half) = (2 * k + i / 2, i % 2);
            let halves: Vec<String> = (0..2)
                .map(|part| t.value(&format!("arith.truncf {} : f32 to f16", scores[tile][2 * half + part])))
                .collect();
            t.value(&format!("vector.from_elements {} : vector<2xf16>", halves.join(", ")))
        });
        for pair in 0..4 {
            let row = t.with("addi", &lane15, 16 * k as i64);
            let column = t.with("addi", &lane_high, 2 * pair as i64);
            let pointer = t.chunk("%sv", &row, &column);
            let b = t.ldmatrix(&pointer, true);
            for half in 0..2 {
                let tile = 2 * pair + half;
                let c = std::array::from_fn(|i| state[4 * tile + i].clone());
                let d = t.mma(&p, [&b[2 * half], &b[2 * half + 1]], &c);
                state[4 * tile..4 * tile + 4].clone_from_slice(&d);
            }
        }
    }
    t.line(&format!("scf.yield {} : {types}\n}}", state.join(", ")));

    let group = t.with("shrui", &lane, 2);
    let row0 = t.binary("addi", &warp_row, &group);
    let quad = t.with("andi", &lane, 3);
    let quad2 = t.with("muli", &quad, 2);
    for half in 0..2 {
        let mut sum = format!("%out#{}", 34 + half);
        for distance in [1, 2] {
            let other = t.shuffle_xor(&sum, distance);
            sum = t.binary("addf", &sum, &other);
        }
        let inverse = t.value(&format!("\"lw.rcp\"({sum}) : (f32) -> f32"));
        let row = t.with("addi", &row0, 8 * half as i64);
        let global_row = t.binary("addi", &row, &first_row);
        let valid = t.value(&format!("arith.cmpi slt, {global_row}, %n : i32"));
        let base = t.with("muli", &global_row, TILE as i64);
        let base = t.binary("addi", &base, "%head_offset");
        let base = t.binary("addi", &base, &quad2);
        for tile in 0..8 {
            let halves: Vec<String> = (0..2)
                .map(|part| {
                    let x = t.binary("mulf", &format!("%out#{}", 4 * tile + 2 * half + part), &inverse);
                    t.value(&format!("arith.truncf {x} : f32 to f16"))
                })
                .collect();
            let pair = t.value(&format!("vector.from_elements {} : vector<2xf16>", halves.join(", ")));
            let element = t.with("addi", &base, 8 * tile as i64);
            let wide = t.value(&format!("arith.extsi {element} : i32 to i64"));
            let pointer = t.value(&format!("llvm.getelementptr %o[{wide}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f16"));
            t.line(&format!(
                "\"lw.store_masked\"({pair}, {pointer}, {valid}) {{align = 4 : i64}} : (vector<2xf16>, !llvm.ptr<1>, i1) -> ()"
            ));
        }
    }
    let tensor = |name: &str, access: &str| {
        format!(
            "%{name}: !llvm.ptr<1> {{lw.name = \"{name}\", lw.elem = \"f16\", lw.access = \"{access}\", lw.rank = 3 : i64}}"
        )
    };
    let shared: String = ["sq", "sk", "sv"]
        .iter()
        .enumerate()
        .map(|(i, name)| {
            format!(
                "%{name} = \"lw.shared\"() {{offset = {} : i64, bytes = {TILE_BYTES} : i64, align = 128 : i64, name = \"{name}\"}} : () -> !llvm.ptr<3>\n",
                i * TILE_BYTES
            )
        })
        .collect();
    let constants: String =
        t.constants.iter().map(|(text, name)| format!("{name} = arith.constant {text}\n")).collect();
    format!(
        "module attributes {{gpu.container_module}} {{ gpu.module @attention {{ gpu.func @attention({}, {}, {}, {}, \
         %n: i32 {{lw.name = \"n\", lw.elem = \"i32\"}}) kernel attributes {{known_block_size = array<i32: 128, 1, 1>, \
         lw.target = \"sm_80\", lw.shared_bytes = {} : i64}} {{\n\
         %tx = gpu.thread_id x\n%bx = gpu.block_id x\n%by = gpu.block_id y\n%tid = arith.index_cast %tx : index to i32\n\
         %q_tile = arith.index_cast %bx : index to i32\n%head = arith.index_cast %by : index to i32\n\
         %c_tile = arith.constant {TILE} : i32\n{constants}{shared}{}gpu.return\n}} }} }}",
        tensor("q", "read"),
        tensor("k", "read"),
        tensor("v", "read"),
        tensor("o", "write"),
        3 * TILE_BYTES,
        t.out
    )
}

/// Inputs and output of one launch.
pub struct Case {
    heads: usize,
    length: usize,
    inputs: [Vec<f16>; 3],
    buffers: [Buffer; 4],
}

impl Case {
    pub fn new(heads: usize, length: usize) -> Self {
        let size = heads * length * TILE;
        let inputs: [Vec<f16>; 3] = std::array::from_fn(|which| {
            (0..size)
                .map(|i| {
                    f16::from_f32(
                        (i.wrapping_mul(2_654_435_761).wrapping_add(which * 977) >> 7 & 2047) as f32 / 1024.0 - 1.0,
                    )
                })
                .collect()
        });
        let bytes = |values: &[f16]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let [q, k, v] = inputs.each_ref().map(|values| Buffer::from_bytes(&bytes(values)));
        Self { heads, length, inputs, buffers: [q, k, v, Buffer::uninit(2 * size)] }
    }

    pub fn launch(&self) -> Launch {
        let mut args: Vec<ArgValue> = self.buffers.iter().map(ArgValue::from).collect();
        args.push((self.length as i32).into());
        Launch::new([self.length.div_ceil(TILE) as u32, self.heads as u32, 1], args)
    }

    /// Compares the output with attention in f64.
    pub fn check(&self) {
        let out = self.buffers[3].read();
        let mut worst = 0.0_f64;
        for head in 0..self.heads {
            let row = |which: usize, i: usize| {
                let start = (head * self.length + i) * TILE;
                self.inputs[which][start..start + TILE].iter().map(|x| f64::from(x.to_f32()))
            };
            for i in 0..self.length {
                let scores: Vec<f64> = (0..self.length)
                    .map(|j| row(0, i).zip(row(1, j)).map(|(a, b)| a * b).sum::<f64>() * 0.125)
                    .collect();
                let maximum = scores.iter().copied().fold(f64::MIN, f64::max);
                let weights: Vec<f64> = scores.iter().map(|s| (s - maximum).exp()).collect();
                let total: f64 = weights.iter().sum();
                let mut expected = [0.0; TILE];
                for (j, weight) in weights.iter().enumerate() {
                    expected.iter_mut().zip(row(2, j)).for_each(|(e, v)| *e += weight * v / total);
                }
                for (d, e) in expected.iter().enumerate() {
                    let at = 2 * ((head * self.length + i) * TILE + d);
                    let got = f16::from_le_bytes([out[at], out[at + 1]]).to_f32();
                    worst = worst.max((f64::from(got) - e).abs());
                }
            }
        }
        assert!(worst < 1e-3, "the largest error is {worst:e}");
    }
}
