//! `extfs`: file systems of the types ext2, ext3 and ext4.

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::{Map, Value, map};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `extfs`.
pub static FUNCTIONS: Functions<Context> = registry!("extfs", [mkfs, tune, attributes, blocks, dump]);

/// The arguments of `extfs.mkfs` with their flags of `mke2fs`.
const MKFS: &[(&str, &str)] = &[
    ("block_size", "-b"),
    ("check", "-c"),
    ("direct", "-D"),
    ("ext_opts", "-E"),
    ("fragment_size", "-f"),
    ("force", "-F"),
    ("blocks_per_group", "-g"),
    ("number_of_groups", "-G"),
    ("bytes_per_inode", "-i"),
    ("inode_size", "-I"),
    ("journal", "-j"),
    ("journal_opts", "-J"),
    ("blocks_file", "-l"),
    ("label", "-L"),
    ("reserved", "-m"),
    ("last_dir", "-M"),
    ("test", "-n"),
    ("number_of_inodes", "-N"),
    ("creator_os", "-o"),
    ("opts", "-O"),
    ("revision", "-r"),
    ("super", "-S"),
    ("usage_type", "-T"),
    ("uuid", "-U"),
    ("cluster_size", "-C"),
    ("root_directory", "-d"),
    ("errors_behavior", "-e"),
];
/// The arguments of `extfs.tune` with their flags of `tune2fs`.
const TUNE: &[(&str, &str)] = &[
    ("max", "-c"),
    ("count", "-C"),
    ("error", "-e"),
    ("extended_opts", "-E"),
    ("force", "-f"),
    ("group", "-g"),
    ("interval", "-i"),
    ("journal", "-j"),
    ("journal_opts", "-J"),
    ("label", "-L"),
    ("last_dir", "-M"),
    ("opts", "-o"),
    ("feature", "-O"),
    ("mmp_check", "-p"),
    ("reserved", "-r"),
    ("reserved_percentage", "-m"),
    ("quota_opts", "-Q"),
    ("time", "-T"),
    ("user", "-u"),
    ("uuid", "-U"),
];
/// Prefixes of the lines of `mke2fs` that only report progress.
const PROGRESS: &[&str] = &[
    "mke2fs",
    "Discarding device blocks",
    "Allocating group tables",
    "Writing inode tables",
    "Creating journal",
    "Writing superblocks",
];

/// Create a file system of a type on a device, and return the lines about it; with `full_return` the result of the
/// program with them as `comment`.
///
/// Further arguments are options of `mke2fs`: `block_size`, `check`, `direct`, `ext_opts`, `fragment_size`, `force`,
/// `blocks_per_group`, `number_of_groups`, `bytes_per_inode`, `inode_size`, `journal`, `journal_opts`, `blocks_file`,
/// `label`, `reserved`, `last_dir`, `test`, `number_of_inodes`, `creator_os`, `opts`, `revision`, `super`,
/// `usage_type`, `uuid`, `cluster_size`, `root_directory` and `errors_behavior`. True sets an option without a value.
///
/// CLI Example:
///
///     salt '*' extfs.mkfs /dev/sda1 fs_type=ext4 opts='acl,noexec'
#[function]
pub fn mkfs(
    context: &Context,
    /// Path of the device.
    device: String,
    /// Type of the file system: `ext2`, `ext3` or `ext4`.
    fs_type: String,
    /// Whether the whole output is returned.
    #[default(false)]
    full_return: bool,
    /// Options of `mke2fs`: `block_size`, `check`, `direct`, `ext_opts`, `fragment_size`, `force`, `blocks_per_group`,
    /// `number_of_groups`, `bytes_per_inode`, `inode_size`, `journal`, `journal_opts`, `blocks_file`, `label`,
    /// `reserved`, `last_dir`, `test`, `number_of_inodes`, `creator_os`, `opts`, `revision`, `super`, `usage_type`,
    /// `uuid`, `cluster_size`, `root_directory`, `errors_behavior`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut words = vec!["mke2fs".into(), "-F".into(), "-t".into(), argument(&fs_type)?];
    words.extend(options(MKFS, &kwargs));
    words.push(argument(&device)?);
    let is_shown = |line: &str| !line.is_empty() && !PROGRESS.iter().any(|start| line.starts_with(start));
    changed(context, &words, full_return, is_shown)
}

/// Set parameters of a file system, and return the output; with `full_return` the result of the program with it as
/// `comment`.
///
/// Further arguments are options of `tune2fs`: `max`, `count`, `error`, `extended_opts`, `force`, `group`, `interval`,
/// `journal`, `journal_opts`, `label`, `last_dir`, `opts`, `feature`, `mmp_check`, `reserved`, `reserved_percentage`,
/// `quota_opts`, `time`, `user` and `uuid`. True sets an option without a value.
///
/// CLI Example:
///
///     salt '*' extfs.tune /dev/sda1 force=True label=wildstallyns opts='acl,noexec'
#[function]
pub fn tune(
    context: &Context,
    /// Path of the device.
    device: String,
    /// Whether the whole output is returned.
    #[default(false)]
    full_return: bool,
    /// Options of `tune2fs`: `max`, `count`, `error`, `extended_opts`, `force`, `group`, `interval`, `journal`,
    /// `journal_opts`, `label`, `last_dir`, `opts`, `feature`, `mmp_check`, `reserved`, `reserved_percentage`,
    /// `quota_opts`, `time`, `user`, `uuid`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut words = vec!["tune2fs".to_owned()];
    words.extend(options(TUNE, &kwargs));
    words.push(argument(&device)?);
    changed(context, &words, full_return, |_| true)
}

