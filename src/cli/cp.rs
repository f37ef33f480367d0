//! `salt-cp`: copies files of this host to minions, by the execution functions `cp.recv` and `cp.recv_chunked`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use brine_client::job::{Outcome, Run};
use brine_config::MasterConfig;
use brine_job::Times;
use brine_master::FIND_JOB;
use brine_target::TargetKind;
use brine_value::{Map, Value, list};
use brine_wire::PublishRequest;
use clap::{CommandFactory, Parser};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::client::{ClientError, MasterClient, user};
use super::common::{CommonOptions, OutputArguments, Shower};
use super::usage;
use crate::ui::{print_plain, print_plain_error};

const NAME: &str = "salt-cp";
const USAGE: &str = "salt-cp [options] '<target>' SOURCE... DEST";
/// Salt's exit status for a file that does not exist.
const NO_FILE: u8 = 42;
/// Salt's exit status when no minion matched or returned.
const NOBODY: u8 = 2;
/// The maximum size of files that are sent without `--chunked`, in bytes: they are one job.
const SMALL: u64 = 1 << 20;

/// Copy files of this host to minions.
#[derive(Parser, Debug)]
#[command(
    after_help = "Examples:\n  salt-cp '*' /etc/motd /etc/motd              a small text file\n  salt-cp -G os:Debian a.conf b.conf /etc/app.d  into a directory\n  salt-cp -C 'web*' ./site /var/www            -C: any size, binary files, directories"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
struct Arguments {
    /// Seconds to wait for returns before asking silent minions whether the job still runs
    #[arg(short, long, value_name = "SECONDS", value_parser = usage::integer)]
    timeout: Option<i64>,
    /// Send files of any size and content in pieces, and directories with all that is in them
    #[arg(short = 'C', long)]
    chunked: bool,
    /// Do not compress the pieces
    #[arg(short, long)]
    no_compression: bool,
    /// The target is a regular expression of ids
    #[arg(short = 'E', long)]
    pcre: bool,
    /// The target is a list of ids
    #[arg(short = 'L', long)]
    list: bool,
    /// The target is a grain: NAME:GLOB
    #[arg(short = 'G', long)]
    grain: bool,
    /// The target is a grain: NAME:REGEX
    #[arg(short = 'P', long)]
    grain_pcre: bool,
    /// The target is a node group of the configuration
    #[arg(short = 'N', long)]
    nodegroup: bool,
    /// The separator of the keys in a grain path, instead of a colon
    #[arg(long, value_name = "CHARACTER")]
    delimiter: Option<String>,
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    output: OutputArguments,
    #[arg(hide = true)]
    words: Vec<String>,
}

impl Arguments {
    fn kind(&self) -> Result<TargetKind, String> {
        let kinds = [
            (self.pcre, TargetKind::Pcre),
            (self.list, TargetKind::List),
            (self.grain, TargetKind::Grain),
            (self.grain_pcre, TargetKind::GrainPcre),
            (self.nodegroup, TargetKind::Nodegroup),
        ];
        let mut asked = kinds.into_iter().filter(|(is_asked, _)| *is_asked).map(|(_, kind)| kind);
        let kind = asked.next().unwrap_or(TargetKind::Glob);
        match asked.next() {
            Some(_) => Err("The options for the type of the target are mutually exclusive.".to_owned()),
            None => Ok(kind),
        }
    }
}

