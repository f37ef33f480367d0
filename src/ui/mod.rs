//! Standard output and standard error: colours, progress, and closed pipes.
//!
//! The tools build text and print it only through this module, which depends on neither values nor outputters.
//! [`print_plain`] and [`print_plain_error`] escape their text. Text for [`Ui`] may contain colours, so its caller
//! escapes untrusted parts of it.

pub mod symptoms;

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;

pub use brine_output::{Colour, Colours};

use brine_system::user_files;

use crate::escape::escape_control;

/// The choice of the user: `--force-color`, `--no-color`, or neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColourChoice {
    /// Colours on a terminal, unless the environment variable `NO_COLOR` is not empty.
    #[default]
    Auto,
    /// Never (`--no-color`).
    Never,
    /// Always (`--force-color`).
    Always,
}

impl ColourChoice {
    fn colours(self, terminal: bool, no_color: Option<&str>) -> Colours {
        let enabled = match self {
            ColourChoice::Always => true,
            ColourChoice::Never => false,
            ColourChoice::Auto => terminal && no_color.is_none_or(str::is_empty),
        };
        if enabled { Colours::ON } else { Colours::OFF }
    }
}

/// The exit status that a shell reports for a program killed by SIGPIPE.
pub const CLOSED_PIPE_STATUS: u8 = 141;

/// Exits without a message, as tools do when stdout has no reader any more.
pub fn end_with_closed_pipe() -> ! {
    std::process::exit(CLOSED_PIPE_STATUS.into())
}

/// The standard output and standard error of the process.
pub struct Ui {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    colours: Colours,
    progress_wanted: bool,
    progress_shown: bool,
}

impl Ui {
    /// Creates a `Ui` for the stdout and stderr of the process.
    pub fn new(choice: ColourChoice) -> Self {
        let no_color = std::env::var("NO_COLOR").ok();
        Ui {
            colours: choice.colours(io::stdout().is_terminal(), no_color.as_deref()),
            out: Box::new(io::stdout()),
            err: Box::new(io::stderr()),
            progress_wanted: io::stderr().is_terminal(),
            progress_shown: false,
        }
    }

    /// Returns the colours for text.
    pub fn colours(&self) -> Colours {
        self.colours
    }

    /// Redirects all further output to a file (`--out-file`), which is truncated without `append`.
    pub fn redirect(&mut self, path: &Path, append: bool) -> io::Result<()> {
        let file =
            if append { user_files::open_to_append(path, 0o666)? } else { user_files::open_truncated(path, 0o666)? };
        self.out = Box::new(file);
        Ok(())
    }

    /// Prints text and a newline on stdout.
    ///
    /// If stdout has no reader any more, the process exits without a message.
    pub fn print(&mut self, text: &str) -> io::Result<()> {
        match self.try_print(text) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => end_with_closed_pipe(),
            other => other,
        }
    }

    /// Prints like [`Ui::print`], but a closed stdout is an error: for tools that have to clean up first.
    pub fn try_print(&mut self, text: &str) -> io::Result<()> {
        self.clear_progress()?;
        write_line(&mut self.out, text)
    }

    /// Prints a question on stdout and reads a line from stdin, without its line feed; `None` at the end of the input.
    pub fn ask(&mut self, question: &str) -> io::Result<Option<String>> {
        self.clear_progress()?;
        write!(self.out, "{question}")?;
        self.out.flush()?;
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer)?;
        Ok((read > 0).then(|| answer.trim_end_matches(['\r', '\n']).to_owned()))
    }

    /// Prints text and a newline on stderr. A closed stderr is ignored.
    pub fn print_error(&mut self, text: &str) -> io::Result<()> {
        self.clear_progress()?;
        match write_line(&mut self.err, text) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }

    /// Shows a line of progress on stderr, replacing the previous one, if stderr is a terminal.
    pub fn progress(&mut self, text: &str) -> io::Result<()> {
        if self.progress_wanted {
            write!(self.err, "\r\x1b[K{text}")?;
            self.err.flush()?;
            self.progress_shown = true;
        }
        Ok(())
    }

    /// Removes the line of progress.
    pub fn clear_progress(&mut self) -> io::Result<()> {
        if self.progress_shown {
            self.progress_shown = false;
            write!(self.err, "\r\x1b[K")?;
            self.err.flush()?;
        }
        Ok(())
    }
}

/// The width of a progress bar, in columns.
const BAR_WIDTH: usize = 30;

/// Returns a progress bar with the percentage.
pub fn bar(count: u64, all: u64) -> String {
    // Without anything to do, all is done.
    let of = |width: usize| {
        (u128::from(count.min(all)) * width as u128).checked_div(all.into()).map_or(width, |part| part as usize)
    };
    format!("[{:-<BAR_WIDTH$}] {:>3}%", "#".repeat(of(BAR_WIDTH)), of(100))
}

/// Prints text and a newline on stdout, with control characters escaped. If stdout has no reader any more, the process
/// exits without a message.
pub fn print_plain(text: impl Display) {
    if let Err(error) = write_line(&mut io::stdout(), &escape_control(&text.to_string())) {
        if error.kind() == ErrorKind::BrokenPipe {
            end_with_closed_pipe();
        }
        print_plain_error(format_args!("writing to stdout failed: {error}"));
        std::process::exit(1);
    }
}

/// Prints text and a newline on stderr, with control characters escaped, and notes where the documentation explains it.
/// Errors of stderr are ignored.
pub fn print_plain_error(text: impl Display) {
    let text = text.to_string();
    _ = write_line(&mut io::stderr(), &escape_control(&text));
    symptoms::note(&text);
}

/// Prints text as [`print_plain_error`] does, without what explains it: a message that programs know from Salt.
pub fn print_as_salt(text: impl Display) {
    _ = write_line(&mut io::stderr(), &escape_control(&text.to_string()));
}

/// Prints on stderr where the documentation explains the messages that were printed: the last lines of a tool.
pub fn print_pointers() {
    for line in symptoms::take() {
        _ = write_line(&mut io::stderr(), &line);
    }
}

fn write_line(out: &mut dyn Write, text: &str) -> io::Result<()> {
    // A single write, so that lines of several programs on one terminal do not interleave.
    out.write_all(format!("{text}\n").as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests;
