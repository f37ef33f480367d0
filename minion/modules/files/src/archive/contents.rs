//! The list of an archive's content.

use std::path::{Path, PathBuf};
use std::time::Duration;

use brine_context::Context;
use brine_function::CallError;
use brine_host::process::{Output, Program};
use brine_text::shell::quote;

use super::limits::LimitError;
use super::zipped;
use crate::cmd::split_options;

/// Archive formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `tar`, compressed or not.
    Tar,
    /// `zip`.
    Zip,
    /// `rar`.
    Rar,
}

impl Format {
    /// Returns the format for the extension of a file name.
    pub fn guess(name: &str) -> Option<Self> {
        const TAR: [&str; 10] = ["tar", "tar.gz", "tgz", "tar.bz2", "tbz2", "tbz", "tar.xz", "txz", "tar.lzma", "tlz"];
        let name = name.to_lowercase();
        let ends = |ending: &str| name.strip_suffix(ending).is_some_and(|rest| rest.ends_with('.'));
        if TAR.iter().any(|ending| ends(ending)) {
            return Some(Format::Tar);
        }
        [("zip", Format::Zip), ("rar", Format::Rar)]
            .into_iter()
            .find(|(ending, _)| ends(ending))
            .map(|(_, format)| format)
    }

    /// Returns the format with this name.
    pub fn named(name: &str) -> Option<Self> {
        match name.to_lowercase().as_str() {
            "tar" => Some(Format::Tar),
            "zip" => Some(Format::Zip),
            "rar" => Some(Format::Rar),
            _ => None,
        }
    }

    /// Returns the name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Format::Tar => "tar",
            Format::Zip => "zip",
            Format::Rar => "rar",
        }
    }
}

/// Paths in an archive. Directories end with a slash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// Directories, including those that only occur in paths of files.
    pub dirs: Vec<String>,
    /// Everything except directories and symbolic links.
    pub files: Vec<String>,
    /// Symbolic links.
    pub links: Vec<String>,
    /// Devices and FIFOs, which are among the files.
    pub special: Vec<String>,
    /// Whether a path has the set-uid or set-gid bit.
    pub has_set_id: bool,
    /// Files with one of these bits.
    pub set_id: Vec<String>,
    /// The size of all files, in bytes.
    pub size: u64,
}

impl Contents {
    /// Returns the topmost directories, including one that all paths share.
    pub fn top_level_dirs(&self) -> Vec<String> {
        let mut top: Vec<String> = self.dirs.iter().filter(|path| path.matches('/').count() == 1).cloned().collect();
        let mut all = self.dirs.iter().chain(&self.files).chain(&self.links);
        let first = all.next().and_then(|path| path.split_once('/')).map(|(first, _)| format!("{first}/"));
        if let Some(shared) = first.filter(|first| all.all(|path| path.starts_with(first)) && !top.contains(first)) {
            top.push(shared);
        }
        top
    }

    /// Returns the files outside of any directory.
    pub fn top_level_files(&self) -> Vec<String> {
        self.files.iter().filter(|path| !path.contains('/')).cloned().collect()
    }

    /// Returns the symbolic links outside of any directory.
    pub fn top_level_links(&self) -> Vec<String> {
        self.links.iter().filter(|path| !path.contains('/')).cloned().collect()
    }

    /// Removes `count` leading components from all paths, and drops paths that have no more than that.
    pub(super) fn strip(&mut self, count: usize) {
        for list in [&mut self.dirs, &mut self.files, &mut self.links] {
            let below = |path: &String| path.splitn(count + 1, '/').nth(count).map(str::to_owned);
            *list = list.iter().filter_map(below).filter(|path| !path.is_empty()).collect();
        }
    }

    pub(super) fn sorted(mut self) -> Self {
        for list in [&mut self.dirs, &mut self.files, &mut self.links] {
            list.sort();
        }
        self
    }
}

