//! Reactor SLS files: found, compiled once, and read again when they change.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_function::{Args, CallError};
use brine_jinja::{Context, Host, SourceLines};
use brine_sls::render::{RenderError, Sls};
use brine_text::glob::{is_pattern, paths};
use brine_value::Value;
use brine_yaml::Located;
use brine_yaml::untrusted::Words;
use parking_lot::Mutex;

use crate::untrusted::VARIABLES;

/// How long the list of files that a glob of paths names is good for.
const LISTED_FOR: Duration = Duration::from_secs(1);

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SlsError {
    #[error("{path}: {source}")]
    Read { path: String, source: std::io::Error },
    #[error("{0}: the master's file server has no such file")]
    NotServed(String),
    #[error("{path}: {reason}")]
    Served { path: String, reason: String },
    #[error("{0}: no file has such a name")]
    NoneNamed(String),
    #[error("{path}:{line}: {message}", line = .error.line().unwrap_or(1), message = .error.message())]
    Render { path: String, error: Box<RenderError> },
}

/// One file, ready to be rendered.
pub(crate) struct Source {
    /// As errors and events call it: its path, or `salt://` path.
    pub path: Arc<str>,
    sls: Sls,
    strict: bool,
    pub saltenv: String,
    /// Templates that it imports come from its own folder first.
    pub host: Arc<dyn Host>,
    /// `tplfile` in the template: the file's bare name.
    pub tplfile: String,
}

impl Source {
    /// The text that the file renders to, and what stands for text from the event in it.
    pub fn render(&self, context: &Context) -> Result<Rendered, SlsError> {
        let rendered = if self.strict {
            self.sls.render_guarded_mapped(context, &self.host)
        } else {
            self.sls.render_mapped(context, &self.host).map(|(text, lines)| (text, Words::new(), lines))
        };
        let (text, words, lines) = rendered.map_err(|error| self.failed(error))?;
        Ok(Rendered { text, words, lines })
    }

    /// The data in what the file has rendered to, with the words in it.
    pub fn parse(&self, rendered: &Rendered) -> Result<Located, SlsError> {
        let Rendered { text, words, lines } = rendered;
        let parsed = self.sls.parse_guarded(text, words);
        parsed.map_err(|error| self.failed(error.in_template(text, lines).revealed(words)))
    }

    /// What the file renders to whatever the event is, if it has no tags.
    pub fn static_text(&self) -> Option<Rendered> {
        let text = self.sls.static_text()?.to_owned();
        Some(Rendered { text, words: Words::new(), lines: SourceLines::default() })
    }

    fn failed(&self, error: RenderError) -> SlsError {
        let path = match &error {
            // It may be in a file that this one reads.
            RenderError::Untrusted(error) => error.template.to_string(),
            _ => self.path.to_string(),
        };
        SlsError::Render { path, error: Box::new(error) }
    }
}

/// The text that a file renders to.
pub(crate) struct Rendered {
    /// With words in place of what came from the event.
    pub text: String,
    pub words: Words,
    lines: SourceLines,
}

impl Rendered {
    /// The line of the file that a line of the text comes from, where that is known.
    pub fn template_line(&self, line: usize) -> usize {
        self.lines.line(&self.text, line).unwrap_or(line)
    }
}

/// What tells one state of a file from another.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stamp {
    File { modified: (i64, i64), size: u64, inode: u64 },
    Text(String),
}

pub(crate) struct SlsCache {
    host: Arc<dyn Host>,
    renderer: String,
    /// Whether text from events may not change the structure of what is rendered.
    strict: bool,
    sources: Mutex<HashMap<String, (Stamp, Arc<Source>)>>,
    listed: Mutex<HashMap<String, Listed>>,
}

/// When a glob of paths was looked at, and what it named.
type Listed = (Instant, Arc<[String]>);

impl SlsCache {
    pub fn new(host: Arc<dyn Host>, renderer: String, strict: bool) -> Self {
        SlsCache { host, renderer, strict, sources: Mutex::default(), listed: Mutex::default() }
    }

    /// The files that an entry names: one, or for a glob of paths all that there are now, sorted.
    pub fn named(&self, file: &str) -> Result<Arc<[String]>, SlsError> {
        if file.starts_with("salt://") || !is_pattern(file) || Path::new(file).exists() {
            return Ok(Arc::new([file.to_owned()]));
        }
        if let Some((at, listed)) = self.listed.lock().get(file)
            && at.elapsed() < LISTED_FOR
        {
            return Ok(Arc::clone(listed));
        }
        let listed: Arc<[String]> =
            paths(Path::new(""), file).into_iter().map(|path| path.display().to_string()).collect();
        if listed.is_empty() {
            return Err(SlsError::NoneNamed(file.to_owned()));
        }
        self.listed.lock().insert(file.to_owned(), (Instant::now(), Arc::clone(&listed)));
        Ok(listed)
    }

