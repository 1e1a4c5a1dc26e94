//! Tensors in safetensors files, and files that are written whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lacewing_core::ScalarType;
use lacewing_runtime::{Error, HostTensor, Tensors};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

/// Reads the tensors of a safetensors file.
///
/// # Errors
/// [`Error::Input`] when the file cannot be read, is not valid or truncated, or holds a type that
/// kernels do not have.
pub fn read(path: &Path) -> Result<Tensors, Error> {
    let refuse = |reason: String| Error::Input(format!("{}: {reason}", path.display()));
    let bytes = fs::read(path).map_err(|error| refuse(format!("cannot be read: {error}")))?;
    let file = SafeTensors::deserialize(&bytes)
        .map_err(|error| refuse(format!("is no valid safetensors file: {}", explain(&error, &bytes))))?;
    let mut tensors = Tensors::new();
    for (name, view) in file.iter() {
        let scalar = scalar_type(view.dtype()).ok_or_else(|| {
            refuse(format!("tensor `{name}` has elements of type {}, which no kernel has", view.dtype()))
        })?;
        let tensor = HostTensor::from_bytes(scalar, view.shape(), view.data().to_vec())
            .map_err(|error| refuse(format!("tensor `{name}`: {error}")))?;
        tensors.insert(name.to_owned(), tensor);
    }
    Ok(tensors)
}

/// What is wrong with a file, in words that say what to look at.
fn explain(error: &safetensors::SafeTensorError, bytes: &[u8]) -> String {
    use safetensors::SafeTensorError as E;
    let size = bytes.len();
    match error {
        E::HeaderTooSmall => format!("it has only {size} bytes"),
        E::InvalidHeaderLength => {
            format!("it is truncated, or something else: the header does not fit in {size} bytes")
        }
        E::MetadataIncompleteBuffer => {
            format!("it is truncated or has bytes left over: the tensors of the header do not fill its {size} bytes")
        }
        other => other.to_string(),
    }
}

/// Writes tensors as a safetensors file, whole or not at all.
///
/// # Errors
/// [`Error::Shape`] for a type that the format does not have, [`Error::Device`] when the file cannot
/// be written.
pub fn write(path: &Path, tensors: &Tensors) -> Result<(), Error> {
    let mut views = Vec::new();
    for (name, tensor) in tensors {
        let view = TensorView::new(dtype(tensor.scalar()), tensor.shape().to_vec(), tensor.bytes())
            .map_err(|error| Error::Shape(format!("tensor `{name}`: {error}")))?;
        views.push((name, view));
    }
    let bytes = safetensors::serialize(views, None).map_err(|error| Error::Shape(error.to_string()))?;
    write_atomically(path, &bytes).map_err(|error| Error::Device(format!("cannot write {}: {error}", path.display())))
}

/// Whether a file can be written there, before there is anything to write. A file is made beside it and removed.
///
/// # Errors
/// [`Error::Input`] when it cannot.
pub fn check_writable(path: &Path) -> Result<(), Error> {
    let refuse = |reason: String| Err(Error::Input(format!("cannot write {}: {reason}", path.display())));
    if path.is_dir() {
        return refuse("it is a folder".to_owned());
    }
    if path.file_name().is_none() {
        return refuse("it is no file name".to_owned());
    }
    if !folder(path).is_dir() {
        return refuse("there is no such folder".to_owned());
    }
    match fs::metadata(path) {
        // What is there and no file, as a pipe or a terminal, is opened when there is something to write.
        Ok(there) if !there.is_file() => Ok(()),
        Ok(there) if there.permissions().readonly() => refuse("it is read-only".to_owned()),
        // A name that is too long, a folder that may not be looked into.
        Err(error) if error.kind() != io::ErrorKind::NotFound => refuse(error.to_string()),
        _ => {
            let temporary = temporary(&target(path));
            let made = File::create(&temporary).and_then(|_| fs::remove_file(&temporary));
            made.or_else(|error| refuse(error.to_string()))
        }
    }
}

