//! `archive`: ZIP archives, written in this process, and RAR archives, with the programs `rar` and `unrar`.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use brine_context::Context;
use brine_function::arguments::names;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::process::working_directory;
use brine_system::user_files;
use brine_value::{Value, map};
use jiff::Timestamp;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::contents::{Format, contents, rar_program};
use super::{expand, limits, output, output_lines, rendered, trimmed, with_extension};
use crate::private_copy::{Content, PrivateCopy};

/// Execution functions of `archive`.
pub static FUNCTIONS: Functions<Context> = registry!("archive", [zip, rar, unrar]);

/// Maximum depth of archived directories.
const DEPTH: usize = 128;

/// Create a ZIP archive, and return the archived paths. Relative sources need `cwd`; `sources` is a list, or separated
/// by commas, and may have globs.
///
/// CLI Example:
///
///     salt '*' archive.zip /tmp/zipfile.zip '/tmp/sourcefile1,/tmp/sourcefile2'
///     salt '*' archive.zip /tmp/zipfile.zip dir cwd=/srv
#[function]
pub fn zip(
    context: &Context,
    /// Path of the archive to write.
    zip_file: String,
    /// Paths to add to the archive, as a list or with commas.
    sources: Value,
    /// Template engine that renders the paths: `jinja`.
    template: Option<String>,
    /// Working directory, which relative paths start from.
    cwd: Option<PathBuf>,
    /// User that the program runs as.
    runas: Option<String>,
    /// Whether large archives are permitted.
    #[default(false)]
    zip64: bool,
) -> CallResult {
    if runas.is_some() {
        return Err(CallError::Execution(
            "archive.zip works as the minion's own user: use archive.cmd_zip with runas".into(),
        ));
    }
    if cwd.as_deref().is_some_and(Path::is_relative) {
        return Err(CallError::Execution("cwd must be absolute".into()));
    }
    let render = |text: String| rendered(context, template.as_deref(), text);
    let zip_file = render(zip_file)?;
    let mut paths = Vec::new();
    for source in names(&sources) {
        let source = PathBuf::from(render(source)?);
        if source.is_relative() && cwd.is_none() {
            return Err(CallError::Execution("Relative paths require the 'cwd' parameter".into()));
        }
        let source = cwd.as_ref().map_or_else(|| source.clone(), |cwd| cwd.join(&source));
        paths.extend(expand(&source.to_string_lossy().into_owned().into()));
    }
    let base = cwd.unwrap_or_else(|| "/".into());
    let failed = |error: io::Error| CallError::Execution(format!("Exception encountered creating zipfile: {error}"));
    let mut archive = Archive {
        writer: ZipWriter::new(user_files::open_truncated(&zip_file, 0o666).map_err(failed)?),
        base,
        zip64,
        itself: fs::canonicalize(&zip_file).map_err(failed)?,
        archived: Vec::new(),
    };
    for source in paths {
        archive.add(Path::new(&source), DEPTH).map_err(failed)?;
    }
    archive.writer.finish().map_err(|error| failed(error.into()))?;
    Ok(archive.archived.into())
}

/// Create a RAR archive with the program `rar`.
///
/// CLI Example:
///
///     salt '*' archive.rar /tmp/rarfile.rar '/tmp/sourcefile1,/tmp/sourcefile2'
#[function]
pub fn rar(
    context: &Context,
    /// Path of the archive to write.
    rarfile: String,
    /// Paths to add to the archive, as a list or with commas.
    sources: Value,
    /// Template engine that renders the paths: `jinja`.
    template: Option<String>,
    /// Working directory, which relative paths start from.
    cwd: Option<String>,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    let render = |text: String| rendered(context, template.as_deref(), text);
    let cwd = cwd.map(render).transpose()?;
    let rarfile = render(rarfile)?;
    let directory = working_directory(cwd.as_deref().map(Path::new), runas.as_deref());
    let target = with_extension(directory.join(&rarfile), "rar");
    let copy = PrivateCopy::for_output(context, &target, runas.as_deref(), Content::Kept)?;
    let mut words = ["rar", "a", "-idp"].map(str::to_owned).to_vec();
    if copy.is_some() {
        // `rar` omits the archive that it writes, which is another file here.
        let below = target.strip_prefix(&directory).ok().into_iter().chain([target.as_path()]);
        words.extend(below.map(|path| format!("-x{}", path.display())));
    }
    let path = PrivateCopy::path_or(copy.as_ref(), rarfile);
    words.extend(["--".to_owned(), path]);
    for source in expand(&sources) {
        words.push(render(source)?);
    }
    let output = output(context, &words, &map! {"cwd" => cwd, "runas" => runas})?.stdout;
    let Some(copy) = copy else { return Ok(output_lines(&output).into()) };
    copy.hand_over()?;
    Ok(output_lines(&copy.shown(&output)).into())
}