/// Runs the tool.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments: Arguments = match usage::parse(NAME, USAGE, Arguments::command(), words) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    let [target, sources @ .., dest] = &arguments.words[..] else {
        print_plain(usage::help(NAME, USAGE, Arguments::command()));
        return Ok(usage::error(NAME, USAGE, "a target, a file and a destination are needed"));
    };
    if sources.is_empty() {
        return Ok(usage::error(NAME, USAGE, "a file and a destination are needed"));
    }
    let kind = match arguments.kind() {
        Ok(kind) => kind,
        Err(message) => return Ok(usage::error(NAME, USAGE, &message)),
    };
    let config = arguments.common.start_with_master(&Map::new())?;
    let shower = arguments.output.shower(&config.opts)?;
    let tgt = match kind {
        TargetKind::List => target.split([',', ' ']).filter(|id| !id.is_empty()).collect(),
        _ => Value::from(target.as_str()),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let timeout = arguments.timeout.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(config.timeout);
        let [timeout, gather] = [timeout, config.gather_job_timeout].map(Duration::from_secs);
        let times = Times { timeout, gather, find_job: FIND_JOB };
        let client = MasterClient::new(&config)?;
        let delimiter = arguments.delimiter.clone();
        let mut copy = Copy { client, times, tgt, tgt_type: kind.name(), delimiter, shower, results: Map::new() };
        let done = if arguments.chunked {
            copy.in_pieces(&config, sources, dest, !arguments.no_compression).await
        } else {
            copy.at_once(sources, dest).await
        };
        done.and_then(|()| copy.show())
    });
    result.or_else(|error| match error.downcast::<Mistake>()? {
        Mistake::NoFile(message) => {
            print_plain_error(message);
            Ok(ExitCode::from(NO_FILE))
        }
        Mistake::NotSmall(message) => {
            print_plain_error(message);
            Ok(ExitCode::FAILURE)
        }
    })
}

/// A source that cannot be sent.
#[derive(Debug, thiserror::Error)]
enum Mistake {
    /// It does not exist.
    #[error("{0}")]
    NoFile(String),
    /// It needs `--chunked`.
    #[error("{0}")]
    NotSmall(String),
}

/// One copy to the minions of a target.
struct Copy {
    client: MasterClient,
    times: Times,
    tgt: Value,
    tgt_type: &'static str,
    delimiter: Option<String>,
    shower: Shower,
    /// The results by minion.
    results: Map,
}

impl Copy {
    /// Sends small text files in one job.
    async fn at_once(&mut self, sources: &[String], dest: &str) -> anyhow::Result<()> {
        let mut files = Map::new();
        for source in sources {
            files.insert(source.as_str().into(), small(source)?.into());
        }
        let returned = self.call("cp.recv", list![files, dest]).await?;
        self.results.extend(returned);
        Ok(())
    }

    /// Sends files and directories in pieces, a job each. A minion that has refused a piece of a file gets no more of it.
    async fn in_pieces(
        &mut self,
        config: &MasterConfig,
        sources: &[String],
        dest: &str,
        compressed: bool,
    ) -> anyhow::Result<()> {
        let found = Found::below(sources)?;
        let into_directory = found.files.len() > 1 || !found.empty.is_empty() || dest.ends_with('/');
        let remote = |one: &Entry| match (&one.below, into_directory) {
            (None, false) => dest.to_owned(),
            (None, true) => format!("{}/{}", dest.trim_end_matches('/'), one.name),
            (Some(below), _) => format!("{}/{}/{below}", dest.trim_end_matches('/'), one.name),
        };
        let target = (self.tgt.clone(), self.tgt_type);
        for entry in &found.files {
            let path = remote(entry);
            self.file(&entry.path, &path, config.salt_cp_chunk_size.max(1), compressed).await?;
            (self.tgt, self.tgt_type) = target.clone();
        }
        for entry in &found.empty {
            let path = remote(entry);
            let returned = self.call("cp.recv_chunked", list![path.as_str(), Value::Nil]).await?;
            self.record(&path, returned);
        }
        Ok(())
    }

