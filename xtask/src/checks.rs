//! Checks of the repository itself, which no compiler makes. Each is a function from the files to
//! the problems found, so each has a test that sees it fail.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;

use crate::process::{self, Error, Workspace};
use crate::{book, status};

/// A file longer than this holds more than one thing.
const LONGEST_FILE: usize = 800;

/// Files that may be longer, each with its reason. Meant to stay empty.
const LONG_FILES: &[(&str, &str)] =
    &[("tests/suite/differential/corpus.rs", "written by a program: `generate.rs` beside it")];

/// The only places with `unsafe` code, each with its reason.
const UNSAFE_PLACES: &[(&str, &str)] = &[
    ("dsl-core/src/mlir/", "the one module over MLIR's and LLVM's C APIs"),
    ("dsl-runtime/src/emulator/", "lane code: instruction sets chosen at run time"),
    ("dsl-runtime/src/cuda/driver.rs", "the one file over the CUDA driver's C API"),
];

/// Dependencies that must never be, by package, with the invariant that each would break.
const FORBIDDEN_DEPENDENCIES: &[(&str, &[&str], &str)] = &[
    ("lacewing-core", &["lacewing-runtime", "cudarc", "rayon"], "the core knows no device"),
    ("lacewing-runtime", &["lacewing-expand", "syn", "quote"], "the runtime knows no syntax"),
    ("lacewing-expand", &["lacewing-core", "melior"], "the expansion knows no IR"),
    ("lacewing-macros", &["lacewing-core", "melior", "syn"], "the macro crate is a shell"),
    (
        "xtask",
        &["lacewing", "lacewing-core", "lacewing-runtime", "lacewing-kernels", "melior"],
        "xtask builds without LLVM",
    ),
];

/// Target text where none may stand: it belongs to the lowering.
const TARGET_TEXT: &[&str] = &["inline_asm", "\"nvvm.", "\"rocdl.", "llvm.nvvm.", "llvm.amdgcn."];
/// Where none may stand. Tests and snapshots show what the lowering made, so they are left out.
const TARGET_FREE: &[&str] =
    &["kernels/src/", "dsl-runtime/src/", "dsl-core/src/trace/", "dsl-core/src/types/", "src/"];

/// Spellings that slip in most often; `typos` knows more, where it is installed.
const MISSPELT: &[&str] = &[
    "accomodate",
    "acheive",
    "adress",
    "agian",
    "arguement",
    "becuase",
    "begining",
    "beleive",
    "comparision",
    "compatability",
    "concious",
    "definately",
    "dependant on",
    "existance",
    "explicitely",
    "foward",
    "garantee",
    "guarentee",
    "immediatly",
    "independant",
    "initalize",
    "lenght",
    "maintainance",
    "mispelled",
    "neccessary",
    "noticable",
    "occurence",
    "occured",
    "overriden",
    "paramter",
    "performace",
    "persistant",
    "preceeding",
    "prefered",
    "priviledge",
    "recieve",
    "recomend",
    "refered",
    "seperate",
    "succesful",
    "supress",
    "teh",
    "threshhold",
    "transfered",
    "unneccessary",
    "untill",
    "wierd",
    "writen",
];

/// One thing that is wrong, and where.
#[derive(Debug, PartialEq)]
pub struct Problem {
    file: String,
    line: Option<usize>,
    text: String,
}

impl Problem {
    /// A problem of a whole file.
    pub fn of_file(file: &str, text: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, text: text.into() }
    }

    /// A problem of a line, counted from 1.
    pub fn at(file: &str, line: usize, text: impl Into<String>) -> Self {
        Self { file: file.into(), line: Some(line), text: text.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.text),
            None => write!(f, "{}: {}", self.file, self.text),
        }
    }
}

/// The files of the repository, by path from the root. Files that are no text have an empty text.
pub struct Tree(BTreeMap<String, String>);

