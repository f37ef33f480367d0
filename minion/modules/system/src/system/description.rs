//! The description of the host: `PRETTY_HOSTNAME` in `/etc/machine-info`.

use brine_context::Context;
use brine_context::programs::run;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::find_program;
use brine_system::files;

/// Execution functions of `system`.
pub static FUNCTIONS: Functions<Context> =
    registry!("system", [get_computer_desc, set_computer_desc, set_computer_name]);

/// The file of the description.
const FILE: &str = "/etc/machine-info";

/// Return the description of the host, or false if it has none.
///
/// CLI Example:
///
///     salt '*' system.get_computer_desc
#[function]
pub fn get_computer_desc(context: &Context) -> CallResult {
    if find_program("hostnamectl").is_some() {
        let words = ["hostnamectl", "status", "--pretty"].map(str::to_owned);
        return Ok(unescaped(run(context, &words, &[])?.stdout.trim_end()).into());
    }
    let text = files::read_if_exists(FILE).map_err(CallError::execution)?;
    Ok(text.and_then(|text| description(&text)).map_or_else(|| false.into(), Into::into))
}

/// Set the description of the host, and return whether this succeeded.
///
/// CLI Example:
///
///     salt '*' system.set_computer_desc "Michael's laptop"
#[function]
pub fn set_computer_desc(
    context: &Context,
    /// Description.
    desc: String,
) -> CallResult {
    let desc = desc.replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
    if find_program("hostnamectl").is_some() {
        let words = ["hostnamectl", "set-hostname", "--pretty", "--", &desc].map(str::to_owned);
        return Ok((run(context, &words, &[])?.retcode == 0).into());
    }
    let text = files::read_if_exists(FILE).map_err(CallError::execution)?.unwrap_or_default();
    Ok(files::rewrite(FILE, with_description(&text, &desc).as_bytes(), 0o644).is_ok().into())
}

/// Change the name of the host.
///
/// CLI Example:
///
///     salt '*' system.set_computer_name master.saltstack.com
#[function]
pub fn set_computer_name(
    context: &Context,
    /// New host name.
    hostname: String,
) -> CallResult {
    context.call("network.mod_hostname", Args::positional([hostname.into()]))
}

/// Returns the value in a line of the description.
fn value(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("PRETTY_HOSTNAME=")
}

/// Returns the description in the text of the file: that of the last line.
fn description(text: &str) -> Option<String> {
    let value = text.lines().filter_map(value).next_back()?.trim();
    let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    Some(unescaped(quoted('"').or_else(|| quoted('\'')).unwrap_or(value)))
}

fn unescaped(text: &str) -> String {
    text.replace("\\\\", "\\").replace("\\\"", "\"").replace("\\n", "\n").replace("\\t", "\t")
}

/// Returns the text of the file with this description in its first line of one, or at its end.
fn with_description(text: &str, desc: &str) -> String {
    let new = format!("PRETTY_HOSTNAME=\"{desc}\"");
    let mut lines: Vec<&str> = text.lines().collect();
    match lines.iter_mut().find(|line| value(line).is_some()) {
        Some(line) => *line = &new,
        None => lines.push(&new),
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_read_and_replaced() {
        for (text, read) in [
            ("PRETTY_HOSTNAME=\"Web 1\"\n", Some("Web 1")),
            ("CHASSIS=vm\n PRETTY_HOSTNAME='a'\nPRETTY_HOSTNAME=b\n", Some("b")),
            ("PRETTY_HOSTNAME=\"a \\\"b\\\"\"\n", Some("a \"b\"")),
            ("CHASSIS=vm\n", None),
            ("PRETTY_HOSTNAME=\"\n", Some("\"")),
        ] {
            assert_eq!(description(text).as_deref(), read, "{text}");
        }
        for (text, written) in [
            ("", "PRETTY_HOSTNAME=\"x\"\n"),
            ("A=1\nPRETTY_HOSTNAME=b\nC=2\n", "A=1\nPRETTY_HOSTNAME=\"x\"\nC=2\n"),
            ("A=1", "A=1\nPRETTY_HOSTNAME=\"x\"\n"),
        ] {
            assert_eq!(with_description(text, "x"), written, "{text}");
        }
    }
}
