//! The program that is pushed to hosts, and its hash.

use std::fs::File;
use std::path::{Path, PathBuf};

use brine_digest::Digest;
use brine_system::files::FileError;

/// An executable file that has the command `ssh-target`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its path.
    pub path: PathBuf,
    /// Its SHA-256 hash in hexadecimal.
    pub hash: String,
    /// Its size in bytes.
    pub size: u64,
}

impl Program {
    /// Reads the whole file. Blocks.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let mut file = File::open(path).map_err(FileError::at("read", path))?;
        let size = file.metadata().map_err(FileError::at("read", path))?.len();
        let hash = Digest::Sha256.of_reader(&mut file).map_err(FileError::at("read", path))?;
        Ok(Program { path: path.to_owned(), hash: brine_digest::hex(hash), size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_by_its_hash() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("program");
        std::fs::write(&path, "abc").unwrap();
        let program = Program::read(&path).unwrap();
        assert_eq!(program.hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(program.size, 3);
        assert!(Program::read(&directory.path().join("none")).is_err());
    }
}