impl Tree {
    /// Every file that git tracks or would track.
    pub fn load(workspace: &Workspace) -> Result<Self, Error> {
        let mut list = workspace.command("git");
        list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let names =
            process::output(&mut list).ok_or_else(|| Error::new("cannot list the files: is this a git checkout?"))?;
        let text = |name: &str| {
            let path = workspace.root().join(name);
            // A tracked file may have been removed and not committed yet.
            path.is_file().then(|| fs::read_to_string(path).unwrap_or_default())
        };
        let files = names.split('\0').filter(|name| !name.is_empty());
        Ok(Self(files.filter_map(|name| Some((name.to_string(), text(name)?))).collect()))
    }

    /// A tree for a test.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        Self(files.iter().map(|&(name, text)| (name.to_string(), text.to_string())).collect())
    }

    /// The text of a file.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Names and texts of the files with one of these endings.
    pub fn ending<'a>(&'a self, endings: &'a [&str]) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
        self.0
            .iter()
            .filter(|(name, _)| endings.iter().any(|ending| name.ends_with(ending)))
            .map(|(name, text)| (name.as_str(), text.as_str()))
    }

    fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.ending(&[".rs"])
    }
}

/// Runs every check on the checkout.
pub fn run(workspace: &Workspace) -> Result<(), Error> {
    let tree = Tree::load(workspace)?;
    let checks: &[fn(&Tree) -> Vec<Problem>] = &[
        long_files,
        changelog,
        architecture,
        dependencies,
        target_text,
        unsafe_code,
        ignored_tests,
        misspelt,
        book::check,
        status::check,
    ];
    let problems: Vec<_> = checks.iter().flat_map(|check| check(&tree)).collect();
    for problem in &problems {
        eprintln!("{problem}");
    }
    match problems.len() {
        0 => {
            eprintln!("{} files, no problems", tree.0.len());
            Ok(())
        }
        count => Err(Error::new(format!("{count} problems in the repository"))),
    }
}

fn long_files(tree: &Tree) -> Vec<Problem> {
    let lines: BTreeMap<_, _> = tree.rust().map(|(name, text)| (name, text.lines().count())).collect();
    let allowed = |name| LONG_FILES.iter().any(|&(file, _)| file == name);
    let long = lines.iter().filter(|&(name, &lines)| lines > LONGEST_FILE && !allowed(*name));
    let stale = LONG_FILES.iter().filter(|&&(file, _)| lines.get(file).is_none_or(|&lines| lines <= LONGEST_FILE));
    long.map(|(name, lines)| Problem::of_file(name, format!("{lines} lines; split it (the limit is {LONGEST_FILE})")))
        .chain(stale.map(|(file, _)| Problem::of_file(file, "no longer long: drop its exception")))
        .collect()
}

fn changelog(tree: &Tree) -> Vec<Problem> {
    let name = "CHANGELOG.md";
    match tree.text(name) {
        Some(text) if text.lines().any(|line| line.trim() == "## [Unreleased]") => Vec::new(),
        Some(_) => vec![Problem::of_file(name, "no section `## [Unreleased]`")],
        None => vec![Problem::of_file(name, "missing")],
    }
}

/// The name of a package and its dependencies, as its manifest writes them.
fn manifest(text: &str) -> Option<(&str, BTreeSet<&str>)> {
    let (mut section, mut package, mut dependencies) = ("", None, BTreeSet::new());
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        } else if let Some((key, value)) = line.split_once('=') {
            let key = key.trim().split('.').next().unwrap_or("");
            if section == "package" && key == "name" {
                package = Some(value.trim().trim_matches('"'));
            } else if section == "dependencies" || section.ends_with(".dependencies") {
                // The table of the workspace says versions; it makes nobody depend on anything.
                if section != "workspace.dependencies" && !key.starts_with('#') {
                    dependencies.insert(key);
                }
            }
        }
    }
    Some((package?, dependencies))
}

fn packages(tree: &Tree) -> impl Iterator<Item = (&str, &str, BTreeSet<&str>)> {
    tree.ending(&["Cargo.toml"]).filter_map(|(file, text)| {
        let (package, dependencies) = manifest(text)?;
        Some((file, package, dependencies))
    })
}

