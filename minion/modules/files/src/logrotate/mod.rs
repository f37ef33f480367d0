//! `logrotate`: configuration of log rotation.

mod conf;
pub(crate) mod state;

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_system::files;
use brine_value::Value;

pub use conf::number;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `logrotate`.
pub static FUNCTIONS: Functions<Context> = registry!("logrotate", [show_conf, get, set]);

/// Return the whole configuration, with included files.
///
/// CLI Example:
///
///     salt '*' logrotate.show_conf
#[function]
pub fn show_conf(
    _context: &Context,
    /// Path of the configuration file.
    #[default("/etc/logrotate.conf".into())]
    conf_file: String,
) -> CallResult {
    Ok(conf::read(&conf_file)?.describe().into())
}

/// Return the value of a directive, the settings of a log, or a directive (`value`) of a log; False if it is not
/// set.
///
/// CLI Example:
///
///     salt '*' logrotate.get rotate
///     salt '*' logrotate.get /var/log/wtmp rotate
#[function]
pub fn get(
    _context: &Context,
    /// Directive, or the path of a log with a block of its own.
    key: String,
    /// Value of the directive; for a log its directive.
    value: Option<String>,
    /// Path of the configuration file.
    #[default("/etc/logrotate.conf".into())]
    conf_file: String,
) -> CallResult {
    Ok(conf::get(&conf::read(&conf_file)?, &key, value.as_deref()))
}

/// Set a directive, or for a log a directive (`value`) to a `setting`. False removes it.
///
/// CLI Example:
///
///     salt '*' logrotate.set rotate 2
///     salt '*' logrotate.set /var/log/wtmp rotate 2
#[function]
pub fn set(
    _context: &Context,
    /// Directive, or the path of a log with a block of its own.
    key: String,
    /// Value of the directive; for a log its directive.
    value: Value,
    /// Value of the directive of a log.
    #[default]
    setting: Value,
    /// Path of the configuration file.
    #[default("/etc/logrotate.conf".into())]
    conf_file: String,
) -> CallResult {
    let conf = conf::read(&conf_file)?;
    let path = conf.file_of(&conf_file, &key);
    let have = conf::get(&conf, &key, None);
    let command = value.to_string();
    let wrong = |message: String| Err(CallError::Execution(message));
    match (setting.is_nil(), &have) {
        (true, Value::Map(_)) => {
            return wrong(format!(
                "Error: {key} includes a dict, and a specific setting inside the dict was not declared"
            ));
        }
        (true, have) if *have == value => return Ok(true.into()),
        (false, Value::Map(block)) if block.get(command.as_str()).unwrap_or(&false.into()) == &setting => {
            return Ok(true.into());
        }
        (false, have) if have.is_truthy() && have.as_map().is_none() => {
            return wrong(
                "Error: A setting for a dict was declared, but the configuration line given is not a dict".into(),
            );
        }
        _ => {}
    }
    let text = files::read_to_string(&path).map_err(CallError::execution)?;
    let edited = if setting.is_nil() {
        conf::with_command(&text, &key, &value)
    } else {
        conf::with_setting(&text, &key, &command, &setting)
    };
    files::rewrite(&path, edited.as_bytes(), 0o644).map_err(CallError::execution)?;
    Ok((edited != text).into())
}
