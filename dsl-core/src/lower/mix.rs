//! What kinds of instructions a kernel's code is made of, counted where they stand and not by how often they run.

use crate::Vendor;

/// A kind of instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Tensor cores: `mma`, `wgmma`, `tcgen05`, MFMA.
    Tensor,
    /// Asynchronous copies, their groups and waits.
    AsyncCopy,
    /// Loads from global memory.
    GlobalLoad,
    /// Stores to global memory.
    GlobalStore,
    /// Loads from shared memory.
    SharedLoad,
    /// Stores to shared memory.
    SharedStore,
    /// Loads and stores of a thread's own memory: spills, and arrays that are indexed at run time.
    Local,
    /// Atomics.
    Atomic,
    /// Float arithmetic.
    Float,
    /// Exponentials, reciprocals, roots and the like.
    Special,
    /// Conversions.
    Convert,
    /// Integer arithmetic and logic.
    Integer,
    /// Comparisons and choices.
    Compare,
    /// Exchanges between the threads of a warp.
    Warp,
    /// Barriers, fences and waits.
    Sync,
    /// Jumps.
    Control,
    /// Moves of registers and constants.
    Move,
    /// All others.
    Other,
}

impl Class {
    /// Every kind.
    pub const ALL: [Class; 18] = [
        Class::Tensor,
        Class::AsyncCopy,
        Class::GlobalLoad,
        Class::GlobalStore,
        Class::SharedLoad,
        Class::SharedStore,
        Class::Local,
        Class::Atomic,
        Class::Float,
        Class::Special,
        Class::Convert,
        Class::Integer,
        Class::Compare,
        Class::Warp,
        Class::Sync,
        Class::Control,
        Class::Move,
        Class::Other,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Class::Tensor => "tensor core",
            Class::AsyncCopy => "async copy",
            Class::GlobalLoad => "global load",
            Class::GlobalStore => "global store",
            Class::SharedLoad => "shared load",
            Class::SharedStore => "shared store",
            Class::Local => "local memory",
            Class::Atomic => "atomic",
            Class::Float => "float",
            Class::Special => "special function",
            Class::Convert => "conversion",
            Class::Integer => "integer",
            Class::Compare => "compare and select",
            Class::Warp => "warp exchange",
            Class::Sync => "synchronisation",
            Class::Control => "control",
            Class::Move => "move",
            Class::Other => "other",
        }
    }
}

/// How many instructions of each kind there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mix {
    counts: [u32; Class::ALL.len()],
}

impl Mix {
    /// Counts the instructions of PTX text.
    pub fn of_ptx(text: &str) -> Self {
        // Instructions are indented and end with a semicolon; so do declarations, which start with a dot. Inline
        // assembly, too, has one a line or several behind braces.
        let statements =
            text.lines().map(|line| line.split("//").next().unwrap_or_default()).flat_map(|line| line.split(';'));
        Self::count(statements.filter_map(|statement| {
            let statement = statement.trim_start_matches(|c: char| c.is_whitespace() || c == '{' || c == '}');
            ptx_class(opcode(statement)?)
        }))
    }

    /// Counts the machine instructions that `nvdisasm` shows, as `/*0010*/  @P0 IADD3 R1, .. ;`.
    pub fn of_sass(text: &str) -> Self {
        Self::count(text.lines().filter_map(|line| {
            let rest = line.trim_start().strip_prefix("/*")?;
            let (address, rest) = rest.split_once("*/")?;
            (address.len() >= 4 && address.chars().all(|c| c.is_ascii_hexdigit())).then_some(())?;
            Some(sass_class(opcode(rest.trim_start_matches(|c: char| c.is_whitespace() || c == '{'))?))
        }))
    }

    /// Counts the instructions of AMDGCN text.
    pub fn of_amdgcn(text: &str) -> Self {
        Self::count(text.lines().filter_map(|line| {
            let statement = line.strip_prefix('\t')?.split(';').next()?;
            let name = statement.split_whitespace().next()?;
            let first = name.split('_').next()?;
            matches!(first, "v" | "s" | "ds" | "global" | "buffer" | "flat" | "scratch").then(|| amdgcn_class(name))
        }))
    }

    fn count(classes: impl Iterator<Item = Class>) -> Self {
        let mut mix = Self::default();
        for class in classes {
            if let Some(count) = mix.counts.get_mut(class as usize) {
                *count += 1;
            }
        }
        mix
    }