fn architecture(tree: &Tree) -> Vec<Problem> {
    let name = "ARCHITECTURE.md";
    let Some(text) = tree.text(name) else {
        return vec![Problem::of_file(name, "missing")];
    };
    let crates = packages(tree)
        .filter(|(_, package, _)| !text.contains(&format!("`{package}`")))
        .map(|(_, package, _)| format!("the crate `{package}` has no entry"));
    let folders: BTreeSet<_> = tree.0.keys().filter_map(|file| Some(file.split_once('/')?.0)).collect();
    let folders = folders
        .into_iter()
        .filter(|folder| !text.contains(&format!("`{folder}/")))
        .map(|folder| format!("the folder `{folder}/` is not mentioned"));
    crates.chain(folders).map(|text| Problem::of_file(name, text)).collect()
}

fn dependencies(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, package, found) in packages(tree) {
        for (_, forbidden, invariant) in FORBIDDEN_DEPENDENCIES.iter().filter(|&&(name, ..)| name == package) {
            for dependency in forbidden.iter().filter(|name| found.contains(*name)) {
                let text = format!("depends on {dependency}, but {invariant}");
                problems.push(Problem::of_file(file, text));
            }
        }
    }
    problems
}

/// The lines of code: no comments, and nothing after the unit tests begin.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .take_while(|(_, line)| line.trim() != "#[cfg(test)]")
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

fn target_text(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, text) in tree.rust().filter(|(name, _)| starts_with_any(name, TARGET_FREE)) {
        for (number, line) in code_lines(text) {
            if let Some(word) = TARGET_TEXT.iter().find(|word| line.contains(**word)) {
                let text = format!("`{word}` is target text, which only the lowering may have");
                problems.push(Problem::at(name, number, text));
            }
        }
    }
    problems
}

fn starts_with_any(name: &str, folders: &[&str]) -> bool {
    folders.iter().any(|folder| name.starts_with(folder))
}

fn unsafe_code(tree: &Tree) -> Vec<Problem> {
    // Made from two halves, so that this file does not find itself.
    let forms = ["{", "fn ", "impl "].map(|what| format!("{} {what}", concat!("un", "safe")));
    let mut problems = Vec::new();
    for (name, text) in tree.rust() {
        if UNSAFE_PLACES.iter().any(|(folder, _)| name.starts_with(folder)) {
            continue;
        }
        for (number, line) in code_lines(text) {
            if forms.iter().any(|form| line.contains(form.as_str())) {
                let text = "unsafe code outside the places that may have it";
                problems.push(Problem::at(name, number, text));
            }
        }
    }
    problems
}

fn ignored_tests(tree: &Tree) -> Vec<Problem> {
    let bare = concat!("#[", "ignore]");
    let lines =
        tree.rust().flat_map(|(name, text)| text.lines().enumerate().map(move |(index, line)| (name, index + 1, line)));
    lines
        .filter(|(_, _, line)| line.trim() == bare)
        .map(|(name, number, _)| Problem::at(name, number, "an ignored test says why: `#[ignore = \"..\"]`"))
        .collect()
}

