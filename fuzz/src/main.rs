//! Runs the fuzz targets on the stored corpus and mutations of it.
//!
//! Each target runs in a process of its own with bounded memory. The process stores each input in a file before it runs
//! it: after a panic, a hang or exhausted memory, the file contains the failing input.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use brine_fuzz::mutate::{Random, mutate};
use brine_fuzz::{TARGETS, Target, silence_the_yaml_parser, target};

const USAGE: &str = "usage: brine-fuzz [--seconds N] [--seed N] [TARGET ...]\n       brine-fuzz --input FILE TARGET";
/// The timeout of one input.
const INPUT_TIMEOUT: Duration = Duration::from_secs(10);
/// The address space of a target's process, in KiB.
const MEMORY_LIMIT: &str = "4000000";
/// The maximum number of inputs that are mutated further.
const MAX_POOL: usize = 4096;

/// The options of the command line.
struct Options {
    seconds: u64,
    seed: u64,
    input: Option<PathBuf>,
    /// The file of the current input; set in the process of a target.
    current: Option<PathBuf>,
    targets: Vec<String>,
}

impl Options {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        // A new seed each time: failing inputs are stored in files.
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let mut options = Options { seconds: 20, seed: now.as_secs(), input: None, current: None, targets: Vec::new() };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            let number = |text: String| text.parse().map_err(|_| format!("'{text}' is invalid: expected a number"));
            match word.as_str() {
                "--seconds" => options.seconds = number(value()?)?,
                "--seed" => options.seed = number(value()?)?,
                "--input" => options.input = Some(value()?.into()),
                "--current" => options.current = Some(value()?.into()),
                name if target(name).is_some() => options.targets.push(word),
                other => return Err(format!("unknown target '{other}': expected one of {}", names().join(", "))),
            }
        }
        if options.targets.is_empty() {
            options.targets = names();
        }
        Ok(options)
    }
}

fn names() -> Vec<String> {
    TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn main() -> ExitCode {
    let options = match Options::read(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let result = match (&options.input, &options.current, &options.targets[..]) {
        (Some(input), _, [name]) => reproduce(name, input),
        (_, Some(current), [name]) => run(name, &options, current),
        _ => run_all(&options),
    };
    result.unwrap_or_else(|error| {
        eprintln!("brine-fuzz: {error}");
        ExitCode::FAILURE
    })
}

/// Runs one input.
fn reproduce(name: &str, input: &Path) -> std::io::Result<ExitCode> {
    silence_the_yaml_parser();
    if let Some(target) = target(name) {
        target(&fs::read(input)?);
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs each target in a process of its own, one per processor at a time.
fn run_all(options: &Options) -> std::io::Result<ExitCode> {
    let scratch = std::env::temp_dir().join(format!("brine-fuzz-{}", std::process::id()));
    fs::create_dir(&scratch)?;
    let at_a_time = std::thread::available_parallelism().map_or(1, usize::from);
    let mut waiting = options.targets.iter();
    let mut running: Vec<(&String, PathBuf, Child)> = Vec::new();
    let mut failed = false;
    loop {
        while running.len() < at_a_time
            && let Some(name) = waiting.next()
        {
            let current = scratch.join(name);
            let child = start(name, &current, options)?;
            running.push((name, current, child));
        }
        if running.is_empty() {
            break;
        }
        let mut still = Vec::new();
        for (name, current, mut child) in running {
            match child.try_wait()? {
                None => still.push((name, current, child)),
                Some(status) if status.success() => {}
                Some(status) => {
                    failed = true;
                    let artifacts = directory("artifacts").join(name);
                    fs::create_dir_all(&artifacts)?;
                    let artifact = artifacts.join(format!("{}-{}", options.seed, child.id()));
                    #[allow(clippy::disallowed_methods, reason = "a developer's own directory")]
                    fs::copy(&current, &artifact)?;
                    eprintln!("{name}: {status} on {}: reproduce it with", artifact.display());
                    eprintln!("  cargo run -p brine-fuzz -- --input {} {name}", artifact.display());
                }
            }
        }
        running = still;
        std::thread::sleep(Duration::from_millis(50));
    }
    fs::remove_dir_all(&scratch)?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn start(name: &str, current: &Path, options: &Options) -> std::io::Result<Child> {
    Command::new("sh")
        .args(["-c", "ulimit -v \"$0\"; exec \"$@\"", MEMORY_LIMIT])
        .arg(std::env::current_exe()?)
        .args(["--seconds", &options.seconds.to_string(), "--seed", &options.seed.to_string(), name, "--current"])
        .arg(current)
        // The run includes the sockets of the target.
        .env("TMPDIR", current.parent().unwrap_or(current))
        .spawn()
}

/// Runs one target in this process.
fn run(name: &str, options: &Options, current: &Path) -> std::io::Result<ExitCode> {
    let Some(target) = target(name) else { return Ok(ExitCode::FAILURE) };
    silence_the_yaml_parser();
    let mut pool = Vec::new();
    let mut files: Vec<PathBuf> =
        fs::read_dir(directory("corpus").join(name))?.flatten().map(|file| file.path()).collect();
    files.sort();
    for file in files {
        pool.push(fs::read(file)?);
    }
    #[allow(clippy::disallowed_methods, reason = "a developer's own directory")]
    let attempts = Attempts::start(target, File::create(current)?);
    let (mut random, mut seen) = (Random::new(options.seed), HashSet::new());
    for input in &pool {
        seen.insert(attempts.attempt(input)?);
    }
    let (pool_size, end) = (pool.len(), Instant::now() + Duration::from_secs(options.seconds));
    while Instant::now() < end {
        let other = random.below(pool.len());
        let at = random.below(pool.len());
        let mut input = pool.get(at).cloned().unwrap_or_default();
        mutate(&mut input, pool.get(other).map_or(&[][..], Vec::as_slice), &mut random);
        if seen.insert(attempts.attempt(&input)?) && pool.len() < MAX_POOL {
            pool.push(input);
        }
    }
    let count = attempts.count.load(Ordering::Relaxed);
    println!("{name:>9}: {count} inputs, {pool_size} kept, {} outcomes", seen.len());
    Ok(ExitCode::SUCCESS)
}

/// Runs inputs, each stored in the file before, and exits if one exceeds the timeout.
struct Attempts {
    target: Target,
    current: File,
    count: Arc<AtomicU64>,
}

impl Attempts {
    fn start(target: Target, current: File) -> Self {
        let count = Arc::new(AtomicU64::new(0));
        let watched = Arc::clone(&count);
        std::thread::spawn(move || {
            let mut last = (0, Instant::now());
            loop {
                std::thread::sleep(Duration::from_millis(200));
                let now = watched.load(Ordering::Relaxed);
                if now != last.0 {
                    last = (now, Instant::now());
                } else if last.1.elapsed() > INPUT_TIMEOUT {
                    eprintln!("an input exceeds the timeout of {INPUT_TIMEOUT:?}");
                    std::process::abort();
                }
            }
        });
        Attempts { target, current, count }
    }

    fn attempt(&self, input: &[u8]) -> std::io::Result<u64> {
        self.current.set_len(input.len() as u64)?;
        self.current.write_all_at(input, 0)?;
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok((self.target)(input))
    }
}
