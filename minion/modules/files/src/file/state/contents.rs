//! The desired content of a file: from a source, from the state, from pillar or grains, rendered if it is a
//! template.

use std::sync::Arc;

use brine_context::StateContext;
use brine_state::Source;
use brine_value::{Map, Value, map};
use brine_yaml::traverse;

use super::attributes::{Attributes, parse_mode, show_mode};
use super::encoding;
use super::source::{self, Problem, Verify};

/// Source of a file's content.
pub(super) struct Contents {
    pub source: Value,
    pub contents: Value,
    pub contents_pillar: Value,
    pub contents_grains: Value,
    pub newline: bool,
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

/// Returns the content of a block: the files of the file server if there are sources, otherwise the content in the
/// state.
pub(super) fn block_content(
    context: &StateContext,
    name: &str,
    content: &Value,
    sources: &[Contents],
) -> Result<String, String> {
    if sources.is_empty() {
        return Ok(content.to_string());
    }
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
            template: None,
            defaults: Value::Nil,
            more: Map::new(),
            verify: Verify::default(),
        }
    }

    /// Returns the contents for all sources of a state, `source` or `sources`.
    pub fn of(source: &Value, sources: &Value, template: Option<String>, defaults: Value) -> Vec<Self> {
        let several = sources.as_list().unwrap_or_default().iter();
        let all = several.chain([source]).filter(|source| source.is_truthy());
        let one = |source: &Value| Contents {
            source: source.clone(),
            contents: Value::Nil,
            template: template.clone(),
            defaults: defaults.clone(),
            ..Contents::inline_text(String::new())
        };
        all.map(one).collect()
    }

    /// Returns the desired content, or `None` if the state sets none.
    pub fn get(&self, context: &StateContext, name: &str) -> Result<Option<Vec<u8>>, String> {
        let argument = |key: &str| context.chunk.get(key).filter(|value| !value.is_nil());
        for (value, what) in [(Some(&self.defaults), "Defaults"), (argument("context"), "Context")] {
            if value.is_some_and(|value| value.is_truthy() && value.as_map().is_none()) {
                return Err(format!("{what} must be formed as a dict"));
            }
        }
        let given = [&self.contents, &self.contents_pillar, &self.contents_grains];
        let inline = given.iter().filter(|value| !value.is_nil()).count();
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
            traverse(&data, &key.to_string(), &delimiter).cloned().ok_or_else(|| format!("{kind} {key} does not exist"))
        };
        let text = if !self.contents.is_nil() {
            Some(self.contents.clone())
        } else if !self.contents_pillar.is_nil() {
            Some(lookup(context.call.pillar(), &self.contents_pillar, "Pillar")?)
        } else if !self.contents_grains.is_nil() {
            Some(lookup(context.call.grains(), &self.contents_grains, "Grain")?)
        } else {
            None
        };
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
        let mut found = self.source.clone();
        let content = match text {
            Some(text) if argument("encoding").is_some() => {
                let encoding = argument("encoding").map(ToString::to_string).unwrap_or_default();
                let errors = argument("encoding_errors").map_or_else(|| "strict".to_owned(), ToString::to_string);
                let text = self.inline(&text);
                let encoded = encoding::encode(&text, &encoding, &errors)?;
                // If the encoding loses a character, Salt predicts a change in every run.
                Some(if context.test && encoding::decode(&encoded) != text { text } else { encoded })
            }
            Some(text) => Some(self.inline(&text)),
            None if self.source.is_truthy() => {
                let (source, content) = self.first_source(context, name)?;
                found = source.into();
                Some(content)
            }
            None => None,
        };
        match (self.template.as_deref().filter(|engine| !matches!(*engine, "" | "False")), content) {
            (Some(engine), Some(content)) => self.rendered(context, engine, name, &content, &found).map(Some),
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

    fn inline(&self, contents: &Value) -> Vec<u8> {
        let mut text = match contents {
            Value::List(lines) => lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n").into_bytes(),
            Value::Bytes(bytes) => bytes.clone(),
            other => other.to_string().replace("\r\n", "\n").into_bytes(),
        };
        if self.newline && !text.is_empty() && !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        text
    }

    /// Returns the first existing source and its content.
    fn first_source(&self, context: &StateContext, name: &str) -> Result<(String, Vec<u8>), String> {
        let single = [self.source.clone()];
        let sources = self.source.as_list().unwrap_or(&single);
        for item in sources {
            let (source, verify) = source::entry(item, &self.verify);
            match source::read(context, name, &source, &verify) {
                Ok(content) => {
                    if !context.test {
                        source::check_signature(context, &content, &verify.signature, &verify)
                            .map_err(|error| format!("Failed checking new file's signature: {error}"))?;
                    }
                    return Ok((source, content));
                }
                Err(Problem::Missing(_)) if sources.len() > 1 => {}
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
        let text = std::str::from_utf8(content)
            .map_err(|_| "Unable to manage file: the template is not UTF-8 text".to_owned())?;
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
        let given = context.chunk.get("context").cloned().unwrap_or_default();
        for more in [&self.defaults, &given].into_iter().filter_map(Value::as_map) {
            variables.extend(more.clone());
        }
        let label = source.as_str().unwrap_or(name);
        let rendering = Source::new(&context.call, context.call.pillar());
        let rendered = if engine == "jinja" {
            rendering.render_template(label, text, &variables, &context.saltenv)
        } else {
            let hosted = rendering.render_hosted(engine, label, text, &variables, &context.saltenv);
            hosted.unwrap_or_else(|| Err(format!("Specified template format {engine} is not supported")))
        };
        rendered.map(String::into_bytes).map_err(|error| format!("Unable to manage file: {error}"))
    }
}