/// The arguments of `archive.unrar`.
#[derive(Args)]
pub struct UnrarArgs {
    /// Path of the archive.
    rarfile: String,
    /// Directory to extract into.
    dest: String,
    /// Paths of the archive to leave out.
    #[default]
    excludes: Value,
    /// Template engine that renders the paths.
    template: Option<String>,
    /// User to extract as.
    runas: Option<String>,
    /// Highest number of returned files, or `true` for 100.
    #[default(false.into())]
    trim_output: Value,
    /// Whether files with set-uid and set-gid bits are extracted. Without it, an archive with one is refused.
    #[default(false)]
    special_files: bool,
}

/// Extract a RAR archive with the program `unrar`, or `rar` without it.
///
/// CLI Example:
///
///     salt '*' archive.unrar /tmp/rarfile.rar /home/strongbad/ excludes=file_1,file_2
#[function]
pub fn unrar(context: &Context, #[args] args: UnrarArgs) -> CallResult {
    let render = |text: String| rendered(context, args.template.as_deref(), text);
    let (rarfile, dest) = (render(args.rarfile)?, render(args.dest)?);
    let original = working_directory(None, args.runas.as_deref()).join(&rarfile);
    let copy = PrivateCopy::for_input(context, &original, args.runas.as_deref())?;
    let path = copy.as_ref().map_or(original.as_path(), PrivateCopy::path);
    let contents = contents(context, &rarfile, path, Format::Rar, None, None)?;
    contents.check_all(context.config(), args.special_files).map_err(CallError::execution)?;
    let program = rar_program(context, &["unrar", "rar"]);
    let mut words = [program, "x", "-idp"].map(str::to_owned).to_vec();
    for exclude in names(&args.excludes) {
        words.push(format!("-x{}", render(exclude)?));
    }
    words.extend(["--".to_owned(), PrivateCopy::path_or(copy.as_ref(), rarfile), dest]);
    let output = limits::run(context, &words, &map! {"runas" => args.runas})?.stdout;
    let text = PrivateCopy::shown_or(copy.as_ref(), output);
    Ok(trimmed(output_lines(&text), &args.trim_output).into())
}

/// A ZIP archive that is being written.
struct Archive {
    writer: ZipWriter<File>,
    /// The base directory: paths in the archive are relative to it.
    base: PathBuf,
    zip64: bool,
    /// The path of the archive itself, which is not archived.
    itself: PathBuf,
    archived: Vec<String>,
}

impl Archive {
    /// Adds a file, or a directory with its content. As in Salt, links to files are followed, and links to directories
    /// are omitted.
    fn add(&mut self, path: &Path, depth: usize) -> io::Result<()> {
        let Ok(mut status) = fs::metadata(path) else { return Ok(()) };
        // A link of another user to a file of somebody else is refused: the archive may be readable for that user.
        let file = if status.is_file() { Some(user_files::open(path)?) } else { None };
        if let Some(file) = &file {
            status = file.metadata()?;
        }
        let name = path.strip_prefix(&self.base).or_else(|_| path.strip_prefix("/")).unwrap_or(path);
        let name = name.to_string_lossy().into_owned();
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .unix_permissions(status.permissions().mode())
            .large_file(self.zip64)
            .last_modified_time(time_of(&status));
        if let Some(mut file) = file.filter(|_| status.is_file()) {
            if fs::canonicalize(path)? != self.itself {
                self.writer.start_file(&name, options)?;
                io::copy(&mut file, &mut self.writer)?;
                self.archived.push(name);
            }
        } else if status.is_dir() {
            if depth == 0 {
                return Err(io::Error::other(format!("{} is nested too deeply", path.display())));
            }
            if !name.is_empty() {
                self.writer.add_directory(&name, options)?;
                self.archived.push(format!("{name}/"));
            }
            let mut below = fs::read_dir(path)?.collect::<Result<Vec<_>, _>>()?;
            below.sort_by_key(fs::DirEntry::file_name);
            // Files first, as Salt lists them.
            let (directories, files): (Vec<_>, Vec<_>) = below.into_iter().partition(|entry| entry.path().is_dir());
            for entry in files.iter().chain(&directories) {
                if !(entry.file_type()?.is_symlink() && entry.path().is_dir()) {
                    self.add(&entry.path(), depth - 1)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the time of the last change in the local time zone, as ZIP stores it; the earliest ZIP time if it cannot be
/// represented.
fn time_of(status: &fs::Metadata) -> DateTime {
    let changed = status.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
    let local = changed.map(|time| time.to_zoned(brine_clock::zone()));
    let fields = local.and_then(|at| {
        let [month, day, hour, minute, second] =
            [at.month(), at.day(), at.hour(), at.minute(), at.second()].map(i8::unsigned_abs);
        DateTime::from_date_and_time(u16::try_from(at.year()).ok()?, month, day, hour, minute, second).ok()
    });
    fields.unwrap_or_default()
}

#[cfg(test)]
mod tests;
