//! The desired content of a file: from a source, from the state, from pillar or grains, rendered if it is a
//! template.

use std::sync::Arc;

use brine_context::StateContext;
use brine_function::CallError;
use brine_state::Source;
use brine_text::binary::is_binary;
use brine_value::{Map, Value, map};
use brine_yaml::traverse;

use super::attributes::{Attributes, parse_mode, show_mode};
use super::source::{self, Problem, Verify};
use crate::file::encoding::Encoding;

/// The bytes that decide whether a file is binary.
pub(super) const BINARY_START: usize = 2048;

/// Source of a file's content.
pub(super) struct Contents {
    pub source: Value,
    pub contents: Value,
    pub contents_pillar: Value,
    pub contents_grains: Value,
    pub newline: bool,
    /// Whether inline contents are written as they are, not as lines.
    pub verbatim: bool,
    pub template: Option<String>,
    pub defaults: Value,
    /// Additional variables of the template.
    pub more: Map,
    /// Verification of the source.
    pub verify: Verify,
}

/// Returns the content of a source, for states that write it elsewhere than into a file, optionally verified by its
/// hash, or by a file of hashes and the name in that file.
///
/// # Errors
/// The source cannot be read, or fails its verification.
pub fn content(
    context: &StateContext,
    source: &str,
    hash: (Option<String>, Option<String>),
    template: Option<String>,
    defaults: Value,
) -> Result<Vec<u8>, String> {
    let contents = Contents {
        source: source.into(),
        contents: Value::Nil,
        template,
        defaults,
        verify: Verify::by_hash(hash.0, hash.1),
        ..Contents::inline_text(String::new())
    };
    let report = |error: String| error.strip_prefix("Unable to manage file: ").unwrap_or(&error).to_owned();
    Ok(contents.get(context, source).map_err(report)?.unwrap_or_default())
}

/// Returns the arguments that the state does not declare, as variables of its template: Salt accepts variables next to
/// `context` and `defaults`, not only below them.
pub(super) fn variables(mut kwargs: Map) -> Map {
    kwargs.shift_remove("context");
    kwargs
}

/// Consumes arguments that the code for sources reads from the state's low chunk instead.
pub(super) fn ignore_arguments(_arguments: [Value; 3]) {}

/// Returns the texts of all sources, one after the other.
pub(super) fn texts_of_sources(context: &StateContext, name: &str, sources: &[Contents]) -> Result<String, String> {
    let text = |source: &Contents| {
        let bytes = source.get(context, name)?.unwrap_or_default();
        String::from_utf8(bytes).map_err(|_| format!("{} is not UTF-8 text", source.source))
    };
    sources.iter().map(text).collect()
}

impl Contents {
    /// Creates contents from inline text.
    pub fn inline_text(text: String) -> Self {
        Contents {
            source: Value::Nil,
            contents: text.into(),
            contents_pillar: Value::Nil,
            contents_grains: Value::Nil,
            newline: true,
            verbatim: false,
            template: None,
            defaults: Value::Nil,
            more: Map::new(),
            verify: Verify::default(),
        }
    }

    /// Returns the contents for all sources of a state, `source` or `sources`.
    pub fn of(source: &Value, sources: &Value, template: &str, defaults: &Value) -> Vec<Self> {
        let several = sources.as_list().unwrap_or_default().iter();
        let all = several.chain([source]).filter(|source| source.is_truthy());
        let one = |source: &Value| Contents {
            source: source.clone(),
            contents: Value::Nil,
            template: Some(template.to_owned()),
            defaults: defaults.clone(),
            ..Contents::inline_text(String::new())
        };
        all.map(one).collect()
    }

    /// Whether the state gives contents, or names an item of pillar or grains with them.
    pub fn is_inline(&self) -> bool {
        self.inline_count() > 0
    }

    fn inline_count(&self) -> usize {
        let sources = [&self.contents, &self.contents_pillar, &self.contents_grains];
        sources.iter().filter(|value| !value.is_nil()).count()
    }

