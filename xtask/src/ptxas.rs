//! `ptxas`, which assembles the PTX that the tests make, and `nvdisasm`, which shows what came of it. They are fetched,
//! never shipped.

use std::fs;
use std::path::{Path, PathBuf};

use crate::needs::Machine;
use crate::process::{self, Context, Error, Workspace};

/// The variable that names a `ptxas` to use before any other.
pub const VARIABLE: &str = "LACEWING_PTXAS";
/// The variable that names an `nvdisasm`.
pub const NVDISASM_VARIABLE: &str = "LACEWING_NVDISASM";
/// Where fetched ones go, below the root of the workspace: `ptxas` has its companion beside it, where the product looks.
const PLACE: &str = ".lacewing/ptxas/bin";
/// The first release of CUDA whose `ptxas` knows every target that we emit.
const OLDEST: (u32, u32) = (13, 0);

/// A program of the CUDA toolkit, and the Python wheel that holds it.
struct Wheel {
    program: &'static str,
    requirement: &'static str,
    member: &'static str,
    /// SHA-256 of the wheels for x86_64 and aarch64.
    hashes: [&'static str; 2],
}

const PTXAS: Wheel = Wheel {
    program: "ptxas",
    requirement: "nvidia-cuda-nvcc==13.0.88",
    member: "nvidia/cu13/bin/ptxas",
    hashes: [
        "56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03",
        "c7ff28f86a24effdc6c034fa15230c549a273e4771b10a7fec14996f8cf3307f",
    ],
};

const NVDISASM: Wheel = Wheel {
    program: "nvdisasm",
    requirement: "nvidia-cuda-nvdisasm==13.2.78",
    member: "nvidia/cu13/bin/nvdisasm",
    hashes: [
        "b4ebcd3c5046bf8039ac52675b9dbefd843600969649ecaab0a42b0713a61dae",
        "c338282695eca43de237929c5e3963d8d04f61d578d40f01bd04aca2bc29c233",
    ],
};

/// Copies one member of a zip file: `unzip` is not everywhere, Python's `zipfile` is.
const UNPACK: &str = "import sys, zipfile; \
                      open(sys.argv[3], 'wb').write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))";

/// A `ptxas` that runs.
#[derive(Debug, PartialEq)]
pub struct Ptxas {
    /// The program.
    pub path: PathBuf,
    /// Its release of CUDA.
    pub release: (u32, u32),
}

/// The `13.0` of `Cuda compilation tools, release 13.0, V13.0.88`.
fn release(text: &str) -> Option<(u32, u32)> {
    let (_, rest) = text.split_once("release ")?;
    let (major, rest) = rest.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The one that the product will use: by the variable, in the workspace, on `PATH`. One that does
/// not run, or that is too old, is passed over.
pub fn find(machine: &dyn Machine, root: &Path) -> Option<Ptxas> {
    let named = machine.variable(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    let fetched = Some(root.join(PLACE).join("ptxas")).filter(|path| machine.has_file(path));
    let candidates = [named, fetched, machine.program("ptxas")];
    candidates.into_iter().flatten().find_map(|path| {
        let release = release(&machine.output(&path, &["--version"])?)?;
        (release >= OLDEST).then_some(Ptxas { path, release })
    })
}

/// Whether the wheel exists for this machine.
pub fn can_be_fetched() -> bool {
    cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))
}

/// What `fetch` does, in words and commands for a person.
pub fn instructions() -> String {
    let Wheel { program, requirement, member, .. } = PTXAS;
    format!(
        "python3 -m pip download --no-deps --dest .lacewing/download {requirement}\n\
         python3 -m zipfile -e .lacewing/download/*.whl .lacewing/download\n\
         install -D -m 755 .lacewing/download/{member} {PLACE}/{program}"
    )
}

/// Downloads the wheel, unpacks `ptxas` into the workspace, and tries it.
pub fn fetch(workspace: &Workspace) -> Result<(), Error> {
    fetch_wheel(workspace, &PTXAS)
}

/// The `nvdisasm` that the product will use: by the variable (set to nothing, none), beside `ptxas`, on `PATH`.
pub fn find_nvdisasm(machine: &dyn Machine, ptxas: &Path) -> Option<PathBuf> {
    if let Some(named) = machine.variable(NVDISASM_VARIABLE) {
        return Some(PathBuf::from(named));
    }
    let beside = ptxas.with_file_name(NVDISASM.program);
    Some(beside).filter(|path| machine.has_file(path)).or_else(|| machine.program(NVDISASM.program))
}

/// Downloads `nvdisasm` into the workspace and tries it.
pub fn fetch_nvdisasm(workspace: &Workspace) -> Result<PathBuf, Error> {
    let place = workspace.root().join(PLACE).join(NVDISASM.program);
    if !place.is_file() {
        fetch_wheel(workspace, &NVDISASM)?;
    }
    Ok(place)
}

fn fetch_wheel(workspace: &Workspace, wheel: &Wheel) -> Result<(), Error> {
    let name = format!(".lacewing/download-{}", std::process::id());
    let folder = workspace.root().join(name);
    fs::create_dir_all(&folder).cannot(format_args!("make {}", folder.display()))?;
    let result = fetch_by(workspace, &folder, wheel);
    // A failed download leaves nothing that a later run could take for a whole one.
    let cleaned = fs::remove_dir_all(&folder);
    result?;
    cleaned.cannot(format_args!("remove {}", folder.display()))
}

fn fetch_by(workspace: &Workspace, folder: &Path, wheel: &Wheel) -> Result<(), Error> {
    let Wheel { program, requirement, member, hashes } = wheel;
    let requirements = folder.join("requirements.txt");
    let hashes = hashes.map(|hash| format!(" --hash=sha256:{hash}")).concat();
    fs::write(&requirements, format!("{requirement}{hashes}\n"))
        .cannot(format_args!("write {}", requirements.display()))?;
    let mut download = workspace.command("python3");
    download
        .args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"])
        .args(["--require-hashes", "--dest"])
        .args([folder, Path::new("--requirement"), &requirements]);
    process::run(&mut download)?;
    let file = fs::read_dir(folder)
        .cannot(format_args!("read {}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or_else(|| Error::new(format!("pip downloaded no wheel of {requirement}")))?;
    let unpacked = folder.join(program);
    let mut unpack = workspace.command("python3");
    unpack.args(["-c", UNPACK]).args([file.as_os_str(), member.as_ref(), unpacked.as_os_str()]);
    process::run_silently(&mut unpack)?;
    make_executable(&unpacked)?;
    let text = process::output(workspace.command(&unpacked).arg("--version"))
        .ok_or_else(|| Error::new(format!("the {program} that was downloaded does not run on this machine")))?;
    if release(&text).is_none() {
        return Err(Error::new(format!("{program} gave no release in `{}`", text.trim())));
    }
    let folder = workspace.root().join(PLACE);
    fs::create_dir_all(&folder).cannot(format_args!("make {}", folder.display()))?;
    let place = folder.join(program);
    fs::rename(&unpacked, &place).cannot(format_args!("write {}", place.display()))
}

#[cfg(unix)]
fn make_executable(file: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755))
        .cannot(format_args!("make {} executable", file.display()))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<(), Error> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::needs::tests::Fake;

    fn says(machine: &mut Fake, path: &str, text: &str) {
        machine.files.insert(path.into());
        machine.outputs.insert((path.into(), "--version".into()), text.into());
    }

    #[test]
    fn the_release_is_read_from_the_version_text() {
        let text = "ptxas: NVIDIA (R) Ptx optimizing assembler\n\
                    Cuda compilation tools, release 13.0, V13.0.88\n";
        assert_eq!(release(text), Some((13, 0)));
        assert_eq!(release("release 12.10, V12.10.1"), Some((12, 10)));
        assert_eq!(release("ptxas 13"), None);
    }

    #[test]
    fn the_product_order_of_places_is_followed() {
        let root = Path::new("/w");
        let mut machine = Fake::default();
        assert_eq!(find(&machine, root), None);
        machine.programs.insert("ptxas", "/usr/bin/ptxas".into());
        says(&mut machine, "/usr/bin/ptxas", "release 13.1, V13.1.2");
        let path = |machine: &Fake| find(machine, root).unwrap().path;
        assert_eq!(path(&machine), Path::new("/usr/bin/ptxas"));
        says(&mut machine, "/w/.lacewing/ptxas/bin/ptxas", "release 13.0, V13.0.88");
        assert_eq!(path(&machine), Path::new("/w/.lacewing/ptxas/bin/ptxas"));
        machine.variables.insert(VARIABLE, "/mine/ptxas".into());
        says(&mut machine, "/mine/ptxas", "release 13.0, V13.0.88");
        assert_eq!(path(&machine), Path::new("/mine/ptxas"));
    }

    #[test]
    fn one_that_is_too_old_or_broken_is_passed_over() {
        let root = Path::new("/w");
        let mut machine = Fake::default();
        machine.programs.insert("ptxas", "/usr/bin/ptxas".into());
        says(&mut machine, "/usr/bin/ptxas", "release 11.8, V11.8.89");
        assert_eq!(find(&machine, root), None);
        // A file is there, but running it gives nothing.
        machine.files.insert("/w/.lacewing/ptxas/bin/ptxas".into());
        assert_eq!(find(&machine, root), None);
    }

    #[test]
    fn nvdisasm_is_looked_for_where_the_product_does() {
        let ptxas = Path::new("/w/.lacewing/ptxas/bin/ptxas");
        let mut machine = Fake::default();
        assert_eq!(find_nvdisasm(&machine, ptxas), None);
        machine.programs.insert("nvdisasm", "/usr/bin/nvdisasm".into());
        assert_eq!(find_nvdisasm(&machine, ptxas), Some("/usr/bin/nvdisasm".into()));
        machine.files.insert("/w/.lacewing/ptxas/bin/nvdisasm".into());
        assert_eq!(find_nvdisasm(&machine, ptxas), Some("/w/.lacewing/ptxas/bin/nvdisasm".into()));
        machine.variables.insert(NVDISASM_VARIABLE, "/mine/nvdisasm".into());
        assert_eq!(find_nvdisasm(&machine, ptxas), Some("/mine/nvdisasm".into()));
    }
}
