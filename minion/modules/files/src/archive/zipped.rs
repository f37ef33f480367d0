//! ZIP files: listing, and extraction confined to the target directory.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use brine_system::files::{Attributes, Draft, Entry, Flush, Links};
use brine_system::user_files;
use zip::ZipArchive;

use super::Contents;

const KIND: u32 = 0o170_000;
const FOLDER: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

/// Lists the content of a ZIP file.
pub(super) fn contents(path: &Path) -> Result<Contents, zip::result::ZipError> {
    let mut archive = ZipArchive::new(File::open(path)?)?;
    let (mut found, mut dirs) = (Contents::default(), BTreeSet::new());
    for number in 0..archive.len() {
        let member = archive.by_index_raw(number)?;
        let name = member.name().to_owned();
        match member.unix_mode().unwrap_or(0) & KIND {
            LINK => found.links.push(name),
            FOLDER => _ = dirs.insert(name),
            _ => {
                if let Some((directory, _)) = name.rsplit_once('/') {
                    dirs.insert(format!("{directory}/"));
                }
                if !name.ends_with('/') {
                    found.files.push(name);
                }
            }
        }
    }
    found.dirs = dirs.into_iter().collect();
    Ok(found)
}

/// Whether any file of a ZIP archive is encrypted.
pub fn needs_password(path: &Path) -> Result<bool, zip::result::ZipError> {
    let mut archive = ZipArchive::new(File::open(path)?)?;
    for number in 0..archive.len() {
        if archive.by_index_raw(number)?.encrypted() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Options of the extraction of a ZIP file.
pub(super) struct Unzip<'a> {
    pub excludes: &'a [String],
    pub password: Option<&'a str>,
    pub keep_modes: bool,
}

/// Errors of the extraction of a ZIP file.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnzipError {
    #[error("{0}")]
    Zip(#[from] zip::result::ZipError),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("{0} would lead out of the target")]
    Outside(String),
}

impl Unzip<'_> {
    /// Extracts all files that are not excluded, and returns their names.
    pub fn unpack(&self, path: &Path, dest: &Path) -> Result<Vec<String>, UnzipError> {
        let mut archive = ZipArchive::new(File::open(path)?)?;
        user_files::create_dir_all(dest)?;
        let dest = user_files::real(dest)?;
        let mut done = Vec::new();
        for number in 0..archive.len() {
            let mut member = match self.password {
                Some(password) => archive.by_index_decrypt(number, password.as_bytes())?,
                None => archive.by_index(number)?,
            };
            let name = member.name().to_owned();
            if self.excludes.contains(&name) {
                continue;
            }
            let outside = || UnzipError::Outside(name.clone());
            let target = dest.join(member.enclosed_name().ok_or_else(outside)?);
            let directory = target.parent().unwrap_or(&dest);
            user_files::create_dir_all(directory)?;
            // A symbolic link, extracted earlier or already present, may lead out of the directory.
            if !directory.canonicalize()?.starts_with(&dest) {
                return Err(outside());
            }
            let mode = member.unix_mode().unwrap_or(0);
            if mode & KIND == LINK {
                let mut link = String::new();
                member.read_to_string(&mut link)?;
                user_files::symlink(link, &target)?;
                done.push(name);
                continue;
            }
            if target.is_symlink() {
                return Err(outside());
            }
            let mode = Some(mode & 0o7777).filter(|mode| self.keep_modes && *mode != 0);
            if name.ends_with('/') {
                user_files::create_dir_all(&target)?;
                if let Some(mode) = mode {
                    user_files::set_mode(&target, mode, Links::Keep)?;
                }
            } else {
                let mut draft = Entry::resolve(&target, Links::Keep).and_then(Draft::create)?;
                std::io::copy(&mut member, &mut draft.file)?;
                draft.finish_over(Attributes { mode, ..Attributes::default() }, 0o644, Flush::Later)?;
            }
            done.push(name);
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    #[test]
    fn zip_files_cannot_escape_the_target() {
        let directory = tempfile::tempdir().unwrap();
        let (archive, dest) = (directory.path().join("a.zip"), directory.path().join("dest"));
        let how = Unzip { excludes: &[], password: None, keep_modes: true };
        for (name, link) in [("../out", None), ("l/out", Some(("l", ".."))), ("m", Some(("m", "../out")))] {
            let mut zip = ZipWriter::new(File::create(&archive).unwrap());
            if let Some((link, target)) = link {
                zip.add_symlink(link, target, SimpleFileOptions::default()).unwrap();
            }
            // This crate cannot write a ZIP file with a duplicate name, so the link exists beforehand.
            if link.is_none_or(|(link, _)| link != name) {
                zip.start_file(name, SimpleFileOptions::default()).unwrap();
                zip.write_all(b"x").unwrap();
            }
            zip.finish().unwrap();
            let mut done = how.unpack(&archive, &dest);
            if name == "m" {
                let mut zip = ZipWriter::new(File::create(&archive).unwrap());
                zip.start_file(name, SimpleFileOptions::default()).unwrap();
                zip.write_all(b"x").unwrap();
                zip.finish().unwrap();
                done = how.unpack(&archive, &dest);
            }
            assert!(matches!(done, Err(UnzipError::Outside(_))), "{name}: {done:?}");
            assert!(!directory.path().join("out").exists(), "{name}");
        }
    }
}
