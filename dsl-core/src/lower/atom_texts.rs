//! What each atom of the tables is lowered to, whole: the text of a kernel is made from the table's row, and the instruction
//! that comes out is compared with a listing that somebody has looked at.
//!
//! The listings are snapshots beside this file: a row that is added to a table is missing in its listing, and fails. Numbers
//! of registers are left out: `%f` is any, `%f*4` are four different ones, `v[4]` are four neighbours.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::rc::Rc;

use super::{Emit, EmitOptions, emit, tools};
use crate::atoms::{COPY_TABLE, CopySpec, MMA_TABLE, MatrixOp, MmaSpec, OperandSpec, WGMMA_TABLE, WgmmaSpec};
use crate::mlir::{IrContext, IrModule};
use crate::{ScalarType, Target, Traced};

/// A kernel in text, piece by piece.
struct Text<'c> {
    context: &'c Rc<IrContext>,
    arguments: Vec<String>,
    body: String,
    shared: usize,
}

impl<'c> Text<'c> {
    fn new(context: &'c Rc<IrContext>) -> Self {
        let arguments = vec!["%p: !llvm.ptr<1>".to_owned(), "%q: !llvm.ptr<1>".to_owned()];
        Self { context, arguments, body: String::new(), shared: 0 }
    }

    fn line(&mut self, line: impl AsRef<str>) {
        self.body += "  ";
        self.body += line.as_ref();
        self.body += "\n";
    }

    /// A register of an operand as an argument, by the name `name`; its type.
    fn register(&mut self, name: &str, operand: &OperandSpec) -> String {
        let ty = operand.register_type().mlir(self.context.get_static()).to_string();
        match operand.element {
            // Arguments of a kernel are no 8-bit floats.
            ScalarType::F8E4M3 | ScalarType::F8E5M2 => {
                let bits = format!("vector<{}xi8>", operand.pack);
                self.arguments.push(format!("%{name}_bits: {bits}"));
                self.line(format!("%{name} = arith.bitcast %{name}_bits : {bits} to {ty}"));
            }
            _ => self.arguments.push(format!("%{name}: {ty}")),
        }
        ty
    }

    /// Keeps the results of `%r`.
    fn store(&mut self, count: usize, ty: &str, bytes: usize) {
        for number in 0..count {
            let (value, place) =
                if count == 1 { ("%r".to_owned(), 0) } else { (format!("%r#{number}"), number * bytes) };
            self.line(format!("%p{number} = llvm.getelementptr %p[{place}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8"));
            self.line(format!(
                "\"lw.store\"({value}, %p{number}) {{align = {bytes} : i64}} : ({ty}, !llvm.ptr<1>) -> ()"
            ));
        }
    }

    /// Shared memory, as `%s`.
    fn shared(&mut self) {
        self.shared = 65536;
        self.line(
            "%s = \"lw.shared\"() {offset = 0 : i64, bytes = 65536 : i64, align = 1024 : i64, name = \"s\"} : () -> !llvm.ptr<3>",
        );
    }

