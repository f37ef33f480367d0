//! Losses of power: a preloaded library records the writes and flushes of a daemon, and what was not flushed is taken
//! back while the daemon is down.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::random::Random;

const SOURCE: &str = include_str!("unsynced.c");

/// A directory whose unflushed changes can be taken back.
pub struct Unsynced {
    library: PathBuf,
    root: PathBuf,
    log: PathBuf,
    /// The files at the start of the record, by path, with their inodes.
    base: HashMap<PathBuf, (u64, Vec<u8>)>,
}

impl Unsynced {
    /// Builds the library in `directory`, for the files below `root`; an error is the reason to skip the round.
    pub fn build(directory: &Path, root: &Path) -> Result<Self, String> {
        let (library, source) = (directory.join("unsynced.so"), directory.join("unsynced.c"));
        let made = std::fs::create_dir_all(directory).and_then(|()| std::fs::create_dir_all(root));
        let written = made.and_then(|()| std::fs::write(&source, SOURCE));
        written.map_err(|error| format!("writing {} failed: {error}", source.display()))?;
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).args(["-lpthread"]);
        match command.output() {
            Ok(output) if output.status.success() => {}
            Ok(output) => return Err(format!("the C compiler fails: {}", crate::support::stderr(&output))),
            Err(error) => return Err(format!("there is no C compiler: cc: {error}")),
        }
        let log = directory.join("log");
        let mut unsynced = Unsynced { library, root: root.to_owned(), log, base: HashMap::new() };
        unsynced.begin().map_err(|error| format!("reading {} failed: {error}", root.display()))?;
        Ok(unsynced)
    }

    /// Returns the environment variables that activate the record.
    pub fn environment(&self) -> Vec<(String, PathBuf)> {
        let variables =
            [("LD_PRELOAD", &self.library), ("FAULT_UNSYNCED_ROOT", &self.root), ("FAULT_UNSYNCED_LOG", &self.log)];
        variables.map(|(name, path)| (name.to_owned(), path.clone())).to_vec()
    }

    /// Begins the record: the present files are durable.
    fn begin(&mut self) -> std::io::Result<()> {
        self.base.clear();
        for path in files(&self.root) {
            let file = (std::fs::metadata(&path)?.ino(), std::fs::read(&path)?);
            self.base.insert(path, file);
        }
        std::fs::write(&self.log, b"")
    }

    /// Takes back what was not flushed: all of it, or a random part of the writes. Returns the number of the writes and
    /// of the changed names that are lost. No recorded process may run.
    pub fn lose(&mut self, random: &mut Random) -> Result<usize, String> {
        let failed = |error: std::io::Error| format!("taking back unflushed writes failed: {error}");
        let log = std::fs::read(&self.log).map_err(failed)?;
        let mut model = Model::new(&self.base);
        let mut rest = &log[..];
        while let Some((record, behind)) = Record::first(rest) {
            model.apply(&record);
            rest = behind;
        }
        let is_partial = random.within(0, 2) == 1;
        let (durable, lost) = model.durable(|| is_partial && random.within(0, 2) == 1);
        for path in files(&self.root).into_iter().filter(|path| !durable.contains_key(path)) {
            std::fs::remove_file(path).map_err(failed)?;
        }
        for (path, content) in durable {
            std::fs::write(path, content).map_err(failed)?;
        }
        self.begin().map_err(failed)?;
        Ok(lost)
    }
}

/// Returns all regular files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => paths.extend(files(&entry.path())),
            Ok(kind) if kind.is_file() => paths.push(entry.path()),
            _ => {}
        }
    }
    paths
}

/// A record of the library.
#[derive(Debug, Clone, Copy)]
struct Record<'a> {
    kind: u8,
    a: u64,
    b: u64,
    data: &'a [u8],
}

impl<'a> Record<'a> {
    const HEADER: usize = 32;