/// Lists the content of a local archive, sorted. `name` is the name in errors; `options` is a command that decompresses the
/// archive to standard output; `strip` is the number of leading components that paths lose.
pub fn contents(
    context: &Context,
    name: &str,
    cached: &Path,
    format: Format,
    options: Option<&str>,
    strip: Option<u32>,
) -> Result<Contents, CallError> {
    let mut contents = match format {
        Format::Tar => tar_contents(context, name, cached, options)?,
        Format::Zip => {
            zipped::contents(cached).map_err(|_| error_of_archive(cached, &format!("{name} is not a ZIP file")))?
        }
        Format::Rar => rar_contents(context, name, cached)?,
    };
    if let Some(count) = strip {
        contents.strip(count as usize);
    }
    Ok(contents.sorted())
}

/// The maximum size of a listing, in bytes.
const MAX_LISTING: usize = 512 << 20;
/// The timeout of a listing: an archive may be a gigabyte that decompresses to many terabytes.
const LISTING_TIMEOUT: Duration = Duration::from_secs(3600);

/// Where and as whom an archive is listed.
#[derive(Default)]
pub(super) struct Listing {
    pub cwd: Option<PathBuf>,
    pub runas: Option<String>,
}

impl Listing {
    /// Runs a command of a shell that lists an archive.
    pub fn run(self, context: &Context, command: String) -> Result<Output, CallError> {
        let env = vec![("LC_ALL".to_owned(), "C.UTF-8".to_owned()), ("TZ".to_owned(), "UTC".to_owned())];
        let program = Program {
            command,
            shell: Some("/bin/sh".into()),
            env,
            output_limit: Some(MAX_LISTING),
            timeout: Some(LISTING_TIMEOUT),
            cwd: self.cwd,
            runas: self.runas,
            ..Program::default()
        };
        checked(context, &program)
    }
}

fn shell(context: &Context, command: String) -> Result<Output, CallError> {
    Listing::default().run(context, command)
}

fn checked(context: &Context, program: &Program) -> Result<Output, CallError> {
    let output = context.run_program(program).map_err(CallError::execution)?;
    if output.timed_out {
        return Err(CallError::Execution(format!("listing the archive took longer than {LISTING_TIMEOUT:?}")));
    }
    if output.is_cut() {
        return Err(CallError::execution(LimitError::Entries(context.config().archive_max_entries)));
    }
    Ok(output)
}

/// The options of `tar --list` whose output [`tar_listing`] parses.
pub const TAR_LISTING: [&str; 4] = ["--verbose", "--numeric-owner", "--full-time", "--quoting-style=literal"];

fn tar_contents(context: &Context, name: &str, cached: &Path, options: Option<&str>) -> Result<Contents, CallError> {
    let list = format!("tar --list {}", TAR_LISTING.join(" "));
    let path = quote(&cached.display().to_string());
    let mut output = shell(context, format!("{list} --file={path}"))?;
    // As in Salt, the options are for archives that cannot be read otherwise.
    if let Some(options) = options.filter(|options| output.retcode != 0 && !options.is_empty()) {
        let words: Vec<String> = split_options(options)?.iter().map(|word| quote(word)).collect();
        output = shell(context, format!("{} {path} | {list} --file=-", words.join(" ")))?;
    }
    if output.retcode != 0 {
        return Err(error_of_archive(
            cached,
            &format!(
                "Unable to list contents of {name}. If this is an XZ-compressed tar archive, install XZ Utils to enable \
                 listing its contents. If it is compressed using something other than XZ, it may be necessary to specify \
                 CLI options to decompress the archive. See the documentation for details."
            ),
        ));
    }
    Ok(tar_listing(&output.stdout))
}