    /// Sends one file in pieces.
    async fn file(&mut self, source: &Path, remote: &str, size: usize, compressed: bool) -> anyhow::Result<()> {
        let unreadable = |error| Mistake::NoFile(format!("{}: {error}", source.display()));
        let file = File::open(source).map_err(unreadable)?;
        let status = file.metadata().map_err(unreadable)?;
        let (mut sent, mut append) = (0_u64, false);
        loop {
            let mut piece = Vec::new();
            (&file).take(size as u64).read_to_end(&mut piece).map_err(unreadable)?;
            if piece.is_empty() && append {
                break;
            }
            sent += piece.len() as u64;
            let is_last = piece.len() < size;
            let packed = if compressed { compress(&piece)? } else { piece };
            let mode = status.permissions().mode() & 0o7777;
            let arguments = list![remote, BASE64_STANDARD.encode(packed), append, compressed, mode];
            let returned = self.call("cp.recv_chunked", arguments).await?;
            let complete = returned.iter().filter(|(_, value)| **value == Value::Bool(true));
            let complete: Vec<Value> = complete.map(|(id, _)| id.clone()).collect();
            self.record(remote, returned);
            if complete.is_empty() {
                break;
            }
            // A piece behind a missing one would make a wrong file.
            (self.tgt, self.tgt_type) = (Value::List(complete), TargetKind::List.name());
            let percent = (sent * 100).checked_div(status.len()).unwrap_or(100).min(100);
            self.shower.progress(&format!("{}: {percent}%", source.display()))?;
            append = true;
            if is_last {
                break;
            }
        }
        self.shower.clear_progress()
    }

    fn record(&mut self, remote: &str, returned: Map) {
        for (id, value) in returned {
            let of_minion = self.results.entry(id).or_insert_with(Value::map);
            if let Some(of_minion) = of_minion.as_map_mut() {
                of_minion.insert(remote.into(), value);
            }
        }
    }

    /// Calls a function on the minions of the target and returns their results.
    async fn call(&mut self, fun: &str, arg: Value) -> anyhow::Result<Map> {
        let mut link = self.client.link(&[]).await?;
        let mut kwargs = Map::new();
        kwargs.extend(self.delimiter.as_ref().map(|delimiter| ("delimiter".into(), delimiter.as_str().into())));
        let arg = arg.as_list().unwrap_or_default().to_vec();
        let request = PublishRequest {
            tgt: self.tgt.clone(),
            tgt_type: self.tgt_type.to_owned(),
            fun: fun.into(),
            arg,
            ret: String::new(),
            jid: None,
            key: None,
            proof: None,
            user: user(),
            kwargs,
        };
        let published = match self.client.publish(request).await {
            Ok(published) => published,
            Err(ClientError::Refused(_)) => return Ok(Map::new()),
            Err(error) => return Err(error.into()),
        };
        let Some(jid) = &published.jid else { return Ok(Map::new()) };
        let mut run = Run::of_published(&mut link, jid, &user(), &published, self.times);
        let mut returned = Map::new();
        let mut silent = BTreeSet::new();
        while let Some(outcome) = run.next().await? {
            match outcome {
                Outcome::Returned(one) => _ = returned.insert(one.id().to_string().into(), one.value().clone()),
                Outcome::Missing(id) => _ = silent.insert(id),
                Outcome::Interrupted => anyhow::bail!("interrupted: the files may be incomplete"),
            }
        }
        silent.extend(run.unknown(&published.missing));
        for id in silent {
            print_plain_error(format_args!("{id} did not return"));
        }
        Ok(returned)
    }

    /// Shows the results, and returns the exit status.
    fn show(mut self) -> anyhow::Result<ExitCode> {
        if self.results.is_empty() {
            print_plain("No minions matched the target. No command was sent, no jid was assigned.");
            return Ok(ExitCode::from(NOBODY));
        }
        let is_complete = |value: &Value| match value {
            Value::Map(files) => files.values().all(|value| *value == Value::Bool(true)),
            _ => false,
        };
        let status = if self.results.values().all(is_complete) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        self.shower.show(&self.results.into(), "nested")?;
        Ok(status)
    }
}

/// Returns the content of a small text file.
fn small(source: &str) -> Result<String, Mistake> {
    let not_small = |reason: &str| Mistake::NotSmall(format!("{source} {reason}: use the option --chunked"));
    let unavailable = |_| Mistake::NoFile(format!("The referenced file, {source} is not available."));
    let status = fs::metadata(source).map_err(unavailable)?;
    if status.is_dir() {
        return Err(not_small("is a directory"));
    }
    if status.len() > SMALL {
        return Err(not_small("is larger than 1 MiB"));
    }
    let bytes = fs::read(source).map_err(unavailable)?;
    String::from_utf8(bytes).map_err(|_| not_small("is not text"))
}

