//! What a build needs, where each thing is looked for, and the Debian package that holds it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::process;

/// The version of LLVM and MLIR that `melior` binds.
pub const LLVM_MAJOR: &str = "22";
/// The prefix of Debian's packages, and what `.cargo/config.toml` sets.
pub const DEFAULT_PREFIX: &str = "/usr/lib/llvm-22";
/// The variable by which `mlir-sys` finds LLVM.
pub const PREFIX_VARIABLE: &str = "MLIR_SYS_220_PREFIX";

/// What shows that a need is met.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sign {
    /// A file below LLVM's prefix.
    InLlvm(&'static str),
    /// A header in a folder that the C compiler searches.
    Header(&'static str),
    /// A program on `PATH`.
    Program(&'static str),
    /// A module that `python3` can import.
    PythonModule(&'static str),
}

/// One thing that must be there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Need {
    /// The package of Debian and Ubuntu that holds it.
    pub package: &'static str,
    /// What it is for, in words that follow "for".
    pub why: &'static str,
    sign: Sign,
}

/// Needed to build any crate that speaks to MLIR.
pub const BUILD: &[Need] = &[
    need("g++", "linking, and the C++ part of the MLIR bindings", Sign::Program("c++")),
    need("llvm-22", "llvm-config, which says how to link", Sign::InLlvm("bin/llvm-config")),
    need("llvm-22-dev", "LLVM's static libraries", Sign::InLlvm("lib/libLLVMCore.a")),
    need("libmlir-22-dev", "MLIR's headers and libraries", Sign::InLlvm("include/mlir-c/IR.h")),
    need("mlir-22-tools", "mlir-tblgen and mlir-opt", Sign::InLlvm("bin/mlir-tblgen")),
    need("libpolly-22-dev", "a static link of LLVM", Sign::InLlvm("lib/libPolly.a")),
    need("lld-22", "linking AMDGCN code objects", Sign::InLlvm("bin/ld.lld")),
    need("libclang-22-dev", "bindgen, which reads MLIR's C API", Sign::InLlvm("lib/libclang.so")),
    need("clang-22", "the headers that bindgen reads with", Sign::InLlvm("bin/clang")),
    need("libzstd-dev", "a static link of LLVM", Sign::Header("zstd.h")),
    need("libz3-dev", "a static link of LLVM", Sign::Header("z3.h")),
    need("zlib1g-dev", "a static link of LLVM", Sign::Header("zlib.h")),
    need("libxml2-dev", "a static link of LLVM", Sign::Header("libxml2/libxml/xmlversion.h")),
];

/// Needed to fetch `ptxas`, where there is none yet.
pub const FETCH_PTXAS: &[Need] = &[
    need("python3", "unpacking ptxas", Sign::Program("python3")),
    need("python3-pip", "downloading ptxas", Sign::PythonModule("pip")),
];

const fn need(package: &'static str, why: &'static str, sign: Sign) -> Need {
    Need { package, why, sign }
}

/// What a machine has; a test puts another in its place.
pub trait Machine {
    /// Whether there is a file at this path.
    fn has_file(&self, path: &Path) -> bool;
    /// The program of this name on `PATH`.
    fn program(&self, name: &str) -> Option<PathBuf>;
    /// What the program prints, where it succeeds.
    fn output(&self, program: &Path, args: &[&str]) -> Option<String>;
    /// The value of an environment variable.
    fn variable(&self, name: &str) -> Option<OsString>;
}

/// The machine that this program runs on.
pub struct ThisMachine;

impl Machine for ThisMachine {
    fn has_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn program(&self, name: &str) -> Option<PathBuf> {
        process::which(name)
    }

    fn output(&self, program: &Path, args: &[&str]) -> Option<String> {
        process::output(std::process::Command::new(program).args(args))
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        std::env::var_os(name)
    }
}

/// The folders in which a C compiler of this machine looks for headers.
fn header_folders() -> Vec<PathBuf> {
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    ["/usr/include", "/usr/local/include", "/opt/homebrew/include"]
        .iter()
        .map(PathBuf::from)
        .chain([Path::new("/usr/include").join(triplet)])
        .collect()
}

impl Need {
    /// Whether the machine has it; `prefix` is where LLVM was found.
    fn met(&self, machine: &dyn Machine, prefix: Option<&Path>) -> bool {
        match self.sign {
            Sign::InLlvm(file) => prefix.is_some_and(|prefix| machine.has_file(&prefix.join(file))),
            Sign::Header(file) => header_folders().iter().any(|folder| machine.has_file(&folder.join(file))),
            Sign::Program(name) => machine.program(name).is_some(),
            Sign::PythonModule(name) => machine
                .program("python3")
                .is_some_and(|python| machine.output(&python, &["-c", &format!("import {name}")]).is_some()),
        }
    }
}

/// The needs that the machine does not meet.
pub fn missing(machine: &dyn Machine, prefix: Option<&Path>, needs: &[Need]) -> Vec<Need> {
    needs.iter().copied().filter(|need| !need.met(machine, prefix)).collect()
}

/// Where LLVM 22 is: by `MLIR_SYS_220_PREFIX`, in Debian's place, by `llvm-config-22`, by
/// `llvm-config`. A place that holds another version does not count.
pub fn llvm_prefix(machine: &dyn Machine) -> Option<PathBuf> {
    let named = machine.variable(PREFIX_VARIABLE).filter(|value| !value.is_empty());
    let by_config = |name: &str| {
        let config = machine.program(name)?;
        Some(PathBuf::from(machine.output(&config, &["--prefix"])?.trim()))
    };
    let is_ours = |prefix: &PathBuf| {
        let config = prefix.join("bin/llvm-config");
        machine.has_file(&config)
            && machine
                .output(&config, &["--version"])
                .is_some_and(|version| version.trim().split('.').next() == Some(LLVM_MAJOR))
    };
    named
        .map(PathBuf::from)
        .filter(is_ours)
        .or_else(|| Some(PathBuf::from(DEFAULT_PREFIX)).filter(is_ours))
        .or_else(|| by_config("llvm-config-22").filter(is_ours))
        .or_else(|| by_config("llvm-config").filter(is_ours))
}

#[cfg(test)]
pub mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// A machine made of lists.
    #[derive(Default)]
    pub struct Fake {
        pub files: BTreeSet<PathBuf>,
        pub programs: BTreeMap<&'static str, PathBuf>,
        pub outputs: BTreeMap<(PathBuf, String), String>,
        pub variables: BTreeMap<&'static str, OsString>,
    }

    impl Machine for Fake {
        fn has_file(&self, path: &Path) -> bool {
            self.files.contains(path)
        }

        fn program(&self, name: &str) -> Option<PathBuf> {
            self.programs.get(name).cloned()
        }

        fn output(&self, program: &Path, args: &[&str]) -> Option<String> {
            self.outputs.get(&(program.to_path_buf(), args.join(" "))).cloned()
        }

        fn variable(&self, name: &str) -> Option<OsString> {
            self.variables.get(name).cloned()
        }
    }

    impl Fake {
        /// Puts an LLVM of this version under `prefix`, whole.
        pub fn add_llvm(&mut self, prefix: &str, version: &str) {
            for need in BUILD {
                if let Sign::InLlvm(file) = need.sign {
                    self.files.insert(Path::new(prefix).join(file));
                }
            }
            let config = Path::new(prefix).join("bin/llvm-config");
            self.outputs.insert((config, "--version".into()), format!("{version}\n"));
        }
    }

    fn packages(needs: &[Need]) -> Vec<&str> {
        needs.iter().map(|need| need.package).collect()
    }

    #[test]
    fn an_empty_machine_misses_everything() {
        let machine = Fake::default();
        assert_eq!(llvm_prefix(&machine), None);
        assert_eq!(missing(&machine, None, BUILD).len(), BUILD.len());
        assert_eq!(packages(&missing(&machine, None, FETCH_PTXAS)), ["python3", "python3-pip"]);
    }

    #[test]
    fn only_what_is_missing_is_listed() {
        let mut machine = Fake::default();
        machine.add_llvm(DEFAULT_PREFIX, "22.1.8");
        machine.files.remove(&Path::new(DEFAULT_PREFIX).join("lib/libPolly.a"));
        machine.programs.insert("c++", "/usr/bin/c++".into());
        for header in ["zstd.h", "z3.h", "libxml2/libxml/xmlversion.h"] {
            machine.files.insert(Path::new("/usr/include").join(header));
        }
        let prefix = llvm_prefix(&machine).unwrap();
        assert_eq!(packages(&missing(&machine, Some(&prefix), BUILD)), ["libpolly-22-dev", "zlib1g-dev"]);
    }

    #[test]
    fn another_version_of_llvm_does_not_count() {
        let mut machine = Fake::default();
        machine.add_llvm("/opt/llvm", "21.1.0");
        machine.variables.insert(PREFIX_VARIABLE, "/opt/llvm".into());
        assert_eq!(llvm_prefix(&machine), None);
        machine.add_llvm(DEFAULT_PREFIX, "22.1.8");
        assert_eq!(llvm_prefix(&machine), Some(DEFAULT_PREFIX.into()));
        // 2.2 and 220 are not 22.
        let mut machine = Fake::default();
        machine.add_llvm(DEFAULT_PREFIX, "220.0");
        assert_eq!(llvm_prefix(&machine), None);
    }

    #[test]
    fn the_variable_wins_and_the_path_comes_last() {
        let mut machine = Fake::default();
        machine.add_llvm("/brew/llvm", "22.1.0");
        machine.programs.insert("llvm-config", "/brew/bin/llvm-config".into());
        machine.outputs.insert(("/brew/bin/llvm-config".into(), "--prefix".into()), "/brew/llvm\n".into());
        assert_eq!(llvm_prefix(&machine), Some("/brew/llvm".into()));
        machine.add_llvm(DEFAULT_PREFIX, "22.1.8");
        assert_eq!(llvm_prefix(&machine), Some(DEFAULT_PREFIX.into()));
        machine.variables.insert(PREFIX_VARIABLE, "/brew/llvm".into());
        assert_eq!(llvm_prefix(&machine), Some("/brew/llvm".into()));
    }

    #[test]
    fn a_python_without_pip_misses_pip_only() {
        let mut machine = Fake::default();
        machine.programs.insert("python3", "/usr/bin/python3".into());
        assert_eq!(packages(&missing(&machine, None, FETCH_PTXAS)), ["python3-pip"]);
        machine.outputs.insert(("/usr/bin/python3".into(), "-c import pip".into()), String::new());
        assert_eq!(missing(&machine, None, FETCH_PTXAS), []);
    }
}
