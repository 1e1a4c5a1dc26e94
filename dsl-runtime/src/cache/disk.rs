//! Compiled kernels on disk, so that the next process need not compile them again.
//!
//! An entry is found by the digest of everything that it was made from ([`Parts`]); so it cannot be stale, and there
//! is nothing to clear by hand. It carries its key and a digest of its content, both of which are checked when it is
//! read: a damaged entry is one that is not there. Entries are written beside their place and renamed, so several
//! processes may share a folder. When the folder grows beyond its limit, the entries that were not used for the
//! longest time go first.
//!
//! Nothing here fails a launch: a folder that cannot be read or written is a cache that remembers nothing.

use std::env;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// The form of entries and keys. A change of either is a new number.
const SCHEMA: &str = "lacewing cache 1";

/// The first bytes of an entry.
const MAGIC: &[u8; 8] = b"LWCACHE1";

/// Magic, key, digest of the content, length of the content.
const HEADER_BYTES: usize = 8 + 32 + 32 + 8;

/// What the default folder may hold.
const DEFAULT_LIMIT: u64 = 512 << 20;

/// Files that a process wrote but did not live to rename are removed when they are this old.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Names of entries and of files that are being written.
const ENTRY: &str = "kernel";
const TEMPORARY: &str = ".writing-";

/// Everything that a compiled kernel is made from.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The final IR: the last text before the compiler that we do not write ourselves.
    pub ir: &'a str,
    /// The chip.
    pub target: &'a str,
    /// The form of the content: `ptx`, `cubin`.
    pub form: &'a str,
    /// The options, in any text that tells them apart.
    pub options: &'a str,
    /// The passes that follow the IR.
    pub pipeline: &'a str,
    /// Names and versions of the programs and libraries that take part.
    pub toolchain: &'a str,
}

/// The digest of [`Parts`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

impl Parts<'_> {
    /// The key of what is made from these.
    pub fn key(&self) -> Key {
        let mut hasher = blake3::Hasher::new();
        let Parts { ir, target, form, options, pipeline, toolchain } = self;
        for part in [SCHEMA, ir, target, form, options, pipeline, toolchain] {
            // With its length in front, no part can pass for the end of the one before.
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Key(*hasher.finalize().as_bytes())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// A folder of compiled kernels.
#[derive(Debug)]
pub struct DiskCache {
    folder: PathBuf,
    limit: u64,
    /// Bytes written since the folder was last measured; at first enough to measure it once.
    unmeasured: Mutex<u64>,
}

/// The process's cache: the folder that `LACEWING_CACHE` names (`off` for none), else `lacewing` in the user's cache
/// folder.
pub(crate) fn default_cache() -> Option<&'static DiskCache> {
    static CACHE: LazyLock<Option<DiskCache>> = LazyLock::new(|| {
        let folder = default_folder(|name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))?;
        Some(DiskCache::new(folder, DEFAULT_LIMIT))
    });
    CACHE.as_ref()
}

fn default_folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    match variable("LACEWING_CACHE") {
        Some(off) if off == Path::new("off") => None,
        Some(folder) => Some(folder),
        None => {
            let home = || variable("HOME").map(|home| home.join(".cache"));
            Some(variable("XDG_CACHE_HOME").filter(|path| path.is_absolute()).or_else(home)?.join("lacewing"))
        }
    }
}

impl DiskCache {
    /// A cache in a folder, which is made when the first entry is written, of at most `limit` bytes.
    pub fn new(folder: impl Into<PathBuf>, limit: u64) -> Self {
        Self { folder: folder.into(), limit, unmeasured: Mutex::new(limit) }
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(format!("{key}.{ENTRY}"))
    }

