//! Wall clocks that jump, by a preloaded library that is built on demand.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = include_str!("clock.c");

/// The wall clock of the processes that get its environment.
pub struct Clock {
    library: PathBuf,
    /// The shift in seconds.
    shift: PathBuf,
}

impl Clock {
    /// Builds the library in this directory; an error says what is missing.
    pub fn build(directory: &Path) -> Result<Self, String> {
        let clock = Clock { library: directory.join("clock.so"), shift: directory.join("shift") };
        let source = directory.join("clock.c");
        let written = std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&source, SOURCE));
        written.map_err(|error| format!("writing {} failed: {error}", source.display()))?;
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&clock.library).arg(&source);
        match command.output() {
            Ok(output) if output.status.success() => {}
            Ok(output) => return Err(format!("the C compiler fails: {}", crate::support::stderr(&output))),
            Err(error) => return Err(format!("there is no C compiler: cc: {error}")),
        }
        clock.set(0)?;
        Ok(clock)
    }

    /// Returns the environment variables that activate the clock.
    pub fn environment(&self) -> Vec<(String, PathBuf)> {
        vec![("LD_PRELOAD".to_owned(), self.library.clone()), ("FAULT_CLOCK".to_owned(), self.shift.clone())]
    }

    /// Shifts the clock by this many seconds.
    pub fn set(&self, seconds: i64) -> Result<(), String> {
        let file = std::fs::File::options().create(true).truncate(false).write(true).open(&self.shift);
        let written = file.and_then(|file| file.write_all_at(&seconds.to_ne_bytes(), 0));
        written.map_err(|error| format!("setting the clock failed: {error}"))
    }
}
