//! `salt-cp`: copies files of this host to minions, by the execution functions `cp.recv` and `cp.recv_chunked`.
//! `sources` finds the files, `resume` determines the parts that minions already have.

mod resume;
mod sources;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use brine_auth::FIND_JOB;
use brine_client::job::{Outcome, Run};
use brine_job::Times;
use brine_target::TargetKind;
use brine_value::{Map, Value, list};
use brine_wire::PublishRequest;
use clap::{CommandFactory, Parser};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::client::{ClientError, MasterClient, user};
use super::common::{CommonOptions, OutputArguments, ResultPrinter};
use super::runtime;
use super::salt::SimpleTargets;
use super::usage;
use crate::ui::{bar, print_plain, print_plain_error};
use resume::Part;
use sources::{Entry, SourceFiles, small};

const NAME: &str = "salt-cp";
pub const USAGE: &str = "salt-cp [options] '<target>' SOURCE... DEST";
/// Salt's exit status for a file that does not exist.
const NO_FILE: u8 = 42;
/// Salt's exit status when no minion matched or returned.
const NO_MINION: u8 = 2;

/// Copy files of this host to minions.
#[derive(Parser, Debug)]
#[command(
    after_help = "Examples:\n  salt-cp '*' /etc/motd /etc/motd              a small text file\n  salt-cp -G os:Debian a.conf b.conf /etc/app.d  into a directory\n  salt-cp -C 'web*' ./site /var/www            -C: any size, binary files, directories\n  salt-cp -C --resume 'web*' ./disk.img /srv/    go on after an interruption"
)]
struct Arguments {
    /// Seconds to wait for returns before asking silent minions whether the job still runs
    #[arg(short, long, value_name = "SECONDS", value_parser = usage::integer)]
    timeout: Option<i64>,
    /// Send files of any size and content in chunks, and directories with all that is in them
    #[arg(short = 'C', long)]
    chunked: bool,
    /// With --chunked: send only what minions lack of files that an earlier copy has left incomplete
    #[arg(long)]
    resume: bool,
    /// Do not compress the chunks
    #[arg(short, long)]
    no_compression: bool,
    #[command(flatten)]
    target: SimpleTargets,
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
        let mut asked = self.target.kinds().into_iter().filter(|(is_asked, _)| *is_asked).map(|(_, kind)| kind);
        let kind = asked.next().unwrap_or(TargetKind::Glob);
        match asked.next() {
            Some(_) => Err("The options for the type of the target are mutually exclusive.".to_owned()),
            None => Ok(kind),
        }
    }
}

/// Returns the options.
pub fn options() -> clap::Command {
    Arguments::command()
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
    if arguments.resume && !arguments.chunked {
        return Ok(usage::error(NAME, USAGE, "--resume needs --chunked"));
    }
    if sources.is_empty() {
        return Ok(usage::error(NAME, USAGE, "a file and a destination are needed"));
    }
    let kind = match arguments.kind() {
        Ok(kind) => kind,
        Err(message) => return Ok(usage::error(NAME, USAGE, &message)),
    };
    let config = arguments.common.start_with_master(&Map::new())?;
    let printer = arguments.output.printer(&config.opts)?;
    let tgt = match kind {
        TargetKind::List => target.split([',', ' ']).filter(|id| !id.is_empty()).collect(),
        _ => Value::from(target.as_str()),
    };
    let runtime = runtime::current_thread()?;
    let result = runtime::block_on(&runtime, async {
        let timeout = arguments.timeout.and_then(|seconds| u64::try_from(seconds).ok());
        let timeout = timeout.map_or_else(|| config.timeout.seconds(), Duration::from_secs);
        let gather = config.gather_job_timeout.seconds();
        let times = Times { timeout, gather, find_job: FIND_JOB };
        let client = MasterClient::new(&config)?;
        let delimiter = arguments.delimiter.clone();
        let mut copy = FileCopy { client, times, tgt, tgt_type: kind.name(), delimiter, printer, results: Map::new() };
        let result = if arguments.chunked {
            let how = ChunkOptions {
                // The master publishes no larger job, and a chunk grows by a third as text.
                size: config.salt_cp_chunk_size.clamp(1, (config.max_event_size / 2).max(1)),
                compressed: !arguments.no_compression,
                resume: arguments.resume,
            };
            copy.send_in_chunks(&how, sources, dest).await
        } else {
            copy.send_in_one_job(sources, dest).await
        };
        let status = result.and_then(|()| copy.show())?;
        // The exit status of Salt's tool is 0, whatever the minions report.
        anyhow::Ok(if config.salt_exit_status { ExitCode::SUCCESS } else { status })
    });
    result.or_else(|error| match error.downcast::<SourceError>()? {
        SourceError::NoFile(message) => {
            print_plain_error(message);
            Ok(ExitCode::from(NO_FILE))
        }
        SourceError::NotSmall(message) => {
            print_plain_error(message);
            Ok(ExitCode::FAILURE)
        }
    })
}