/// Parses the listing of tar: lines such as `drwxr-xr-x 0/0 0 2026-01-31 00:00:00 directory/`.
pub fn tar_listing(text: &str) -> Contents {
    let mut contents = Contents::default();
    for line in text.lines() {
        let mut rest = line;
        let mut fields = [""; 5];
        for field in &mut fields {
            (*field, rest) = rest.trim_start_matches(' ').split_once(' ').unwrap_or_default();
        }
        let [mode, _, size, ..] = fields;
        if mode.contains(['s', 'S']) {
            contents.has_set_id = true;
            // A set-gid directory gives nobody rights.
            if !mode.starts_with('d') {
                contents.set_id.push(rest.to_owned());
            }
        }
        // Devices have a pair of numbers instead.
        contents.size = contents.size.saturating_add(size.parse().unwrap_or(0));
        if mode.starts_with(['b', 'c', 'p']) {
            contents.special.push(rest.to_owned());
        }
        match line.as_bytes().first() {
            _ if rest.is_empty() => {}
            Some(b'd') => contents.dirs.push(format!("{}/", rest.trim_end_matches('/'))),
            Some(b'l') => contents.links.push(rest.split(" -> ").next().unwrap_or(rest).to_owned()),
            Some(b'h') => contents.files.push(rest.split(" link to ").next().unwrap_or(rest).to_owned()),
            _ => contents.files.push(rest.to_owned()),
        }
    }
    contents
}

fn rar_contents(context: &Context, name: &str, cached: &Path) -> Result<Contents, CallError> {
    let program = rar_program(context, &["rar", "unrar"]);
    let output = shell(context, format!("{program} lt -- {}", quote(&cached.display().to_string())))?;
    let contents = rar_listing(&output.stdout);
    if contents == Contents::default() {
        return Err(error_of_archive(
            cached,
            &format!("Failed to list {name}, is it a rar file, and is the program rar installed?"),
        ));
    }
    Ok(contents)
}

