//! Rules in the file that is loaded at boot.

use std::path::Path;

use brine_context::Context;
use brine_function::{CallError, CallResult, function};
use brine_system::files;
use brine_value::Value;

use super::family::Family;
use super::ruleset::{NUMERIC, Ruleset};

/// Return the lines of a file of rules, without comments and empty lines; by default of the file that `save` writes.
///
/// CLI Example:
///
///     salt '*' nftables.get_saved_rules
#[function]
pub fn get_saved_rules(
    context: &Context,
    /// Path of the file of saved rules; that of the system by default.
    conf_file: Option<String>,
) -> CallResult {
    let text = files::read_to_string(file_of(context, conf_file)?).map_err(CallError::execution)?;
    let is_rule = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with('#');
    Ok(text.split_inclusive('\n').filter(is_rule).collect())
}

/// Save the current rules of all families to a file, by default `/etc/nftables`, and return its text. In a directory, the
/// file is `salt-all-in-one.nft`; the configuration of nftables must include it.
///
/// CLI Example:
///
///     salt '*' nftables.save /etc/nftables
#[function]
pub fn save(
    context: &Context,
    /// Path of the file; that of the system by default.
    filename: Option<String>,
    /// Without effect: the rules of all families are saved.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    _ = family;
    Ok(save_to(context, filename)?.into())
}

/// Saves the rules of all families, and returns the text.
pub(super) fn save_to(context: &Context, filename: Option<String>) -> Result<String, CallError> {
    let file = file_of(context, filename)?;
    let mut text = "#! nft -f\n".to_owned();
    for family in Family::ALL {
        let tables = rules(&Ruleset::new(context, family.word())?)?;
        if !tables.is_empty() {
            text.push('\n');
        }
        text.push_str(&tables.join("\n"));
    }
    text.push('\n');
    let failed = |error| CallError::Execution(format!("Problem writing to configuration file: {error}"));
    files::rewrite(file, text.as_bytes(), 0o644).map_err(failed)?;
    Ok(text)
}

/// Returns the text of each table.
pub(super) fn rules(ruleset: &Ruleset<'_>) -> Result<Vec<String>, CallError> {
    let list = |table: String| ruleset.read(&NUMERIC, &["list", "table", ruleset.family.word(), &table]);
    ruleset.tables()?.into_iter().map(list).collect()
}

/// Returns the given file, or the one of this system; the one in it if it is a directory.
fn file_of(context: &Context, file: Option<String>) -> Result<String, CallError> {
    let argument = file.filter(|file| !file.is_empty());
    let file = argument.or_else(|| default_file(context)).ok_or_else(|| {
        CallError::Execution("the file of nftables' rules is unknown on this system: pass its path".into())
    })?;
    Ok(if Path::new(&file).is_dir() { format!("{file}/salt-all-in-one.nft") } else { file })
}

/// Returns the file of this system.
fn default_file(context: &Context) -> Option<String> {
    let grains = context.grains();
    let os = grains.get("os").and_then(Value::as_str).unwrap_or_default();
    let is_known = matches!(context.os_family().as_str(), "RedHat" | "Arch" | "Debian") || os == "Gentoo";
    is_known.then(|| "/etc/nftables".to_owned())
}
