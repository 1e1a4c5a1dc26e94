//! `lacewing compile` for a kernel of a user's own program.

use std::ffi::OsString;
use std::fs;

use lacewing::cli::{Io, run};
use lacewing::prelude::*;
use lacewing::runtime::Error;
use lacewing::runtime::registry::{KernelEntry, Parameter};

/// Counts, and keeps nothing: enough to have a loop in every form.
#[kernel(block = [threads, 1, 1])]
fn spin(#[comptime] threads: usize, count: I32) {
    let mut sum = I32::from(0);
    for i in range(count) {
        sum += i;
    }
}

static SPIN: KernelEntry = KernelEntry {
    name: "spin",
    about: "a loop",
    targets: &[Target::SM_80, Target::GFX942],
    parameters: &[Parameter::usize("threads", 64, "threads of a block")],
    build: |settings, _| {
        let threads = settings.usize("threads")?;
        if threads == 0 {
            return Err(Error::Setting("`threads` must not be 0".to_owned()));
        }
        Ok(Box::new(spin::new(threads)))
    },
    runner: None,
};

fn lacewing(arguments: &[&str]) -> (u8, Vec<u8>, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let arguments = ["lacewing"].iter().chain(arguments).map(OsString::from);
    let status = run(&[&SPIN], arguments, &mut Io { out: &mut out, err: &mut err });
    (status, out, String::from_utf8(err).unwrap())
}

fn compiled(target: &str, emit: &str) -> String {
    let (status, out, err) = lacewing(&["compile", "spin", "--target", target, "--emit", emit]);
    assert_eq!((status, err.as_str()), (0, ""));
    String::from_utf8_lossy(&out).into_owned()
}

#[test]
fn each_form_of_each_vendor() {
    for target in ["sm_80", "gfx942"] {
        let trace = compiled(target, "trace");
        assert!(trace.contains("scf.for") && trace.contains(&format!("lw.target = \"{target}\"")), "{trace}");
        assert!(compiled(target, "lowered").contains("gpu.func"));
        assert!(compiled(target, "llvm").contains("define "));
    }
    assert!(compiled("sm_80", "ptx").contains(".target sm_80"));
    assert!(compiled("gfx942", "amdgcn").contains("amdgcn-amd-amdhsa--gfx942"));
    // The assembly is what one gets without asking.
    let (_, out, _) = lacewing(&["compile", "spin", "--target", "sm_80"]);
    assert_eq!(String::from_utf8_lossy(&out), compiled("sm_80", "ptx"));
}

#[test]
fn settings_reach_the_kernel() {
    let (status, out, err) =
        lacewing(&["compile", "spin", "--target", "sm_80", "--emit", "trace", "--set", "threads=96"]);
    assert_eq!(status, 0, "{err}");
    assert!(String::from_utf8_lossy(&out).contains("known_block_size = array<i32: 96, 1, 1>"));

    let (status, out, err) = lacewing(&["compile", "spin", "--target", "sm_80", "--set", "threads=0"]);
    assert_eq!((status, out.len(), err.as_str()), (2, 0, "error: `threads` must not be 0\n"));
    // A block that the target cannot hold is the kernel's fault, not the command line's.
    let (status, _, err) = lacewing(&["compile", "spin", "--target", "sm_80", "--set", "threads=4096"]);
    assert_eq!(status, 1);
    assert!(err.contains("4096") && err.contains("1024"), "{err}");
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("spin.ptx");
    let path = file.to_str().unwrap();
    let (status, out, _) = lacewing(&["compile", "spin", "--target", "sm_80", "-o", path]);
    assert_eq!((status, out.len()), (0, 0));
    assert_eq!(fs::read_to_string(&file).unwrap(), compiled("sm_80", "ptx"));
    // A failure leaves the file of before, and nothing else.
    let (status, ..) = lacewing(&["compile", "spin", "--target", "sm_80", "--set", "threads=4096", "-o", path]);
    assert_eq!(status, 1);
    assert_eq!(fs::read_to_string(&file).unwrap(), compiled("sm_80", "ptx"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_kernel_without_a_runner_is_only_compiled() {
    let (status, _, err) = lacewing(&["run", "spin", "--random", "1"]);
    assert_eq!(status, 2);
    assert!(err.contains("can only be compiled"), "{err}");
}
