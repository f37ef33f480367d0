//! The format of INI files: parsing, changing and rendering that preserves comments and order.

use brine_value::{Map, Value, map};
use indexmap::IndexMap;

/// Content of a section by name: options, and other lines under reserved names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Section {
    lines: IndexMap<String, String>,
}

/// A whole file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ini {
    /// Lines above all sections.
    pub top: Section,
    /// Sections in file order.
    pub sections: IndexMap<String, Section>,
}

/// The format of options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// Separator of name and value.
    pub separator: String,
    /// Whether the separator is written without blanks around it.
    pub no_spaces: bool,
}

impl Form {
    /// Returns the separator as it is written, with or without blanks around it.
    fn written(&self) -> String {
        match self.separator.trim() {
            "" => " ".into(),
            tight if self.no_spaces => tight.into(),
            loose => format!(" {loose} "),
        }
    }

    /// Splits an option into indentation, name and value.
    fn option<'l>(&self, line: &'l str) -> Option<(&'l str, &'l str, &'l str)> {
        let start = line.trim_start();
        let indent = &line[..line.len() - start.len()];
        // The separator is searched after the first character, because a name is never empty.
        let first = start.chars().next()?.len_utf8();
        let at = first + start[first..].find(&self.separator)?;
        let value = start[at + self.separator.len()..].trim_start();
        Some((indent, start[..at].trim_end(), value))
    }
}

/// Whether a name is reserved for lines that are not options.
fn is_hidden(name: &str) -> bool {
    name.starts_with('#')
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with(['#', ';'])
}

/// Returns a change in Salt's form: `{before, after}`.
fn change(before: impl Into<Value>, after: impl Into<Value>) -> Value {
    map! {"before" => before.into(), "after" => after.into()}.into()
}

impl Section {
    fn parse(lines: &[&str], form: &Form) -> Self {
        let mut section = Section::default();
        let (mut comments, mut unknown, mut indented) = (0, 0, 0);
        let first = lines.iter().position(|line| !line.trim().is_empty()).unwrap_or(lines.len());
        let last = lines.iter().rposition(|line| !line.trim().is_empty()).map_or(first, |last| last + 1);
        for line in &lines[first..last] {
            let indent = line.len() - line.trim_start().len();
            if is_comment(line) {
                comments += 1;
                section.set(&format!("#comment{comments}"), line, form);
            } else if indent > indented
                && let Some((_, value)) = section.lines.last_mut()
            {
                *value = format!("{value}\n{line}");
            } else if let Some((indent, name, value)) = form.option(line) {
                indented = indent.len();
                section.set(name, value, form);
            } else {
                unknown += 1;
                section.set(&format!("#unknown{unknown}"), line, form);
            }
        }
        section
    }

    /// Returns the value of an option.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.lines.get(name).filter(|_| !is_hidden(name)).map(String::as_str)
    }

    /// Returns the options and their values.
    pub fn options(&self) -> impl Iterator<Item = (&str, &str)> {
        let lines = self.lines.iter().filter(|(name, _)| !is_hidden(name));
        lines.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the options and their values, in Salt's form.
    pub fn describe(&self) -> Map {
        self.options().map(|(name, value)| (name.into(), value.into())).collect()
    }

    /// Sets an option and returns the change. A new option takes the place of a commented-out line of the same option.
    pub fn set(&mut self, name: &str, value: &str, form: &Form) -> Option<Value> {
        if let Some(have) = self.lines.get_mut(name) {
            let before = std::mem::replace(have, value.to_owned());
            return (before != value).then(|| change(before, value));
        }
        let is_it = |(comment, line): (&String, &String)| {
            let option = form.option(line.trim_start_matches('#'));
            comment.starts_with("#comment") && option.is_some_and(|(_, key, _)| key == name)
        };
        let index = self.lines.iter().position(is_it);
        if let Some(index) = index {
            self.lines.shift_remove_index(index);
        }
        self.lines.shift_insert(index.unwrap_or(self.lines.len()), name.to_owned(), value.to_owned());
        Some(change(Value::Nil, value))
    }

    /// Removes an option and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<String> {
        self.lines.shift_remove(name)
    }

    fn render(&self, form: &Form) -> String {
        let separator = form.written();
        let line = |(name, value): (&String, &String)| {
            if is_hidden(name) { format!("{value}\n") } else { format!("{name}{separator}{value}\n") }
        };
        self.lines.iter().map(line).collect()
    }
}

impl Ini {
    /// Parses the text of a file.
    pub fn parse(text: &str, form: &Form) -> Self {
        let header = |line: &str| {
            let name = line.trim().strip_prefix('[')?.strip_suffix(']')?;
            (!name.is_empty()).then(|| name.to_owned())
        };
        let (mut ini, mut name, mut lines) = (Ini::default(), None, Vec::new());
        for line in text.lines().map(Some).chain([None]) {
            let next = line.and_then(header);
            if line.is_some() && next.is_none() {
                lines.extend(line);
                continue;
            }
            let section = Section::parse(&lines, form);
            lines.clear();
            match std::mem::replace(&mut name, next) {
                None => ini.top = section,
                Some(name) => {
                    let target = ini.sections.entry(name).or_default();
                    for (name, value) in &section.lines {
                        target.set(name, value, form);
                    }
                }
            }
        }
        ini
    }

    /// Renders the file.
    pub fn render(&self, form: &Form) -> String {
        let sections = self.sections.iter().map(|(name, section)| format!("\n[{name}]\n{}", section.render(form)));
        let text = format!("{}{}", self.top.render(form), sections.collect::<String>());
        text.strip_prefix('\n').map(str::to_owned).unwrap_or(text)
    }

    /// Returns the whole file, in Salt's form.
    pub fn describe(&self) -> Map {
        let mut report = self.top.describe();
        report.extend(self.sections.iter().map(|(name, section)| (name.as_str().into(), section.describe().into())));
        report
    }

    /// Sets options, those above all sections by name, those in sections as mappings, and returns the changes.
    pub fn set(&mut self, desired: &Map, form: &Form) -> Map {
        let mut changes = Map::new();
        for (name, value) in desired {
            let Value::Map(options) = value else {
                let changed = self.top.set(&name.to_string(), &value.to_string(), form);
                changes.extend(changed.map(|change| (name.clone(), change)));
                continue;
            };
            let is_new = !self.sections.contains_key(&name.to_string());
            let section = self.sections.entry(name.to_string()).or_default();
            let set = |(option, value): (&Value, &Value)| {
                let changed = section.set(&option.to_string(), &value.to_string(), form)?;
                Some((option.to_string().into(), changed))
            };
            let changed: Map = options.iter().filter_map(set).collect();
            if is_new {
                changes.insert(name.clone(), change(Value::Nil, section.describe()));
            } else if !changed.is_empty() {
                changes.insert(name.clone(), changed.into());
            }
        }
        changes
    }

    /// Returns the value of an option in a section, or above all sections.
    pub fn get(&self, section: Option<&str>, option: &str) -> Option<&str> {
        match section {
            Some(section) => self.sections.get(section)?.get(option),
            None => self.top.get(option),
        }
    }

    /// Removes an option from a section or, without such a section, from the top, and returns its value.
    pub fn remove(&mut self, section: Option<&str>, option: &str) -> Option<String> {
        let section = section.and_then(|section| self.sections.get_mut(section));
        section.unwrap_or(&mut self.top).remove(option)
    }
}

#[cfg(test)]
mod tests;
