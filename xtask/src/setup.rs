//! `cargo xtask setup`: finds what a build needs, and installs what is missing.

use std::env;
use std::path::{Path, PathBuf};

use crate::needs::{self, Need, ThisMachine};
use crate::process::{self, Error, Workspace};
use crate::ptxas::{self, Ptxas};
use crate::system::{Distribution, System};

/// What the user allowed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Print the commands instead of running them.
    pub no_install: bool,
    /// LLVM's own apt repository may be added.
    pub add_llvm_repository: bool,
    /// A `ptxas` that cannot be fetched is a warning: what follows does not assemble PTX.
    pub ptxas_is_optional: bool,
}

/// A command to install something: words, run as root.
type Install = Vec<String>;

fn words(line: &str) -> Install {
    line.split_whitespace().map(String::from).collect()
}

/// What a machine has and lacks.
struct Survey {
    prefix: Option<PathBuf>,
    ptxas: Option<Ptxas>,
    missing: Vec<Need>,
}

impl Survey {
    fn of(workspace: &Workspace) -> Self {
        let prefix = needs::llvm_prefix(&ThisMachine);
        let ptxas = ptxas::find(&ThisMachine, workspace.root());
        let mut missing = needs::missing(&ThisMachine, prefix.as_deref(), needs::BUILD);
        if ptxas.is_none() && ptxas::can_be_fetched() {
            missing.extend(needs::missing(&ThisMachine, None, needs::FETCH_PTXAS));
        }
        Survey { prefix, ptxas, missing }
    }

    fn lacks_ptxas(&self) -> bool {
        self.ptxas.is_none() && ptxas::can_be_fetched()
    }

    fn is_complete(&self) -> bool {
        self.missing.is_empty() && !self.lacks_ptxas()
    }
}

/// Makes the machine ready, or says what it lacks. The result is the workspace with the
/// environment that builds need.
pub fn run(workspace: &Workspace, options: &Options) -> Result<Workspace, Error> {
    let survey = Survey::of(workspace);
    if !survey.is_complete() {
        if options.no_install {
            print!("{}", advice(&survey, &System::detect(), is_root(workspace)));
            return Err(Error::new("something is missing; the commands above install it"));
        }
        if !survey.missing.is_empty() {
            install(workspace, &survey, options)?;
        }
        if survey.lacks_ptxas()
            && let Err(error) = fetch_ptxas(workspace)
        {
            if !options.ptxas_is_optional {
                return Err(error);
            }
            eprintln!("warning: {error}");
        }
    }
    finish(workspace, &Survey::of(workspace), options)
}

/// Says what was found, and gives builds their environment.
fn finish(workspace: &Workspace, survey: &Survey, options: &Options) -> Result<Workspace, Error> {
    if !survey.missing.is_empty() {
        let names: Vec<_> = survey.missing.iter().map(|need| need.package).collect();
        return Err(Error::new(format!("still missing after the installation: {}", names.join(", "))));
    }
    let Some(prefix) = &survey.prefix else {
        return Err(Error::new("LLVM 22 was not found after the installation"));
    };
    eprintln!("setup: LLVM {} in {}", needs::LLVM_MAJOR, prefix.display());
    let workspace = environment(workspace, prefix);
    match &survey.ptxas {
        Some(Ptxas { path, release: (major, minor) }) => {
            let shown = path.strip_prefix(workspace.root()).unwrap_or(path);
            eprintln!("setup: ptxas {major}.{minor} is {}", shown.display());
            let workspace = workspace.with_variable(ptxas::VARIABLE, path);
            if options.no_install || options.ptxas_is_optional {
                return Ok(workspace);
            }
            Ok(with_nvdisasm(workspace, path))
        }
        // There is no wheel for this machine, or it could not be fetched and need not be.
        None => {
            eprintln!("setup: no ptxas: PTX is made, but not assembled");
            Ok(workspace)
        }
    }
}

/// Gives the tests `nvdisasm`. Without it all else works, so that a failure is no more than a warning.
fn with_nvdisasm(workspace: Workspace, ptxas: &Path) -> Workspace {
    if ptxas::find_nvdisasm(&ThisMachine, ptxas).is_some() || !ptxas::can_be_fetched() {
        return workspace;
    }
    eprintln!("setup: fetching nvdisasm, by which the tests look into machine code");
    match ptxas::fetch_nvdisasm(&workspace) {
        Ok(path) => workspace.with_variable(ptxas::NVDISASM_VARIABLE, &path),
        Err(error) => {
            eprintln!("warning: {error}");
            workspace
        }
    }
}

/// The variables by which the build scripts find LLVM.
fn environment(workspace: &Workspace, prefix: &Path) -> Workspace {
    let workspace =
        workspace.with_variable(needs::PREFIX_VARIABLE, prefix).with_variable("TABLEGEN_220_PREFIX", prefix);
    // bindgen finds Debian's libclang by itself.
    if prefix == Path::new(needs::DEFAULT_PREFIX) || env::var_os("LIBCLANG_PATH").is_some() {
        workspace
    } else {
        workspace.with_variable("LIBCLANG_PATH", prefix.join("lib"))
    }
}