    /// The compiled file as it is now. A look at the file's status is cheap beside rendering it.
    pub fn get(&self, path: &str) -> Result<Arc<Source>, SlsError> {
        match path.strip_prefix("salt://") {
            Some(rest) => self.served(path, rest),
            None => self.on_disk(path),
        }
    }

    fn on_disk(&self, path: &str) -> Result<Arc<Source>, SlsError> {
        let failed = |source| SlsError::Read { path: path.to_owned(), source };
        let status = std::fs::metadata(path).map_err(failed)?;
        let modified = (status.mtime(), status.mtime_nsec());
        let stamp = Stamp::File { modified, size: status.size(), inode: status.ino() };
        if let Some(known) = self.known(path, &stamp) {
            return Ok(known);
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let folder = Path::new(path).parent().map(Path::to_owned).unwrap_or_default();
        self.compile(path, &text, "base", Some(folder), stamp)
    }

    fn served(&self, path: &str, rest: &str) -> Result<Arc<Source>, SlsError> {
        let (below, saltenv) = match rest.split_once("?saltenv=") {
            Some((below, saltenv)) => (below, saltenv),
            None => (rest, "base"),
        };
        let found = self.host.template(below, saltenv);
        let text = found.map_err(|reason| SlsError::Served { path: path.to_owned(), reason })?;
        let text = text.ok_or_else(|| SlsError::NotServed(path.to_owned()))?;
        let stamp = Stamp::Text(text.clone());
        if let Some(known) = self.known(path, &stamp) {
            return Ok(known);
        }
        self.compile(path, &text, saltenv, None, stamp)
    }

    fn known(&self, path: &str, stamp: &Stamp) -> Option<Arc<Source>> {
        let sources = self.sources.lock();
        sources.get(path).filter(|(known, _)| known == stamp).map(|(_, source)| Arc::clone(source))
    }

    fn compile(
        &self,
        path: &str,
        text: &str,
        saltenv: &str,
        folder: Option<PathBuf>,
        stamp: Stamp,
    ) -> Result<Arc<Source>, SlsError> {
        let sls = if self.strict {
            Sls::compile_guarded(path, text, &self.renderer, VARIABLES)
        } else {
            Sls::compile(path, text, &self.renderer)
        };
        let sls = sls.map_err(|error| SlsError::Render { path: path.to_owned(), error: Box::new(error) })?;
        let folder = if let Some(folder) = folder {
            Folder::OnDisk(folder)
        } else {
            let below = path.trim_start_matches("salt://");
            Folder::Served(below.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/")))
        };
        let host: Arc<dyn Host> = Arc::new(NearHost { inner: Arc::clone(&self.host), folder });
        let tplfile = path.rsplit('/').next().unwrap_or(path).to_owned();
        let strict = self.strict;
        let source = Arc::new(Source { path: path.into(), sls, strict, saltenv: saltenv.to_owned(), host, tplfile });
        self.sources.lock().insert(path.to_owned(), (stamp, Arc::clone(&source)));
        Ok(source)
    }
}

enum Folder {
    OnDisk(PathBuf),
    /// A path below `salt://`, with a slash at its end.
    Served(String),
}

/// A host whose templates come from a file's own folder first, then from `salt://`.
struct NearHost {
    inner: Arc<dyn Host>,
    folder: Folder,
}

impl Host for NearHost {
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        self.inner.call(function, args)
    }

    fn has(&self, function: &str) -> bool {
        self.inner.has(function)
    }

    fn has_module(&self, module: &str) -> bool {
        self.inner.has_module(module)
    }

    fn template(&self, path: &str, saltenv: &str) -> Result<Option<String>, String> {
        let below = path.trim_start_matches("salt://");
        if below.len() == path.len() {
            match &self.folder {
                // An absolute path counts as such, as reactor files themselves are named by them.
                Folder::OnDisk(folder) => match std::fs::read_to_string(folder.join(path)) {
                    Ok(text) => return Ok(Some(text)),
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(error) => return Err(format!("{}: {error}", folder.join(path).display())),
                },
                Folder::Served(folder) => {
                    if let Some(text) = self.inner.template(&format!("{folder}{path}"), saltenv)? {
                        return Ok(Some(text));
                    }
                }
            }
        }
        self.inner.template(below, saltenv)
    }
}
