//! Errors of rendering, with line numbers of the template.

use brine_jinja::{JinjaError, SourceLines};
use brine_yaml::untrusted::{Placeholders, UntrustedError};
use brine_yaml::{Origin, YamlError};

use crate::gpg::GpgError;

/// The error of rendering an SLS.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// An unknown renderer.
    #[error("The renderer \"{0}\" is not available")]
    NotAvailable(String),
    /// A renderer that the configuration does not allow.
    #[error("The renderer \"{0}\" is disallowed by configuration (renderer_blacklist, renderer_whitelist)")]
    Disallowed(String),
    /// A source that is not UTF-8.
    #[error("{0} is not UTF-8 text")]
    NotText(String),
    /// An error of a renderer of the host, such as a file in another language.
    #[error("{0}")]
    Hosted(String),
    /// An error of the renderer `nacl`.
    #[error("rendering by nacl failed: {0}")]
    Nacl(String),
    /// An error of the renderer `stateconf`.
    #[error("rendering by stateconf failed: {0}")]
    Stateconf(String),
    /// An error of the template.
    #[error(transparent)]
    Jinja(#[from] JinjaError),
    /// Invalid YAML in the rendered text.
    #[error("{}", .0.salt_text())]
    Yaml(Box<YamlError>),
    /// Invalid JSON or TOML in the rendered text.
    #[error("{message}; line {line}")]
    Data {
        /// The message.
        message: String,
        /// The line of the rendered text.
        line: usize,
    },
    /// An error of the renderer `gpg`.
    #[error(transparent)]
    Gpg(#[from] GpgError),
    /// Untrusted text of an event that would have changed the structure of the file.
    #[error(transparent)]
    Untrusted(#[from] UntrustedError),
    /// An error in rendered text whose line number differs from that of the template.
    #[error("{error}\n{}", rendered_from(*line, *rendered_line, rendered))]
    Rendered {
        /// The error.
        error: Box<RenderError>,
        /// The line of the template.
        line: usize,
        /// The line of the rendered text.
        rendered_line: usize,
        /// The text of that line.
        rendered: String,
    },
}

/// The maximum number of characters of a rendered line that an error shows.
const SHOWN: usize = 200;

fn rendered_from(line: usize, rendered_line: usize, rendered: &str) -> String {
    let excerpt: String = rendered.trim().chars().take(SHOWN).collect();
    format!("line {line} of the template, which renders to line {rendered_line}: {excerpt}")
}

impl RenderError {
    /// Returns the line of the error, in the template or in the rendered text.
    pub fn line(&self) -> Option<usize> {
        match self {
            RenderError::NotAvailable(_) | RenderError::Disallowed(_) | RenderError::NotText(_) => Some(1),
            RenderError::Jinja(error) => Some(error.line),
            RenderError::Yaml(error) => Some(error.line),
            RenderError::Data { line, .. } | RenderError::Rendered { line, .. } => Some(*line),
            RenderError::Gpg(_) | RenderError::Hosted(_) | RenderError::Nacl(_) | RenderError::Stateconf(_) => None,
            RenderError::Untrusted(error) => Some(error.line),
        }
    }

    /// Whether the rendered text is not one YAML document: it has invalid characters, anchors or aliases, or ends before
    /// the text. Salt words these errors in another way.
    pub fn is_of_composer(&self) -> bool {
        match self {
            RenderError::Yaml(error) => matches!(error.origin, Origin::Composer | Origin::Reader { .. }),
            RenderError::Rendered { error, .. } => error.is_of_composer(),
            _ => false,
        }
    }

    /// Returns the same error with the line of the template, if it differs from that of the rendered text.
    #[must_use]
    pub fn in_template(self, rendered: &str, lines: &SourceLines) -> Self {
        let rendered_line = match &self {
            RenderError::Yaml(error) => error.line,
            RenderError::Data { line, .. } => *line,
            _ => return self,
        };
        match lines.line(rendered, rendered_line) {
            Some(line) if line != rendered_line => {
                let rendered = rendered.lines().nth(rendered_line - 1).unwrap_or_default().to_owned();
                RenderError::Rendered { error: Box::new(self), line, rendered_line, rendered }
            }
            _ => self,
        }
    }

    /// Returns the same error with the placeholders in its rendered line replaced by the text they stand for.
    #[must_use]
    pub fn revealed(self, placeholders: &Placeholders) -> Self {
        match self {
            RenderError::Rendered { error, line, rendered_line, rendered } => {
                RenderError::Rendered { error, line, rendered_line, rendered: placeholders.reveal(&rendered) }
            }
            other => other,
        }
    }

    /// Returns the message on one line, without the lines around the error.
    pub fn message(&self) -> String {
        match self {
            RenderError::Jinja(error) => error.summary(),
            RenderError::Yaml(error) => error.message.clone(),
            RenderError::Rendered { error, rendered_line, rendered, .. } => {
                let excerpt: String = rendered.trim().chars().take(SHOWN).collect();
                format!("{} (it renders to line {rendered_line}: {excerpt})", error.message())
            }
            other => other.to_string(),
        }
    }
}
