//! The programs that are pushed to hosts, one for each kind of machine, and their hashes.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use brine_digest::Digest;
use brine_runtime::threads;
use brine_system::files::FileError;
use flate2::Compression;
use flate2::read::GzEncoder;
use tokio::sync::OnceCell;

/// The file name prefix of static programs, followed by the machine as `uname -m` prints it.
const STATIC: &str = "brine-ssh-host-";

/// The compression of a program for its transfer to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compressor {
    /// Decompresses in a third of the time, but must be installed on this machine and on the host.
    Zstd,
    /// Available on nearly all hosts.
    Gzip,
}

impl Compressor {
    /// All compressors, in order of preference.
    const ALL: [Compressor; 2] = [Compressor::Zstd, Compressor::Gzip];

    /// Returns the name of the program that decompresses with `-dc`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Compressor::Zstd => "zstd",
            Compressor::Gzip => "gzip",
        }
    }

    /// Parses [`Compressor::name`].
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// The programs for hosts.
#[derive(Debug, Clone)]
pub struct Programs {
    /// The directory of the static programs.
    directory: PathBuf,
    /// The compressors that this machine can use, in order of preference.
    compressors: Vec<Compressor>,
    /// The programs by machine, as `uname -sm` prints it.
    by_machine: BTreeMap<String, Program>,
}

impl Programs {
    /// Reads the static programs in a directory (`brine-ssh-host-x86_64`, ...), which may be missing. Uses `own` for
    /// hosts with the machine of this one, unless the directory has a program for them. Blocks.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(directory: &Path, own: &Path) -> Result<Self, FileError> {
        let mut by_machine = BTreeMap::new();
        let entries = match std::fs::read_dir(directory) {
            Ok(entries) => entries.collect::<Result<Vec<_>, _>>().map_err(FileError::at("read", directory))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(FileError::at("read", directory)(error)),
        };
        for entry in entries {
            let name = entry.file_name();
            let machine = name.to_str().and_then(|name| name.strip_prefix(STATIC));
            let is_word = |machine: &&str| machine.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if let Some(machine) = machine.filter(is_word) {
                by_machine.insert(format!("Linux {machine}"), Program::read(&entry.path())?);
            }
        }
        if let Entry::Vacant(entry) = by_machine.entry(own_machine()) {
            entry.insert(Program::read(own)?);
        }
        let has_zstd = brine_system::processes::find(Path::new(Compressor::Zstd.name())).is_some();
        let compressors = Compressor::ALL.into_iter().filter(|one| has_zstd || *one != Compressor::Zstd).collect();
        Ok(Programs { directory: directory.to_owned(), compressors, by_machine })
    }

    /// Returns the compressors that a host may choose from, the best first.
    pub(crate) fn compressors(&self) -> &[Compressor] {
        &self.compressors
    }

    /// Returns the machines, as `uname -sm` prints them, and the hashes of their programs.
    pub(crate) fn hashes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.by_machine.iter().map(|(machine, program)| (machine.as_str(), program.hash.as_str()))
    }

    /// Returns the program for a machine.
    ///
    /// # Errors
    /// There is no program for it; the message explains how to build one.
    pub(crate) fn of(&self, machine: &str) -> Result<&Program, String> {
        self.by_machine.get(machine).ok_or_else(|| {
            let all: Vec<&str> = self.by_machine.keys().map(String::as_str).collect();
            let name = machine.strip_prefix("Linux ").unwrap_or("MACHINE");
            format!(
                "the host is a '{machine}', and there are programs for {} only: build one (packaging/ssh-host) and put it at {}",
                all.join(", "),
                self.directory.join(format!("{STATIC}{name}")).display()
            )
        })
    }
}

/// Returns the output of `uname -sm` on a host that can run this program.
fn own_machine() -> String {
    let machine = match std::env::consts::ARCH {
        "arm" => "armv7l",
        "x86" => "i686",
        other => other,
    };
    format!("Linux {machine}")
}

/// An executable file that implements the subcommand `ssh-target`.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    path: PathBuf,
    /// Its SHA-256 hash in hexadecimal.
    hash: String,
    /// Its size in bytes.
    pub(crate) size: u64,
    /// The gzip-compressed content, cached once a host has needed it.
    gzip: Arc<OnceCell<Arc<[u8]>>>,
    /// The Zstandard-compressed content, cached once a host has needed it.
    zstd: Arc<OnceCell<Arc<[u8]>>>,
}

impl Program {
    fn read(path: &Path) -> Result<Self, FileError> {
        let mut file = File::open(path).map_err(FileError::at("read", path))?;
        let size = file.metadata().map_err(FileError::at("read", path))?.len();
        let hash = Digest::Sha256.of_reader(&mut file).map_err(FileError::at("read", path))?;
        Ok(Program {
            path: path.to_owned(),
            hash: brine_digest::hex(hash),
            size,
            gzip: Arc::default(),
            zstd: Arc::default(),
        })
    }

    /// Opens the file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) async fn open(&self) -> io::Result<tokio::fs::File> {
        tokio::fs::File::open(&self.path).await
    }

    /// Returns the compressed content, which is computed once for all hosts.
    ///
    /// # Errors
    /// The file cannot be read, or `zstd` fails.
    pub(crate) async fn compressed(&self, compressor: Compressor) -> io::Result<Arc<[u8]>> {
        let made = match compressor {
            Compressor::Gzip => self.gzip.get_or_try_init(|| self.compress_gzip()).await,
            Compressor::Zstd => self.zstd.get_or_try_init(|| self.compress_zstd()).await,
        };
        made.cloned()
    }

    async fn compress_gzip(&self) -> io::Result<Arc<[u8]>> {
        let program = self.clone();
        let making = threads::run("compression", move |_| {
            let mut bytes = Vec::new();
            let file = File::open(&program.path)?.take(program.size);
            // Higher levels save 2 % at twice the time.
            GzEncoder::new(file, Compression::new(4)).read_to_end(&mut bytes)?;
            Ok(bytes.into())
        });
        making.await.map_err(io::Error::other)?
    }

    async fn compress_zstd(&self) -> io::Result<Arc<[u8]>> {
        let mut command = tokio::process::Command::new(Compressor::Zstd.name());
        // Higher levels are no faster to decompress, and take twice the time here.
        command.args(["-q", "-3", "-c", "--"]).arg(&self.path).stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await?;
        if output.status.success() {
            return Ok(output.stdout.into());
        }
        Err(io::Error::other(format!("zstd failed: {}", String::from_utf8_lossy(&output.stderr).trim())))
    }
}

#[cfg(test)]
mod tests;
