//! `snapper`: the state that undoes changes since a snapshot.

use std::path::Path;

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

/// State functions of `snapper`.
pub static FUNCTIONS: Functions<StateContext> = registry!("snapper", [baseline_snapshot]);

/// Ensure that files are as in a snapshot: all changes since then are undone.
///
/// SLS Example:
///
///     as_in_baseline:
///       snapper.baseline_snapshot:
///         - tag: baseline
///         - ignore:
///           - /var/log
///           - /var/cache
#[function]
pub fn baseline_snapshot(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// Number of the snapshot.
    number: Option<u32>,
    /// Tag of the snapshot, from `snapper.create_baseline`, instead of its number. The newest one with it counts.
    tag: Option<String>,
    /// Whether the changes have the differences of modified files.
    #[default(true)]
    include_diff: bool,
    /// Name of the configuration.
    #[default("root".into())]
    config: String,
    /// List of files and directories that may differ.
    ignore: Option<Vec<String>>,
) -> CallResult {
    let number = match (number.filter(|number| *number != 0), tag.filter(|tag| !tag.is_empty())) {
        (Some(_), Some(_)) => {
            return Ok(StateReturn::failed(&name, "Cannot use snapshot tag and number at the same time").into());
        }
        (Some(number), None) => number,
        (None, Some(tag)) => match baseline(context, &config, &tag)? {
            Some(number) => number,
            None => return Ok(StateReturn::failed(&name, format!("Baseline tag \"{tag}\" not found")).into()),
        },
        (None, None) => return Ok(StateReturn::failed(&name, "Snapshot tag or number must be specified").into()),
    };
    let since = map! {"config" => config.as_str(), "num_pre" => 0, "num_post" => number};
    let status = call(context, "status", since.clone())?;
    let ignored = ignore.unwrap_or_default();
    let is_ignored = |path: &str| ignored.iter().any(|one| Path::new(path).starts_with(one));
    let mut files: Map = status.as_map().cloned().unwrap_or_default();
    files.retain(|path, _| !is_ignored(&path.to_string()));
    if files.is_empty() {
        let comment = if context.test { "Nothing to be done" } else { "No changes were done" };
        return Ok(StateReturn::ok(&name, comment).into());
    }
    if include_diff {
        add_differences(context, &mut files, &since)?;
    }
    if context.test {
        let comment = format!("{} files changes are set to be undone", files.len());
        let mut report = StateReturn::predicted(&name, comment).with_changes(files.clone());
        report.more.insert("pchanges".into(), files.into());
        return Ok(report.into());
    }
    let paths: Value = files.keys().cloned().collect();
    let args = map! {"config" => config, "num_pre" => number, "num_post" => 0, "files" => paths};
    // The name of the field is Salt's.
    let changes = map! {"sumary" => call(context, "undo", args)?, "files" => files};
    Ok(StateReturn::ok(&name, "").with_changes(changes).into())
}

/// Replaces the statuses of modified files by their differences.
fn add_differences(context: &StateContext, files: &mut Map, since: &Map) -> Result<(), CallError> {
    let is_modified = |about: &Value| {
        about.get("status").and_then(Value::as_list).is_some_and(|status| status.contains(&"modified".into()))
    };
    if !files.values().any(is_modified) {
        return Ok(());
    }
    let differences = call(context, "diff", since.clone())?;
    for (path, about) in files.iter_mut().filter(|(_, about)| is_modified(about)) {
        *about = differences.as_map().and_then(|all| all.get(path)).cloned().unwrap_or_else(Value::map);
    }
    Ok(())
}

/// Returns the number of the newest snapshot with a tag.
fn baseline(context: &StateContext, config: &str, tag: &str) -> Result<Option<u32>, CallError> {
    let snapshots = call(context, "list_snapshots", map! {"config" => config})?;
    let has_tag = |about: &&Value| {
        let own = about.get("userdata").and_then(|userdata| userdata.get("baseline_tag"));
        own.is_some_and(|own| own.to_string() == tag)
    };
    let tagged = snapshots.as_list().unwrap_or_default().iter().filter(has_tag);
    let newest = tagged.max_by_key(|about| about.get("timestamp").and_then(Value::as_i64));
    Ok(newest.and_then(|about| u32::try_from(about.get("id")?.as_i64()?).ok()))
}

fn call(context: &StateContext, function: &str, args: Map) -> CallResult {
    context.call.call(&format!("snapper.{function}"), Args::keyword(args))
}