    fn assembly(&self, target: Target) -> String {
        let Self { arguments, body, shared, .. } = self;
        let text = format!(
            "module attributes {{gpu.container_module}} {{ gpu.module @k {{\ngpu.func @k({}) kernel attributes \
             {{known_block_size = array<i32: 128, 1, 1>, lw.target = \"{target}\", lw.shared_bytes = {shared} : i64}} {{\n\
             {body}  gpu.return\n}}\n}} }}",
            arguments.join(", "),
        );
        let module = IrModule::parse(self.context, &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let traced = Traced::from_module(module).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let stage = if target.is_nvidia() { Emit::Ptx } else { Emit::Amdgcn };
        let artifact = emit(&traced, stage, &EmitOptions::default());
        let artifact = artifact.unwrap_or_else(|error| panic!("for {target}: {error}\n{text}"));
        let assembly = String::from_utf8_lossy(artifact.as_bytes()).into_owned();
        if target.is_nvidia() && tools::find_ptxas(None).is_ok() {
            tools::assemble(&assembly, target, &EmitOptions::default())
                .unwrap_or_else(|error| panic!("{error}\n{assembly}"));
        }
        assembly
    }
}

/// How many of the first characters satisfy `f`.
fn prefix(text: &str, f: impl Fn(char) -> bool) -> usize {
    text.find(|c| !f(c)).unwrap_or(text.len())
}

/// A register at the beginning of a text, without its number, and how long it is: of `%f12` `%f`, of `v12` `v`, of `v[4:7]`
/// `v[4]`.
fn register(text: &str) -> Option<(String, usize)> {
    let digit = |c: char| c.is_ascii_digit();
    if let Some(rest) = text.strip_prefix('%') {
        let name = prefix(rest, |c| c.is_ascii_alphabetic());
        let number = prefix(&rest[name..], digit);
        return Some((format!("%{}", &rest[..name]), 1 + name + number));
    }
    let bank = text.chars().next().filter(|bank| "vas".contains(*bank))?;
    let rest = &text[1..];
    if let Some(range) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(range, _)| range) {
        let (first, last) = range.split_once(':')?;
        let count = last.parse::<usize>().ok()? + 1 - first.parse::<usize>().ok()?;
        return Some((format!("{bank}[{count}]"), 3 + range.len()));
    }
    let number = prefix(rest, digit);
    let ends = !rest[number..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    (number > 0 && ends).then(|| (bank.to_string(), 1 + number))
}

/// An instruction without the numbers of its registers, and with runs of alike ones counted.
fn normal(line: &str) -> String {
    let line = line.trim().trim_end_matches(';').split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = String::new();
    let mut rest = line.as_str();
    while let Some(c) = rest.chars().next() {
        let begins = !out.ends_with(|c: char| c.is_ascii_alphanumeric() || "_.%".contains(c));
        let Some((name, length)) = register(rest).filter(|_| begins) else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        rest = &rest[length..];
        let mut count = 1;
        if name.starts_with('%') {
            let next = |rest: &str| {
                let after = rest.strip_prefix(',').map(|rest| rest.strip_prefix(' ').unwrap_or(rest))?;
                register(after).filter(|(next, _)| *next == name).map(|(_, length)| rest.len() - after.len() + length)
            };
            while let Some(length) = next(rest) {
                (rest, count) = (&rest[length..], count + 1);
            }
        }
        out += &if count > 1 { format!("{name}*{count}") } else { name };
    }
    out
}

/// The instructions whose names begin so; inside of blocks of inline assembly, too.
fn instructions(assembly: &str, names: &[&str]) -> Vec<String> {
    // PTX may break lines inside of an instruction.
    let statements: Vec<&str> = match assembly.contains(".visible .entry") {
        true => assembly.split(';').collect(),
        false => assembly.lines().collect(),
    };
    let bare = |statement: &str| -> String {
        let rest = statement
            .lines()
            .map(str::trim)
            .skip_while(|line| line.is_empty() || line.starts_with("//") || line.ends_with(':') || *line == "{");
        rest.collect::<Vec<_>>().join(" ").trim_start_matches("{ ").to_owned()
    };
    let wanted = |statement: &String| {
        let name = match statement.starts_with('@') {
            true => statement.split_once(' ').map_or("", |(_, rest)| rest.trim()),
            false => statement,
        };
        names.iter().any(|wanted| name.starts_with(wanted))
    };
    statements.into_iter().map(bare).filter(wanted).map(|statement| normal(&statement)).collect()
}

/// One atom's part of a listing: its text on each chip that has it, chips with the same text together.
fn entry(name: &str, texts: Vec<(Target, Vec<String>)>) -> String {
    let mut alike: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for (target, text) in texts {
        assert!(!text.is_empty(), "{name} on {target}: nothing of it is left in the assembly");
        match alike.iter_mut().find(|(of, _)| *of == text) {
            Some((_, targets)) => targets.push(target.to_string()),
            None => alike.push((text, vec![target.to_string()])),
        }
    }
    let mut out = String::new();
    for (text, targets) in alike {
        let _ = writeln!(out, "{name} on {}", targets.join(" "));
        for line in text {
            let _ = writeln!(out, "  {line}");
        }
    }
    out
}

fn mma_text<'c>(context: &'c Rc<IrContext>, spec: &MmaSpec) -> Text<'c> {
    let mut text = Text::new(context);
    let types = [("a", &spec.a), ("b", &spec.b), ("c", &spec.c)].map(|(name, operand)| text.register(name, operand));
    let counts = [spec.a, spec.b, spec.c].map(|operand| operand.registers());
    let (result, count) = (&types[2], counts[2]);
    if spec.op == MatrixOp::Fma {
        text.line(format!("%r = math.fma %a, %b, %c : {result}"));
    } else {
        let repeated = |word: &str, count: usize| vec![word.to_owned(); count];
        let operands = [repeated("%a", counts[0]), repeated("%b", counts[1]), repeated("%c", counts[2])].concat();
        let given: Vec<_> = types.iter().zip(counts).flat_map(|(ty, count)| repeated(ty, count)).collect();
        let [m, n, k] = spec.shape;
        let segments = match spec.op {
            MatrixOp::MmaSync => {
                format!(", operandSegmentSizes = array<i32: {}, {}, {}>", counts[0], counts[1], counts[2])
            }
            _ => String::new(),
        };
        let results = if count == 1 { "%r".to_owned() } else { format!("%r:{count}") };
        text.line(format!(
            "{results} = \"{}\"({}) {{m = {m} : i64, n = {n} : i64, k = {k} : i64, kind = \"{}\"{segments}}} : ({}) -> ({})",
            spec.op.name(),
            operands.join(", "),
            spec.kind,
            given.join(", "),
            repeated(result, count).join(", "),
        ));
    }
    let bytes = spec.c.element.bytes() * spec.c.pack;
    text.store(count, result, bytes);
    text
}