/// Returns the first of these programs that is installed; the first one if none is.
pub(super) fn rar_program(context: &Context, programs: &[&'static str]) -> &'static str {
    let program = programs.iter().copied().find(|name| context.minion.programs.find(name).is_some());
    program.or(programs.first().copied()).unwrap_or("rar")
}

/// Parses the technical listing of `rar` or `unrar`: a block of fields for each path, `Name` first.
fn rar_listing(text: &str) -> Contents {
    let mut contents = Contents::default();
    let (mut path, mut is_directory) = (None, false);
    for line in text.lines() {
        let Some((field, value)) = line.trim_start().split_once(": ") else { continue };
        match (field, &path) {
            ("Name", _) => path = Some(value.to_owned()),
            ("Type", Some(path)) => {
                is_directory = value.trim_end() == "Directory";
                if is_directory { contents.dirs.push(format!("{path}/")) } else { contents.files.push(path.clone()) }
            }
            ("Size", Some(_)) => contents.size = contents.size.saturating_add(value.trim().parse().unwrap_or(0)),
            ("Attributes", Some(path)) if value.contains(['s', 'S']) => {
                contents.has_set_id = true;
                if !is_directory {
                    contents.set_id.push(path.clone());
                }
            }
            _ => {}
        }
    }
    contents
}

/// Returns an error that names the cached path of the archive.
pub(super) fn error_of_archive(cached: &Path, message: &str) -> CallError {
    CallError::Execution(format!(
        "{}. Additional info follows:\n\narchive location:\n    {}",
        message.trim_end_matches('.'),
        cached.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_guessed_by_name() {
        for (name, format) in [
            ("salt://a/b.tar.gz", Some(Format::Tar)),
            ("b.TXZ", Some(Format::Tar)),
            ("b.zip", Some(Format::Zip)),
            ("b.rar", Some(Format::Rar)),
            ("tar", None),
            ("b.gz", None),
        ] {
            assert_eq!(Format::guess(name), format, "{name}");
        }
    }

    #[test]
    fn output_of_tar_is_parsed() {
        let text = "drwxr-xr-x 0/0               0 2026-01-31 00:00:00 top dir/\n\
                    -rw-r--r-- 1000/1000       123 2026-01-31 00:00:00 top dir/a b\n\
                    lrwxrwxrwx 0/0               0 2026-01-31 00:00:00 top dir/l -> a b\n\
                    hrw-r--r-- 0/0               0 2026-01-31 00:00:00 top dir/h link to top dir/a b\n";
        let contents = tar_listing(text);
        assert_eq!(contents.dirs, ["top dir/"]);
        assert_eq!(contents.files, ["top dir/a b", "top dir/h"]);
        assert_eq!(contents.links, ["top dir/l"]);
        assert_eq!(contents.top_level_dirs(), ["top dir/"]);
        assert_eq!((contents.size, contents.has_set_id, contents.special.len()), (123, false, 0));
        let text = "crw-r--r-- 0/0             1,3 2026-01-31 00:00:00 a\n\
                    prw-r--r-- 0/0               0 2026-01-31 00:00:00 b\n\
                    brw-r--r-- 0/0             8,0 2026-01-31 00:00:00 c d\n\
                    -rwsr-xr-x 0/0               7 2026-01-31 00:00:00 e\n";
        let contents = tar_listing(text);
        assert_eq!(
            (contents.special, contents.size, contents.has_set_id),
            (["a", "b", "c d"].map(str::to_owned).into(), 7, true)
        );
        for (mode, expected) in
            [("-rwsr-xr-x", true), ("drwxr-sr-x", true), ("-rwSr--r--", true), ("-rwxr-xr-t", false)]
        {
            let contents = tar_listing(&format!("{mode} 0/0 1 2026-01-31 00:00:00 e\n"));
            assert_eq!(contents.has_set_id, expected, "{mode}");
            assert_eq!(!contents.set_id.is_empty(), expected && !mode.starts_with('d'), "{mode}");
        }
    }

    #[test]
    fn list_options_are_for_archives_that_tar_cannot_read() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("f"), "text").unwrap();
        let tar = ["-cf", &at("a.tar").display().to_string(), "-C", &directory.path().display().to_string(), "f"]
            .map(str::to_owned);
        assert!(std::process::Command::new("tar").args(tar).status().unwrap().success());
        std::fs::write(at("b"), [b"??", &*std::fs::read(at("a.tar")).unwrap()].concat()).unwrap();
        let context = crate::testing::context(&[]);
        for (name, options, listed) in
            [("a.tar", None, true), ("a.tar", Some("z"), true), ("b", None, false), ("b", Some("tail -c +3"), true)]
        {
            let result = tar_contents(&context, name, &at(name), options);
            assert_eq!(result.is_ok_and(|contents| contents.files == ["f"]), listed, "{name} {options:?}");
        }
    }

    #[test]
    fn output_of_rar_is_parsed() {
        let text = "Archive: a.rar\nDetails: RAR 5\n\n        Name: top\n        Type: Directory\n  Attributes: drwxr-sr-x\n\n\
                    \x20       Name: top/a: b\n        Type: File\n        Size: 123\n Packed size: 45\n  Attributes: -rwsr-xr-x\n";
        let contents = rar_listing(text);
        assert_eq!((contents.dirs, contents.files, contents.size), (vec!["top/".into()], vec!["top/a: b".into()], 123));
        assert_eq!((contents.has_set_id, contents.set_id), (true, vec!["top/a: b".to_owned()]));
    }

    #[test]
    fn shared_directory_is_a_top_level_directory() {
        let of =
            |files: &[&str]| Contents { files: files.iter().map(|f| (*f).to_owned()).collect(), ..Contents::default() };
        assert_eq!(of(&["a/b/c", "a/d"]).top_level_dirs(), ["a/"]);
        assert_eq!(of(&["a/b/c", "b"]).top_level_dirs(), [""; 0]);
        assert_eq!(of(&["a/b/c", "b"]).top_level_files(), ["b"]);
    }
}