    /// The instructions of a kind.
    pub fn get(&self, class: Class) -> u32 {
        self.counts.get(class as usize).copied().unwrap_or_default()
    }

    /// All instructions.
    pub fn total(&self) -> u32 {
        self.counts.iter().sum()
    }

    /// The kinds that there are, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Class, u32)> + '_ {
        Class::ALL.into_iter().map(|class| (class, self.get(class))).filter(|(_, count)| *count > 0)
    }

    /// The text that a vendor's mix is counted in.
    pub fn counted_in(vendor: Vendor) -> &'static str {
        match vendor {
            Vendor::Nvidia => "PTX",
            Vendor::Amd => "AMDGCN",
        }
    }
}

/// The name of an instruction behind a predicate.
fn opcode(statement: &str) -> Option<&str> {
    let mut words = statement.split_whitespace();
    let first = words.next()?;
    let name = if first.starts_with('@') { words.next()? } else { first };
    name.starts_with(|c: char| c.is_ascii_alphabetic()).then(|| name.trim_end_matches(','))
}

/// PTX ISA, "Instruction Set". `None` for what is no instruction.
fn ptx_class(name: &str) -> Option<Class> {
    let (base, suffix) = name.split_once('.').unwrap_or((name, ""));
    let has = |word: &str| suffix.split('.').any(|part| part.split("::").next() == Some(word));
    let float = has("f16") || has("f16x2") || has("bf16") || has("bf16x2") || has("f32") || has("f64") || has("f32x2");
    Some(match base {
        "mma" | "wgmma" | "wmma" | "tcgen05" | "ldmatrix" | "stmatrix" => match base {
            "ldmatrix" => Class::SharedLoad,
            "stmatrix" => Class::SharedStore,
            "wgmma" if has("fence") || has("commit_group") || has("wait_group") => Class::Sync,
            "tcgen05" if has("wait") || has("fence") || has("commit") => Class::Sync,
            _ => Class::Tensor,
        },
        "cp" => Class::AsyncCopy,
        "ld" | "ldu" if has("local") => Class::Local,
        "st" if has("local") => Class::Local,
        "ld" | "ldu" if has("shared") => Class::SharedLoad,
        "st" if has("shared") => Class::SharedStore,
        "ld" if has("param") => Class::Move,
        "st" if has("param") => Class::Other,
        "ld" | "ldu" => Class::GlobalLoad,
        "st" => Class::GlobalStore,
        "atom" | "red" => Class::Atomic,
        "ex2" | "lg2" | "rcp" | "rsqrt" | "sqrt" | "sin" | "cos" | "tanh" => Class::Special,
        "cvt" => Class::Convert,
        "add" | "sub" | "mul" | "fma" | "mad" | "div" | "neg" | "abs" | "min" | "max" | "rem" | "copysign" => {
            if float {
                Class::Float
            } else {
                Class::Integer
            }
        }
        "setp" | "set" | "selp" | "slct" | "testp" => Class::Compare,
        "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" | "shf" | "lop3" | "bfe" | "bfi" | "brev" | "popc"
        | "clz" | "prmt" | "mad24" | "mul24" | "addc" | "subc" | "madc" | "sad" | "dp4a" | "bmsk" | "bfind"
        | "szext" | "fns" => Class::Integer,
        "shfl" | "vote" | "match" | "redux" | "elect" | "activemask" => Class::Warp,
        "bar" | "barrier" | "membar" | "fence" | "mbarrier" | "griddepcontrol" | "nanosleep" => Class::Sync,
        "bra" | "brx" | "call" | "ret" | "exit" | "trap" => Class::Control,
        "mov" | "cvta" | "mapa" | "isspacep" => Class::Move,
        "setmaxnreg"
        | "prefetch"
        | "discard"
        | "applypriority"
        | "createpolicy"
        | "brkpt"
        | "pmevent"
        | "getctarank"
        | "clusterlaunchcontrol"
        | "istypep" => Class::Other,
        _ => return None,
    })
}

