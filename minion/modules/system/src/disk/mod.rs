//! `disk`: usage of the mounted file systems and its limits, and attributes of block devices.

pub(crate) mod devices;
mod hardware;
mod state;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::{Map, Value, map};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `disk`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "disk",
    [
        usage,
        inodeusage,
        percent,
        blkid,
        devices::dump,
        devices::tune,
        devices::wipe,
        devices::resize2fs,
        devices::format_,
        devices::fstype,
        devices::get_fstype_from_path,
        hardware::hdparms,
        hardware::hpa,
        hardware::smart_attributes,
        hardware::iostat
    ]
);

/// Return the disk usage of the mounted file systems, as reported by `df`; `args` are additional flags of `df`.
///
/// CLI Example:
///
///     salt '*' disk.usage
#[function]
pub fn usage(
    context: &Context,
    /// Additional flags of `df`, as letters.
    args: Option<String>,
) -> CallResult {
    let rows = table(context, "usage", "-P", args.as_deref())?;
    let report = rows.into_iter().map(|row| {
        let [blocks, used, available] = row.amounts;
        let report = map! {
            "filesystem" => row.filesystem, "1K-blocks" => blocks, "used" => used, "available" => available,
            "capacity" => row.percent,
        };
        (row.place.into(), report.into())
    });
    Ok(report.collect::<Map>().into())
}

/// Return the inode usage of the mounted file systems, as reported by `df`; `args` are additional flags of `df`.
///
/// CLI Example:
///
///     salt '*' disk.inodeusage
#[function]
pub fn inodeusage(
    context: &Context,
    /// Additional flags of `df`, as letters.
    args: Option<String>,
) -> CallResult {
    let rows = table(context, "inodeusage", "-iP", args.as_deref())?;
    let report = rows.into_iter().map(|row| {
        let [inodes, used, free] = row.amounts;
        let report = map! {
            "inodes" => inodes, "used" => used, "free" => free, "use" => row.percent, "filesystem" => row.filesystem,
        };
        (row.place.into(), report.into())
    });
    Ok(report.collect::<Map>().into())
}

/// Return the usage of the mounted file systems in percent, or of the one with this mount point.
///
/// CLI Example:
///
///     salt '*' disk.percent /var
#[function]
pub fn percent(
    context: &Context,
    /// Mount point, such as `/var`; all by default.
    args: Option<String>,
) -> CallResult {
    let rows = table(context, "percent", "-P", None)?;
    let Some(place) = args else {
        return Ok(rows.into_iter().map(|row| (row.place.into(), row.percent.into())).collect::<Map>().into());
    };
    let Some(row) = rows.into_iter().find(|row| row.place == place) else {
        tracing::error!(
            jid = context.job.jid,
            "Problem parsing disk usage information: Partition '{place}' does not exist!"
        );
        return Ok(Map::new().into());
    };
    Ok(row.percent.into())
}

/// Return the attributes of block devices: of all, of one, or of those with an attribute such as `TYPE=ext4`.
///
/// CLI Example:
///
///     salt '*' disk.blkid
///     salt '*' disk.blkid /dev/sda
#[function]
pub fn blkid(
    context: &Context,
    /// Path of the device.
    device: Option<String>,
    /// Filter, such as `TYPE=ext4`.
    token: Option<String>,
) -> CallResult {
    let mut words = vec!["blkid".to_owned()];
    match (device, token) {
        (Some(device), _) => words.push(argument(&device)?),
        (None, Some(token)) => words.extend(["-t".into(), argument(&token)?]),
        (None, None) => {}
    }
    let output = run(context, &words, &[])?;
    if output.retcode != 0 {
        return Ok(Map::new().into());
    }
    Ok(output.stdout.lines().filter_map(attributes).collect::<Map>().into())
}

/// A line of the output of `df`.
struct Row {
    filesystem: String,
    amounts: [String; 3],
    percent: String,
    place: String,
}

fn table(context: &Context, function: &str, flags: &str, more: Option<&str>) -> Result<Vec<Row>, CallError> {
    const ALLOWED: &str = "aBhHiklPtTvx";
    let mut words = vec!["df".to_owned(), flags.to_owned()];
    if let Some(more) = more.filter(|more| !more.is_empty()) {
        if !more.chars().all(|flag| ALLOWED.contains(flag)) {
            return Err(CallError::Execution(format!("Invalid flag passed to disk.{function}")));
        }
        words.push(format!("-{more}"));
    }
    // One unreadable file system makes `df` fail, although it reports the others, so the exit status is ignored.
    let output = run(context, &words, &[("LC_ALL", "C")])?;
    Ok(output.stdout.lines().skip(1).filter_map(row).collect())
}

/// Parses a line of `df`. The names of a file system and of its mount point may contain blanks.
fn row(line: &str) -> Option<Row> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_share = |word: &&str| *word == "-" || word.strip_suffix('%').is_some_and(|n| n.parse::<u64>().is_ok());
    let share = (4..words.len()).find(|place| is_share(&words[*place]))?;
    let place = words.get(share + 1..).filter(|place| !place.is_empty())?.join(" ");
    Some(Row {
        filesystem: words[..share - 3].join(" "),
        amounts: [words[share - 3], words[share - 2], words[share - 1]].map(str::to_owned),
        percent: words[share].to_owned(),
        place,
    })
}

/// Parses `/dev/sda1: LABEL="a b" TYPE="ext4"`.
fn attributes(line: &str) -> Option<(Value, Value)> {
    let (device, mut rest) = line.split_once(':')?;
    let mut report = Map::new();
    while let Some((name, after)) = rest.split_once("=\"") {
        let (value, after) = after.split_once('"')?;
        report.insert(name.trim().into(), value.into());
        rest = after;
    }
    Some((device.into(), report.into()))
}

#[cfg(test)]
mod tests;