fn compress(piece: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(piece)?;
    encoder.finish()
}

/// A file or an empty directory.
#[derive(Debug, PartialEq)]
struct Entry {
    path: PathBuf,
    /// The last component of the source that it belongs to.
    name: String,
    /// Its path below the source, unless it is the source.
    below: Option<String>,
}

/// The files and empty directories of the sources.
#[derive(Debug, Default)]
struct Found {
    files: Vec<Entry>,
    empty: Vec<Entry>,
}

impl Found {
    fn below(sources: &[String]) -> Result<Self, Mistake> {
        let mut found = Found::default();
        for source in sources {
            let path = Path::new(source);
            // `.` and `..` have no name of their own.
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let name = name.or_else(|| Some(fs::canonicalize(path).ok()?.file_name()?.to_string_lossy().into_owned()));
            found.add(path, path, &name.unwrap_or_default())?;
        }
        Ok(found)
    }

    fn add(&mut self, path: &Path, source: &Path, name: &str) -> Result<(), Mistake> {
        let missing = |_| Mistake::NoFile(format!("{} does not exist", path.display()));
        let below = path.strip_prefix(source).ok().filter(|below| !below.as_os_str().is_empty());
        let below = below.map(|below| below.to_string_lossy().into_owned());
        let entry = Entry { path: path.to_owned(), name: name.to_owned(), below };
        if !fs::metadata(path).map_err(missing)?.is_dir() {
            self.files.push(entry);
            return Ok(());
        }
        let children = fs::read_dir(path).map_err(missing)?;
        let mut children: Vec<PathBuf> = children.filter_map(|child| Some(child.ok()?.path())).collect();
        children.sort();
        if children.is_empty() {
            self.empty.push(entry);
        }
        // A link to a directory above would have no end.
        let is_loop = |child: &PathBuf| child.is_symlink() && child.is_dir();
        children.iter().filter(|child| !is_loop(child)).try_for_each(|child| self.add(child, source, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_walked_without_links_to_directories() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("site");
        fs::create_dir_all(root.join("deep/empty")).unwrap();
        fs::write(root.join("a"), "").unwrap();
        fs::write(root.join("deep/b"), "").unwrap();
        std::os::unix::fs::symlink(&root, root.join("deep/loop")).unwrap();
        let found = Found::below(&[root.display().to_string()]).unwrap();
        let names = |entries: &[Entry]| -> Vec<_> {
            entries.iter().map(|one| (one.name.clone(), one.below.clone().unwrap_or_default())).collect()
        };
        let pair = |below: &str| ("site".to_owned(), below.to_owned());
        assert_eq!(names(&found.files), [pair("a"), pair("deep/b")]);
        assert_eq!(names(&found.empty), [pair("deep/empty")]);
        let single = root.join("a").display().to_string();
        assert_eq!(Found::below(&[single]).unwrap().files[0].below, None);
        assert!(Found::below(&["/no/such/file".to_owned()]).unwrap_err().to_string().contains("does not exist"));
    }

    #[test]
    fn only_small_text_files_are_sent_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &[u8]| {
            let path = directory.path().join(name);
            fs::write(&path, content).unwrap();
            path.display().to_string()
        };
        assert_eq!(small(&write("text", "häß".as_bytes())).unwrap(), "häß");
        for (source, expected) in [
            (write("binary", b"\xff\xfe"), "is not text: use the option --chunked"),
            (write("large", &vec![b'a'; SMALL as usize + 1]), "is larger than 1 MiB"),
            (directory.path().display().to_string(), "is a directory"),
            ("/no/such/file".to_owned(), "is not available"),
        ] {
            assert!(small(&source).unwrap_err().to_string().contains(expected), "{source}");
        }
    }
}
