//! Every matrix instruction of the core's table against the plain product of random matrices.

use lacewing_core::atoms::{COPY_TABLE, MMA_TABLE, MatrixOp, MmaSpec, OperandSpec, Role};
use lacewing_core::{ScalarType, Target};

use super::*;
use crate::emulator::checks::Bound;
use crate::emulator::numeric::narrow::{self, Fp8};

/// A random element: its bits and its value.
fn random_element(random: &mut Random, element: ScalarType) -> (u64, f64) {
    let small = (random.next() % 2001) as f32 / 500.0 - 2.0;
    match element {
        ScalarType::F16 => {
            let bits = narrow::f32_to_f16(small);
            (bits.into(), narrow::f16_to_f32(bits).into())
        }
        ScalarType::Bf16 => {
            let bits = narrow::f32_to_bf16(small);
            (bits.into(), narrow::bf16_to_f32(bits).into())
        }
        ScalarType::F8E4M3 | ScalarType::F8E5M2 => {
            let format = if element == ScalarType::F8E4M3 { Fp8::E4m3 } else { Fp8::E5m2 };
            let bits = narrow::f32_to_fp8(format, small, true);
            (bits.into(), narrow::fp8_to_f32(format, bits).into())
        }
        ScalarType::F32 => (small.to_bits().into(), small.into()),
        ScalarType::F64 => (f64::from(small).to_bits(), small.into()),
        ScalarType::I8 => {
            let value = random.next() as i8;
            (u64::from(value as u8), value.into())
        }
        ScalarType::U8 => {
            let value = random.next() as u8;
            (value.into(), value.into())
        }
        _ => {
            // Near the end of the range, so that sums wrap.
            let value = i32::MAX - (random.next() % 1000) as i32;
            (u64::from(value as u32), value.into())
        }
    }
}

/// A matrix with the first dimension fastest: bits and values.
fn matrix(random: &mut Random, operand: &OperandSpec, [rows, columns]: [usize; 2]) -> Vec<(u64, f64)> {
    (0..rows * columns).map(|_| random_element(random, operand.element)).collect()
}

/// The bytes that the threads' registers hold, thread after thread.
fn registers(operand: &OperandSpec, matrix: &[(u64, f64)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for thread in 0..operand.threads() {
        for value in 0..operand.values() {
            let (bits, _) = matrix[operand.tv.index(thread, value)];
            bytes.extend(&bits.to_le_bytes()[..operand.element.bytes()]);
        }
    }
    bytes
}

fn mlir(element: ScalarType) -> &'static str {
    match element {
        ScalarType::F16 => "f16",
        ScalarType::Bf16 => "bf16",
        ScalarType::F32 => "f32",
        ScalarType::F64 => "f64",
        ScalarType::F8E4M3 => "f8E4M3FN",
        ScalarType::F8E5M2 => "f8E5M2",
        ScalarType::I32 => "i32",
        _ => "i8",
    }
}

fn register_type(operand: &OperandSpec) -> String {
    let element = mlir(operand.element);
    if operand.pack == 1 { element.to_owned() } else { format!("vector<{}x{element}>", operand.pack) }
}

/// Loads a thread's registers of one operand, element by element: `%NAME0`, `%NAME1`, ...
fn load_operand(name: &str, operand: &OperandSpec) -> String {
    let (element, ty) = (mlir(operand.element), register_type(operand));
    let mut text =
        format!("%{name}n = arith.constant {} : i64\n%{name}i = arith.muli %tid64, %{name}n : i64\n", operand.values());
    for register in 0..operand.registers() {
        let values: Vec<_> =
            (0..operand.pack).map(|part| format!("%{name}v{}", register * operand.pack + part)).collect();
        for part in 0..operand.pack {
            let v = register * operand.pack + part;
            text += &format!(
                "%{name}k{v} = arith.constant {v} : i64\n%{name}j{v} = arith.addi %{name}i, %{name}k{v} : i64\n\
                 %{name}p{v} = llvm.getelementptr %{name}[%{name}j{v}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, {}\n\
                 %{name}v{v} = \"lw.load\"(%{name}p{v}) {{align = {} : i64}} : (!llvm.ptr<1>) -> {element}\n",
                ["", "i8", "i16", "", "i32", "", "", "", "i64"][operand.element.bytes()],
                operand.element.bytes(),
            );
        }
        text += &match operand.pack {
            1 => format!("%zero{name}{register} = arith.constant 0 : i32\n"),
            _ => format!("%{name}{register} = vector.from_elements {} : {ty}\n", values.join(", ")),
        };
    }
    text
}

