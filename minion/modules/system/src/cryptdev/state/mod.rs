//! `cryptdev`: states of encrypted devices.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Value, map};

use super::crypttab::{Change, Table};
use super::{CRYPTTAB, entry, has_key, set};

/// State functions of `cryptdev`.
pub static FUNCTIONS: Functions<StateContext> = registry!("cryptdev", [mapped, unmapped]);

/// The arguments of `cryptdev.mapped`.
#[derive(Debug, brine_function::Args)]
pub struct Device {
    /// Name of the mapping.
    name: String,
    /// Device: a path, or an identifier such as `UUID=066e0200-...`.
    device: String,
    /// Key file; without one, the password is asked for at boot.
    keyfile: Option<String>,
    /// Options, as a list or separated by commas.
    #[default]
    opts: Value,
    /// Path of the crypttab.
    #[default(CRYPTTAB.into())]
    config: String,
    /// Whether the device is entered into the crypttab.
    #[default(true)]
    persist: bool,
    /// Whether the device is mapped now; `opts` does not apply to that.
    #[default(false)]
    immediate: bool,
    /// The fields of the entry that is replaced, as for `cryptdev.set_crypttab`.
    #[default("name".into())]
    match_on: Value,
}

/// Ensure that an encrypted device is mapped, at boot or now.
///
/// SLS Example:
///
///     data:
///       cryptdev.mapped:
///         - device: /dev/vdb1
///         - keyfile: /etc/keys/data.key
///         - opts: luks
#[function]
pub fn mapped(context: &StateContext, #[args] device: Device) -> CallResult {
    let Device { name, device, keyfile, opts, config, persist, immediate, match_on } = device;
    if !immediate && !persist {
        let comment = "Either persist or immediate must be set, otherwise this state does nothing";
        return Ok(StateReturn::failed(&name, comment).into());
    }
    let mut report = StateReturn::ok(&name, "");
    if immediate && !has_key(keyfile.as_deref()) {
        let reason = "Device cannot be mapped immediately without a keyfile";
        report = StateReturn::failed(&name, "").with_changes(map! {"cryptsetup" => reason});
    } else if immediate && !is_mapped(context, &name)? {
        let open = || {
            let positional = [name.as_str().into(), device.as_str().into(), keyfile.clone().into()];
            context.call.call("cryptdev.open", Args::positional(positional))
        };
        change_now(context, &mut report, "mapped", "map", open)?;
    }
    if persist {
        let desired = entry(name, device, &keyfile.into(), &opts)?;
        let sentences = match set(&config, &desired, &match_on, context.test)? {
            Change::New => Some((format!("Entry added in {config}"), format!("Entry will be added in {config}"))),
            Change::Changed => Some((
                format!("Existing entry in {config} changed"),
                format!("Existing entry in {config} will be changed"),
            )),
            Change::Present => None,
        };
        report_crypttab(context, &mut report, sentences);
    }
    Ok(report.into())
}

/// Ensure that a device is not mapped, at boot or now.
///
/// SLS Example:
///
///     data:
///       cryptdev.unmapped:
///         - immediate: True
#[function]
pub fn unmapped(
    context: &StateContext,
    /// Name of the mapped device.
    name: String,
    /// File of the devices that are mapped at boot.
    #[default(CRYPTTAB.into())]
    config: String,
    /// Whether the device is removed from the file.
    #[default(true)]
    persist: bool,
    /// Whether the device is unmapped now.
    #[default(false)]
    immediate: bool,
) -> CallResult {
    let mut report = StateReturn::ok(&name, "");
    if immediate && is_mapped(context, &name)? {
        let close = || context.call.call("cryptdev.close", Args::positional([name.as_str().into()]));
        change_now(context, &mut report, "unmapped", "unmap", close)?;
    }
    if persist {
        let mut table = Table::read(&config)?;
        let is_removed = table.remove(&name);
        if is_removed && !context.test {
            table.write(&config)?;
        }
        let sentences = || (format!("Entry removed from {config}"), format!("Entry will be removed from {config}"));
        report_crypttab(context, &mut report, is_removed.then(sentences));
    }
    Ok(report.into())
}

fn is_mapped(context: &StateContext, name: &str) -> Result<bool, CallError> {
    Ok(context.call.call("cryptdev.active", Args::default())?.get(name).is_some())
}

/// Maps or unmaps the device, unless in test mode.
fn change_now(
    context: &StateContext,
    report: &mut StateReturn,
    participle: &str,
    infinitive: &str,
    change: impl FnOnce() -> CallResult,
) -> Result<(), CallError> {
    if context.test {
        report.result = None;
        report.comment = format!("Device would be {participle} immediately");
        return Ok(());
    }
    let succeeded = change()?.is_truthy();
    let sentence = if succeeded {
        format!("Device {participle} using cryptsetup")
    } else {
        report.result = Some(false);
        format!("Device failed to {infinitive} using cryptsetup")
    };
    report.changes.insert("cryptsetup".into(), sentence.into());
    Ok(())
}

/// Adds a change of the crypttab to the report: the outcome or, in test mode, the prediction.
fn report_crypttab(context: &StateContext, report: &mut StateReturn, change: Option<(String, String)>) {
    let Some((applied, planned)) = change else { return };
    if context.test {
        report.result = report.result.filter(|result| !result);
        report.comment = if report.comment.is_empty() { planned } else { format!("{}\n{planned}", report.comment) };
    } else {
        report.changes.insert("crypttab".into(), applied.into());
    }
}

#[cfg(test)]
mod tests;
