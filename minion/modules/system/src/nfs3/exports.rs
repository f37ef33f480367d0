//! The file `/etc/exports`: lines of a path, and hosts with their options. Lines that are not changed stay as they are,
//! with comments.

use brine_function::CallError;
use brine_system::files;
use brine_value::{Map, Value, map};

/// Hosts, and the options that apply to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    hosts: String,
    options: Vec<String>,
}

impl Client {
    /// Checks that the hosts and options are words of a line.
    pub fn new(hosts: &str, options: Vec<String>) -> Result<Self, CallError> {
        let is_word =
            |word: &str| !word.contains(|c: char| c.is_whitespace() || c.is_control() || "()#\"\\".contains(c));
        // A path or default options would begin so.
        if hosts.is_empty() || hosts.starts_with(['-', '/']) || !is_word(hosts) {
            return Err(CallError::Execution(format!("{hosts:?} is not a host, network or pattern of hosts")));
        }
        if let Some(option) = options.iter().find(|option| option.is_empty() || !is_word(option)) {
            return Err(CallError::Execution(format!("{option:?} is not an option of an export")));
        }
        Ok(Client { hosts: hosts.to_owned(), options })
    }

    fn parse(word: &str, defaults: &[String]) -> Self {
        let (hosts, own) = word.split_once('(').unwrap_or((word, ""));
        let own = own.split(')').next().unwrap_or_default().split(',').filter(|option| !option.is_empty());
        let options = defaults.iter().cloned().chain(own.map(str::to_owned)).collect();
        Client { hosts: hosts.to_owned(), options }
    }
}

impl From<Client> for Value {
    fn from(client: Client) -> Self {
        map! {"hosts" => client.hosts, "options" => client.options}.into()
    }
}

/// A line, with the lines that continue it.
#[derive(Debug)]
struct Line {
    raw: String,
    /// More than one in files of older versions of Salt.
    paths: Vec<String>,
    clients: Vec<Client>,
    /// From its `#`.
    comment: String,
}

impl Line {
    fn parse(raw: &str) -> Self {
        let (words, comment) = words(&raw.replace("\\\n", ""));
        let mut line = Line { raw: raw.to_owned(), paths: Vec::new(), clients: Vec::new(), comment };
        let mut defaults = Vec::new();
        for word in words {
            match word.strip_prefix('-') {
                _ if line.paths.is_empty() || word.starts_with('/') => line.paths.push(word),
                Some(options) => defaults = options.split(',').map(str::to_owned).collect(),
                None => line.clients.push(Client::parse(&word, &defaults)),
            }
        }
        line
    }

    fn new(path: &str, clients: Vec<Client>) -> Self {
        let mut line = Line { raw: String::new(), paths: vec![path.to_owned()], clients, comment: String::new() };
        line.format();
        line
    }

    /// Writes the line anew, after a change.
    fn format(&mut self) {
        let mut words: Vec<String> = self.paths.iter().map(|path| escaped(path)).collect();
        words.extend(self.clients.iter().map(|client| format!("{}({})", client.hosts, client.options.join(","))));
        words.extend(Some(self.comment.clone()).filter(|comment| !comment.is_empty()));
        self.raw = words.join(" ") + "\n";
    }
}

/// The exports of a file.
pub struct Exports(Vec<Line>);

impl Exports {
    /// Reads a file.
    pub fn read(path: &str) -> Result<Self, CallError> {
        Ok(Self::parse(&files::read_to_string(path).map_err(CallError::execution)?))
    }

    /// Parses the text of a file.
    pub fn parse(text: &str) -> Self {
        let (mut lines, mut open) = (Vec::new(), String::new());
        for line in text.split_inclusive('\n') {
            open += line;
            if !line.ends_with("\\\n") {
                lines.push(Line::parse(&std::mem::take(&mut open)));
            }
        }
        if !open.is_empty() {
            lines.push(Line::parse(&open));
        }
        Exports(lines)
    }

    /// Returns the text of the file.
    pub fn text(&self) -> String {
        self.0.iter().map(|line| line.raw.as_str()).collect()
    }

    /// Writes the file.
    pub fn write(&self, path: &str) -> Result<(), CallError> {
        files::rewrite(path, self.text().as_bytes(), 0o644).map_err(CallError::execution)
    }

    /// Returns the clients of each path.
    pub fn describe(&self) -> Map {
        let mut paths = Map::new();
        for line in &self.0 {
            for path in &line.paths {
                let clients = paths.entry(path.as_str().into()).or_insert_with(|| Value::List(Vec::new()));
                if let Value::List(clients) = clients {
                    clients.extend(line.clients.iter().cloned().map(Value::from));
                }
            }
        }
        paths
    }

    /// Returns the clients of a path; `None` if it is not exported.
    pub fn clients(&self, path: &str) -> Option<Vec<Client>> {
        let lines: Vec<&Line> = self.0.iter().filter(|line| line.paths.iter().any(|own| own == path)).collect();
        if lines.is_empty() { None } else { Some(lines.iter().flat_map(|line| line.clients.clone()).collect()) }
    }

    /// Adds a client to a path, in its line if it has one of its own.
    pub fn add(&mut self, path: &str, client: Client) -> Result<(), CallError> {
        if !path.starts_with('/') || path.contains(char::is_control) {
            return Err(CallError::Execution(format!("{path:?} is not an absolute path")));
        }
        if let Some(line) = self.0.iter_mut().rfind(|line| line.paths == [path]) {
            line.clients.push(client);
            line.format();
            return Ok(());
        }
        let mut clients = self.clients(path).unwrap_or_default();
        self.remove(path);
        clients.push(client);
        if let Some(last) = self.0.last_mut().filter(|last| !last.raw.ends_with('\n')) {
            last.raw.push('\n');
        }
        self.0.push(Line::new(path, clients));
        Ok(())
    }

    /// Removes a path. Returns whether it was exported.
    pub fn remove(&mut self, path: &str) -> bool {
        let mut exists = false;
        self.0.retain_mut(|line| {
            if !line.paths.iter().any(|own| own == path) {
                return true;
            }
            exists = true;
            line.paths.retain(|own| own != path);
            line.format();
            !line.paths.is_empty()
        });
        exists
    }
}

/// Splits a line into words, without quotes and escapes, and its comment.
fn words(line: &str) -> (Vec<String>, String) {
    let (mut words, mut word, mut quoted, mut rest) = (Vec::new(), None::<String>, false, line);
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        match c {
            '#' if !quoted => break,
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '\\' => {
                let code = after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(u8::is_ascii);
                word.get_or_insert_default().push(code.map_or('\\', char::from));
                rest = if code.is_some() { &after[3..] } else { after };
                continue;
            }
            c if c.is_whitespace() && !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
        rest = after;
    }
    words.extend(word);
    (words, rest.trim_end().to_owned())
}

/// Returns a path as it is written: special characters become octal escapes.
fn escaped(path: &str) -> String {
    let write = |c: char| match c {
        ' ' | '"' | '#' | '(' | ')' | '\\' | '\t' => format!("\\{:03o}", u32::from(c)),
        c => c.to_string(),
    };
    path.chars().map(write).collect()
}
