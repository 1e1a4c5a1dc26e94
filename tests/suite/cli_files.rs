//! Files and settings of the bundled kernels on the command line: what is refused, before any work and with its file,
//! and what a check compares with.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use lacewing::cli::{Io, files, run};
use lacewing::runtime::{HostTensor, Tensors};

fn lacewing(arguments: &[&str]) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let arguments = ["lacewing"].iter().chain(arguments).map(OsString::from);
    let status = run(lacewing::kernels::ENTRIES, arguments, &mut Io { out: &mut out, err: &mut err });
    (status, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

/// A command that must be refused with these words, and that leaves the folder as it is.
fn refused(folder: &Path, arguments: &[&str], words: &[&str]) {
    let names = || -> Vec<_> { fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect() };
    let before = names();
    let (status, out, err) = lacewing(arguments);
    assert_eq!((status, out.as_str()), (2, ""), "{arguments:?}: {err}");
    assert!(err.starts_with("error: ") && words.iter().all(|word| err.contains(word)), "{arguments:?}: {err}");
    assert_eq!(names(), before, "{arguments:?}");
}

/// A folder with an input file of these tensors.
struct Input {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl Input {
    fn new(tensors: &Tensors) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.safetensors");
        files::write(&path, tensors).unwrap();
        Input { folder, path }
    }

    fn text(&self) -> &str {
        self.path.to_str().unwrap()
    }

    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn refused(&self, arguments: &[&str], words: &[&str]) {
        refused(self.folder.path(), arguments, words);
    }
}

fn tensor(numbers: &[f32], shape: &[usize]) -> HostTensor {
    HostTensor::new(numbers, shape).unwrap()
}

fn rows() -> Tensors {
    Tensors::from([("x".to_owned(), tensor(&[0.0, 0.0, 1.0, 1.0], &[2, 2]))])
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_the_work() {
    let input = Input::new(&rows());
    let run = |output: &str, words: &[&str]| {
        input.refused(&["run", "softmax", "--inputs", input.text(), "--output", output], words);
        let compile = ["compile", "axpy", "--target", "sm_80", "-o", output];
        // `compile` has no inputs, and writes to standard output.
        if !words.iter().any(|word| word.contains("inputs") || word.contains("standard output")) {
            input.refused(&compile, words);
        }
    };
    run("-", &["tensors do not go to standard output"]);
    run(input.text(), &["in.safetensors: the output would replace the inputs"]);
    run(input.folder.path().to_str().unwrap(), &["it is a folder"]);
    run(&input.at("no_such_folder/out"), &["cannot write", "there is no such folder"]);
    run(&input.at(&"x".repeat(300)), &["cannot write", "name too long"]);
    run("/proc/out", &["cannot write /proc/out"]);

    let locked = input.at("locked");
    fs::write(&locked, "old").unwrap();
    let mut permissions = fs::metadata(&locked).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&locked, permissions).unwrap();
    run(&locked, &["it is read-only"]);
    assert_eq!(fs::read_to_string(&locked).unwrap(), "old");

    // The same file by another name is the same file; a longest name is a name.
    std::os::unix::fs::symlink(&input.path, input.folder.path().join("link")).unwrap();
    run(&input.at("link"), &["link: the output would replace the inputs"]);
    let longest = input.at(&"x".repeat(255));
    assert_eq!(lacewing(&["run", "softmax", "--inputs", input.text(), "--output", &longest]).0, 0);
    assert_eq!(files::read(Path::new(&longest)).unwrap().len(), 1);
}

#[test]
fn what_is_said_twice_is_refused() {
    let input = Input::new(&rows());
    let twice = ["--set", "dtype=f32", "--set", "dtype=f16"];
    input.refused(&[&["run", "softmax", "--inputs", input.text()][..], &twice].concat(), &["`dtype` is set twice"]);
    input.refused(&[&["compile", "softmax", "--target", "sm_80"][..], &twice].concat(), &["`dtype` is set twice"]);
    for shape in [&["--shape", "R=2,R=3"][..], &["--shape", "R=2", "--shape", "R=2"]] {
        input.refused(&[&["run", "softmax", "--random", "1"], shape].concat(), &["dimension `R` is given twice"]);
    }
}

#[test]
fn numbers_that_the_kernel_s_type_cannot_hold_are_refused() {
    let input = Input::new(&rows());
    let run = ["run", "axpy", "--random", "1", "--set"];
    input.refused(
        &[&run[..], &["a=1e5", "--set", "dtype=f16"]].concat(),
        &["`a` is 1e5, which is too large for f16, the kernel's type"],
    );
    for fits in [["a=65504", "dtype=f16"], ["a=1e5", "dtype=bf16"], ["a=1e30", "dtype=f32"]] {
        let (status, _, err) = lacewing(&[&run[..], &[fits[0], "--set", fits[1]]].concat());
        assert_eq!(status, 0, "{fits:?}: {err}");
    }
}

#[test]
fn every_fault_of_an_input_names_its_file() {
    let ones = |shape: &[usize]| HostTensor::new(&vec![half::f16::ONE; shape.iter().product()], shape).unwrap();
    let one = |name: &str, tensor| Tensors::from([(name.to_owned(), tensor)]);
    let matrices = |a: [usize; 2], b: [usize; 2]| Tensors::from([("a".into(), ones(&a)), ("b".into(), ones(&b))]);
    for (kernel, tensors, reason) in [
        // Tensors without elements have a shape all the same.
        ("softmax", one("x", ones(&[1 << 31, 0])), "R is 2147483648, and extents must be below 2^31"),
        ("transpose", one("x", ones(&[0, 1 << 40])), "C is 1099511627776, and extents"),
        ("matmul", matrices([1 << 30, 0], [0, 1 << 30]), "a tensor of shape [1073741824, 1073741824] does not fit"),
        ("matmul", matrices([3, 4], [5, 6]), "K = 5, but K = 4 in `a`"),
        ("rms_norm", rows(), "tensor `weight` is missing"),
        ("axpy", one("x", ones(&[3])), "tensor `y` is missing"),
    ] {
        let input = Input::new(&tensors);
        let output = input.at("out");
        input.refused(
            &["run", kernel, "--inputs", input.text(), "--check", "--output", &output],
            &["in.safetensors: ", reason],
        );
    }
}

#[test]
fn a_check_compares_with_what_the_file_carries() {
    let half = |wrong: f32| tensor(&[0.5, 0.5, 0.5, 0.5 + wrong], &[2, 2]);
    let with = |name: &str, right: HostTensor, mut tensors: Tensors| {
        tensors.insert(name.to_owned(), right);
        Input::new(&tensors)
    };
    let check = |kernel: &str, input: &Input| lacewing(&["run", kernel, "--inputs", input.text(), "--check"]);
    let (status, out, err) = check("softmax", &Input::new(&rows()));
    assert!(status == 0 && out.contains("(the reference on the host)"), "{out}{err}");
    let (status, out, err) = check("softmax", &with("y", half(0.0), rows()));
    assert!(status == 0 && out.contains("check y: holds") && out.contains("(the file)"), "{out}{err}");
    let (status, out, err) = check("softmax", &with("y", half(0.001), rows()));
    assert!(status == 1 && out.contains("check y: FAILS") && out.contains("worst at [1, 1]"), "{out}{err}");
    assert!(err.contains("`softmax` is outside its tolerance"), "{err}");
    let (status, out, _) = check("transpose", &with("y", tensor(&[0.0, 1.0, 0.0, 1.0], &[2, 2]), rows()));
    assert!(status == 0 && out.contains("(the file)"), "{out}");

    let ones = |shape: [usize; 2]| HostTensor::new(&vec![half::f16::ONE; shape[0] * shape[1]], &shape).unwrap();
    let product = |c: f64| {
        Tensors::from([
            ("a".to_owned(), ones([2, 3])),
            ("b".to_owned(), ones([3, 1])),
            ("c".to_owned(), HostTensor::new(&[3.0f64, c], &[2, 1]).unwrap()),
        ])
    };
    assert_eq!(check("matmul", &Input::new(&product(3.0))).0, 0);
    let (status, out, _) = check("matmul", &Input::new(&product(3.5)));
    assert!(status == 1 && out.contains("worst at [1, 0]: got 3, wanted 3.5"), "{out}");
}
