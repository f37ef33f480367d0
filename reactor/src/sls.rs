//! Finds and caches reactor SLS files; a file is compiled again when it changes.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_jinja::{Context, Files, FilesError, Host, SourceLines};
use brine_sls::render::{AllowedRenderers, RenderError, Sls};
use brine_text::glob::{is_pattern, paths};
use brine_yaml::Located;
use brine_yaml::untrusted::Placeholders;
use parking_lot::Mutex;

use crate::injection_guard::VARIABLES;

/// The time for which the list of files that match a glob is cached.
const LISTING_TTL: Duration = Duration::from_secs(1);

/// The error of a file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SlsError {
    #[error("{path}: {source}")]
    Read { path: String, source: std::io::Error },
    #[error("{0}: the master's file server has no such file")]
    NotServed(String),
    #[error("{path}: {source}")]
    Served { path: String, source: FilesError },
    #[error("{0}: the glob matches no file")]
    NoMatch(String),
    #[error("{path}:{line}: {message}", line = .error.line().unwrap_or(1), message = .error.message())]
    Render { path: String, error: Box<RenderError> },
}

/// A compiled file.
pub(crate) struct Source {
    /// The path, or `salt://` path, as in errors and events.
    pub path: Arc<str>,
    sls: Sls,
    strict: bool,
    pub saltenv: String,
    /// Loads imported templates from the file's own directory first.
    pub host: Host,
    /// `tplfile` in the template: the file's name without directories.
    pub tplfile: String,
}

impl Source {
    /// Renders the file. In strict mode, text from the event is replaced by placeholders.
    pub fn render(&self, context: &Context) -> Result<Rendered, SlsError> {
        let rendered = if self.strict {
            self.sls.render_guarded_mapped(context, &self.host)
        } else {
            self.sls.render_mapped(context, &self.host).map(|(text, lines)| (text, Placeholders::new(), lines))
        };
        let (text, placeholders, lines) = rendered.map_err(|error| self.failed(error))?;
        Ok(Rendered { text, placeholders, lines })
    }

    /// Parses rendered text; placeholders stay in place.
    pub fn parse(&self, rendered: &Rendered) -> Result<Located, SlsError> {
        let Rendered { text, placeholders, lines } = rendered;
        let parsed = self.sls.parse_guarded(text, placeholders);
        parsed.map_err(|error| self.failed(error.in_template(text, lines).revealed(placeholders)))
    }

    /// Returns the text of a file without template tags.
    pub fn static_text(&self) -> Option<Rendered> {
        let text = self.sls.static_text()?.to_owned();
        Some(Rendered { text, placeholders: Placeholders::new(), lines: SourceLines::default() })
    }

    fn failed(&self, error: RenderError) -> SlsError {
        let path = match &error {
            // The error may be in an imported file.
            RenderError::Untrusted(error) => error.template.to_string(),
            _ => self.path.to_string(),
        };
        SlsError::Render { path, error: Box::new(error) }
    }
}

/// The rendered text of a file.
pub(crate) struct Rendered {
    /// The text, with placeholders for text from the event.
    pub text: String,
    pub placeholders: Placeholders,
    lines: SourceLines,
}

impl Rendered {
    /// Returns the line of the file that rendered a line of the text, or that line if it is unknown.
    pub fn template_line(&self, line: usize) -> usize {
        self.lines.line(&self.text, line).unwrap_or(line)
    }
}

/// The version of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stamp {
    File { modified: (i64, i64), size: u64, inode: u64 },
    Text(String),
}

pub(crate) struct SlsCache {
    host: Host,
    renderer: String,
    allowed: AllowedRenderers,
    /// Whether text from events is prevented from changing the structure of rendered text.
    strict: bool,
    sources: Mutex<HashMap<String, (Stamp, Arc<Source>)>>,
    listed: Mutex<HashMap<String, Listed>>,
}

/// The time of a listing, and its files.
type Listed = (Instant, Arc<[String]>);

impl SlsCache {
    pub fn new(host: Host, renderer: String, allowed: AllowedRenderers, strict: bool) -> Self {
        SlsCache { host, renderer, allowed, strict, sources: Mutex::default(), listed: Mutex::default() }
    }

    /// Returns the files of an entry: one, or the sorted matches of a glob of paths.
    pub fn named(&self, file: &str) -> Result<Arc<[String]>, SlsError> {
        if file.starts_with("salt://") || !is_pattern(file) || Path::new(file).exists() {
            return Ok(Arc::new([file.to_owned()]));
        }
        if let Some((at, listed)) = self.listed.lock().get(file)
            && at.elapsed() < LISTING_TTL
        {
            return Ok(Arc::clone(listed));
        }
        let listed: Arc<[String]> =
            paths(Path::new(""), file).into_iter().map(|path| path.display().to_string()).collect();
        if listed.is_empty() {
            return Err(SlsError::NoMatch(file.to_owned()));
        }
        self.listed.lock().insert(file.to_owned(), (Instant::now(), Arc::clone(&listed)));
        Ok(listed)
    }