/// A source that cannot be sent.
#[derive(Debug, thiserror::Error)]
enum SourceError {
    /// It does not exist.
    #[error("{0}")]
    NoFile(String),
    /// It needs `--chunked`.
    #[error("{0}")]
    NotSmall(String),
}

/// The settings for sending files in chunks.
struct ChunkOptions {
    /// The size of a chunk in bytes.
    size: usize,
    compressed: bool,
    /// Whether only the parts that minions lack are sent.
    resume: bool,
}

/// One copy to the minions of a target.
struct FileCopy {
    client: MasterClient,
    times: Times,
    tgt: Value,
    tgt_type: &'static str,
    delimiter: Option<String>,
    printer: ResultPrinter,
    /// The results by minion.
    results: Map,
}

impl FileCopy {
    /// Sends small text files in one job.
    async fn send_in_one_job(&mut self, sources: &[String], dest: &str) -> anyhow::Result<()> {
        let mut files = Map::new();
        for source in sources {
            files.insert(source.as_str().into(), small(source)?.into());
        }
        let returned = self.call("cp.recv", list![files, dest]).await?;
        self.results.extend(returned);
        Ok(())
    }

    /// Sends files and directories in chunks, a job each. A minion that has refused a chunk of a file receives no
    /// further chunks of it.
    async fn send_in_chunks(&mut self, how: &ChunkOptions, sources: &[String], dest: &str) -> anyhow::Result<()> {
        let source_files = SourceFiles::below(sources)?;
        let into_directory = source_files.files.len() > 1 || !source_files.empty.is_empty() || dest.ends_with('/');
        let remote = |one: &Entry| match (&one.below, into_directory) {
            (None, false) => dest.to_owned(),
            (None, true) => format!("{}/{}", dest.trim_end_matches('/'), one.name),
            (Some(below), _) => format!("{}/{}/{below}", dest.trim_end_matches('/'), one.name),
        };
        let target = (self.tgt.clone(), self.tgt_type);
        for entry in &source_files.files {
            let path = remote(entry);
            if how.resume {
                for part in self.parts(&entry.path, &path).await? {
                    self.file(&entry.path, &path, how, part).await?;
                }
            } else {
                self.file(&entry.path, &path, how, Part::whole(&target)).await?;
            }
            (self.tgt, self.tgt_type) = target.clone();
        }
        for entry in &source_files.empty {
            let path = remote(entry);
            let returned = self.call("cp.recv_chunked", list![path.as_str(), Value::Nil]).await?;
            self.record(&path, returned);
        }
        Ok(())
    }

    /// Sends a part of a file, up to its end, in chunks.
    async fn file(&mut self, source: &Path, remote: &str, how: &ChunkOptions, part: Part) -> anyhow::Result<()> {
        let unreadable = |error| SourceError::NoFile(format!("{}: {error}", source.display()));
        let mut file = File::open(source).map_err(unreadable)?;
        let status = file.metadata().map_err(unreadable)?;
        file.seek(SeekFrom::Start(part.start)).map_err(unreadable)?;
        (self.tgt, self.tgt_type) = (part.tgt, part.tgt_type);
        let (mut sent, mut append) = (part.start, part.start > 0);
        loop {
            let mut chunk = Vec::new();
            (&file).take(how.size as u64).read_to_end(&mut chunk).map_err(unreadable)?;
            if chunk.is_empty() && append {
                break;
            }
            sent += chunk.len() as u64;
            let is_last = chunk.len() < how.size;
            let packed = if how.compressed { compress(&chunk)? } else { chunk };
            let mode = status.permissions().mode() & 0o7777;
            let arguments = list![remote, BASE64_STANDARD.encode(packed), append, how.compressed, mode];
            let returned = self.call("cp.recv_chunked", arguments).await?;
            let complete = returned.iter().filter(|(_, value)| **value == Value::Bool(true));
            let complete: Vec<Value> = complete.map(|(id, _)| id.clone()).collect();
            self.record(remote, returned);
            if complete.is_empty() {
                break;
            }
            // A chunk behind a missing one would corrupt the file.
            (self.tgt, self.tgt_type) = (Value::List(complete), TargetKind::List.name());
            self.printer.progress(&format!("{} {}", bar(sent, status.len()), source.display()))?;
            append = true;
            if is_last {
                break;
            }
        }
        self.printer.clear_progress()
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
            return Ok(ExitCode::from(NO_MINION));
        }
        let is_complete = |value: &Value| match value {
            Value::Map(files) => files.values().all(|value| *value == Value::Bool(true)),
            _ => false,
        };
        let status = if self.results.values().all(is_complete) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        self.printer.show(&self.results.into(), "nested")?;
        Ok(status)
    }
}

fn compress(chunk: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(chunk)?;
    encoder.finish()
}