    /// The content of an entry; `None` when there is none, or none that is whole.
    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        let path = self.path(key);
        let mut file = File::open(&path).ok()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        match checked(key, bytes) {
            Some(content) => {
                // The time of the last use, by which entries are removed. Whoever may only read leaves it.
                let _ = file.set_modified(SystemTime::now());
                Some(content)
            }
            None => {
                // It would be found damaged again each time.
                let _ = fs::remove_file(&path);
                None
            }
        }
    }

    /// Keeps a content. Whether that succeeds changes nothing but the time that the next process takes.
    pub fn put(&self, key: &Key, content: &[u8]) {
        let size = (HEADER_BYTES + content.len()) as u64;
        if size > self.limit || self.write(key, content).is_err() {
            return;
        }
        let mut unmeasured = self.unmeasured.lock().unwrap_or_else(PoisonError::into_inner);
        *unmeasured = unmeasured.saturating_add(size);
        // Measuring reads the whole folder: not at each entry.
        if *unmeasured >= self.limit / 16 {
            *unmeasured = 0;
            self.shrink();
        }
    }

    fn write(&self, key: &Key, content: &[u8]) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        // In the same folder, so that the renaming is one step.
        let mut file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(&self.folder)?;
        file.write_all(MAGIC)?;
        file.write_all(&key.0)?;
        file.write_all(blake3::hash(content).as_bytes())?;
        file.write_all(&(content.len() as u64).to_le_bytes())?;
        file.write_all(content)?;
        file.persist(self.path(key))?;
        Ok(())
    }

    /// Removes entries, the least recently used first, until three quarters of the limit are left.
    fn shrink(&self) {
        let Ok(files) = fs::read_dir(&self.folder) else { return };
        let now = SystemTime::now();
        let mut entries = Vec::new();
        for file in files.flatten() {
            let Ok(meta) = file.metadata() else { continue };
            let used = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let path = file.path();
            if path.extension().is_some_and(|extension| extension == ENTRY) {
                entries.push((used, meta.len(), path));
            } else if file.file_name().to_string_lossy().starts_with(TEMPORARY)
                && now.duration_since(used).is_ok_and(|age| age > ABANDONED)
            {
                let _ = fs::remove_file(path);
            }
        }
        let mut total: u64 = entries.iter().map(|(_, size, _)| size).sum();
        if total <= self.limit {
            return;
        }
        entries.sort_unstable();
        for (_, size, path) in entries {
            if total <= self.limit / 4 * 3 {
                return;
            }
            // Another process may have been faster.
            let _ = fs::remove_file(path);
            total -= size;
        }
    }
}

