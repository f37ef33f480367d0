//! `archive.tar`: runs `tar` with the caller's options. What it extracts is listed and checked first, and an archive in a
//! directory of another user is read and written by a private copy.

mod options;

use std::path::{Path, PathBuf};

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::process::working_directory;
use brine_host::programs::{argument, is_on_another_host};
use brine_value::{Value, map};

use self::options::{Archive, Operation, Options};
use super::contents::{Listing, TAR_LISTING, tar_listing};
use super::{command_line, expand, output, output_lines, rendered, rendered_operands};
use crate::private_copy::{Content, PrivateCopy};

/// Execution functions of `archive`.
pub static FUNCTIONS: Functions<Context> = registry!("archive", [tar]);

/// The arguments of `archive.tar`.
#[derive(Args)]
pub struct TarArgs {
    /// Options of `tar`, such as `cjvf`; the last one is that for the archive.
    options: String,
    /// Path of the archive.
    tarfile: String,
    /// Files to archive, or paths of the archive to extract: a list, or separated by commas.
    #[default]
    sources: Value,
    /// Directory to extract into.
    dest: Option<String>,
    /// Working directory.
    cwd: Option<String>,
    /// Template engine that renders the arguments.
    template: Option<String>,
    /// User to run as.
    runas: Option<String>,
    /// Whether devices, FIFOs, and files with set-uid and set-gid bits are extracted. Without it, an archive with one of
    /// them is refused.
    #[default(false)]
    special_files: bool,
}

/// Run `tar` with these options on an archive, and return its output. Options that extract are run after the archive was
/// listed: it is refused beyond `archive_max_size` and `archive_max_entries`.
///
/// CLI Example:
///
///     salt '*' archive.tar cjvf /tmp/salt.tar.bz2 '/tmp/file_1,/tmp/file_2'
///     salt '*' archive.tar xf foo.tar dest=/target/directory
#[function]
pub fn tar(context: &Context, #[args] args: TarArgs) -> CallResult {
    let render = |text: String| rendered(context, args.template.as_deref(), text);
    let words: Vec<String> = render(args.options)?.split_whitespace().map(str::to_owned).collect();
    if words.is_empty() {
        return Err(CallError::Execution("Tar options can not be empty".into()));
    }
    let options = Options::parse(&words);
    let tarfile = argument(&render(args.tarfile)?)?;
    let sources = rendered_operands(context, args.template.as_deref(), expand(&args.sources))?;
    let dest = args.dest.map(render).transpose()?;
    let cwd = args.cwd.map(render).transpose()?;
    let run = Run { context, sources, dest, cwd, runas: args.runas };
    // An archive on another host, or standard output, is no file of this one.
    let is_file = !is_on_another_host(&tarfile) && tarfile != "/dev/stdout";
    match (options.operation, options.archive) {
        (Some(Operation::Extract | Operation::Write(_)), Archive::Option) => Err(CallError::Execution(
            "the archive is named in 'options': name it by 'tarfile', so that it can be checked".into(),
        )),
        (Some(Operation::Extract), Archive::Operand) if is_file => {
            run.extract(&words, &options.listing, &tarfile, args.special_files)
        }
        (Some(Operation::Write(content)), Archive::Operand) if is_file => run.write(&words, &tarfile, content),
        _ => run.tar(&words, &tarfile, &[]),
    }
    .map(|output| output_lines(&output).into())
}

/// A run of `tar` on an archive.
struct Run<'c> {
    context: &'c Context,
    sources: Vec<String>,
    dest: Option<String>,
    cwd: Option<String>,
    runas: Option<String>,
}

impl Run<'_> {
    fn directory(&self) -> PathBuf {
        working_directory(self.cwd.as_deref().map(Path::new), self.runas.as_deref())
    }

    fn words(&self, options: &[String], archive: &str, more: &[String]) -> Vec<String> {
        let mut words = vec!["tar".to_owned()];
        words.extend_from_slice(options);
        words.push(archive.to_owned());
        words.extend_from_slice(more);
        words.extend(self.dest.iter().flat_map(|dest| ["-C".to_owned(), dest.clone()]));
        words.extend_from_slice(&self.sources);
        words
    }

    /// Runs `tar` and returns its output with its errors.
    fn tar(&self, options: &[String], archive: &str, more: &[String]) -> Result<String, CallError> {
        let kwargs = map! {"cwd" => self.cwd.clone(), "runas" => self.runas.clone()};
        Ok(output(self.context, &self.words(options, archive, more), &kwargs)?.stdout)
    }

    /// Extracts the archive, unless its listing is refused.
    fn extract(
        &self,
        options: &[String],
        listing: &[String],
        archive: &str,
        special_files: bool,
    ) -> Result<String, CallError> {
        let cwd = self.cwd.as_deref().map(Path::new);
        let copy = PrivateCopy::for_input(self.context, &self.directory().join(archive), self.runas.as_deref())?;
        let path = PrivateCopy::path_or(copy.as_ref(), archive.to_owned());
        let for_display = |text: String| PrivateCopy::shown_or(copy.as_ref(), text);
        let words = command_line(&self.words(listing, &path, &TAR_LISTING.map(str::to_owned)));
        let listed = Listing { cwd: cwd.map(Path::to_owned), runas: self.runas.clone() }.run(self.context, words)?;
        if listed.retcode != 0 {
            // Nothing is extracted that was not checked. The errors are those of the extraction.
            self.context.set_retcode(listed.retcode);
            return Ok(for_display(listed.stderr));
        }
        tar_listing(&listed.stdout).check_all(self.context.config(), special_files).map_err(CallError::execution)?;
        self.tar(options, &path, &[]).map(for_display)
    }

    /// Writes the archive.
    fn write(&self, options: &[String], archive: &str, content: Content) -> Result<String, CallError> {
        let cwd = self.directory();
        let target = cwd.join(archive);
        let Some(copy) = PrivateCopy::for_output(self.context, &target, self.runas.as_deref(), content)? else {
            return self.tar(options, archive, &[]);
        };
        // `tar` omits the archive that it writes, which is another file here.
        let mut more = vec![format!("--exclude={}", target.display())];
        if let Ok(below) = target.strip_prefix(&cwd) {
            more.push(format!("--exclude=./{}", below.display()));
        }
        let output = self.tar(options, &copy.path().display().to_string(), &more)?;
        copy.hand_over()?;
        Ok(copy.shown(&output))
    }
}
