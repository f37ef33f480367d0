//! The pipe that a source declares in its first line, such as `#!jinja|yaml`, and the renderers in it.

use brine_config::opts::shared;
use brine_value::Map;

use super::RenderError;

/// One step of the pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renderer {
    /// String to string.
    Jinja,
    /// String to data.
    Yaml,
    /// String to data; values of repeated keys are joined.
    Yamlex,
    /// String to data.
    Json,
    /// String to data.
    Toml,
    /// Bytes to data.
    Msgpack,
    /// The string itself is the data.
    Text,
    /// Decrypts PGP messages in strings or data.
    Gpg,
    /// Decrypts NaCl boxes in data, by a function of the host of templates.
    Nacl,
    /// String to data, through a template and a parser of its own.
    Stateconf,
    /// Executed by the host of templates: another language, or a custom renderer.
    Hosted,
}

/// All renderers with their names and what they do, sorted by name.
pub const RENDERERS: &[(&str, Renderer, &str)] = &[
    ("cheetah", Renderer::Hosted, "Render a Cheetah template to a text, with the Python package CT3."),
    ("genshi", Renderer::Hosted, "Render a Genshi template to a text, with the Python package Genshi."),
    ("gpg", Renderer::Gpg, "Decrypt the PGP messages in a text or in data."),
    ("hjson", Renderer::Hosted, "Read Hjson, with the Python package hjson."),
    ("jinja", Renderer::Jinja, "Render a Jinja template to a text."),
    ("json", Renderer::Json, "Read JSON."),
    ("mako", Renderer::Hosted, "Render a Mako template to a text, with the Python package Mako."),
    ("msgpack", Renderer::Msgpack, "Read msgpack."),
    ("nacl", Renderer::Nacl, "Decrypt the NaCl boxes in data: texts of the form NACL[...]."),
    ("py", Renderer::Hosted, "Call the function run() of a Python source, which returns the data."),
    ("pydsl", Renderer::Hosted, "Run a Python source that declares states by calls of state()."),
    ("pyobjects", Renderer::Hosted, "Run a Python source that declares states as objects."),
    ("stateconf", Renderer::Stateconf, "Render states with settings, local ids and an order of their own."),
    ("text", Renderer::Text, "Take the text as it is."),
    ("toml", Renderer::Toml, "Read TOML."),
    ("wempy", Renderer::Hosted, "Render a Wempy template to a text, with the Python package Wempy."),
    ("yaml", Renderer::Yaml, "Read YAML."),
    (
        "yamlex",
        Renderer::Yamlex,
        "Read YAML; the tags !aggregate and !reset say how values of a repeated key are joined.",
    ),
];

/// A renderer in a pipe, with the options after its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub renderer: Renderer,
    pub name: String,
    /// The options, such as `-o` of `stateconf -o`.
    pub args: String,
}

impl Step {
    /// Creates a step without options. An unknown name may be that of a custom renderer.
    pub fn plain(name: &str) -> Self {
        let entry = RENDERERS.iter().find(|(other, ..)| *other == name);
        let renderer = entry.map_or(Renderer::Hosted, |(_, renderer, _)| *renderer);
        Step { renderer, name: name.to_owned(), args: String::new() }
    }

    /// Returns whether the source is a program in Python, which returns data.
    pub fn is_program(&self) -> bool {
        self.renderer == Renderer::Hosted && matches!(&self.name[..], "py" | "pydsl" | "pyobjects")
    }
}

/// Returns the pipe that the first line of a source declares; `None` for a source without such a line.
pub(super) fn declared(source: &[u8]) -> Option<&str> {
    let first = source.split(|byte| *byte == b'\n').next()?;
    let pipe = std::str::from_utf8(first.strip_prefix(b"#!")?).ok()?;
    (!pipe.starts_with('/')).then(|| pipe.trim())
}

/// Returns the steps of a pipe; `None` for one with an empty step.
pub(super) fn steps(pipe: &str) -> Option<Vec<Step>> {
    // Deprecated names of two steps.
    let pipe = match pipe {
        "yaml_jinja" => "jinja|yaml",
        "json_jinja" => "jinja|json",
        other => other,
    };
    pipe.split('|')
        .map(|step| {
            let (name, args) = step.trim().split_once(char::is_whitespace).unwrap_or((step.trim(), ""));
            let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
            let is_valid = !name.is_empty() && name.chars().all(is_name);
            is_valid.then(|| Step { args: args.trim().to_owned(), ..Step::plain(name) })
        })
        .collect()
}

/// The renderers that SLS files may name: `renderer_blacklist` and `renderer_whitelist`.
#[derive(Debug, Clone, Default)]
pub struct AllowedRenderers {
    blacklist: Vec<String>,
    whitelist: Vec<String>,
}

impl AllowedRenderers {
    /// Creates the lists of refused and of allowed renderers; an empty second one allows all.
    pub fn new(blacklist: Vec<String>, whitelist: Vec<String>) -> Self {
        AllowedRenderers { blacklist, whitelist }
    }

    /// Reads the options.
    pub fn of(opts: &Map) -> Self {
        let (blacklist, whitelist) = (shared::renderer_blacklist(opts), shared::renderer_whitelist(opts));
        AllowedRenderers { blacklist, whitelist }
    }

    /// Checks that all renderers of a pipe are allowed. Salt would skip a disallowed renderer, and take its source for
    /// data.
    pub(super) fn check(&self, pipe: &str) -> Result<(), RenderError> {
        let is_allowed = |name: &String| {
            !self.blacklist.contains(name) && (self.whitelist.is_empty() || self.whitelist.contains(name))
        };
        match steps(pipe).unwrap_or_default().into_iter().find(|step| !is_allowed(&step.name)) {
            Some(step) => Err(RenderError::Disallowed(step.name)),
            None => Ok(()),
        }
    }
}

/// Checks that all renderers of a pipe, such as the option `renderer`, are available. `is_custom` returns whether a
/// custom renderer of a name exists.
///
/// # Errors
///
/// A step of the pipe is empty or unknown.
pub fn check_pipe(pipe: &str, is_custom: impl Fn(&str) -> bool) -> Result<(), RenderError> {
    let is_known = |name: &str| RENDERERS.iter().any(|(other, ..)| *other == name) || is_custom(name);
    match steps(pipe) {
        Some(steps) if steps.iter().all(|step| is_known(&step.name)) => Ok(()),
        _ => Err(RenderError::NotAvailable(pipe.to_owned())),
    }
}
