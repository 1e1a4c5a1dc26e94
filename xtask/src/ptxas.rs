//! `ptxas`, which assembles the PTX that the tests make. It is fetched, never shipped.

use std::fs;
use std::path::{Path, PathBuf};

use crate::needs::Machine;
use crate::process::{self, Context, Error, Workspace};

/// The variable that names a `ptxas` to use before any other.
pub const VARIABLE: &str = "LACEWING_PTXAS";
/// Where a fetched one goes, below the root of the workspace.
const PLACE: &str = ".lacewing/ptxas/bin/ptxas";
/// The first release of CUDA whose `ptxas` knows every target that we emit.
const OLDEST: (u32, u32) = (13, 0);
/// The Python wheel that holds it, and the member of the wheel.
const REQUIREMENT: &str = "nvidia-cuda-nvcc==13.0.88";
const MEMBER: &str = "nvidia/cu13/bin/ptxas";
/// SHA-256 of the wheels for x86_64 and aarch64.
const HASHES: [&str; 2] = [
    "56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03",
    "c7ff28f86a24effdc6c034fa15230c549a273e4771b10a7fec14996f8cf3307f",
];
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
    let fetched = Some(root.join(PLACE)).filter(|path| machine.has_file(path));
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
    format!(
        "python3 -m pip download --no-deps --dest .lacewing/download {REQUIREMENT}\n\
         python3 -m zipfile -e .lacewing/download/*.whl .lacewing/download\n\
         install -D -m 755 .lacewing/download/{MEMBER} {PLACE}"
    )
}

/// Downloads the wheel, unpacks `ptxas` into the workspace, and tries it.
pub fn fetch(workspace: &Workspace) -> Result<(), Error> {
    let place = workspace.root().join(PLACE);
    let name = format!(".lacewing/download-{}", std::process::id());
    let folder = workspace.root().join(name);
    fs::create_dir_all(&folder).cannot(format_args!("make {}", folder.display()))?;
    let result = fetch_by(workspace, &folder, &place);
    // A failed download leaves nothing that a later run could take for a whole one.
    let cleaned = fs::remove_dir_all(&folder);
    result?;
    cleaned.cannot(format_args!("remove {}", folder.display()))
}

fn fetch_by(workspace: &Workspace, folder: &Path, place: &Path) -> Result<(), Error> {
    let requirements = folder.join("requirements.txt");
    let hashes = HASHES.map(|hash| format!(" --hash=sha256:{hash}")).concat();
    fs::write(&requirements, format!("{REQUIREMENT}{hashes}\n"))
        .cannot(format_args!("write {}", requirements.display()))?;
    let mut download = workspace.command("python3");
    download
        .args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"])
        .args(["--require-hashes", "--dest"])
        .args([folder, Path::new("--requirement"), &requirements]);
    process::run(&mut download)?;
    let wheel = fs::read_dir(folder)
        .cannot(format_args!("read {}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or_else(|| Error::new(format!("pip downloaded no wheel of {REQUIREMENT}")))?;
    let unpacked = folder.join("ptxas");
    let mut unpack = workspace.command("python3");
    unpack.args(["-c", UNPACK]).args([wheel.as_os_str(), MEMBER.as_ref(), unpacked.as_os_str()]);
    process::run_silently(&mut unpack)?;
    make_executable(&unpacked)?;
    let text = process::output(workspace.command(&unpacked).arg("--version"))
        .ok_or_else(|| Error::new("the ptxas that was downloaded does not run on this machine"))?;
    if release(&text).is_none() {
        return Err(Error::new(format!("ptxas gave no release in `{}`", text.trim())));
    }
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent).cannot(format_args!("make {}", parent.display()))?;
    }
    fs::rename(&unpacked, place).cannot(format_args!("write {}", place.display()))
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
}