    /// Returns the desired content, or `None` if the state sets none.
    pub fn get(&self, context: &StateContext, name: &str) -> Result<Option<Vec<u8>>, String> {
        let argument = |key: &str| context.chunk.get(key).filter(|value| !value.is_nil());
        for (value, what) in [(Some(&self.defaults), "Defaults"), (argument("context"), "Context")] {
            if value.is_some_and(|value| value.is_truthy() && value.as_map().is_none()) {
                return Err(format!("{what} must be formed as a dict"));
            }
        }
        let inline = self.inline_count();
        if inline > 0 && self.source.is_truthy() {
            return Err(
                "'source' cannot be used in combination with 'contents', 'contents_pillar', or 'contents_grains'"
                    .into(),
            );
        }
        if inline > 1 {
            return Err("Only one of 'contents', 'contents_pillar', and 'contents_grains' is permitted".into());
        }
        let lookup = |map: Arc<Map>, key: &Value, kind: &str| {
            let data = Value::Map((*map).clone());
            let delimiter = argument("contents_delimiter").map_or_else(|| ":".to_owned(), ToString::to_string);
            let one = |key: &Value| {
                let value = traverse(&data, &key.to_string(), &delimiter).cloned();
                value.ok_or_else(|| format!("{kind} {key} does not exist"))
            };
            match key.as_list() {
                None => one(key),
                Some(keys) => {
                    let text = |key: &Value| match one(key)? {
                        Value::Str(text) => Ok(text),
                        other => Err(format!("{kind} {key} is invalid: expected a string, got {}", other.type_name())),
                    };
                    keys.iter().map(text).collect::<Result<Vec<_>, _>>().map(|texts| texts.join("\n").into())
                }
            }
        };
        // As in Salt, a null in pillar or grains sets no content.
        let text = if !self.contents.is_nil() {
            self.contents.clone()
        } else if !self.contents_pillar.is_nil() {
            lookup(context.call.pillar(), &self.contents_pillar, "Pillar")?
        } else if !self.contents_grains.is_nil() {
            lookup(context.call.grains(), &self.contents_grains, "Grain")?
        } else {
            Value::Nil
        };
        let text = Some(text).filter(|text| !text.is_nil());
        if argument("allow_empty").is_some_and(|allowed| !allowed.is_truthy())
            && text.as_ref().is_some_and(|text| !text.is_truthy())
        {
            let from = match (self.contents_pillar.is_nil(), self.contents_grains.is_nil()) {
                (false, _) => format!("contents_pillar {}", self.contents_pillar),
                (_, false) => format!("contents_grains {}", self.contents_grains),
                _ => "'contents'".to_owned(),
            };
            return Err(format!(
                "{from} value would result in empty contents. Set allow_empty to True to allow the managed file to be empty."
            ));
        }
        if text.as_ref().and_then(Value::as_list).is_some_and(<[Value]>::is_empty) {
            return Err("Contents specified by contents/contents_pillar/contents_grains is not a string or list of \
                        strings, and is not binary data. SLS is likely malformed."
                .into());
        }
        let mut origin = self.source.clone();
        let content = match text {
            Some(text) if argument("encoding").is_some() => {
                let encoding = argument("encoding").map(ToString::to_string).unwrap_or_default();
                let errors = argument("encoding_errors").map_or_else(|| "strict".to_owned(), ToString::to_string);
                let text = self.inline(&text);
                let encoding = Encoding::parse(&encoding)?;
                let encoded = match encoding {
                    // Bytes that are no text stay as they are.
                    Encoding::Utf8 => text.clone(),
                    _ => encoding.encode(&String::from_utf8_lossy(&text), &errors)?,
                };
                // If the encoding loses a character, Salt predicts a change in every run.
                let is_lossy = encoding.decode(&encoded).is_ok_and(|decoded| decoded.as_bytes() != text);
                Some(if context.test && is_lossy { text } else { encoded })
            }
            Some(text) => Some(self.inline(&text)),
            None if self.source.is_truthy() => {
                let (source, content) = self.first_source(context, name)?;
                origin = source.into();
                Some(content)
            }
            None => None,
        };
        match (self.engine(), content) {
            (Some(engine), Some(content)) => self.rendered(context, engine, name, &content, &origin).map(Some),
            (_, content) => Ok(content),
        }
    }

    /// Returns the attributes with the mode of the first existing source, if the mode is `keep`.
    pub fn with_source_mode(&self, context: &StateContext, mut attributes: Attributes) -> Result<Attributes, String> {
        if !attributes.keep_mode {
            return Ok(attributes);
        }
        if self.source.is_nil() {
            return Err("Mode preservation cannot be used in combination with 'contents', 'contents_pillar', or \
                        'contents_grains'"
                .into());
        }
        let single = [self.source.clone()];
        for item in self.source.as_list().unwrap_or(&single) {
            let (source, _) = source::entry(item, &self.verify);
            attributes.mode = source::mode(context, &source)?;
            if attributes.mode.is_some() {
                break;
            }
        }
        Ok(attributes)
    }