/// CUDA Binary Utilities, "Instruction Set Reference", by the word before the first dot.
fn sass_class(name: &str) -> Class {
    let (base, suffix) = name.split_once('.').unwrap_or((name, ""));
    match base {
        "HMMA" | "IMMA" | "BMMA" | "DMMA" | "QMMA" | "OMMA" | "HGMMA" | "IGMMA" | "QGMMA" | "BGMMA" | "UTCHMMA"
        | "UTCQMMA" | "UTCIMMA" | "UTCOMMA" | "UTCMMA" => Class::Tensor,
        "LDGSTS" | "UTMALDG" | "UTMASTG" | "UTMAREDG" | "UTMAPF" | "UBLKCP" | "LDGDEPBAR" | "UTMACMDFLUSH"
        | "UTMACCTL" => Class::AsyncCopy,
        "LDG" | "LD" => Class::GlobalLoad,
        "STG" | "ST" => Class::GlobalStore,
        "LDS" | "LDSM" => Class::SharedLoad,
        "STS" | "STSM" => Class::SharedStore,
        "LDL" | "STL" => Class::Local,
        "ATOM" | "ATOMG" | "ATOMS" | "RED" | "REDG" | "REDAS" => Class::Atomic,
        "FADD" | "FMUL" | "FFMA" | "FMNMX" | "FMNMX3" | "FADD2" | "FMUL2" | "FFMA2" | "HADD2" | "HMUL2" | "HFMA2"
        | "HMNMX2" | "DADD" | "DMUL" | "DFMA" => Class::Float,
        "MUFU" => Class::Special,
        "F2F" | "F2I" | "I2F" | "F2FP" | "I2FP" | "FRND" | "I2I" | "I2IP" => Class::Convert,
        "ISETP" | "FSETP" | "HSETP2" | "DSETP" | "FSEL" | "SEL" | "PLOP3" | "UISETP" | "USEL" | "UPLOP3" | "FCHK" => {
            Class::Compare
        }
        "SHFL" | "VOTE" | "VOTEU" | "REDUX" | "MATCH" | "ELECT" => Class::Warp,
        "BAR" | "MEMBAR" | "FENCE" | "SYNCS" | "DEPBAR" | "ERRBAR" | "WARPSYNC" | "WARPGROUP" | "CCTL"
        | "UCGABAR_ARV" | "UCGABAR_WAIT" | "NANOSLEEP" | "ACQBULK" | "CGAERRBAR" => Class::Sync,
        "BRA" | "BRX" | "JMP" | "CALL" | "RET" | "EXIT" | "BSSY" | "BSYNC" | "BREAK" | "KILL" | "BPT" | "YIELD" => {
            Class::Control
        }
        "MOV" | "UMOV" | "S2R" | "S2UR" | "CS2R" | "R2UR" | "LDC" | "LDCU" | "ULDC" | "R2P" | "P2R" | "MOVM"
        | "UR2R" => Class::Move,
        "NOP" => Class::Other,
        // IADD3, IMAD, LOP3, SHF, PRMT, LEA, and their uniform forms.
        _ if base.starts_with(['I', 'U', 'L', 'S', 'P', 'V']) && !suffix.contains("F32") => Class::Integer,
        _ => Class::Other,
    }
}

