//! Compiles what `src/mlir` has in C++, where there is no C API of LLVM's for it.

fn main() {
    // Without a compiler of kernels there is nothing to build.
    #[cfg(feature = "mlir")]
    mlir::build();
}

#[cfg(feature = "mlir")]
mod mlir {
    use std::path::Path;
    use std::process::{Command, exit};
    use std::{env, str};

    /// Where LLVM is installed, as for the crate `mlir-sys`; without it `llvm-config` is looked for in `PATH`.
    const PREFIX: &str = "MLIR_SYS_220_PREFIX";
    const SOURCE: &str = "src/mlir/assembly.cpp";

    pub(super) fn build() {
        println!("cargo:rerun-if-changed={SOURCE}");
        println!("cargo:rerun-if-env-changed={PREFIX}");
        let folder = env::var_os(PREFIX).map(|prefix| Path::new(&prefix).join("bin")).unwrap_or_default();
        let program = folder.join("llvm-config");
        let output = Command::new(&program).arg("--includedir").output();
        let Some(include) = output.as_ref().ok().and_then(|output| str::from_utf8(&output.stdout).ok()) else {
            eprintln!("{} does not run: set {PREFIX} to the folder of LLVM 22 ({output:?})", program.display());
            exit(1);
        };
        cc::Build::new()
            .cpp(true)
            .std("c++17")
            .file(SOURCE)
            .include(include.trim())
            // As LLVM itself is built: a class over one of its own needs no type information of it then, which may not be there.
            .flag_if_supported("-fno-rtti")
            .flag_if_supported("-fno-exceptions")
            .define("NDEBUG", None)
            // LLVM's headers are not ours.
            .warnings(false)
            .compile("lacewing_assembly");
    }
}