/// Every matrix instruction of a warp or thread, on every chip that has it.
#[test]
fn matrix_instructions() {
    let context = IrContext::new().unwrap();
    for op in [MatrixOp::MmaSync, MatrixOp::Mfma, MatrixOp::Fma] {
        let mut listing = String::new();
        for spec in MMA_TABLE.iter().filter(|spec| spec.op == op) {
            let text = mma_text(&context, spec);
            let texts = Target::ALL.into_iter().filter(|target| spec.legal_on(*target).is_ok()).map(|target| {
                let names: &[&str] = match op {
                    MatrixOp::MmaSync => &["mma."],
                    MatrixOp::Mfma => &["v_mfma", "v_smfma"],
                    MatrixOp::Fma => &["fma.", "v_fma", "v_pk_fma"],
                };
                (target, instructions(&text.assembly(target), names))
            });
            listing += &entry(&spec.name(), texts.collect());
        }
        insta::assert_snapshot!(format!("{op:?}"), listing);
    }
}

/// Warpgroups' products of one kind; the left factor is in registers or in shared memory, there with k or m contiguous.
fn wgmma_text<'c>(context: &'c Rc<IrContext>, specs: &[&WgmmaSpec], left: &str) -> Text<'c> {
    let mut text = Text::new(context);
    text.shared();
    let factor = text.register("a", &specs[0].a);
    for spec in specs {
        let [m, n, k] = spec.shape;
        let row = k * spec.a.element.bytes();
        let count = if left == "registers" { spec.a.registers() } else { 1 };
        let (operand, ty, a_layout, b_layout) = match left {
            "registers" => ("%a", factor.as_str(), "reg".to_owned(), format!("k:{row}:{n}")),
            // Panels of 32 bytes along m and n.
            "transposed" => ("%s", "!llvm.ptr<3>", format!("mn:32:{k}"), format!("mn:32:{k}")),
            _ => ("%s", "!llvm.ptr<3>", format!("k:{row}:{m}"), format!("k:{row}:{n}")),
        };
        let sums = spec.d.registers();
        let results = vec!["f32"; sums].join(", ");
        text.line(format!(
            "%w{n}:{sums} = \"lw.wgmma\"({}, %s) {{m = {m} : i64, n = {n} : i64, k = {k} : i64, kind = \"{}\", zero = true, \
             a_layout = \"{a_layout}\", b_layout = \"{b_layout}\", operandSegmentSizes = array<i32: {count}, 1, 0>}} : \
             ({}, !llvm.ptr<3>) -> ({results})",
            vec![operand; count].join(", "),
            spec.kind,
            vec![ty; count].join(", "),
        ));
        let each: Vec<_> = (0..sums).map(|number| format!("%w{n}#{number}")).collect();
        text.line(format!(
            "%d{n}:{sums} = \"lw.wgmma_wait\"({}) {{groups = 0 : i64}} : ({results}) -> ({results})",
            each.join(", ")
        ));
        text.line(format!("%p{n} = llvm.getelementptr %p[{n}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32"));
        text.line(format!("\"lw.store\"(%d{n}#1, %p{n}) {{align = 4 : i64}} : (f32, !llvm.ptr<1>) -> ()"));
    }
    text
}

