//! apt's source files: one line per repository in `.list` files, one section in `.sources` files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use brine_system::files::{self, FileError};
use brine_value::{FromValue, Map, Value, map};
use indexmap::IndexMap;

const SOURCES_LIST: &str = "/etc/apt/sources.list";
const SOURCES_DIRECTORY: &str = "/etc/apt/sources.list.d";

/// A repository in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Path of the file.
    pub file: String,
    form: Form,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    Line(Line),
    Section(Section),
}

/// A line of a `.list` file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Line {
    text: String,
    is_source: bool,
    disabled: bool,
    kind: String,
    /// Options in brackets, by name.
    options: IndexMap<String, String>,
    uri: String,
    dist: String,
    comps: Vec<String>,
    comment: String,
}

/// A section of a `.sources` file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Section {
    header: Vec<String>,
    tags: IndexMap<String, String>,
    footer: Vec<String>,
}

/// Whether two URIs are equal but for a final slash.
pub fn same_uri(a: &str, b: &str) -> bool {
    a.trim_end_matches('/') == b.trim_end_matches('/')
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

impl Line {
    fn parse(text: &str) -> Line {
        let text = text.trim();
        let mut line = Line { text: text.to_owned(), ..Line::default() };
        let mut rest = text;
        if let Some(behind) = text.strip_prefix('#') {
            line.disabled = true;
            rest = behind;
        }
        if let Some(at) = rest.find('#').filter(|at| *at > 0) {
            rest[at + 1..].clone_into(&mut line.comment);
            rest = &rest[..at];
        }
        let (kind, mut rest) = rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
        rest = rest.trim();
        if !["deb", "deb-src", "rpm", "rpm-src"].contains(&kind) {
            return line;
        }
        if let Some(inside) = rest.strip_prefix('[') {
            let Some((options, behind)) = inside.split_once(']') else { return line };
            for option in options.split_whitespace() {
                if let Some((name, value)) = option.split_once('=') {
                    line.options.insert(name.to_owned(), value.to_owned());
                }
            }
            rest = behind;
        }
        let mut words = words(rest).into_iter();
        let (Some(uri), Some(dist)) = (words.next(), words.next()) else { return line };
        (line.uri, line.dist, line.comps) = (uri, dist, words.collect());
        kind.clone_into(&mut line.kind);
        line.is_source = true;
        line
    }

    fn show(&self) -> String {
        if !self.is_source {
            return self.text.clone();
        }
        let options = self.options.iter().filter(|(name, value)| !(*name == "trusted" && *value == "no"));
        let options: Vec<String> = options.map(|(name, value)| format!("{name}={value}")).collect();
        let mut parts = Vec::new();
        if self.disabled {
            parts.push("#".to_owned());
        }
        parts.push(self.kind.clone());
        if !options.is_empty() {
            parts.push(format!("[{}]", options.join(" ")));
        }
        parts.extend([self.uri.clone(), self.dist.clone(), self.comps.join(" ")]);
        if !self.comment.is_empty() {
            parts.push(format!("#{}", self.comment));
        }
        parts.join(" ").trim().to_owned()
    }
}

impl Section {
    fn parse(text: &str) -> Section {
        let mut section = Section::default();
        let mut last = None;
        for line in text.lines() {
            if line.starts_with('#') {
                let comments = if section.tags.is_empty() { &mut section.header } else { &mut section.footer };
                comments.push(line.to_owned());
            } else if let Some((name, value)) =
                line.split_once(':').filter(|(name, _)| !name.is_empty() && !name.contains(char::is_whitespace))
            {
                section.tags.insert(name.to_owned(), value.trim().to_owned());
                last = Some(name.to_owned());
            } else if let Some(value) = last.as_ref().and_then(|name| section.tags.get_mut(name)) {
                value.push('\n');
                value.push_str(line.trim_end());
            }
        }
        let trimmed = |(name, value): (String, String)| (name, value.trim().to_owned());
        section.tags = std::mem::take(&mut section.tags).into_iter().map(trimmed).collect();
        section
    }

    fn key(&self, name: &str) -> String {
        self.tags.keys().find(|key| key.eq_ignore_ascii_case(name)).cloned().unwrap_or_else(|| name.to_owned())
    }

    fn get(&self, name: &str) -> &str {
        self.tags.get(&self.key(name)).map_or("", String::as_str)
    }

    fn set(&mut self, name: &str, value: &str) {
        self.tags.insert(self.key(name), value.to_owned());
    }

    fn show(&self) -> String {
        let mut lines = self.header.clone();
        let tags = self.tags.iter().filter(|(_, value)| !value.is_empty());
        lines.extend(tags.map(|(name, value)| format!("{name}: {value}")));
        lines.extend(self.footer.clone());
        lines.join("\n").trim().to_owned()
    }
}

/// Whether a value is true, in apt's notation.
fn is_yes(word: &str) -> bool {
    ["yes", "true", "with", "on", "enable", "1"].contains(&word.to_lowercase().as_str())
}

impl Source {
    /// Parses a repository as a line of `sources.list`, without a file.
    pub fn line(text: &str) -> Self {
        Source { file: SOURCES_LIST.into(), form: Form::Line(Line::parse(text)) }
    }

    /// Converts a repository to the format of the file's extension.
    pub fn for_file(line: &Source, file: Option<&str>) -> Self {
        let mut new = line.clone();
        file.unwrap_or(SOURCES_LIST).clone_into(&mut new.file);
        if Path::new(&new.file).extension().is_some_and(|ending| ending == "sources") {
            let mut section = Section::default();
            section.set("Types", &line.kind());
            section.set("URIs", &line.uri());
            section.set("Suites", &line.dist());
            section.set("Components", &line.comps().join(" "));
            if line.is_trusted() {
                section.set("Trusted", "yes");
            }
            new.form = Form::Section(section);
        }
        new
    }

    /// Whether it is in a `.sources` file.
    pub fn is_section(&self) -> bool {
        matches!(self.form, Form::Section(_))
    }

    /// Whether this is a repository, not a comment or an empty line.
    pub fn is_source(&self) -> bool {
        match &self.form {
            Form::Line(line) => line.is_source,
            Form::Section(section) => !section.get("Types").is_empty(),
        }
    }

    /// Whether apt ignores it.
    pub fn is_disabled(&self) -> bool {
        match &self.form {
            Form::Line(line) => line.disabled,
            Form::Section(section) => !section.get("Enabled").is_empty() && !is_yes(section.get("Enabled")),
        }
    }

    /// Whether it is trusted without a signature.
    pub fn is_trusted(&self) -> bool {
        match &self.form {
            Form::Line(line) => line.options.get("trusted").is_some_and(|word| is_yes(word)),
            Form::Section(section) => is_yes(section.get("Trusted")),
        }
    }

    fn text(&self, of_line: impl Fn(&Line) -> String, tag: &str) -> String {
        match &self.form {
            Form::Line(line) => of_line(line),
            Form::Section(section) => section.get(tag).to_owned(),
        }
    }

    /// Returns `deb`, `deb-src` or both.
    pub fn kind(&self) -> String {
        self.text(|line| line.kind.clone(), "Types")
    }

    /// Returns the URIs.
    pub fn uri(&self) -> String {
        self.text(|line| line.uri.clone(), "URIs")
    }

    /// Returns the distributions.
    pub fn dist(&self) -> String {
        self.text(|line| line.dist.clone(), "Suites")
    }

    /// Returns the components.
    pub fn comps(&self) -> Vec<String> {
        words(&self.text(|line| line.comps.join(" "), "Components"))
    }

    /// Returns the architectures; none for the host's.
    pub fn architectures(&self) -> Vec<String> {
        match &self.form {
            Form::Line(line) => {
                let of = |(name, value): (&String, &String)| (name.starts_with("arch")).then(|| value.clone());
                let names = line.options.iter().find_map(of).unwrap_or_default();
                names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
            }
            Form::Section(section) => words(section.get("Architectures")),
        }
    }

    /// Returns the path of the signing key.
    pub fn signed_by(&self) -> String {
        self.text(|line| line.options.get("signed-by").cloned().unwrap_or_default(), "Signed-By")
    }

    /// Returns the list of types.
    pub fn kinds(&self) -> Vec<String> {
        words(&self.kind())
    }

    /// Returns the list of URIs.
    pub fn uris(&self) -> Vec<String> {
        words(&self.uri())
    }

    /// Returns the list of distributions.
    pub fn suites(&self) -> Vec<String> {
        words(&self.dist())
    }

    /// Renders the source.
    pub fn show(&self) -> String {
        match &self.form {
            Form::Line(line) => line.show(),
            Form::Section(section) => section.show(),
        }
    }

    /// Sets the comment.
    pub fn set_comment(&mut self, text: &str) {
        match &mut self.form {
            Form::Line(line) => text.clone_into(&mut line.comment),
            Form::Section(section) => {
                let marked = |line: &str| if line.starts_with('#') { line.to_owned() } else { format!("#{line}") };
                section.header = text.lines().map(marked).collect();
            }
        }
    }

    /// Replaces the options of a line by those of another one. As in Salt, only `trusted` is kept if the other line does
    /// not set it.
    pub fn replace_options(&mut self, other: &Source) {
        if let (Form::Line(mine), Form::Line(other)) = (&mut self.form, &other.form) {
            let trusted = mine.options.get("trusted").cloned();
            mine.options.clone_from(&other.options);
            if let Some(trusted) = trusted {
                mine.options.entry("trusted".to_owned()).or_insert(trusted);
            }
            mine.text.clone_from(&other.text);
        }
    }

    /// Replaces the URI of a section that differs from this one by a final slash alone.
    pub fn replace_uri(&mut self, uri: &str) {
        let Form::Section(section) = &mut self.form else { return };
        let mut uris = words(section.get("URIs"));
        if !uris.iter().any(|have| have == uri)
            && let Some(have) = uris.iter_mut().find(|have| same_uri(have, uri))
        {
            uri.clone_into(have);
            section.set("URIs", &uris.join(" "));
        }
    }

    /// Sets a field by Salt's name. Unknown names are ignored.
    pub fn set(&mut self, name: &str, value: &Value) {
        let list = Vec::<String>::from_value(value).unwrap_or_default();
        let text = if value.is_nil() { String::new() } else { value.to_string() };
        match (&mut self.form, name) {
            (_, "file") => self.file = text,
            (Form::Line(line), "uri") => line.uri = text,
            (Form::Line(line), "dist") => line.dist = text,
            (Form::Line(line), "comps") => line.comps = list,
            (Form::Line(line), "disabled") => line.disabled = value.is_truthy(),
            (Form::Line(line), "architectures") if !list.is_empty() => {
                let name = line.options.keys().find(|name| name.starts_with("arch")).cloned();
                line.options.insert(name.unwrap_or_else(|| "arch".into()), list.join(","));
            }
            (Form::Line(line), "signedby") if !text.is_empty() => _ = line.options.insert("signed-by".into(), text),
            (Form::Line(line), "trusted") if !value.is_nil() => {
                let yes = value == &Value::Bool(true) || is_yes(&text);
                line.options.insert("trusted".into(), if yes { "yes" } else { "no" }.into());
            }
            (Form::Section(section), "uri") => section.set("URIs", &text),
            (Form::Section(section), "uris") => section.set("URIs", &list.join(" ")),
            (Form::Section(section), "dist") => section.set("Suites", &text),
            (Form::Section(section), "suites") => section.set("Suites", &list.join(" ")),
            (Form::Section(section), "types") => section.set("Types", &list.join(" ")),
            (Form::Section(section), "comps") => section.set("Components", &list.join(" ")),
            (Form::Section(section), "architectures") => section.set("Architectures", &list.join(" ")),
            (Form::Section(section), "signedby") => section.set("Signed-By", &text),
            (Form::Section(section), "disabled") if value.is_truthy() => section.set("Enabled", "no"),
            (Form::Section(section), "disabled") => _ = section.tags.shift_remove(&section.key("Enabled")),
            (Form::Section(section), "trusted") if !value.is_nil() => {
                let yes = value == &Value::Bool(true) || is_yes(&text);
                section.set("Trusted", if yes { "yes" } else { "no" });
            }
            _ => {}
        }
    }

    /// Returns the item of `pkg.list_repos` for one of its types, URIs and distributions.
    pub fn to_map(&self, kind: &str, uri: &str, dist: &str) -> Map {
        let line = match &self.form {
            Form::Line(line) => line.text.clone(),
            Form::Section(_) => {
                let mut line = Line { kind: kind.into(), uri: uri.into(), dist: dist.into(), ..Line::default() };
                (line.is_source, line.disabled, line.comps) = (true, self.is_disabled(), self.comps());
                let options = [
                    ("arch", self.architectures().join(",")),
                    ("signed-by", self.signed_by()),
                    ("trusted", if self.is_trusted() { "yes".into() } else { String::new() }),
                ];
                let options = options.into_iter().filter(|(_, value)| !value.is_empty());
                line.options = options.map(|(name, value)| (name.to_owned(), value)).collect();
                line.show()
            }
        };
        map! {
            "file" => &self.file,
            "comps" => self.comps(),
            "disabled" => self.is_disabled(),
            "enabled" => !self.is_disabled(),
            "dist" => dist,
            "suites" => self.suites(),
            "type" => kind,
            "types" => self.kinds(),
            "uri" => uri,
            "uris" => self.uris(),
            "line" => line,
            "architectures" => self.architectures(),
            "signedby" => Some(self.signed_by()).filter(|path| !self.is_section() || !path.is_empty()),
        }
    }
}

/// All sources in apt's files.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// In the order of files and lines.
    pub list: Vec<Source>,
}