    /// Splits the first record off. The last one may be incomplete.
    fn first(log: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (header, rest) = log.split_at_checked(Self::HEADER)?;
        let number = |at: usize| u64::from_ne_bytes(header[at..at + 8].try_into().unwrap());
        let (data, rest) = rest.split_at_checked(usize::try_from(number(24)).unwrap())?;
        Some((Record { kind: header[0], a: number(8), b: number(16), data }, rest))
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(std::ffi::OsStr::from_bytes(self.data))
    }

    fn paths(&self) -> (PathBuf, PathBuf) {
        let end = self.data.iter().position(|byte| *byte == 0).unwrap();
        let path = |bytes: &[u8]| PathBuf::from(std::ffi::OsStr::from_bytes(bytes));
        (path(&self.data[..end]), path(&self.data[end + 1..]))
    }
}

/// A change of a file's content.
enum Change {
    Write(u64, Vec<u8>),
    Length(u64),
}

#[derive(Default)]
struct File {
    durable: Vec<u8>,
    pending: Vec<Change>,
}

impl File {
    fn apply(content: &mut Vec<u8>, change: &Change) {
        match change {
            Change::Length(length) => content.resize(usize::try_from(*length).unwrap(), 0),
            Change::Write(offset, bytes) => {
                let start = usize::try_from(*offset).unwrap();
                content.resize(content.len().max(start + bytes.len()), 0);
                content[start..start + bytes.len()].copy_from_slice(bytes);
            }
        }
    }
}

/// A file system whose changes are durable once they are flushed.
struct Model {
    files: Vec<File>,
    by_inode: HashMap<u64, usize>,
    present: HashMap<PathBuf, usize>,
    durable: HashMap<PathBuf, usize>,
}

impl Model {
    fn new(base: &HashMap<PathBuf, (u64, Vec<u8>)>) -> Self {
        let mut model =
            Model { files: Vec::new(), by_inode: HashMap::new(), present: HashMap::new(), durable: HashMap::new() };
        for (path, (inode, content)) in base {
            let index = *model.by_inode.entry(*inode).or_insert_with(|| {
                model.files.push(File { durable: content.clone(), pending: Vec::new() });
                model.files.len() - 1
            });
            model.present.insert(path.clone(), index);
        }
        model.durable = model.present.clone();
        model
    }

    fn apply(&mut self, record: &Record) {
        match record.kind {
            b'O' => {
                let path = record.path();
                let index = self.present.get(&path).copied();
                if index.is_none() || index != self.by_inode.get(&record.a).copied() {
                    // The inode may have been that of a removed file.
                    self.files.push(File::default());
                    self.by_inode.insert(record.a, self.files.len() - 1);
                    self.present.insert(path, self.files.len() - 1);
                }
            }
            b'W' | b'T' => {
                if let Some(index) = self.by_inode.get(&record.a) {
                    let written = Change::Write(record.b, record.data.to_vec());
                    self.files[*index].pending.push(if record.kind == b'W' {
                        written
                    } else {
                        Change::Length(record.b)
                    });
                }
            }
            b'S' => {
                if let Some(index) = self.by_inode.get(&record.a) {
                    let file = &mut self.files[*index];
                    for change in std::mem::take(&mut file.pending) {
                        File::apply(&mut file.durable, &change);
                    }
                }
            }
            b'D' => {
                let directory = record.path();
                let is_in = |path: &PathBuf| path.parent() == Some(&directory);
                self.durable.retain(|path, _| !is_in(path));
                let now = self.present.iter().filter(|(path, _)| is_in(path));
                self.durable.extend(now.map(|(path, index)| (path.clone(), *index)));
            }
            b'R' => {
                let (from, to) = record.paths();
                if let Some(index) = self.present.remove(&from) {
                    self.present.insert(to, index);
                    return;
                }
                // A directory: its files move with it, durably.
                for names in [&mut self.present, &mut self.durable] {
                    let moved: Vec<PathBuf> = names.keys().filter(|path| path.starts_with(&from)).cloned().collect();
                    for path in moved {
                        let index = names.remove(&path).unwrap();
                        names.insert(to.join(path.strip_prefix(&from).unwrap()), index);
                    }
                }
            }
            b'L' => {
                let (from, to) = record.paths();
                if let Some(index) = self.present.get(&from).copied() {
                    self.present.insert(to, index);
                }
            }
            b'U' => _ = self.present.remove(&record.path()),
            kind => panic!("the record has an operation of kind {kind}"),
        }
    }