/// Every warpgroup product: each kind and N, with each place that its left factor may have.
#[test]
fn warpgroup_products() {
    let context = IrContext::new().unwrap();
    let kinds: BTreeSet<_> = WGMMA_TABLE.iter().map(|spec| spec.kind).collect();
    let mut listing = String::new();
    for kind in kinds {
        for left in ["shared", "registers", "transposed"] {
            let specs = WGMMA_TABLE.iter().filter(|spec| spec.kind == kind);
            // Panels of 16 columns.
            let specs: Vec<_> = specs
                .filter(|spec| left != "transposed" || spec.transposes && spec.shape[1].is_multiple_of(16))
                .collect();
            for target in Target::ALL.into_iter().filter(|target| WgmmaSpec::is_on(*target) && !specs.is_empty()) {
                let assembly = wgmma_text(&context, &specs, left).assembly(target);
                let found = instructions(&assembly, &["wgmma.mma_async"]);
                assert_eq!(found.len(), specs.len(), "{kind} {left} on {target}:\n{assembly}");
                for (spec, instruction) in specs.iter().zip(found) {
                    assert!(instruction.contains(&spec.name()), "{} is not {instruction}", spec.name());
                    listing += &entry(&format!("{} {left}", spec.name()), vec![(target, vec![instruction])]);
                }
            }
        }
    }
    insta::assert_snapshot!("warpgroup_products", listing);
}

/// The type of so many bits of 16-bit floats, or of bytes.
fn type_of(bits: usize) -> &'static str {
    match bits {
        8 => "i8",
        16 => "f16",
        32 => "vector<2xf16>",
        64 => "vector<4xf16>",
        _ => "vector<8xf16>",
    }
}

