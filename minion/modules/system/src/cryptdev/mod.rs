//! `cryptdev`: encrypted devices, and the file crypttab that maps them at boot.

mod crypttab;
pub(crate) mod state;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::{Map, Value, map};

use self::crypttab::{Change, Entry, Table};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `cryptdev`.
pub static FUNCTIONS: Functions<Context> =
    registry!("cryptdev", [active, crypttab, rm_crypttab, set_crypttab, open, close]);

const CRYPTTAB: &str = "/etc/crypttab";

/// Return the mapped encrypted devices by name, each with its device number.
///
/// CLI Example:
///
///     salt '*' cryptdev.active
#[function]
pub fn active(context: &Context) -> CallResult {
    let words = ["dmsetup", "ls", "--target", "crypt"].map(str::to_owned);
    Ok(run(context, &words, &[])?.stdout.lines().filter_map(mapped).collect::<Map>().into())
}

/// Return the entries of a crypttab by name.
///
/// CLI Example:
///
///     salt '*' cryptdev.crypttab
#[function]
pub fn crypttab(
    _context: &Context,
    /// File of the devices that are mapped at boot.
    #[default(CRYPTTAB.into())]
    config: String,
) -> CallResult {
    let Some(table) = Table::read_if_exists(&config)? else { return Ok(Value::map()) };
    let mut devices = Map::new();
    for entry in table.entries() {
        let mut name = entry.name.clone();
        // As in Salt, further entries with the same name get the suffix `_`.
        while devices.contains_key(&Value::from(name.as_str())) {
            name.push('_');
        }
        let options: Value = entry.options.split(',').collect();
        let about = map! {"device" => entry.device, "password" => entry.password, "options" => options};
        devices.insert(name.into(), about.into());
    }
    Ok(devices.into())
}

/// Remove the entry of a name from a crypttab. The result is `change` or `absent`.
///
/// CLI Example:
///
///     salt '*' cryptdev.rm_crypttab foo
#[function]
pub fn rm_crypttab(
    _context: &Context,
    /// Name of the mapped device.
    name: String,
    /// File of the devices that are mapped at boot.
    #[default(CRYPTTAB.into())]
    config: String,
) -> CallResult {
    let mut table = Table::read(&config)?;
    if !table.remove(&name) {
        return Ok("absent".into());
    }
    table.write(&config)?;
    Ok("change".into())
}

/// Set an entry of a crypttab. The result is `new`, `change` or `present`.
///
/// CLI Example:
///
///     salt '*' cryptdev.set_crypttab foo /dev/sdz1 mypassword swap,size=256
#[function]
pub fn set_crypttab(
    _context: &Context,
    /// Name of the mapped device.
    name: String,
    /// Path of the encrypted device.
    device: String,
    /// The key file, or `none` if the password is asked for.
    #[default("none".into())]
    password: Value,
    /// A list of options, or a string with commas.
    #[default]
    options: Value,
    /// File of the devices that are mapped at boot.
    #[default(CRYPTTAB.into())]
    config: String,
    /// Whether the file is left as it is.
    #[default(false)]
    test: bool,
    /// The fields, `name`, `device`, `password` and `options`, of which the entry that is replaced has the same values.
    #[default("name".into())]
    match_on: Value,
) -> CallResult {
    Ok(set(&config, &entry(name, device, &password, &options)?, &match_on, test)?.name().into())
}

/// Map an encrypted device by a key file, and return whether that succeeded.
///
/// CLI Example:
///
///     salt '*' cryptdev.open foo /dev/sdz1 /path/to/keyfile
#[function]
pub fn open(
    context: &Context,
    /// Name of the mapped device.
    name: String,
    /// Path of the encrypted device.
    device: String,
    /// Path of the file with the key.
    #[required]
    keyfile: Option<String>,
) -> CallResult {
    let Some(keyfile) = keyfile.filter(|keyfile| has_key(Some(keyfile))) else {
        let message = "For immediate crypt device mapping, keyfile must not be none";
        return Err(CallError::Execution(message.into()));
    };
    cryptsetup(context, &["open", "--key-file", &keyfile, &argument(&device)?, &argument(&name)?])
}

/// Unmap an encrypted device, and return whether that succeeded.
///
/// CLI Example:
///
///     salt '*' cryptdev.close foo
#[function]
pub fn close(
    context: &Context,
    /// Name of the mapped device.
    name: String,
) -> CallResult {
    cryptsetup(context, &["close", &argument(&name)?])
}

fn cryptsetup(context: &Context, words: &[&str]) -> CallResult {
    let words: Vec<String> = ["cryptsetup"].iter().chain(words).map(|word| (*word).to_owned()).collect();
    brine_context::programs::succeeds(context, &words)
}

/// Whether this is the path of a key file, not a placeholder for none.
pub(crate) fn has_key(keyfile: Option<&str>) -> bool {
    !matches!(keyfile, None | Some("" | "none" | "-"))
}

/// Parses `name (254, 0)`, or in newer releases `name (254:0)`.
fn mapped(line: &str) -> Option<(Value, Value)> {
    let (name, rest) = line.split_once(char::is_whitespace)?;
    let (major, minor) = rest.trim().strip_prefix('(')?.strip_suffix(')')?.split_once([',', ':'])?;
    Some((name.into(), map! {"devname" => name, "major" => major.trim(), "minor" => minor.trim()}.into()))
}

/// Creates an entry from arguments.
pub(crate) fn entry(name: String, device: String, password: &Value, options: &Value) -> Result<Entry, CallError> {
    let options = match options {
        Value::Nil => String::new(),
        Value::Str(options) => options.clone(),
        Value::List(options) => options.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        _ => return Err(CallError::Execution("options must be a string or list of strings".into())),
    };
    let password = if password.is_nil() { "none".to_owned() } else { password.to_string() };
    Entry::new(name, device, password, options)
}

/// Sets an entry of a crypttab, and returns the outcome. With `test`, nothing is written.
pub(crate) fn set(config: &str, entry: &Entry, match_on: &Value, test: bool) -> Result<Change, CallError> {
    let fields: Vec<String> = match match_on {
        Value::List(fields) => fields.iter().map(ToString::to_string).collect(),
        Value::Str(field) => vec![field.clone()],
        _ => return Err(CallError::Execution("match_on must be a string or list of strings".into())),
    };
    let mut table = Table::read(config)?;
    let change = table.set(entry, &fields)?;
    if !test && change != Change::Present {
        table.write(config)?;
    }
    Ok(change)
}

#[cfg(test)]
mod tests;