/// AMD CDNA3 ISA, "Instruction Set".
fn amdgcn_class(name: &str) -> Class {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    let memory = |load, store| if name.contains("_load") { load } else { store };
    let float = || ["_f16", "_f32", "_f64", "_bf16"].iter().any(|ty| name.contains(ty));
    if starts(&["v_mfma", "v_smfmac"]) {
        Class::Tensor
    } else if name.contains("atomic") || starts(&["ds_add", "ds_max", "ds_min", "ds_cmpst", "ds_wrxchg"]) {
        Class::Atomic
    } else if starts(&["ds_bpermute", "ds_permute", "ds_swizzle", "v_readlane", "v_readfirstlane", "v_writelane"])
        || name.contains("_dpp")
        || starts(&["v_permlane"])
    {
        Class::Warp
    } else if starts(&["ds_read"]) {
        Class::SharedLoad
    } else if starts(&["ds_write"]) {
        Class::SharedStore
    } else if starts(&["scratch_"]) {
        Class::Local
    } else if name.contains("_lds") {
        Class::AsyncCopy
    } else if starts(&["global_", "buffer_", "flat_"]) {
        memory(Class::GlobalLoad, Class::GlobalStore)
    } else if starts(&["s_load", "s_buffer_load", "v_mov", "s_mov", "v_accvgpr", "s_cmov"]) {
        Class::Move
    } else if starts(&["s_barrier", "s_waitcnt", "s_sleep"]) {
        Class::Sync
    } else if starts(&["s_branch", "s_cbranch", "s_endpgm", "s_setpc", "s_swappc", "s_trap", "s_call"]) {
        Class::Control
    } else if starts(&["v_cmp", "s_cmp", "v_cndmask", "s_cselect", "s_bitcmp"]) {
        Class::Compare
    } else if starts(&["v_exp", "v_log", "v_rcp", "v_rsq", "v_sqrt", "v_sin", "v_cos"]) {
        Class::Special
    } else if starts(&["v_cvt"]) {
        Class::Convert
    } else if starts(&["s_nop", "s_setprio", "s_sched", "s_code_end", "s_set", "s_inst_prefetch"]) {
        Class::Other
    } else if float() {
        Class::Float
    } else {
        Class::Integer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_is_counted_by_instruction() {
        let text = "
.visible .entry k(
	.param .u64 .ptr .global .align 16 k_param_0
)
.reqntid 128, 1, 1
{
	.reg .pred 	%p<3>;
	ld.param.b64 	%rd1, [k_param_0];
	mov.u32 	%r1, %tid.x;
	// begin inline asm
	{ ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r2, %r3, %r4, %r5}, [%r1]; mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1}, {%r2}, {%r3}, {%f2}; }
	// end inline asm
	@%p1 bra 	$L__BB0_2;
	ld.global.v4.b32 	{%r6, %r7, %r8, %r9}, [%rd1];
	st.shared::cta.b32 	[%r1], %r6;
	cp.async.cg.shared.global [%r1], [%rd1], 16;
	fma.rn.f32 	%f3, %f1, %f1, %f2;
	mad.lo.s32 	%r10, %r1, %r1, %r2;
	ex2.approx.ftz.f32 	%f4, %f3;
	ld.local.b32 	%r11, [%r1];
$L__BB0_2:
	bar.sync 	0;
	wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%f1}, %rd1, %rd2, p, 1, 1, 0, 0;
	wgmma.wait_group.sync.aligned 0;
	ret;
}";
        let mix = Mix::of_ptx(text);
        let counts: Vec<(&str, u32)> = mix.iter().map(|(class, count)| (class.name(), count)).collect();
        let wanted = [
            ("tensor core", 2),
            ("async copy", 1),
            ("global load", 1),
            ("shared load", 1),
            ("shared store", 1),
            ("local memory", 1),
            ("float", 1),
            ("special function", 1),
            ("integer", 1),
            ("synchronisation", 2),
            ("control", 2),
            ("move", 2),
        ];
        assert_eq!(counts, wanted);
        assert_eq!(mix.total(), 16);
    }

    #[test]
    fn machine_code_is_counted_by_instruction() {
        let text = "
.text.k:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 BRA `(.L_x_1) ;
                                                          /* 0x0000000000000000 */
        /*0020*/                   HGMMA.64x64x16.F32.BF16 R24, gdesc[UR8], R24, gsb0 ;
        /*0030*/                   LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0040*/                   STL [R1], R4 ;
        /*0050*/                   MUFU.EX2 R5, R6 ;
        /*0060*/                   IMAD.WIDE R2, R3, 0x4, R4 ;
        /*0070*/                   R2UR UR4, R2 ;
        /*0080*/                   EXIT ;";
        let mix = Mix::of_sass(text);
        for class in [Class::Tensor, Class::GlobalLoad, Class::Local, Class::Special, Class::Integer] {
            assert_eq!(mix.get(class), 1, "{class:?}");
        }
        assert_eq!((mix.get(Class::Control), mix.get(Class::Move), mix.total()), (2, 2, 9));
    }

    #[test]
    fn amdgcn_is_counted_by_instruction() {
        let text = "\ts_load_dwordx2 s[0:1], s[4:5], 0x0\n\tv_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]\n\
                    \tglobal_load_dwordx4 v[0:3], v[4:5], off ; comment\n\tds_read_b128 v[0:3], v4\n\ts_waitcnt vmcnt(0)\n\
                    \tv_fma_f32 v0, v1, v2, v3\n\tv_add_u32_e32 v0, v1, v2\n\tscratch_store_dword off, v0, s0\n\ts_endpgm\n\
                    \t.section\t.rodata\n; NumVgprs: 8\n";
        let mix = Mix::of_amdgcn(text);
        for class in [
            Class::Tensor,
            Class::GlobalLoad,
            Class::SharedLoad,
            Class::Sync,
            Class::Float,
            Class::Integer,
            Class::Local,
            Class::Control,
            Class::Move,
        ] {
            assert_eq!(mix.get(class), 1, "{class:?}");
        }
        assert_eq!(mix.total(), 9);
    }
}