fn fetch_ptxas(workspace: &Workspace) -> Result<(), Error> {
    eprintln!("setup: fetching ptxas, which assembles the PTX that the tests make");
    ptxas::fetch(workspace).map_err(|error| {
        Error::new(format!(
            "{error}\nptxas comes from a Python package; where it cannot be downloaded, install \
             CUDA 13 or set {} to a ptxas",
            ptxas::VARIABLE
        ))
    })
}

/// The packages and what each is for, one a line.
fn list(missing: &[Need]) -> String {
    missing.iter().map(|need| format!("  {:16} for {}\n", need.package, need.why)).collect()
}

fn package_names(missing: &[Need]) -> String {
    missing.iter().map(|need| need.package).collect::<Vec<_>>().join(" ")
}

fn update() -> Install {
    words("apt-get update --quiet")
}

fn install_packages(names: &str) -> Install {
    words(&format!("apt-get install --yes --quiet --no-install-recommends -o DPkg::Lock::Timeout=300 {names}"))
}

/// The commands that add LLVM's own repository for a suite such as `noble`.
fn add_repository(codename: &str) -> Vec<Install> {
    let key = "/etc/apt/keyrings/apt.llvm.org.asc";
    let line = format!("deb [signed-by={key}] https://apt.llvm.org/{codename}/ llvm-toolchain-{codename}-22 main");
    let list = "/etc/apt/sources.list.d/llvm-22.list";
    vec![
        install_packages("ca-certificates curl"),
        words("install -d -m 755 /etc/apt/keyrings"),
        words(&format!("curl -fsSL https://apt.llvm.org/llvm-snapshot.gpg.key -o {key}")),
        vec!["sh".into(), "-c".into(), format!("echo '{line}' > {list}")],
        update(),
    ]
}

/// The packages that `apt-cache policy` knows no installable version of.
fn unavailable(policy: &str, wanted: &[Need]) -> Vec<&'static str> {
    let mut available = Vec::new();
    let mut current = "";
    for line in policy.lines() {
        if let Some(name) = line.strip_suffix(':').filter(|name| !name.starts_with(' ')) {
            current = name;
        } else if let Some(version) = line.trim().strip_prefix("Candidate: ")
            && version != "(none)"
        {
            available.push(current);
        }
    }
    wanted.iter().map(|need| need.package).filter(|name| !available.contains(name)).collect()
}

/// `sudo` in front where it is needed.
fn as_root(workspace: &Workspace, install: &Install, root: bool) -> std::process::Command {
    let quiet = "DEBIAN_FRONTEND=noninteractive";
    let mut command = if root {
        let mut command = workspace.command("env");
        command.arg(quiet);
        command
    } else {
        let mut command = workspace.command("sudo");
        command.args(["env", quiet]);
        command
    };
    command.args(install);
    command
}

fn typed(install: &Install, root: bool) -> String {
    let words: Vec<_> = install.iter().map(|word| process::quoted(word)).collect();
    format!("{}{}\n", if root { "" } else { "sudo " }, words.join(" "))
}

fn is_root(workspace: &Workspace) -> bool {
    process::output(workspace.command("id").arg("-u")).is_some_and(|id| id.trim() == "0")
}

/// What `--no-install` prints.
fn advice(survey: &Survey, system: &System, root: bool) -> String {
    let mut text = String::new();
    if !survey.missing.is_empty() {
        text += &format!("missing:\n{}\n", list(&survey.missing));
        text += &match system {
            System::Apt(distribution) => apt_advice(&survey.missing, distribution, root),
            System::Other(name) => other_advice(name),
        };
    }
    if survey.ptxas.is_none() {
        text += "missing: ptxas, which assembles the PTX that the tests make; to fetch it:\n\n";
        text += &ptxas::instructions();
        text += "\n\n";
    }
    text
}

fn apt_advice(missing: &[Need], distribution: &Distribution, root: bool) -> String {
    let mut text = String::from("to install:\n\n");
    text += &typed(&update(), root);
    text += &typed(&install_packages(&package_names(missing)), root);
    text.push('\n');
    text += &format!("Where {} has no such package, add LLVM's own repository first:\n\n", distribution.pretty);
    let codename = distribution.codename.as_deref().unwrap_or("CODENAME");
    for install in add_repository(codename) {
        text += &typed(&install, root);
    }
    text.push('\n');
    text
}

fn other_advice(name: &str) -> String {
    format!(
        "{name} has no apt-get, so nothing is installed here. Needed are LLVM, MLIR, Clang, LLD \
         and Polly 22 with their development files, a C++ compiler, and the development files of \
         zstd, z3, zlib and libxml2 (the names above are Debian's). Set {} to the prefix of LLVM \
         where llvm-config-22 is not on PATH.\n",
        needs::PREFIX_VARIABLE
    )
}