/// Return the attributes of a file system, as reported by `dumpe2fs`; `args` are flags of it.
///
/// CLI Example:
///
///     salt '*' extfs.attributes /dev/sda1
#[function]
pub fn attributes(
    context: &Context,
    /// Path of the device.
    device: String,
    /// Flags of `dumpe2fs`, as a text.
    args: Option<String>,
) -> CallResult {
    Ok(dumped(context, &device, args.as_deref())?.0.into())
}

/// Return the block groups of a file system, as reported by `dumpe2fs`; `args` are flags of it.
///
/// CLI Example:
///
///     salt '*' extfs.blocks /dev/sda1
#[function]
pub fn blocks(
    context: &Context,
    /// Path of the device.
    device: String,
    /// Flags of `dumpe2fs`, as a text.
    args: Option<String>,
) -> CallResult {
    Ok(dumped(context, &device, args.as_deref())?.1.into())
}

/// Return the attributes and block groups of a file system, as reported by `dumpe2fs`; `args` are flags of it.
///
/// CLI Example:
///
///     salt '*' extfs.dump /dev/sda1
#[function]
pub fn dump(
    context: &Context,
    /// Path of the device.
    device: String,
    /// Flags of `dumpe2fs`, as a text.
    args: Option<String>,
) -> CallResult {
    let (attributes, blocks) = dumped(context, &device, args.as_deref())?;
    Ok(map! {"attributes" => attributes, "blocks" => blocks}.into())
}

/// Returns the command line flags for these arguments, each followed by its value unless that is True.
fn options(flags: &[(&str, &str)], kwargs: &Map) -> Vec<String> {
    let mut words = Vec::new();
    for (key, value) in kwargs {
        let Some((_, flag)) = flags.iter().find(|(name, _)| key.as_str() == Some(name)) else { continue };
        words.push((*flag).to_owned());
        let value = value.to_string();
        if !value.eq_ignore_ascii_case("true") {
            words.push(value);
        }
    }
    words
}

/// Runs a program that changes a file system, and returns the lines of its output that `is_shown` selects.
fn changed(context: &Context, words: &[String], full_return: bool, is_shown: impl Fn(&str) -> bool) -> CallResult {
    let output = run(context, words, &[("LC_ALL", "C")])?;
    let text = format!("{}\n{}", output.stdout, output.stderr);
    let lines: Value = text.lines().filter(|line| is_shown(line)).collect();
    if !full_return {
        return Ok(lines);
    }
    Ok(map! {
        "pid" => output.pid, "retcode" => output.retcode, "stdout" => output.stdout, "stderr" => output.stderr,
        "comment" => lines,
    }
    .into())
}

/// Parses the output of `dumpe2fs`: the attributes, and the block groups.
fn dumped(context: &Context, device: &str, args: Option<&str>) -> Result<(Map, Map), CallError> {
    let mut words = vec!["dumpe2fs".to_owned(), argument(device)?];
    if let Some(flags) = args.filter(|flags| !flags.is_empty()) {
        if !flags.chars().all(|flag| flag.is_ascii_alphabetic()) {
            return Err(CallError::Execution(format!("args is invalid: expected flags of dumpe2fs, got {flags}")));
        }
        words.push(format!("-{flags}"));
    }
    let output = run(context, &words, &[("LC_ALL", "C")])?;
    if output.retcode != 0 {
        return Err(CallError::Execution(format!("reading the file system failed: {}", output.stderr)));
    }
    let (mut attributes, mut blocks) = (Map::new(), Map::new());
    let mut group: Option<(Value, Group)> = None;
    for line in output.stdout.lines().filter(|line| !line.is_empty() && !line.starts_with("dumpe2fs")) {
        let is_group = line.starts_with("Group") && !line.starts_with("Group descriptor size");
        match &mut group {
            _ if is_group => {
                let next = Group::read(line);
                if let Some((name, group)) = group.replace((format!("Group {}", next.number).into(), next)) {
                    blocks.insert(name, group.into());
                }
            }
            Some((_, group)) => group.add(line),
            None => {
                let Some((name, value)) = line.split_once(':') else { continue };
                let value = match name {
                    "Filesystem features" => value.split_whitespace().collect(),
                    _ => value.trim().into(),
                };
                attributes.insert(name.into(), value);
            }
        }
    }
    blocks.extend(group.map(|(name, group)| (name, group.into())));
    Ok((attributes, blocks))
}

/// A block group.
struct Group {
    number: String,
    range: String,
    extra: Vec<String>,
    free: Vec<(&'static str, Value)>,
}

impl Group {
    /// Parses the first line of a group, such as `Group 0: (Blocks 1-8192) csum 0x19ee [ITABLE_ZEROED]`.
    fn read(line: &str) -> Self {
        let plain: String = line.chars().filter(|c| !":()[]".contains(*c)).collect();
        let mut words = plain.split_whitespace().skip(1).map(str::to_owned);
        let (number, range) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
        Group { number, range, extra: Vec::new(), free: Vec::new() }
    }

    fn add(&mut self, line: &str) {
        let line = line.trim();
        let list = |rest: &str| rest.trim().split(", ").collect::<Value>();
        match (line.strip_prefix("Free blocks:"), line.strip_prefix("Free inodes:")) {
            (Some(rest), _) => self.free.push(("free blocks", list(rest))),
            (_, Some(rest)) => self.free.push(("free inodes", list(rest))),
            _ => self.extra.push(line.to_owned()),
        }
    }
}

impl From<Group> for Value {
    fn from(group: Group) -> Self {
        let mut about = map! {"group" => group.number, "range" => group.range, "extra" => group.extra};
        about.extend(group.free.into_iter().map(|(name, value)| (name.into(), value)));
        about.into()
    }
}

#[cfg(test)]
mod tests;
