//! `blockdev`: states of block devices and the file systems on them.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use brine_context::programs::run;
use brine_context::{Module, StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, Others, ParamList, function, registry};
use brine_host::programs::argument;
use brine_value::{Map, Value, map};

use crate::disk::devices::attributes_of;

pub(super) static MODULE: Module = Module { states: &[&FUNCTIONS], ..Module::EMPTY };

/// State functions of `blockdev`.
pub static FUNCTIONS: Functions<StateContext> = registry!("blockdev", [tuned, formatted]);

/// Ensure that a block device has these attributes: `read-ahead`, `filesystem-read-ahead`, `read-only`, `read-write`,
/// as for `disk.tune`.
///
/// SLS Example:
///
///     /dev/vdb:
///       blockdev.tuned:
///         - read-ahead: 1024
#[function]
pub fn tuned(
    context: &StateContext,
    /// Path of the device.
    name: String,
    /// Attributes and their values: `read-ahead`, `filesystem-read-ahead`, `read-only` and `read-write`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    if !std::fs::metadata(&name).is_ok_and(|metadata| metadata.file_type().is_block_device()) {
        let comment = format!("Changes to {name} cannot be applied. Not a block device.");
        return Ok(StateReturn::failed(&name, comment).into());
    }
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("Changes to {name} will be applied ")).into());
    }
    Ok(tuned_device(context, &name, kwargs)?.into())
}

fn tuned_device(context: &StateContext, name: &str, kwargs: Map) -> Result<StateReturn, CallError> {
    let former = attributes_of(&context.call, name)?.unwrap_or_default();
    let args = Args { positional: vec![name.into()], keyword: kwargs.clone() };
    let current = context.call.call("disk.tune", args)?;
    let Value::Map(current) = current else {
        return Ok(StateReturn::failed(name, format!("Failed to modify block device {name}")));
    };
    let mut changes = Map::new();
    for (key, value) in &kwargs {
        let getter = match key.as_str() {
            Some("read-ahead") => "getra",
            Some("filesystem-read-ahead") => "getfra",
            Some("read-only" | "read-write") => "getro",
            _ => continue,
        };
        let (old, new) = (former.get(getter).cloned().unwrap_or_default(), current.get(getter).cloned());
        let new = new.unwrap_or_default();
        if old == new {
            continue;
        }
        // `getro` is 1 for a read-only device.
        let display = |now: &Value| match value {
            Value::Bool(_) => ((now.to_string() == "1") != (key.as_str() == Some("read-write"))).into(),
            _ => now.clone(),
        };
        changes.insert(key.clone(), format!("Changed from {} to {}", display(&old), display(&new)).into());
    }
    let comment = if changes.is_empty() {
        format!("Block device {name} already in correct state")
    } else {
        format!("Block device {name} successfully modified ")
    };
    Ok(StateReturn::ok(name, comment).with_changes(changes))
}

/// Ensure that a block device has a file system of this type. One of another type is replaced; the arguments are those
/// of `disk.format`.
///
/// SLS Example:
///
///     /dev/vdb1:
///       blockdev.formatted:
///         - fs_type: xfs
#[function]
pub fn formatted(
    context: &StateContext,
    /// Path of the device.
    name: String,
    /// Type of the file system.
    #[default("ext4".into())]
    fs_type: String,
    /// Whether the program that makes the file system is told to overwrite what it finds.
    #[default(false)]
    force: bool,
    #[keywords(further_formatted)] kwargs: Map,
) -> CallResult {
    if !Path::new(&name).exists() {
        return Ok(StateReturn::failed(&name, format!("{name} does not exist")).into());
    }
    let former = file_system(context, &name)?;
    if former == fs_type {
        return Ok(StateReturn::ok(&name, format!("{name} already formatted with {fs_type}")).into());
    }
    if context.call.minion.programs.find(&format!("mkfs.{fs_type}")).is_none() {
        return Ok(StateReturn::failed(&name, format!("Invalid fs_type: {fs_type}")).into());
    }
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("Changes to {name} will be applied ")).into());
    }
    let mut keyword = kwargs;
    keyword.insert("force".into(), force.into());
    let positional = vec![name.as_str().into(), fs_type.as_str().into()];
    context.call.call("disk.format", Args { positional, keyword })?;
    let current = file_system(context, &name)?;
    if current != fs_type {
        return Ok(StateReturn::failed(&name, format!("Failed to format {name}")).into());
    }
    let changes = map! {"new" => fs_type.as_str(), "old" => former};
    let comment = format!("{name} has been formatted with {fs_type}");
    Ok(StateReturn::ok(&name, comment).with_changes(changes).into())
}

/// Returns the type of the file system on a device, or an empty string.
fn file_system(context: &StateContext, name: &str) -> Result<String, CallError> {
    let words = ["blkid", "-o", "value", "-s", "TYPE"].map(str::to_owned).into_iter().chain([argument(name)?]);
    Ok(run(&context.call, &words.collect::<Vec<_>>(), &[])?.stdout)
}

/// Describes the further arguments of `blockdev.formatted`.
pub(crate) fn further_formatted(params: &mut ParamList) {
    params.others(Others::Unused);
    params.further("inode_size", "an integer", "Size of inodes in bytes, for ext2, ext3 and ext4.");
    params.further(
        "lazy_itable_init",
        "an integer",
        "Whether inode tables are initialized later, for ext2, ext3 and ext4: 0 or 1.",
    );
    params.further("fat", "an integer", "Size of the entries of a FAT file system: 12, 16 or 32.");
}

#[cfg(test)]
mod tests;