fn names(name: &str, operand: &OperandSpec) -> Vec<String> {
    let part = if operand.pack == 1 { "v" } else { "" };
    (0..operand.registers()).map(|register| format!("%{name}{part}{register}")).collect()
}

fn kernel_text(spec: &MmaSpec) -> String {
    let mut body = THREAD.to_owned();
    for (name, operand) in [("a", &spec.a), ("b", &spec.b), ("c", &spec.c)] {
        body += &load_operand(name, operand);
    }
    let operands = [names("a", &spec.a), names("b", &spec.b), names("c", &spec.c)];
    let types: Vec<_> = [&spec.a, &spec.b, &spec.c]
        .into_iter()
        .flat_map(|operand| vec![register_type(operand); operand.registers()])
        .collect();
    let (count, sum) = (spec.c.registers(), register_type(&spec.c));
    let [m, n, k] = spec.shape;
    let segments = match spec.op {
        MatrixOp::MmaSync => {
            format!(", operandSegmentSizes = array<i32: {}, {}, {count}>", spec.a.registers(), spec.b.registers())
        }
        _ => String::new(),
    };
    body += &match spec.op {
        MatrixOp::Fma => format!("%d = math.fma {} : {sum}\n", operands.concat().join(", ")),
        _ => format!(
            "%d:{count} = \"{}\"({}) {{m = {m} : i64, n = {n} : i64, k = {k} : i64, kind = \"{}\"{segments}}} : ({}) -> ({})\n",
            spec.op.name(),
            operands.concat().join(", "),
            spec.kind,
            types.join(", "),
            vec![sum.as_str(); count].join(", ")
        ),
    };
    for v in 0..spec.c.values() {
        let (register, part, pack) = (v / spec.c.pack, v % spec.c.pack, spec.c.pack);
        let whole = if spec.op == MatrixOp::Fma { "%d".to_owned() } else { format!("%d#{register}") };
        let element = mlir(spec.c.element);
        let value = match pack {
            1 => whole,
            _ => {
                body += &format!("%de{v} = vector.extract {whole}[{part}] : {element} from {sum}\n");
                format!("%de{v}")
            }
        };
        body += &format!(
            "%dp{v} = llvm.getelementptr %out[%cj{v}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, {element}\n\
             \"lw.store\"({value}, %dp{v}) {{align = {} : i64}} : ({element}, !llvm.ptr<1>) -> ()\n",
            spec.c.element.bytes()
        );
    }
    body
}

