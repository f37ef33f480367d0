//! The file crypttab: its entries, and the other lines, which are preserved.

use brine_function::CallError;
use brine_system::files;

/// An entry: name, device, key file or `none`, and options separated by commas.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub name: String,
    pub device: String,
    pub password: String,
    pub options: String,
}

/// The outcome of setting an entry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    New,
    Changed,
    Present,
}

impl Change {
    pub fn name(self) -> &'static str {
        match self {
            Change::New => "new",
            Change::Changed => "change",
            Change::Present => "present",
        }
    }
}

impl Entry {
    /// Creates an entry.
    ///
    /// # Errors
    /// A field is empty or contains blanks, which separate the fields of a line, or starts with `#`. Options may be
    /// empty.
    pub fn new(name: String, device: String, password: String, options: String) -> Result<Self, CallError> {
        let entry = Entry { name, device, password, options };
        for (field, value) in entry.fields() {
            let is_missing = value.is_empty() && field != "options";
            if is_missing || value.contains(char::is_whitespace) || value.starts_with('#') {
                let message = format!("{field} is invalid: expected a word without blanks, got '{value}'");
                return Err(CallError::Execution(message));
            }
        }
        Ok(entry)
    }

    fn parse(line: &str) -> Option<Self> {
        if line.starts_with('#') {
            return None;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, device, password, options) = match words[..] {
            [name, device, password] => (name, device, password, ""),
            [name, device, password, options] => (name, device, password, options),
            _ => return None,
        };
        Some(Entry { name: name.into(), device: device.into(), password: password.into(), options: options.into() })
    }

    fn fields(&self) -> [(&'static str, &str); 4] {
        [("name", &self.name), ("device", &self.device), ("password", &self.password), ("options", &self.options)]
    }

    fn line(&self) -> String {
        let Entry { name, device, password, options } = self;
        format!("{name:<12} {device:<44} {password:<22} {options}").trim_end().to_owned()
    }
}

/// The lines of the file.
pub struct Table(Vec<String>);

impl Table {
    /// Reads a crypttab; a missing file is an error.
    pub fn read(path: &str) -> Result<Self, CallError> {
        let missing = || CallError::Execution(format!("Bad config file \"{path}\""));
        Self::read_if_exists(path)?.ok_or_else(missing)
    }

    pub fn read_if_exists(path: &str) -> Result<Option<Self>, CallError> {
        let text = files::read_if_exists(path).map_err(CallError::execution)?;
        Ok(text.map(|text| Table(text.lines().map(str::to_owned).collect())))
    }

    /// Writes the file. Its mode and owner are preserved.
    pub fn write(&self, path: &str) -> Result<(), CallError> {
        let text = self.0.iter().map(|line| format!("{line}\n")).collect::<Vec<_>>().concat();
        files::rewrite(path, text.as_bytes(), 0o600).map_err(CallError::execution)
    }

    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        self.0.iter().filter_map(|line| Entry::parse(line))
    }

    /// Removes the entries of a name, and returns whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|line| Entry::parse(line).is_none_or(|entry| entry.name != name));
        self.0.len() < before
    }

    /// Replaces the entries that have the same values in these fields, or adds the entry.
    pub fn set(&mut self, entry: &Entry, match_on: &[String]) -> Result<Change, CallError> {
        let fields = entry.fields();
        let unknown = |field: &&String| !fields.iter().any(|(name, _)| name == field);
        if let Some(field) = match_on.iter().find(unknown) {
            return Err(CallError::Execution(format!("Unrecognized keys in match_on: \"{field}\"")));
        }
        let fits = |other: &Entry| {
            fields
                .iter()
                .zip(other.fields())
                .all(|((name, a), (_, b))| !match_on.contains(&(*name).to_owned()) || *a == b)
        };
        let mut change = None;
        for line in &mut self.0 {
            let Some(existing) = Entry::parse(line).filter(fits) else { continue };
            if existing == *entry {
                change = change.or(Some(Change::Present));
            } else {
                *line = entry.line();
                change = Some(Change::Changed);
            }
        }
        Ok(change.unwrap_or_else(|| {
            self.0.push(entry.line());
            Change::New
        }))
    }
}
