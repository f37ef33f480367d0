//! Changes between snapshots: their files, their differences, and how to undo them.

use std::path::{Path, PathBuf};

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, function};
use brine_modules_files::file::difference;
use brine_value::{Map, Value, map};

use super::program::Snapper;
use super::{New, snapper};

/// Larger files count as binary: their difference is not computed.
const DIFF_LIMIT: u64 = 16 << 20;
/// The number of files that one call of `snapper undochange` gets, so that its command line does not become too long.
const UNDO_CHUNK: usize = 200;
const LISTING: &str = "Error encountered while listing changed files";

/// Call an execution function between two snapshots, `pre` and `post`, and return its result, or the message of its
/// failure. `snapper.undo_jid` and `snapper.diff_jid` find the snapshots by the job id.
///
/// The keyword arguments `config`, `description`, `cleanup_algorithm` and `userdata` are those of
/// `snapper.create_snapshot`, all others those of the function.
///
/// CLI Example:
///
///     salt '*' snapper.run file.append args='["/etc/motd", "some text"]'
#[function]
pub fn run(
    context: &Context,
    /// Name of the execution function.
    function: String,
    /// Arguments of the function.
    #[rest]
    args: Vec<Value>,
    /// Arguments of the function.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut keyword: Map = kwargs.into_iter().filter(|(key, _)| !key.to_string().starts_with("__")).collect();
    let mut take = |name: &str| keyword.shift_remove(name).filter(Value::is_truthy);
    let config = take("config").map_or_else(|| "root".to_owned(), |config| config.to_string());
    let description = take("description").map_or_else(|| format!("snapper.run[{function}]"), |text| text.to_string());
    let cleanup = take("cleanup_algorithm").map_or_else(|| "number".to_owned(), |cleanup| cleanup.to_string());
    let userdata = take("userdata").and_then(|userdata| userdata.as_map().cloned());
    if context.minion.functions.get(&function).is_none() {
        return Err(CallError::Execution(format!("function \"{function}\" does not exist")));
    }
    let create = |kind: &str, pre: Option<u32>| {
        let (description, cleanup) = (Some(description.clone()), cleanup.clone());
        New { kind: kind.to_owned(), pre, description, cleanup, userdata: userdata.clone() }.create(context, &config)
    };
    let pre = create("pre", None)?;
    let result = context.call(&function, Args { positional: args, keyword });
    // After a failure, too, so that partial changes can be undone.
    create("post", Some(pre))?;
    match result {
        Err(CallError::Execution(message)) => Ok(message.into()),
        other => other,
    }
}

/// Return the files that were changed between two snapshots, with the kinds of their changes.
///
/// CLI Example:
///
///     salt '*' snapper.status
///     salt '*' snapper.status num_pre=19 num_post=20
#[function]
pub fn status(
    context: &Context,
    /// Name of the configuration.
    #[default("root".into())]
    config: String,
    /// Number of the first snapshot; by default the last one of all.
    num_pre: Option<u32>,
    /// Number of the second one; by default 0, the current system.
    num_post: Option<u32>,
) -> CallResult {
    let snapper = snapper(context, &config);
    let (pre, post) = interval(&snapper, num_pre, num_post)?;
    Ok(snapper.status(pre, post, LISTING)?.into())
}

/// Return the paths of the files that were changed between two snapshots, which are those of `snapper.status`.
///
/// CLI Example:
///
///     salt '*' snapper.changed_files num_pre=19 num_post=20
#[function]
pub fn changed_files(
    context: &Context,
    /// Name of the configuration.
    #[default("root".into())]
    config: String,
    /// Number of the snapshot before.
    num_pre: Option<u32>,
    /// Number of the snapshot after; the current state by default.
    num_post: Option<u32>,
) -> CallResult {
    let snapper = snapper(context, &config);
    let (pre, post) = interval(&snapper, num_pre, num_post)?;
    Ok(snapper.status(pre, post, LISTING)?.into_keys().collect())
}