    /// Returns the durable files, and the number of lost writes and changed names. `survives` decides about each
    /// unflushed write.
    fn durable(self, mut survives: impl FnMut() -> bool) -> (HashMap<PathBuf, Vec<u8>>, usize) {
        let named = |path: &PathBuf, index: &usize, other: &HashMap<PathBuf, usize>| other.get(path) != Some(index);
        let mut lost = self.present.iter().filter(|(path, index)| named(path, index, &self.durable)).count();
        lost += self.durable.keys().filter(|path| !self.present.contains_key(*path)).count();
        let contents: Vec<Vec<u8>> = self
            .files
            .into_iter()
            .map(|File { mut durable, pending }| {
                for change in &pending {
                    if survives() {
                        File::apply(&mut durable, change);
                    } else {
                        lost += 1;
                    }
                }
                durable
            })
            .collect();
        (self.durable.into_iter().map(|(path, index)| (path, contents[index].clone())).collect(), lost)
    }
}

/// Runs Python with the library, which has the files written and flushed in these ways.
#[test]
fn only_flushed_writes_and_names_survive() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    std::fs::create_dir_all(&root).unwrap();
    std::fs::write(root.join("old"), b"old").unwrap();
    std::fs::write(root.join("replaced"), b"before").unwrap();
    let mut unsynced = Unsynced::build(&directory.path().join("library"), &root).unwrap();
    let script = r"
import os, sys
root = sys.argv[1] + '/'
def sync(path):
    fd = os.open(path, os.O_RDONLY); os.fsync(fd); os.close(fd)
def write(name, text, flush, flags=os.O_CREAT | os.O_TRUNC):
    fd = os.open(root + name, os.O_WRONLY | flags, 0o600)
    os.write(fd, text)
    if flush: os.fsync(fd)
    os.close(fd)
write('a', b'flushed', True)
write('a', b'lost', False, os.O_APPEND)
write('b', b'lost', False)
write('old', b'new', False, 0)
write('temporary', b'after', True)
sync(root)
os.rename(root + 'temporary', root + 'replaced')
write('c', b'nameless', True)
os.unlink(root + 'b')
";
    let environment = unsynced.environment();
    let run = |script: &str| {
        let mut command = Command::new("python3");
        command.args(["-c", script]).arg(&root).envs(environment.iter().map(|(name, path)| (name, path)));
        assert!(command.status().unwrap().success());
    };
    run(script);
    let read = |name: &str| std::fs::read(root.join(name)).ok();
    assert_eq!((read("replaced"), read("c")), (Some(b"after".to_vec()), Some(b"nameless".to_vec())));
    let mut random = (0..1000).map(Random::new).find(|random| random.clone().within(0, 2) == 0).unwrap();
    assert!(unsynced.lose(&mut random).unwrap() > 0);
    for (name, content) in [
        ("a", Some("flushed")),
        ("b", Some("")),
        ("c", None),
        ("old", Some("old")),
        ("temporary", Some("after")),
        ("replaced", Some("before")),
    ] {
        assert_eq!(read(name), content.map(|text| text.as_bytes().to_vec()), "{name}");
    }
    run(
        "import os, sys\nos.rename(sys.argv[1] + '/temporary', sys.argv[1] + '/replaced')\nfd = os.open(sys.argv[1], 0)\nos.fsync(fd)",
    );
    assert_eq!(unsynced.lose(&mut random).unwrap(), 0);
    assert_eq!((read("replaced"), read("temporary")), (Some(b"after".to_vec()), None));
}
