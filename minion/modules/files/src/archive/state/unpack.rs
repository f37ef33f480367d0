//! Listing and extraction of archives.

use std::path::Path;

use brine_function::{Args, CallError};
use brine_text::shell::quote;
use brine_value::{FromValue, Map, Value, map};

use super::{Extracted, StateContext};
use crate::archive::{self, Contents, Format};
use crate::cmd::{self, CommandArgs, split_options};

impl Extracted {
    /// Returns the number of leading components that `tar` strips from each path.
    pub(super) fn strip(&self, format: Format) -> Option<u32> {
        let options = self.options.as_ref().filter(|_| format == Format::Tar)?;
        let rest = &options[options.find("--strip-components")? + "--strip-components".len()..];
        let digits = rest.trim_start_matches(['=', ' ', '"', '\'']);
        digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    }

    /// Lists the archive at `path` and checks its limits; errors have the name `display_path`.
    pub(super) fn contents(
        &self,
        context: &StateContext,
        path: &Path,
        display_path: &Path,
        format: Format,
    ) -> Result<Contents, String> {
        let (name, options) = (display_path.display().to_string(), self.list_options.as_deref());
        let result = archive::contents(&context.call, &name, path, format, options, self.strip(format));
        let contents = match result {
            Ok(contents) => contents,
            Err(CallError::Execution(error)) => {
                return Err(self.cannot_list(error.replace(&path.display().to_string(), &name), format));
            }
            Err(error) => return Err(error.to_string()),
        };
        // Set-uid and set-gid bits are cleared.
        contents.check_limits(context.call.config(), self.special).map_err(|error| error.to_string())?;
        Ok(contents)
    }

    /// Returns the error with Salt's advice on arguments that make the listing unnecessary.
    pub(super) fn cannot_list(&self, error: String, format: Format) -> String {
        let mut ways = Vec::new();
        if self.if_missing.is_none() {
            ways.push("'if_missing' must be set");
        }
        if self.owned.is_none() && (self.user.is_some() || self.group.is_some()) {
            ways.push("Ownership cannot be managed without setting 'enforce_ownership_on'.");
        }
        if ways.is_empty() {
            return error;
        }
        let advice = match format {
            Format::Tar => {
                "If the source archive is a tar archive compressed using a compression type not natively supported by \
                 the tar command, then setting the 'list_options' argument may allow the contents to be listed. \
                 Otherwise, if Salt is unable to determine the files/directories in the archive, the following \
                 workaround(s) would need to be used for this state to proceed"
            }
            _ => "The following workarounds must be used for this state to proceed",
        };
        let ways = ways.join("\n- ");
        format!("{error}\n\n{advice} (assuming the source file is a valid {} archive):\n\n- {ways}", format.name())
    }

    /// Extracts the archive and returns the names of extracted paths, or the output of the failed program.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn unpack(
        &self,
        context: &StateContext,
        path: &Path,
        directory: &str,
        format: Format,
        by_unzip: bool,
        clears_set_id: bool,
        trim: &Value,
    ) -> Result<Result<Vec<String>, Map>, CallError> {
        let path = path.display().to_string();
        if format != Format::Tar {
            let mut args = map! {"zip_file" => path.as_str(), "dest" => directory, "trim_output" => trim.clone()};
            let function = match (format, by_unzip) {
                (Format::Rar, _) => {
                    return Err(CallError::Execution(
                        "archive.unrar function not available, rar/unrar might not be installed on minion".into(),
                    ));
                }
                (_, true) => "archive.cmd_unzip",
                (_, false) => {
                    args.insert("extract_perms".into(), self.keep_modes.into());
                    args.insert("special_files".into(), self.special.into());
                    "archive.unzip"
                }
            };
            args.insert("options".into(), self.options.clone().into());
            args.insert("password".into(), self.password.clone());
            let files = context.call.call(function, Args::keyword(args))?;
            return Ok(Ok(Vec::from_value(&files).unwrap_or_default()));
        }
        let mut words = vec!["tar".to_owned()];
        let mut short = "xv".to_owned();
        let mut long = Vec::new();
        for (number, word) in split_options(self.options.as_deref().unwrap_or_default())?.into_iter().enumerate() {
            match word.as_str() {
                "v" | "-v" | "--verbose" => {}
                flags if number == 0 && !flags.starts_with('-') => short += &flags.replace(['x', 'f'], ""),
                _ => long.push(word),
            }
        }
        words.push(short);
        words.extend(long);
        let mut kwargs = map! {"cwd" => directory, "python_shell" => false};
        if clears_set_id {
            // With an empty umask, this clears the bits that are no permissions, from the first moment on.
            words.push("--no-same-permissions".to_owned());
            kwargs.insert("umask".into(), "000".into());
        }
        words.extend(["-f".to_owned(), path]);
        let command = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
        let output = cmd::execute(&context.call, &command, &CommandArgs::read(&kwargs)?)?;
        if output.retcode != 0 {
            return Ok(Err(cmd::result_of_all(output)));
        }
        let mut files: Vec<String> = output.stdout.lines().map(str::to_owned).collect();
        if self.options.is_none() {
            // Without options, paths are reported under their names in the archive.
            for file in &mut files {
                file.truncate(file.trim_end_matches('/').len());
            }
        }
        if let Some(count) = usize::from_value(trim).filter(|count| *count > 0) {
            files.truncate(count);
        }
        Ok(Ok(files))
    }
}