/// Restore files that were changed between two snapshots as they were in the first one, and return how many were
/// created, modified and deleted. Later changes of these files are lost.
///
/// CLI Example:
///
///     salt '*' snapper.undo num_pre=19 files='[/etc/motd]'
#[function]
pub fn undo(
    context: &Context,
    /// Name of the configuration.
    #[default("root".into())]
    config: String,
    /// List of paths; by default all changed files.
    files: Option<Vec<String>>,
    /// Number of the first snapshot; by default the last one of all.
    num_pre: Option<u32>,
    /// Number of the second one; by default 0, the current system.
    num_post: Option<u32>,
) -> CallResult {
    let snapper = snapper(context, &config);
    let (pre, post) = interval(&snapper, num_pre, num_post)?;
    let files = files.unwrap_or_default();
    let changed = snapper.status(pre, post, LISTING)?;
    let unknown: Vec<&str> = files.iter().map(String::as_str).filter(|file| !changed.contains_key(*file)).collect();
    if !unknown.is_empty() {
        let message = "Given file list contains files that are not present in the changed filelist";
        return Err(CallError::Execution(format!("{message}: {}", unknown.join(", "))));
    }
    if changed.is_empty() {
        return Ok(Value::map());
    }
    let mut counts: Vec<(String, u64)> = Vec::new();
    // No paths mean all.
    let chunks = if files.is_empty() { vec![&files[..]] } else { files.chunks(UNDO_CHUNK).collect() };
    for chunk in chunks {
        let interval = format!("{pre}..{post}");
        let words: Vec<&str> = ["undochange", &interval].into_iter().chain(chunk.iter().map(String::as_str)).collect();
        let output = snapper.run(&words, "Error while processing Snapper response")?;
        for (name, count) in parsed_counts(&output)? {
            match counts.iter_mut().find(|(key, _)| *key == name) {
                Some((_, sum)) => *sum += count,
                None => counts.push((name, count)),
            }
        }
    }
    Ok(counts.into_iter().map(|(name, count)| (name.into(), count.to_string().into())).collect::<Map>().into())
}

/// Undo the changes of a job that ran by `snapper.run`, as `snapper.undo`.
///
/// CLI Example:
///
///     salt '*' snapper.undo_jid jid=20160607130930720112
#[function]
pub fn undo_jid(
    context: &Context,
    /// Id of the job.
    jid: Value,
    /// Name of the configuration.
    #[default("root".into())]
    config: String,
) -> CallResult {
    let (pre, post) = of_job(&snapper(context, &config), &jid)?;
    undo(context, config, None, Some(pre), Some(post))
}

/// Return the differences of the files that were changed between two snapshots.
///
/// CLI Example:
///
///     salt '*' snapper.diff
///     salt '*' snapper.diff filename=/var/log/snapper.log num_pre=19 num_post=20
#[function]
pub fn diff(
    context: &Context,
    /// Name of the configuration.
    #[default("root".into())]
    config: String,
    /// Path of a single file.
    filename: Option<String>,
    /// Number of the first snapshot; by default the last one of all.
    num_pre: Option<u32>,
    /// Number of the second one; by default 0, the current system.
    num_post: Option<u32>,
) -> CallResult {
    let doing = "Error encountered while showing differences between snapshots";
    let snapper = snapper(context, &config);
    let (pre, post) = interval(&snapper, num_pre, num_post)?;
    let filename = filename.filter(|name| !name.is_empty());
    let changed = snapper.status(pre, post, LISTING)?;
    let files: Vec<String> = changed.into_keys().map(|path| path.to_string()).collect();
    let settings = snapper.settings(doing)?;
    let subvolume = settings.get("SUBVOLUME").map(ToString::to_string).unwrap_or_default();
    let before = Mounted::new(&snapper, pre, &subvolume, doing)?;
    let after = Mounted::new(&snapper, post, &subvolume, doing)?;
    let mut diffs = Map::new();
    for file in files.into_iter().filter(|file| filename.as_ref().is_none_or(|filename| filename == file)) {
        if !Path::new(&file).is_dir() {
            let inner = file.strip_prefix(&subvolume).unwrap_or(&file).trim_start_matches('/').to_owned();
            diffs.insert(file.into(), compared(context, &before.root.join(&inner), &after.root.join(&inner))?.into());
        }
    }
    Ok(diffs.into())
}

/// Return the differences that a job made that ran by `snapper.run`, as `snapper.diff`.
///
/// CLI Example:
///
///     salt '*' snapper.diff_jid jid=20160607130930720112
#[function]
pub fn diff_jid(
    context: &Context,
    /// Id of the job.
    jid: Value,
    /// Name of the configuration.
    #[default("root".into())]
    config: String,
) -> CallResult {
    let (pre, post) = of_job(&snapper(context, &config), &jid)?;
    diff(context, config, None, Some(pre), Some(post))
}

/// Returns the numbers of two snapshots, by default the last one and the current system.
fn interval(snapper: &Snapper<'_>, pre: Option<u32>, post: Option<u32>) -> Result<(u32, u32), CallError> {
    let post = post.unwrap_or_default();
    if let Some(pre) = pre {
        return Ok((pre, post));
    }
    let snapshots = snapper.list(LISTING)?;
    let ids = snapshots.iter().filter_map(|about| u32::try_from(about.get("id")?.as_i64()?).ok());
    Ok((ids.max().unwrap_or_default(), post))
}