    /// Returns the compiled file, recompiled if it has changed.
    pub fn get(&self, path: &str) -> Result<Arc<Source>, SlsError> {
        match path.strip_prefix("salt://") {
            Some(rest) => self.served(path, rest),
            None => self.on_disk(path),
        }
    }

    /// Returns the source of a file, if it can be read.
    pub fn text(&self, path: &str) -> Option<String> {
        let Some(rest) = path.strip_prefix("salt://") else { return std::fs::read_to_string(path).ok() };
        let (below, saltenv) = rest.split_once("?saltenv=").unwrap_or((rest, "base"));
        self.host.template(below, saltenv).ok()?
    }

    fn on_disk(&self, path: &str) -> Result<Arc<Source>, SlsError> {
        let failed = |source| SlsError::Read { path: path.to_owned(), source };
        let status = std::fs::metadata(path).map_err(failed)?;
        let modified = (status.mtime(), status.mtime_nsec());
        let stamp = Stamp::File { modified, size: status.size(), inode: status.ino() };
        if let Some(source) = self.cached_source(path, &stamp) {
            return Ok(source);
        }
        let source = std::fs::read(path).map_err(failed)?;
        let directory = Path::new(path).parent().map(Path::to_owned).unwrap_or_default();
        self.compile(path, &source, "base", Some(directory), stamp)
    }

    fn served(&self, path: &str, rest: &str) -> Result<Arc<Source>, SlsError> {
        let (below, saltenv) = match rest.split_once("?saltenv=") {
            Some((below, saltenv)) => (below, saltenv),
            None => (rest, "base"),
        };
        let template = self.host.template(below, saltenv);
        let text = template.map_err(|source| SlsError::Served { path: path.to_owned(), source })?;
        let text = text.ok_or_else(|| SlsError::NotServed(path.to_owned()))?;
        let stamp = Stamp::Text(text.clone());
        if let Some(source) = self.cached_source(path, &stamp) {
            return Ok(source);
        }
        self.compile(path, text.as_bytes(), saltenv, None, stamp)
    }

    fn cached_source(&self, path: &str, stamp: &Stamp) -> Option<Arc<Source>> {
        let sources = self.sources.lock();
        sources.get(path).filter(|(other, _)| other == stamp).map(|(_, source)| Arc::clone(source))
    }

    fn compile(
        &self,
        path: &str,
        source: &[u8],
        saltenv: &str,
        directory: Option<PathBuf>,
        stamp: Stamp,
    ) -> Result<Arc<Source>, SlsError> {
        let sls = if self.strict {
            Sls::compile_guarded(path, source, &self.renderer, VARIABLES)
        } else {
            Sls::compile(path, source, &self.renderer)
        };
        let sls = sls.and_then(|sls| sls.allowed_by(&self.allowed));
        let sls = sls.map_err(|error| SlsError::Render { path: path.to_owned(), error: Box::new(error) })?;
        let directory = if let Some(directory) = directory {
            Directory::OnDisk(directory)
        } else {
            let below = path.trim_start_matches("salt://");
            Directory::Served(below.rsplit_once('/').map_or(String::new(), |(directory, _)| format!("{directory}/")))
        };
        let host = self.host.clone().with_files(LocalTemplates { served: self.host.clone(), directory });
        let tplfile = path.rsplit('/').next().unwrap_or(path).to_owned();
        let strict = self.strict;
        let source = Arc::new(Source { path: path.into(), sls, strict, saltenv: saltenv.to_owned(), host, tplfile });
        self.sources.lock().insert(path.to_owned(), (stamp, Arc::clone(&source)));
        Ok(source)
    }
}

enum Directory {
    OnDisk(PathBuf),
    /// A path below `salt://`, with a trailing slash.
    Served(String),
}

/// Loads templates from a file's own directory first, then from `salt://`.
struct LocalTemplates {
    served: Host,
    directory: Directory,
}

impl Files for LocalTemplates {
    fn template(&self, path: &str, saltenv: &str) -> Result<Option<String>, FilesError> {
        let below = path.trim_start_matches("salt://");
        if below.len() == path.len() {
            match &self.directory {
                // Absolute paths stay absolute.
                Directory::OnDisk(directory) => match std::fs::read_to_string(directory.join(path)) {
                    Ok(text) => return Ok(Some(text)),
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(source) => return Err(FilesError::DiskAt { path: directory.join(path), source }),
                },
                Directory::Served(directory) => {
                    if let Some(text) = self.served.template(&format!("{directory}{path}"), saltenv)? {
                        return Ok(Some(text));
                    }
                }
            }
        }
        self.served.template(below, saltenv)
    }
}