    /// Returns inline contents as lines that end in a newline, but for the last one without `newline`.
    fn inline(&self, contents: &Value) -> Vec<u8> {
        let single = [contents.clone()];
        let parts: Vec<String> = match contents {
            Value::Bytes(bytes) if self.verbatim => return bytes.clone(),
            Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => vec![text.to_owned()],
                Err(_) => return bytes.clone(),
            },
            contents => contents.as_list().unwrap_or(&single).iter().map(ToString::to_string).collect(),
        };
        let mut text = String::new();
        for part in parts {
            text.push_str(&part.replace("\r\n", "\n").replace('\r', "\n"));
            if !part.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
        }
        if !self.newline {
            text.truncate(text.trim_end_matches('\n').len());
        }
        text.into_bytes()
    }

    /// Returns the template engine, if there is one.
    fn engine(&self) -> Option<&str> {
        self.template.as_deref().filter(|engine| !matches!(*engine, "" | "False"))
    }

    /// Returns the first existing source and its content.
    fn first_source(&self, context: &StateContext, name: &str) -> Result<(String, Vec<u8>), String> {
        let single = [self.source.clone()];
        let sources = self.source.as_list().unwrap_or(&single);
        for item in sources {
            let (source, verify) = source::entry(item, &self.verify);
            // As in Salt, a source of a list is used if its web server answers.
            if self.source.as_list().is_some() && source::is_remote(&source) && !source::url_exists(context, &source) {
                continue;
            }
            let local = source.strip_prefix("file://").unwrap_or(&source);
            if self.engine().is_some() && local == name && local.starts_with('/') {
                return Err("Unable to manage file: Source file cannot be the same as destination".into());
            }
            match source::read(context, name, &source, &verify) {
                Ok(content) => {
                    if !context.test {
                        source::check_signature(context, &content, &verify.signature, &verify)
                            .map_err(|error| format!("Failed checking new file's signature: {error}"))?;
                    }
                    return Ok((source, content));
                }
                Err(Problem::Missing(_)) if self.source.as_list().is_some() => {}
                Err(Problem::Missing(error) | Problem::Invalid(error)) => {
                    return Err(format!("Unable to manage file: {error}"));
                }
                Err(Problem::HashUnavailable(error)) => {
                    return Err(format!("Unable to manage file: Unable to manage file: {error}"));
                }
                Err(Problem::HashMismatch(error)) => return Err(error),
            }
        }
        Err("Unable to manage file: none of the specified sources were found".into())
    }

    fn rendered(
        &self,
        context: &StateContext,
        engine: &str,
        name: &str,
        content: &[u8],
        source: &Value,
    ) -> Result<Vec<u8>, String> {
        let Ok(text) = std::str::from_utf8(content) else {
            // As in Salt, a binary file, as an image in a tree of templates, is copied as it is.
            return if is_binary(&content[..content.len().min(BINARY_START)]) {
                Ok(content.to_vec())
            } else {
                Err("Unable to manage file: the template is not UTF-8 text".into())
            };
        };
        let mut variables = map! {"name" => name, "source" => source.clone()};
        for key in ["user", "group", "mode", "attrs"] {
            variables.insert(key.into(), context.chunk.get(key).cloned().unwrap_or_default());
        }
        if let Some(mode) = variables.get_mut("mode").filter(|mode| mode.as_str() != Some("keep")) {
            *mode = parse_mode(mode).map_or(Value::Nil, |mode| show_mode(mode).into());
        }
        let gathered = super::accumulated::accumulated_texts(context, name);
        if !gathered.is_empty() {
            variables.insert("accumulator".into(), gathered.into());
        }
        for (key, value) in &self.more {
            variables.entry(key.clone()).or_insert_with(|| value.clone());
        }
        let template_context = context.chunk.get("context").cloned().unwrap_or_default();
        for more in [&self.defaults, &template_context].into_iter().filter_map(Value::as_map) {
            variables.extend(more.clone());
        }
        let label = source.as_str().unwrap_or(name);
        let rendering = Source::new(&context.call, context.call.pillar());
        let rendered = if engine == "jinja" {
            rendering.render_template(label, text, &variables, &context.saltenv).map_err(|error| error.to_string())
        } else {
            let hosted = rendering.render_hosted(engine, label, text, &variables, &context.saltenv);
            match hosted {
                Some(rendered) => rendered.map_err(CallError::message),
                None => Err(format!("Specified template format {engine} is not supported")),
            }
        };
        rendered.map(String::into_bytes).map_err(|error| format!("Unable to manage file: {error}"))
    }
}