/// Returns the snapshots before and after a job.
fn of_job(snapper: &Snapper<'_>, jid: &Value) -> Result<(u32, u32), CallError> {
    let jid = jid.to_string();
    let snapshots = snapper.list("Error encountered while listing snapshots")?;
    let number = |kind: &str| {
        let is_it = |about: &&Map| {
            let own = about.get("userdata").and_then(|userdata| userdata.get("salt_jid"));
            own.is_some_and(|own| own.to_string() == jid) && about.get("type").and_then(Value::as_str) == Some(kind)
        };
        u32::try_from(snapshots.iter().find(is_it)?.get("id")?.as_i64()?).ok()
    };
    let missing = || CallError::Execution(format!("Jid '{jid}' snapshots not found"));
    number("pre").zip(number("post")).ok_or_else(missing)
}

/// Parses the answer of `snapper undochange`: `create:0 modify:1 delete:0`.
fn parsed_counts(output: &str) -> Result<Vec<(String, u64)>, CallError> {
    if output.trim() == "nothing to do" {
        return Ok(Vec::new());
    }
    let count = |word: &str| {
        let (name, count) = word.split_once(':')?;
        Some((name.to_owned(), count.parse().ok()?))
    };
    let wrong = || CallError::Execution(format!("Error while processing Snapper response: {output}"));
    output.split_whitespace().map(|word| count(word).ok_or_else(wrong)).collect()
}

/// A snapshot that is mounted until it is dropped; number 0 is the current system.
struct Mounted<'s> {
    snapper: &'s Snapper<'s>,
    number: u32,
    /// The directory of its files.
    root: PathBuf,
}

impl<'s> Mounted<'s> {
    fn new(snapper: &'s Snapper<'s>, number: u32, subvolume: &str, doing: &str) -> Result<Self, CallError> {
        let mut root = PathBuf::from(subvolume);
        if number > 0 {
            snapper.run(&["mount", &number.to_string()], doing)?;
            root = root.join(".snapshots").join(number.to_string()).join("snapshot");
        }
        Ok(Mounted { snapper, number, root })
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        if self.number > 0
            && let Err(error) = self.snapper.run(&["umount", &self.number.to_string()], "unmounting a snapshot failed")
        {
            tracing::warn!(number = self.number, "{error}");
        }
    }
}

/// Compares two versions of a file.
fn compared(context: &Context, before: &Path, after: &Path) -> Result<Map, CallError> {
    let (old, new) = (Content::read(before), Content::read(after));
    let verb = match (&old, &new) {
        (Content::Missing, Content::Text(_) | Content::Binary) => "created",
        (Content::Text(_) | Content::Binary, Content::Missing) => "deleted",
        _ => "changed",
    };
    let is_there = !matches!((&old, &new), (Content::Missing, Content::Missing));
    if let (Some(have), Some(new_text), true) = (old.text(), new.text(), is_there) {
        let diff = difference(Some(have.as_bytes()), new_text.as_bytes(), true).swap_remove("diff").unwrap_or_default();
        let names = format!("--- {}\n+++ {}\n", before.display(), after.display());
        let diff = diff.to_string().replacen("--- \n+++ \n", &names, 1);
        return Ok(map! {"comment" => format!("text file {verb}"), "diff" => diff});
    }
    let mut about = map! {"comment" => format!("binary file {verb}")};
    for (content, path, name) in [(&old, before, "old_sha256_digest"), (&new, after, "new_sha256_digest")] {
        if !matches!(content, Content::Missing) {
            let args = Args::positional([path.to_path_buf().into(), "sha256".into()]);
            about.insert(name.into(), context.call("hashutil.digest_file", args)?);
        }
    }
    Ok(about)
}

/// The content of a file.
enum Content {
    /// There is no regular file.
    Missing,
    Text(String),
    Binary,
}

impl Content {
    fn read(path: &Path) -> Self {
        let Ok(status) = path.symlink_metadata() else { return Content::Missing };
        if !status.is_file() {
            return Content::Missing;
        }
        let text = if status.len() > DIFF_LIMIT { None } else { std::fs::read_to_string(path).ok() };
        text.filter(|text| !text.contains('\0')).map_or(Content::Binary, Content::Text)
    }

    /// Returns the text; that of a missing file is empty.
    fn text(&self) -> Option<&str> {
        match self {
            Content::Missing => Some(""),
            Content::Text(text) => Some(text),
            Content::Binary => None,
        }
    }
}