#[test]
fn every_atom_is_the_plain_product() {
    for (seed, spec) in MMA_TABLE.iter().enumerate() {
        let mut random = Random(1000 * seed as u64);
        let [m, n, k] = spec.shape;
        let [a, b, c] =
            [Role::A, Role::B, Role::C].map(|role| matrix(&mut random, spec.operand(role), spec.extents(role)));
        let body = kernel_text(spec);
        let targets: Vec<_> = Target::ALL.into_iter().filter(|target| spec.legal_on(*target).is_ok()).collect();
        for target in targets {
            let threads = spec.threads() as u32;
            let kernel = Kernel {
                target: target.name(),
                block: [threads, 1, 1],
                args: "a:in b:in c:in out:out",
                body: &body,
                // Their shadows are the same products in f64: a report here would be of terms that do not belong together.
                checks: Checks::default().with_shadow(Bound::Relative(0.02), 0.02),
                ..Kernel::default()
            };
            let arguments = [
                Arg::Bytes(registers(&spec.a, &a)),
                Arg::Bytes(registers(&spec.b, &b)),
                Arg::Bytes(registers(&spec.c, &c)),
                Arg::Uninit(m * n * spec.blocks * spec.c.element.bytes()),
            ];
            let got = kernel.run([1, 1, 1], &arguments).pop().unwrap();

            let tf32 = |x: f64| match spec.kind {
                "tf32" | "xf32" => f64::from(f32::from_bits((x as f32).to_bits() & !0x1fff)),
                _ => x,
            };
            let mut wanted = vec![(0, 0.0); m * n * spec.blocks];
            for i in 0..m {
                for j in 0..n * spec.blocks {
                    let (block, column) = (j / n, j % n);
                    let ks = k * block..k * (block + 1);
                    let factors = ks.map(|k| (tf32(a[i + k * m].1), tf32(b[column + k * n].1)));
                    let start = c[i + j * m].1;
                    let bits = match spec.c.element {
                        ScalarType::I32 => {
                            let sum = factors.fold(start as i32, |sum, (a, b)| sum.wrapping_add(a as i32 * b as i32));
                            u64::from(sum as u32)
                        }
                        ScalarType::F16 => {
                            let sum = factors.fold(start as f32, |sum, (a, b)| (a as f32).mul_add(b as f32, sum));
                            narrow::f32_to_f16(sum).into()
                        }
                        ScalarType::F64 => factors.fold(start, |sum, (a, b)| a.mul_add(b, sum)).to_bits(),
                        _ => {
                            let sum = factors.fold(start as f32, |sum, (a, b)| (a as f32).mul_add(b as f32, sum));
                            sum.to_bits().into()
                        }
                    };
                    wanted[i + j * m] = (bits, 0.0);
                }
            }
            assert_eq!(got, registers(&spec.c, &wanted), "{} on {target}", spec.name());
        }
    }
}

/// The attribute names a shape that the table does not have, or that the chip does not.
#[test]
fn instructions_that_do_not_exist_are_refused() {
    let spec = MmaSpec::find(MatrixOp::Mfma, [32, 32, 16], "f16").unwrap();
    let body = kernel_text(spec);
    let refusal = |target, body: &str| {
        let kernel = Kernel { target, block: [64, 1, 1], args: "a:in b:in c:in out:out", body, ..Kernel::default() };
        kernel.try_decode().unwrap_err().to_string()
    };
    assert!(refusal("gfx942", &body).contains("exists on gfx950 only"));
    let text = refusal("gfx950", &body.replace("k = 16 : i64", "k = 2 : i64"));
    assert!(text.contains("there is no lw.mfma of shape 32x32x2 for f16"), "{text}");
}

/// A sum that leaves the range is found and told, with the factors.
#[test]
fn the_birth_of_an_infinity_in_any_atom_is_told() {
    let spec = MmaSpec::find(MatrixOp::Mfma, [16, 16, 4], "f32").unwrap();
    let body = kernel_text(spec);
    let kernel = Kernel {
        target: "gfx942",
        block: [64, 1, 1],
        args: "a:in b:in c:in out:out",
        body: &body,
        checks: Checks { infinity: true, ..Checks::default() },
        ..Kernel::default()
    };
    let (big, zero) = (f32s(&[1e30; 64]), f32s(&[0.0; 256]));
    let report = kernel.report(&[big.clone(), big, zero, Arg::Uninit(1024)]);
    let text = report.to_string();
    assert!(text.contains("in a matrix product"), "{text}");
}

/// `ldmatrix` moves what its description says: bits of the rows that its threads name to bits of its threads.
#[test]
fn ldmatrix_is_its_description() {
    for (count, trans) in [(1, false), (2, false), (4, false), (1, true), (2, true), (4, true)] {
        let name = format!("ldmatrix.x{count}{}", if trans { ".trans" } else { "" });
        let spec = COPY_TABLE.iter().find(|spec| spec.name == name).unwrap();
        assert_eq!((spec.threads(), spec.bits()), (32, 32 * count), "{name}");
        // Halves of each thread; element e of row r of matrix m holds 64 m + 8 (r ^ 7) + e.
        let halves = super::matrix::ldmatrix(count, trans);
        for thread in 0..32 {
            for half in 0..2 * count {
                let bit = spec.destination.index(thread, 16 * half);
                let (row, element) = (bit / 128, bit % 128 / 16);
                let wanted = (8 * (row / 8) + ((row % 8) ^ 7)) * 8 + element;
                assert_eq!(usize::from(halves[thread * 2 * count + half]), wanted, "{name}, thread {thread}, {half}");
            }
        }
    }
}
