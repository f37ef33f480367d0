//! `ini`: options in INI files.

pub(crate) mod state;
mod text;

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_system::files;
use brine_value::{Map, Value};

use crate::file::encoding::Encoding;
pub use text::{Form, Ini, Section};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `ini`.
pub static FUNCTIONS: Functions<Context> =
    registry!("ini", [set_option, get_option, remove_option, get_section, remove_section, get_ini]);

/// The arguments for the format of a file.
#[derive(Args)]
pub struct FormatArgs {
    /// Text between the name and the value of an option.
    #[default("=".into())]
    separator: String,
    /// Encoding of the file, such as `latin-1` or `utf-16`; by default UTF-8.
    encoding: Option<String>,
}

impl FormatArgs {
    /// Creates the handle of the file at a path, which need not exist.
    fn file<'f>(&self, path: &'f str) -> Result<File<'f>, CallError> {
        File::new(path, self.separator.clone(), self.encoding.as_deref(), false)
    }
}

/// The arguments that name an option.
#[derive(Args)]
pub struct OptionArgs {
    /// Path of the file.
    file_name: String,
    /// Section of the option; without one, the option is above all sections.
    #[required]
    section: Option<String>,
    /// Name of the option.
    option: String,
    #[args]
    format: FormatArgs,
}

/// The arguments that name a section.
#[derive(Args)]
pub struct SectionArgs {
    /// Path of the file.
    file_name: String,
    /// Name of the section.
    section: String,
    #[args]
    format: FormatArgs,
}

/// Set options, in sections or above all sections, and return the changes.
///
/// CLI Example:
///
///     salt '*' ini.set_option /path/to/ini '{section_foo: {key: value}}'
#[function]
pub fn set_option(
    _context: &Context,
    /// Path of the file.
    file_name: String,
    /// Mapping of sections to mappings of options to values.
    #[default]
    sections: Map,
    /// Text between option and value.
    #[default("=".into())]
    separator: String,
    /// Encoding of the file; UTF-8 by default.
    encoding: Option<String>,
    /// Whether there are no spaces around the separator.
    #[default(false)]
    no_spaces: bool,
) -> CallResult {
    let file = File::new(&file_name, separator, encoding.as_deref(), no_spaces)?;
    Ok(file.edit(|ini, form| ini.set(&sections, form))?.into())
}

/// Return the value of an option; without a section, of one above all sections.
///
/// CLI Example:
///
///     salt '*' ini.get_option /path/to/ini section_name option_name
#[function]
pub fn get_option(_context: &Context, #[args] at: OptionArgs) -> CallResult {
    let ini = at.format.file(&at.file_name)?.read()?;
    let section = at.section.filter(|section| !section.is_empty());
    Ok(ini.get(section.as_deref(), &at.option).map_or(Value::Nil, Value::from))
}

/// Remove an option, and return its value.
///
/// CLI Example:
///
///     salt '*' ini.remove_option /path/to/ini section_name option_name
#[function]
pub fn remove_option(_context: &Context, #[args] at: OptionArgs) -> CallResult {
    let file = at.format.file(&at.file_name)?;
    Ok(file.edit(|ini, _| ini.remove(at.section.as_deref(), &at.option))?.map_or(Value::Nil, Value::from))
}

/// Return the options of a section.
///
/// CLI Example:
///
///     salt '*' ini.get_section /path/to/ini section_name
#[function]
pub fn get_section(_context: &Context, #[args] at: SectionArgs) -> CallResult {
    let ini = at.format.file(&at.file_name)?.read()?;
    Ok(ini.sections.get(&at.section).map(Section::describe).unwrap_or_default().into())
}

/// Remove a section, and return its options.
///
/// CLI Example:
///
///     salt '*' ini.remove_section /path/to/ini section_name
#[function]
pub fn remove_section(_context: &Context, #[args] at: SectionArgs) -> CallResult {
    let removed = at.format.file(&at.file_name)?.edit(|ini, _| ini.sections.shift_remove(&at.section))?;
    Ok(removed.map_or(Value::Nil, |section| section.describe().into()))
}

/// Return all options by section.
///
/// CLI Example:
///
///     salt '*' ini.get_ini /path/to/ini
#[function]
pub fn get_ini(
    _context: &Context,
    /// Path of the file.
    file_name: String,
    #[args] format: FormatArgs,
) -> CallResult {
    Ok(format.file(&file_name)?.read()?.describe().into())
}

/// An INI file and its format.
#[derive(Debug)]
pub struct File<'f> {
    path: &'f str,
    form: Form,
    encoding: Encoding,
}

impl<'f> File<'f> {
    /// Creates the handle of a file, which need not exist.
    ///
    /// # Errors
    /// The encoding is unknown, or the separator is empty.
    pub fn new(path: &'f str, separator: String, encoding: Option<&str>, no_spaces: bool) -> Result<Self, CallError> {
        let encoding = Encoding::parse(encoding.unwrap_or("utf-8")).map_err(CallError::Execution)?;
        if separator.is_empty() {
            return Err(CallError::Execution(
                "the separator is empty: say what stands between names and values".into(),
            ));
        }
        Ok(File { path, form: Form { separator, no_spaces }, encoding })
    }

    /// Reads the file; a missing file is empty.
    pub fn read(&self) -> Result<Ini, CallError> {
        Ok(Ini::parse(&self.text()?, &self.form))
    }

    /// Returns the text of the file; that of a missing one is empty.
    fn text(&self) -> Result<String, CallError> {
        match files::read(self.path) {
            Ok(bytes) => {
                self.encoding.decode(&bytes).map_err(|error| CallError::Execution(format!("{}: {error}", self.path)))
            }
            Err(error) if error.is_not_found() => Ok(String::new()),
            Err(error) => Err(CallError::execution(error)),
        }
    }

    /// Edits the file and returns the result of the edit. An unchanged file is not written.
    pub fn edit<T>(&self, change: impl FnOnce(&mut Ini, &Form) -> T) -> Result<T, CallError> {
        let have = self.text()?;
        let mut ini = Ini::parse(&have, &self.form);
        let report = change(&mut ini, &self.form);
        let text = ini.render(&self.form);
        if have != text {
            let encoded = self.encoding.encode(&text, "strict");
            let encoded = encoded.map_err(|error| CallError::Execution(format!("{}: {error}", self.path)))?;
            files::rewrite(self.path, &encoded, 0o644).map_err(CallError::execution)?;
        }
        Ok(report)
    }
}