impl Sources {
    /// Reads the current files.
    pub fn read() -> Result<Self, FileError> {
        let ending =
            |name: &str| Path::new(name).extension().is_some_and(|ending| ending == "list" || ending == "sources");
        let names = fs::read_dir(SOURCES_DIRECTORY)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok());
        let parts: BTreeSet<String> =
            names.filter(|name| ending(name)).map(|name| format!("{SOURCES_DIRECTORY}/{name}")).collect();
        let mut list = Vec::new();
        for file in [SOURCES_LIST.to_owned()].into_iter().chain(parts).filter(|file| Path::new(file).is_file()) {
            let text = files::read_to_string(&file)?;
            let forms: Vec<Form> = if Path::new(&file).extension().is_some_and(|ending| ending == "sources") {
                sections(&text).iter().map(|section| Form::Section(Section::parse(section))).collect()
            } else {
                text.lines().map(|line| Form::Line(Line::parse(line))).collect()
            };
            list.extend(forms.into_iter().map(|form| Source { file: file.clone(), form }));
        }
        Ok(Sources { list })
    }

    /// Writes all files with sources.
    pub fn write(&self) -> Result<(), FileError> {
        let mut texts: IndexMap<&str, String> = IndexMap::new();
        for source in &self.list {
            let text = texts.entry(&source.file).or_default();
            if source.is_section() && !text.is_empty() {
                text.push('\n');
            }
            *text += &(source.show() + "\n");
        }
        for (file, text) in texts {
            if files::read_if_exists(file)?.as_ref() != Some(&text) {
                files::write_atomic(file, text.as_bytes(), 0o644)?;
            }
        }
        Ok(())
    }

    /// Returns the repositories by URI, as in `pkg.list_repos`.
    pub fn to_map(&self) -> IndexMap<String, Vec<Map>> {
        let mut report: IndexMap<String, Vec<Map>> = IndexMap::new();
        for source in self.list.iter().filter(|source| source.is_source()) {
            for uri in source.uris() {
                for dist in source.suites() {
                    for kind in source.kinds() {
                        report.entry(uri.clone()).or_default().push(source.to_map(&kind, &uri, &dist));
                    }
                }
            }
        }
        report
    }
}

/// Splits a text at blank lines.
fn sections(text: &str) -> Vec<String> {
    let mut sections = vec![String::new()];
    for line in text.lines() {
        match sections.last_mut() {
            Some(last) if !line.trim().is_empty() => *last += &format!("{line}\n"),
            _ => sections.push(String::new()),
        }
    }
    sections.retain(|section| !section.is_empty());
    sections
}

#[cfg(test)]
mod tests;