/// Installs the missing packages by `apt-get`.
fn install(workspace: &Workspace, survey: &Survey, options: &Options) -> Result<(), Error> {
    let missing = &survey.missing;
    let distribution = match System::detect() {
        System::Apt(distribution) if process::which("apt-get").is_some() => distribution,
        System::Apt(Distribution { pretty: name, .. }) | System::Other(name) => {
            eprint!("missing:\n{}\n{}", list(missing), other_advice(&name));
            return Err(Error::new("the build needs what is listed above"));
        }
    };
    let root = is_root(workspace);
    if !root && process::which("sudo").is_none() {
        eprint!("{}", apt_advice(missing, &distribution, root));
        return Err(Error::new("installing packages needs root, and there is no sudo"));
    }
    eprintln!("setup: on {} apt-get installs\n{}", distribution.pretty, list(missing));
    let run = |install: &Install| process::run(&mut as_root(workspace, install, root));
    run(&update())?;
    let absent = absent(workspace, missing);
    if !absent.is_empty() {
        add_llvm(workspace, &distribution, &absent, options, root)?;
    }
    run(&install_packages(&package_names(missing)))
}

/// The wanted packages that apt does not know.
fn absent(workspace: &Workspace, wanted: &[Need]) -> Vec<&'static str> {
    let mut policy = workspace.command("apt-cache");
    policy.env("LC_ALL", "C").arg("policy").args(wanted.iter().map(|need| need.package));
    unavailable(&process::output(&mut policy).unwrap_or_default(), wanted)
}

/// Adds LLVM's repository where the user allowed it, and else says how.
fn add_llvm(
    workspace: &Workspace,
    distribution: &Distribution,
    absent: &[&str],
    options: &Options,
    root: bool,
) -> Result<(), Error> {
    let name = &distribution.pretty;
    let absent = absent.join(" ");
    let Some(codename) = &distribution.codename else {
        return Err(Error::new(format!(
            "{name} has no package {absent}, and gives no codename by which LLVM's repository \
             could be chosen"
        )));
    };
    let commands = add_repository(codename);
    if !options.add_llvm_repository {
        let commands: String = commands.iter().map(|install| typed(install, root)).collect();
        return Err(Error::new(format!(
            "{name} has no package {absent}\nOn Debian 12 LLVM 22 comes with the security \
             updates; see that they are enabled. Elsewhere LLVM's own repository has it. Pass \
             --add-llvm-repository to add it, which does\n\n{commands}"
        )));
    }
    eprintln!("setup: adding LLVM's repository, since {name} has no package {absent}");
    commands.iter().try_for_each(|install| process::run(&mut as_root(workspace, install, root)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "\
g++:
  Installed: (none)
  Candidate: 4:12.2.0-3
  Version table:
     4:12.2.0-3 500
llvm-22-dev:
  Installed: (none)
  Candidate: (none)
  Version table:
";

    fn distribution() -> Distribution {
        Distribution { pretty: "Ubuntu 24.04".into(), codename: Some("noble".into()) }
    }

    fn wanted(names: &[&str]) -> Vec<Need> {
        needs::BUILD.iter().copied().filter(|need| names.contains(&need.package)).collect()
    }

    #[test]
    fn a_package_without_a_candidate_is_unavailable() {
        let all = wanted(&["g++", "llvm-22-dev", "lld-22"]);
        // One has no candidate, one is not known at all.
        assert_eq!(unavailable(POLICY, &all), ["llvm-22-dev", "lld-22"]);
        assert_eq!(unavailable(POLICY, &wanted(&["g++"])), [""; 0]);
        assert_eq!(unavailable("", &wanted(&["g++"])), ["g++"]);
    }

    #[test]
    fn the_printed_commands_are_those_that_would_run() {
        let text = apt_advice(&wanted(&["g++", "zlib1g-dev"]), &distribution(), false);
        let line = "sudo apt-get install --yes --quiet --no-install-recommends \
                    -o DPkg::Lock::Timeout=300 g++ zlib1g-dev\n";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("llvm-toolchain-noble-22 main"), "{text}");
    }

    #[test]
    fn a_missing_ptxas_alone_asks_for_no_package() {
        let survey = Survey { prefix: Some("/usr/lib/llvm-22".into()), ptxas: None, missing: Vec::new() };
        let text = advice(&survey, &System::Apt(distribution()), true);
        assert!(text.contains("pip download") && !text.contains("apt-get"), "{text}");
    }

    #[test]
    fn a_system_without_apt_is_told_what_to_bring() {
        let survey = Survey { prefix: None, ptxas: None, missing: needs::BUILD.to_vec() };
        let text = advice(&survey, &System::Other("Fedora Linux 42".into()), true);
        assert!(text.contains("Fedora Linux 42 has no apt-get"), "{text}");
        assert!(text.contains("libmlir-22-dev"), "{text}");
        assert!(!text.contains("sudo apt-get"), "{text}");
    }

    #[test]
    fn every_package_says_what_it_is_for() {
        let text = list(needs::BUILD);
        assert!(text.contains("  libpolly-22-dev  for a static link of LLVM\n"), "{text}");
        assert_eq!(text.lines().count(), needs::BUILD.len());
    }
}
