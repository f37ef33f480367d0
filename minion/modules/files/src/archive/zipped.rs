//! ZIP files: listing, and extraction confined to the target directory.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use brine_system::files::{Attributes, Draft, Entry, Flush, Links};
use brine_system::user_files;
use zip::ZipArchive;

use super::contents::Contents;
use super::limits::LimitError;

const KIND: u32 = 0o170_000;
const FOLDER: u32 = 0o040_000;
const LINK: u32 = 0o120_000;
/// The set-uid, set-gid and sticky bits.
const SET_ID: u32 = 0o7000;

/// The maximum length of the target of a link, in bytes.
const MAX_LINK: u64 = 4096;

/// Lists the content of a ZIP file.
pub(super) fn contents(path: &Path) -> Result<Contents, zip::result::ZipError> {
    let mut archive = ZipArchive::new(File::open(path)?)?;
    let (mut contents, mut dirs) = (Contents::default(), BTreeSet::new());
    for number in 0..archive.len() {
        let member = archive.by_index_raw(number)?;
        let name = member.name().to_owned();
        contents.size = contents.size.saturating_add(member.size());
        contents.has_set_id |= member.unix_mode().unwrap_or(0) & SET_ID != 0;
        match member.unix_mode().unwrap_or(0) & KIND {
            LINK => contents.links.push(name),
            FOLDER => _ = dirs.insert(name),
            _ => {
                if let Some((directory, _)) = name.rsplit_once('/') {
                    dirs.insert(format!("{directory}/"));
                }
                if !name.ends_with('/') {
                    contents.files.push(name);
                }
            }
        }
    }
    contents.dirs = dirs.into_iter().collect();
    Ok(contents)
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
    /// Whether set-uid and set-gid bits are kept.
    pub keep_set_id: bool,
    /// The maximum size of all files, in bytes.
    pub max_size: u64,
    /// The maximum number of entries.
    pub max_entries: usize,
}

/// Errors of the extraction of a ZIP file.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnzipError {
    #[error("{0}")]
    Zip(#[from] zip::result::ZipError),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("{0}")]
    Limit(#[from] LimitError),
    #[error("{0} would lead out of the target")]
    Outside(String),
}

impl Unzip<'_> {
    /// Extracts all files that are not excluded, and returns their names.
    pub fn unpack(&self, path: &Path, dest: &Path) -> Result<Vec<String>, UnzipError> {
        let mut archive = ZipArchive::new(File::open(path)?)?;
        if archive.len() > self.max_entries {
            return Err(LimitError::Entries(self.max_entries).into());
        }
        // Nothing is written of an archive that says itself that it is too large.
        let mut size: u64 = 0;
        for number in 0..archive.len() {
            size = size.saturating_add(archive.by_index_raw(number)?.size());
        }
        if size > self.max_size {
            return Err(LimitError::Size(self.max_size).into());
        }
        let mut left = self.max_size;
        user_files::create_dir_all(dest)?;
        let dest = user_files::real(dest)?;
        let mut names = Vec::new();
        for number in 0..archive.len() {
            let member = match self.password {
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
                member.take(MAX_LINK).read_to_string(&mut link)?;
                user_files::symlink(link, &target)?;
                names.push(name);
                continue;
            }
            if target.is_symlink() {
                return Err(outside());
            }
            let mode = if self.keep_set_id { mode & 0o7777 } else { mode & 0o7777 & !SET_ID };
            let mode = Some(mode).filter(|mode| self.keep_modes && *mode != 0);
            if name.ends_with('/') {
                user_files::create_dir_all(&target)?;
                if let Some(mode) = mode {
                    user_files::set_mode(&target, mode, Links::Keep)?;
                }
            } else {
                let mut draft = Entry::resolve(&target, Links::Keep).and_then(Draft::create)?;
                // The size in the directory of the archive may be wrong.
                let mut limited = member.take(left.saturating_add(1));
                let written = std::io::copy(&mut limited, &mut draft.file)?;
                left = left.checked_sub(written).ok_or(LimitError::Size(self.max_size))?;
                draft.finish_over(Attributes { mode, ..Attributes::default() }, 0o644, Flush::Later)?;
            }
            names.push(name);
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn how(max_size: u64, max_entries: usize) -> Unzip<'static> {
        Unzip { excludes: &[], password: None, keep_modes: true, keep_set_id: false, max_size, max_entries }
    }

    #[test]
    fn set_uid_bits_are_kept_only_if_asked_for_and_sizes_are_limited() {
        let directory = tempfile::tempdir().unwrap();
        let (archive, dest) = (directory.path().join("a.zip"), directory.path().join("dest"));
        let mut zip = ZipWriter::new(File::create(&archive).unwrap());
        for name in ["a", "b"] {
            zip.start_file(name, SimpleFileOptions::default().unix_permissions(0o4755)).unwrap();
            zip.write_all(&[b'x'; 1000]).unwrap();
        }
        zip.finish().unwrap();
        let mode = || fs::metadata(dest.join("a")).unwrap().permissions().mode() & 0o7777;
        how(2000, 2).unpack(&archive, &dest).unwrap();
        // Some writers store the nine permission bits alone.
        let stored = ZipArchive::new(File::open(&archive).unwrap()).unwrap().by_index(0).unwrap().unix_mode().unwrap();
        assert_eq!(mode(), 0o755);
        Unzip { keep_set_id: true, ..how(2000, 2) }.unpack(&archive, &dest).unwrap();
        assert_eq!(mode(), stored & 0o7777);
        for limited in [how(1999, 2), how(2000, 1)] {
            let error = limited.unpack(&archive, &dest).unwrap_err();
            assert!(matches!(error, UnzipError::Limit(_)), "{error}");
        }
        assert_eq!(contents(&archive).unwrap().size, 2000);
    }

    #[test]
    fn zip_files_cannot_escape_the_target() {
        let directory = tempfile::tempdir().unwrap();
        let (archive, dest) = (directory.path().join("a.zip"), directory.path().join("dest"));
        let how = how(1000, 10);
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
            let mut result = how.unpack(&archive, &dest);
            if name == "m" {
                let mut zip = ZipWriter::new(File::create(&archive).unwrap());
                zip.start_file(name, SimpleFileOptions::default()).unwrap();
                zip.write_all(b"x").unwrap();
                zip.finish().unwrap();
                result = how.unpack(&archive, &dest);
            }
            assert!(matches!(result, Err(UnzipError::Outside(_))), "{name}: {result:?}");
            assert!(!directory.path().join("out").exists(), "{name}");
        }
    }
}
