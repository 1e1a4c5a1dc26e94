//! Instructions in the snapshots of assembly, now or at an earlier commit.

use std::fs;

use crate::process::{Context, Error, Workspace};

/// Counts of one snapshot.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    all: usize,
    /// Integer arithmetic and logic, of addresses and indices mostly.
    integer: usize,
    memory: usize,
    matrix: usize,
}

/// The instruction of a line of PTX or AMDGCN, without its predicate.
fn instruction(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let first = words.next().filter(|word| !word.starts_with(['.', '/', '$', '{', '}']))?;
    let name = if first.starts_with('@') { words.next()? } else { first };
    let is_ptx = line.trim_end().ends_with(';');
    let is_amdgcn = ["v_", "s_", "ds_", "global_", "buffer_", "flat_", "scratch_"].iter().any(|p| name.starts_with(p));
    (is_ptx || is_amdgcn).then(|| name.trim_end_matches(';'))
}

impl Counts {
    fn of(text: &str) -> Self {
        let mut counts = Self::default();
        for name in text.lines().filter_map(instruction) {
            counts.all += 1;
            let parts: Vec<&str> = name.split(['.', '_']).collect();
            let has = |words: &[&str]| parts.iter().any(|part| words.contains(part));
            let float = has(&["f16", "f32", "f64", "bf16", "f16x2", "bf16x2", "tf32"]);
            if has(&["mma", "mfma", "wgmma"]) || name.starts_with("ldmatrix") || name.starts_with("stmatrix") {
                counts.matrix += 1;
            } else if has(&["ld", "st", "cp", "load", "store", "read", "write", "atom", "red"]) && !has(&["param"]) {
                counts.memory += 1;
            } else if !float && !has(&["pred"]) && parts.iter().any(|part| is_arithmetic(part)) {
                counts.integer += 1;
            }
        }
        counts
    }
}

fn is_arithmetic(part: &str) -> bool {
    const NAMES: &[&str] = &[
        "add", "sub", "mul", "mad", "shl", "shr", "shf", "and", "or", "xor", "not", "neg", "bfe", "bfi", "prmt", "min",
        "max", "div", "rem", "lshl", "lshr", "ashr", "add3", "lshlrev", "lshrrev", "ashrrev", "subrev", "or3", "perm",
        "addc", "subb", "med3",
    ];
    NAMES.contains(&part)
}

/// `cargo xtask count [--at COMMIT] SNAPSHOT..`: names as in `tests/snapshots`, without `.snap`.
pub fn run(workspace: &Workspace, commit: Option<&str>, names: &[String]) -> Result<(), Error> {
    println!("{:<64} {:>6} {:>8} {:>7} {:>7}", "snapshot", "all", "integer", "memory", "matrix");
    for name in names {
        let path = format!("tests/snapshots/{name}.snap");
        let text = match commit {
            None => fs::read_to_string(workspace.root().join(&path)).cannot(format!("read {path}"))?,
            Some(commit) => {
                let mut git = workspace.command("git");
                let output = git.args(["show", &format!("{commit}:{path}")]).output().cannot("run git")?;
                if !output.status.success() {
                    return Err(Error::new(format!("there is no {path} at {commit}")));
                }
                String::from_utf8_lossy(&output.stdout).into_owned()
            }
        };
        let Counts { all, integer, memory, matrix } = Counts::of(&text);
        println!("{name:<64} {all:>6} {integer:>8} {memory:>7} {matrix:>7}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_of_both_vendors_are_counted() {
        let ptx = "\
.visible .entry k(
	.reg .b32 	%r<9>;
	ld.param.b64 	%rd1, [k_param_0];
	mov.u32 	%r1, %tid.x;
	@%p1 bra 	$L__BB0_2;
	mad.lo.s32 	%r2, %r1, 2, %r1;
	ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r2, %r3, %r4, %r5}, [%r1];
	add.f32 	%f1, %f1, %f2;
	st.global.b32 	[%rd1], %r2;
	and.pred 	%p1, %p1, %p2;
$L__BB0_2:
	ret;
";
        assert_eq!(Counts::of(ptx), Counts { all: 9, integer: 1, memory: 1, matrix: 1 });
        let amdgcn = "\
	.globl	k
k:
	s_load_dwordx2 s[0:1], s[4:5], 0x0
	v_lshlrev_b32_e32 v0, 2, v0
	v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], 0
	ds_read_b128 v[0:3], v4
	v_add_f32_e32 v1, v2, v3
	s_endpgm
";
        assert_eq!(Counts::of(amdgcn), Counts { all: 6, integer: 1, memory: 2, matrix: 1 });
    }
}