fn copy_text<'c>(context: &'c Rc<IrContext>, spec: &CopySpec) -> (Text<'c>, Vec<&'static str>) {
    let mut text = Text::new(context);
    let (op, variant) = spec.name.split_once('.').unwrap();
    let bits = variant.parse::<usize>().unwrap_or(32);
    let (bytes, ty) = (bits / 8, type_of(bits));
    text.shared();
    text.line("%t = gpu.thread_id x");
    text.line("%t64 = arith.index_cast %t : index to i64");
    text.line("%i = arith.trunci %t64 : i64 to i32");
    text.line("%g = llvm.getelementptr %q[%t64] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, vector<2xi64>");
    text.line("%l = llvm.getelementptr %s[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<2xi64>");
    let bounds = ["%n: i64", "%m: i1"].map(str::to_owned);
    let given = format!("%v: {ty}");
    match op {
        "load" => {
            text.line(format!("%r = \"lw.load\"(%g) {{align = {bytes} : i64}} : (!llvm.ptr<1>) -> {ty}"));
            text.store(1, ty, bytes);
            (text, vec!["ld.global", "global_load"])
        }
        "store" => {
            text.arguments.push(given);
            text.line(format!("\"lw.store\"(%v, %g) {{align = {bytes} : i64}} : ({ty}, !llvm.ptr<1>) -> ()"));
            (text, vec!["st.global", "global_store"])
        }
        "load_shared" | "store_shared" => {
            // What nothing writes is not read, and what nothing reads is not written.
            text.arguments.extend([given, "%j: i32".to_owned()]);
            text.line("%w = llvm.getelementptr %s[%j] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<2xi64>");
            text.line(format!("\"lw.store\"(%v, %w) {{align = {bytes} : i64}} : ({ty}, !llvm.ptr<3>) -> ()"));
            text.line("gpu.barrier");
            text.line(format!("%r = \"lw.load\"(%l) {{align = {bytes} : i64}} : (!llvm.ptr<3>) -> {ty}"));
            text.store(1, ty, bytes);
            let names = if op == "load_shared" { ["ld.shared", "ds_read"] } else { ["st.shared", "ds_write"] };
            (text, names.to_vec())
        }
        "cp_async" => {
            text.arguments.extend(bounds);
            text.line(format!(
                "\"lw.cp_async\"(%l, %g, %m) {{bytes = {bytes} : i64}} : (!llvm.ptr<3>, !llvm.ptr<1>, i1) -> ()"
            ));
            text.line("\"lw.cp_async_commit\"() : () -> ()");
            text.line("\"lw.cp_async_wait\"() {groups = 0 : i64} : () -> ()");
            (text, vec!["cp.async.ca", "cp.async.cg"])
        }
        "buffer_load" => {
            text.arguments.extend(bounds);
            text.line(format!("%r = \"lw.buffer_load\"(%q, %n, %i, %m) : (!llvm.ptr<1>, i64, i32, i1) -> {ty}"));
            text.store(1, ty, bytes);
            (text, vec!["buffer_load"])
        }
        "buffer_store" => {
            text.arguments.extend(bounds);
            text.arguments.push(given);
            text.line(format!("\"lw.buffer_store\"(%v, %q, %n, %i, %m) : ({ty}, !llvm.ptr<1>, i64, i32, i1) -> ()"));
            (text, vec!["buffer_store"])
        }
        "load_lds" => {
            text.line(format!(
                "\"lw.load_lds\"(%s, %g) {{bytes = {bytes} : i64}} : (!llvm.ptr<3>, !llvm.ptr<1>) -> ()"
            ));
            text.line("gpu.barrier");
            (text, vec!["global_load_lds", "s_mov_b32 m0"])
        }
        "buffer_load_lds" => {
            text.arguments.extend(bounds);
            text.line(format!(
                "\"lw.buffer_load_lds\"(%s, %q, %n, %i, %m) {{bytes = {bytes} : i64, unit = 4 : i64}} : \
                 (!llvm.ptr<3>, !llvm.ptr<1>, i64, i32, i1) -> ()"
            ));
            text.line("gpu.barrier");
            (text, vec!["buffer_load", "s_mov_b32 m0"])
        }
        "ldmatrix" | "stmatrix" => {
            let trans = variant.ends_with(".trans");
            let count = spec.bits() / 32;
            let types = vec!["vector<2xf16>"; count].join(", ");
            if op == "ldmatrix" {
                let results = if count == 1 { "%r".to_owned() } else { format!("%r:{count}") };
                text.line(format!("{results} = \"lw.ldmatrix\"(%l) {{trans = {trans}}} : (!llvm.ptr<3>) -> ({types})"));
                text.store(count, "vector<2xf16>", 4);
            } else {
                text.arguments.push("%v: vector<2xf16>".to_owned());
                let values = vec!["%v"; count].join(", ");
                text.line(format!("\"lw.stmatrix\"(%l, {values}) {{trans = {trans}}} : (!llvm.ptr<3>, {types}) -> ()"));
            }
            (text, vec!["ldmatrix", "stmatrix"])
        }
        other => panic!("copies by `{other}` have no text here"),
    }
}

/// Every copy, on every chip that has it.
#[test]
fn copies() {
    let context = IrContext::new().unwrap();
    let mut listing = String::new();
    for spec in COPY_TABLE {
        let (text, names) = copy_text(&context, spec);
        let targets = Target::ALL.into_iter().filter(|target| spec.legal_on(*target).is_ok());
        let texts = targets.map(|target| (target, instructions(&text.assembly(target), &names))).collect();
        listing += &entry(spec.name, texts);
    }
    insta::assert_snapshot!("copies", listing);
}

#[test]
fn registers_lose_their_numbers() {
    for (line, wanted) in [
        (
            "mma.sync.aligned.m16n8k8 \t{%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7}, {%f1, %f2};",
            "mma.sync.aligned.m16n8k8 {%r*4}, {%r*2}, {%r}, {%f*2}",
        ),
        ("\tv_mfma_f32_32x32x8_f16 a[0:15], v[4:5], v12, a[0:15]", "v_mfma_f32_32x32x8_f16 a[16], v[2], v, a[16]"),
        ("global_load_dwordx4 v[0:3], v0, s[2:3] offset:16", "global_load_dwordx4 v[4], v, s[2] offset:16"),
        ("st.shared.v4.b32 [%rd1+16], {%r1, %r2, %r3, %r4};", "st.shared.v4.b32 [%rd+16], {%r*4}"),
    ] {
        assert_eq!(normal(line), wanted);
    }
}
