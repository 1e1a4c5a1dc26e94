//! Compiles what `src/mlir` has in C++, where there is no C API of LLVM's for it.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Without a compiler of kernels there is nothing to build.
    #[cfg(feature = "mlir")]
    if let Err(problem) = mlir::build() {
        eprintln!("{problem}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

#[cfg(feature = "mlir")]
mod mlir {
    use std::env;
    use std::path::Path;
    use std::process::Command;

    /// Where LLVM is installed, as for the crate `mlir-sys`; without it `llvm-config` is looked for in `PATH`.
    const PREFIX: &str = "MLIR_SYS_220_PREFIX";
    const SOURCE: &str = "src/mlir/assembly.cpp";

    pub(super) fn build() -> Result<(), String> {
        println!("cargo:rerun-if-changed={SOURCE}");
        println!("cargo:rerun-if-env-changed={PREFIX}");
        let folder = env::var_os(PREFIX).map(|prefix| Path::new(&prefix).join("bin")).unwrap_or_default();
        let program = folder.join("llvm-config");
        let fails = |what: &str| format!("`{}` {what}: set {PREFIX} to the folder of LLVM 22", program.display());
        let output = Command::new(&program).arg("--includedir").output();
        let output = output.map_err(|error| fails(&format!("does not run ({error})")))?;
        let include = String::from_utf8(output.stdout).map_err(|_| fails("gives no folder"))?;
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
            .try_compile("lacewing_assembly")
            .map_err(|error| error.to_string())
    }
}