fn misspelt(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, text) in tree.ending(&[".rs", ".md", ".toml", ".mlir"]) {
        if name == "xtask/src/checks.rs" {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            let line = line.to_lowercase();
            let words: BTreeSet<_> = line.split(|c: char| !c.is_ascii_alphabetic()).collect();
            let found = |word: &&&str| {
                if word.contains(' ') { line.contains(**word) } else { words.contains(**word) }
            };
            if let Some(word) = MISSPELT.iter().find(found) {
                problems.push(Problem::at(name, index + 1, format!("misspelt: {word}")));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(problems: Vec<Problem>) -> Vec<String> {
        problems.iter().map(Problem::to_string).collect()
    }

    #[test]
    fn a_long_file_is_reported_with_its_length() {
        let (long, short) = ("x\n".repeat(801), "x\n".repeat(800));
        let mut files = vec![("a.rs", long.as_str()), ("b.rs", &short), ("c.md", &long)];
        files.extend(LONG_FILES.iter().map(|&(name, _)| (name, long.as_str())));
        let tree = Tree::of(&files);
        let expected = ["a.rs: 801 lines; split it (the limit is 800)"];
        assert_eq!(shown(long_files(&tree)), expected);
    }

    #[test]
    fn the_changelog_has_an_open_section() {
        let good = Tree::of(&[("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n")]);
        assert_eq!(changelog(&good), []);
        let bad = Tree::of(&[("CHANGELOG.md", "# Changelog\n## [0.1.0]\n")]);
        let expected = ["CHANGELOG.md: no section `## [Unreleased]`"];
        assert_eq!(shown(changelog(&bad)), expected);
        assert_eq!(shown(changelog(&Tree::of(&[]))), ["CHANGELOG.md: missing"]);
    }

    #[test]
    fn the_architecture_names_every_crate_and_folder() {
        let tree = Tree::of(&[
            ("ARCHITECTURE.md", "`lacewing-core` is in `dsl-core/`."),
            ("dsl-core/Cargo.toml", "[package]\nname = \"lacewing-core\"\n"),
            ("kernels/Cargo.toml", "[package]\nname = \"lacewing-kernels\"\n"),
            ("kernels/src/lib.rs", ""),
        ]);
        assert_eq!(
            shown(architecture(&tree)),
            [
                "ARCHITECTURE.md: the crate `lacewing-kernels` has no entry",
                "ARCHITECTURE.md: the folder `kernels/` is not mentioned",
            ]
        );
    }

    #[test]
    fn a_dependency_that_breaks_an_invariant_is_named() {
        let manifest = "[package]\nname = \"lacewing-core\"\n[dev-dependencies]\nrayon = \"1\"\n\
                        [dependencies]\nhalf.workspace = true\ncudarc = { version = \"0.19\" }\n";
        let tree = Tree::of(&[("dsl-core/Cargo.toml", manifest)]);
        // A dependency of tests alone breaks nothing.
        let expected = ["dsl-core/Cargo.toml: depends on cudarc, but the core knows no device"];
        assert_eq!(shown(dependencies(&tree)), expected);
    }

    #[test]
    fn the_table_of_the_workspace_is_no_dependency() {
        let text = "[workspace.dependencies]\nmelior = \"1\"\n[package]\nname = \"xtask\"\n\
                    [target.'cfg(unix)'.dependencies]\nlibc.workspace = true\n";
        assert_eq!(manifest(text), Some(("xtask", BTreeSet::from(["libc"]))));
        assert_eq!(manifest("[workspace]\n"), None);
    }

    #[test]
    fn target_text_stands_in_the_lowering_only() {
        let line = "let op = \"nvvm.barrier\";\n";
        let test = "#[cfg(test)]\nmod tests { const OP: &str = \"rocdl.barrier\"; }\n";
        let tree = Tree::of(&[
            ("kernels/src/fmha.rs", line),
            ("kernels/src/axpy.rs", test),
            ("dsl-core/src/lower/nvptx.rs", line),
        ]);
        let expected = "kernels/src/fmha.rs:1: `\"nvvm.` is target text, which only the lowering \
                        may have";
        assert_eq!(shown(target_text(&tree)), [expected]);
    }

    #[test]
    fn unsafe_code_has_its_places() {
        let code = concat!("// un", "safe { in a comment }\nlet x = un", "safe { *p };\n");
        let tree = Tree::of(&[("dsl-core/src/mlir/mod.rs", code), ("src/main.rs", code)]);
        let expected = ["src/main.rs:2: unsafe code outside the places that may have it"];
        assert_eq!(shown(unsafe_code(&tree)), expected);
    }

    #[test]
    fn an_ignored_test_gives_its_reason() {
        let code = concat!("#[", "ignore]\nfn a() {}\n#[", "ignore = \"needs a GPU\"]\nfn b() {}");
        let problems = ignored_tests(&Tree::of(&[("tests/suite/a.rs", code)]));
        assert_eq!(problems.len(), 1);
    }

    #[test]
    fn misspelt_words_are_found_whole() {
        let text = concat!("The lanes reci", "eve it.\nAn untilled field.\n");
        let problems = shown(misspelt(&Tree::of(&[("a.md", text)])));
        assert_eq!(problems, [concat!("a.md:1: misspelt: reci", "eve")]);
    }
}