/// Whether two paths are one file that exists.
pub fn same_file(one: &Path, other: &Path) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// The file that a path means: a link stays a link, and what it points to is replaced.
fn target(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// A name beside a file for its content on the way. It is short, so that long names leave room for it.
fn temporary(path: &Path) -> PathBuf {
    folder(path).join(format!(".{}.part", std::process::id()))
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a file under a temporary name beside it and renames it, so that a reader sees the old
/// content or the new one, and a failure leaves the old. What is no regular file (a pipe,
/// `/dev/stdout`) is written as it is.
///
/// # Errors
/// As the file system gives them; nothing is left behind.
pub fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    if path.exists() && !path.is_file() {
        return OpenOptions::new().write(true).open(path)?.write_all(content);
    }
    let path = target(path);
    let temporary = temporary(&path);
    let written = write_new(&temporary, content).and_then(|()| fs::rename(&temporary, &path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write_new(path: &PathBuf, content: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(content)?;
    file.sync_all()
}

fn scalar_type(dtype: Dtype) -> Option<ScalarType> {
    Some(match dtype {
        Dtype::BOOL => ScalarType::Bool,
        Dtype::I8 => ScalarType::I8,
        Dtype::I16 => ScalarType::I16,
        Dtype::I32 => ScalarType::I32,
        Dtype::I64 => ScalarType::I64,
        Dtype::U8 => ScalarType::U8,
        Dtype::U16 => ScalarType::U16,
        Dtype::U32 => ScalarType::U32,
        Dtype::U64 => ScalarType::U64,
        Dtype::F16 => ScalarType::F16,
        Dtype::BF16 => ScalarType::Bf16,
        Dtype::F32 => ScalarType::F32,
        Dtype::F64 => ScalarType::F64,
        Dtype::F8_E4M3 => ScalarType::F8E4M3,
        Dtype::F8_E5M2 => ScalarType::F8E5M2,
        _ => return None,
    })
}

fn dtype(scalar: ScalarType) -> Dtype {
    match scalar {
        ScalarType::Bool => Dtype::BOOL,
        ScalarType::I8 => Dtype::I8,
        ScalarType::I16 => Dtype::I16,
        ScalarType::I32 => Dtype::I32,
        ScalarType::I64 => Dtype::I64,
        ScalarType::U8 => Dtype::U8,
        ScalarType::U16 => Dtype::U16,
        ScalarType::U32 => Dtype::U32,
        ScalarType::U64 => Dtype::U64,
        ScalarType::F16 => Dtype::F16,
        ScalarType::Bf16 => Dtype::BF16,
        ScalarType::F32 => Dtype::F32,
        ScalarType::F64 => Dtype::F64,
        ScalarType::F8E4M3 => Dtype::F8_E4M3,
        ScalarType::F8E5M2 => Dtype::F8_E5M2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.safetensors");
        let mut tensors = Tensors::new();
        tensors.insert("a".into(), HostTensor::new(&[1.5f32, -0.0], &[1, 2]).unwrap());
        tensors.insert("b".into(), HostTensor::new(&[3u8], &[1]).unwrap());
        tensors.insert("none".into(), HostTensor::new::<i64>(&[], &[0, 4]).unwrap());
        write(&path, &tensors).unwrap();
        assert_eq!(read(&path).unwrap(), tensors);
        // Writing again replaces the file and leaves nothing else.
        write(&path, &tensors).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn every_type_of_a_kernel_has_one_in_the_format() {
        for scalar in ScalarType::ALL {
            assert_eq!(scalar_type(dtype(scalar)), Some(scalar));
        }
    }

    #[test]
    fn a_file_cut_anywhere_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.safetensors");
        let mut tensors = Tensors::new();
        tensors.insert("a".into(), HostTensor::new(&[1.5f32, 2.5], &[2]).unwrap());
        write(&path, &tensors).unwrap();
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let error = read(&path).unwrap_err();
            assert!(error.is_input(), "{error}");
        }
        fs::write(&path, [whole.as_slice(), &[0]].concat()).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("bytes left over"));
    }

    #[test]
    fn a_place_that_cannot_be_written_is_known_before() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check_writable(folder.path()).is_err());
        assert!(check_writable(&folder.path().join("no/such")).is_err());
        assert!(check_writable(&folder.path().join("new")).is_ok());
        assert!(check_writable(Path::new("new")).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn a_device_file_and_a_link_stay_what_they_are() {
        write_atomically(Path::new("/dev/null"), b"x").unwrap();
        assert!(!Path::new("/dev/null").is_file());
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write_atomically(&link, b"new").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert!(link.is_symlink());
    }
}