/// The content of a whole entry of this key.
fn checked(key: &Key, mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let rest = bytes.strip_prefix(MAGIC)?.strip_prefix(&key.0)?;
    let (digest, rest) = rest.split_at_checked(32)?;
    let (length, content) = rest.split_at_checked(8)?;
    let whole = u64::from_le_bytes(length.try_into().ok()?) == content.len() as u64
        && blake3::hash(content).as_bytes() == digest;
    if !whole {
        return None;
    }
    Some(bytes.split_off(HEADER_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: Parts<'_> = Parts {
        ir: "define void @k() { ret void }",
        target: "sm_90a",
        form: "ptx",
        options: "O3",
        pipeline: "convert",
        toolchain: "LLVM 22.1.8",
    };

    #[test]
    fn the_digest_is_pinned() {
        // When it changes, so does what every cache in the world holds: raise SCHEMA if that was meant.
        assert_eq!(PARTS.key().to_string(), "7cf6c76d92c6f7991c0837b5a64a226b37c303bbb6aa24f813673b277bf7f38c");
    }

    #[test]
    fn every_part_is_in_the_key() {
        let edited = [
            Parts { ir: "define void @k() { unreachable }", ..PARTS },
            Parts { target: "sm_80", ..PARTS },
            Parts { form: "cubin", ..PARTS },
            Parts { options: "O2", ..PARTS },
            Parts { pipeline: "convert, cse", ..PARTS },
            Parts { toolchain: "LLVM 22.1.9", ..PARTS },
            // The same letters, parted elsewhere.
            Parts { options: "O3c", pipeline: "onvert", ..PARTS },
        ];
        let mut keys: Vec<String> = edited.iter().map(|parts| parts.key().to_string()).collect();
        keys.push(PARTS.key().to_string());
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), edited.len() + 1);
        assert_eq!(PARTS.key(), PARTS.key());
    }

    fn key(number: u64) -> Key {
        Parts { options: &number.to_string(), ..PARTS }.key()
    }

    #[test]
    fn an_entry_is_given_back_by_another_cache_on_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made/when/needed");
        assert_eq!(DiskCache::new(&path, 1 << 20).get(&key(1)), None);
        DiskCache::new(&path, 1 << 20).put(&key(1), b"code");
        let other = DiskCache::new(&path, 1 << 20);
        assert_eq!(other.get(&key(1)).unwrap(), b"code");
        assert_eq!(other.get(&key(2)), None);
        other.put(&key(1), b"");
        assert_eq!(other.get(&key(1)).unwrap(), b"");
    }

    #[test]
    fn a_damaged_entry_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(folder.path(), 1 << 20);
        let path = cache.path(&key(1));
        let damage: [fn(&mut Vec<u8>); 6] = [
            Vec::clear,
            |bytes| bytes.truncate(40),
            |bytes| bytes.truncate(bytes.len() - 1),
            |bytes| bytes.push(0),
            |bytes| bytes[HEADER_BYTES] ^= 1,
            |bytes| bytes[0] ^= 1,
        ];
        for spoil in damage {
            cache.put(&key(1), b"code");
            let mut bytes = fs::read(&path).unwrap();
            spoil(&mut bytes);
            fs::write(&path, &bytes).unwrap();
            assert_eq!(cache.get(&key(1)), None);
            assert!(!path.exists());
        }
        // An entry under another entry's name.
        cache.put(&key(1), b"code");
        fs::rename(&path, cache.path(&key(2))).unwrap();
        assert_eq!(cache.get(&key(2)), None);
    }

    #[test]
    fn the_longest_unused_go_first() {
        let folder = tempfile::tempdir().unwrap();
        let content = [7; 1000];
        let cache = DiskCache::new(folder.path(), 10 * (1000 + HEADER_BYTES as u64));
        let long_ago = SystemTime::now() - Duration::from_secs(86_400);
        for number in 0..10 {
            cache.put(&key(number), &content);
            let file = File::options().append(true).open(cache.path(&key(number))).unwrap();
            file.set_modified(long_ago + Duration::from_secs(number)).unwrap();
        }
        assert!(cache.get(&key(0)).is_some());
        let abandoned = folder.path().join(format!("{TEMPORARY}x"));
        fs::write(&abandoned, b"half").unwrap();
        File::options().append(true).open(&abandoned).unwrap().set_modified(long_ago).unwrap();

        cache.put(&key(10), &content);
        let left: Vec<u64> = (0..11).filter(|number| cache.get(&key(*number)).is_some()).collect();
        assert_eq!(left, [0, 5, 6, 7, 8, 9, 10]);
        assert!(!abandoned.exists());

        // Larger than the whole cache: not kept, and nothing is removed for it.
        cache.put(&key(11), &vec![0; 20_000]);
        assert!(cache.get(&key(11)).is_none() && cache.get(&key(10)).is_some());
    }

    #[test]
    fn a_folder_that_cannot_be_used_is_an_empty_cache() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, b"").unwrap();
        for path in [file.join("below"), file, PathBuf::from("/proc/lacewing")] {
            let cache = DiskCache::new(path, 1 << 20);
            cache.put(&key(1), b"code");
            assert_eq!(cache.get(&key(1)), None);
        }
    }

    #[test]
    fn several_writers_and_readers_see_whole_entries() {
        let folder = tempfile::tempdir().unwrap();
        let content = |number: u64| vec![number as u8; 50_000];
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let cache = DiskCache::new(folder.path(), 200_000);
                    for round in 0..50 {
                        let number = round % 6;
                        if let Some(found) = cache.get(&key(number)) {
                            assert_eq!(found, content(number));
                        }
                        cache.put(&key(number), &content(number));
                    }
                });
            }
        });
    }

    #[test]
    fn the_default_folder_follows_the_environment() {
        let folder = |given: &'static [(&str, &str)]| {
            default_folder(|name| given.iter().find(|(known, _)| *known == name).map(|(_, value)| PathBuf::from(value)))
        };
        assert_eq!(folder(&[("LACEWING_CACHE", "off"), ("HOME", "/home/a")]), None);
        assert_eq!(folder(&[("LACEWING_CACHE", "/b"), ("HOME", "/home/a")]), Some(PathBuf::from("/b")));
        assert_eq!(folder(&[("XDG_CACHE_HOME", "/c")]), Some(PathBuf::from("/c/lacewing")));
        assert_eq!(folder(&[("XDG_CACHE_HOME", "c"), ("HOME", "/d")]), Some(PathBuf::from("/d/.cache/lacewing")));
        assert_eq!(folder(&[]), None);
    }
}
