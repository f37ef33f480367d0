//! Privileges on objects, parsed from arguments and from the `GRANT` statements that servers show.

use brine_function::CallError;

use super::quote::identifier;
use super::tokens::{Token, tokens};

/// A privilege, on some columns or on all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Privilege {
    /// The name in upper case, in the form that the server shows.
    pub name: String,
    pub columns: Vec<String>,
}

/// The name for all privileges on an object.
pub(super) const ALL: &str = "ALL PRIVILEGES";

impl Privilege {
    /// Parses privileges that are separated by commas, such as `SELECT, INSERT (a, b)`.
    ///
    /// # Errors
    /// The text is not a list of privileges.
    pub fn parse(text: &str) -> Result<Vec<Privilege>, CallError> {
        let tokens = tokens(text);
        let (privileges, length) = read_privileges(&tokens);
        if length != tokens.len() || privileges.is_empty() {
            return Err(CallError::Execution(format!(
                "Invalid grant : '{text}': expected privileges with commas between them"
            )));
        }
        Ok(privileges)
    }

    /// Returns the privilege as SQL.
    pub fn sql(&self) -> String {
        // Only MariaDB accepts the name that it shows; MySQL has the older name.
        let name = if self.name == "BINLOG MONITOR" { "REPLICATION CLIENT" } else { &self.name };
        if self.columns.is_empty() {
            return name.to_owned();
        }
        let columns: Vec<String> = self.columns.iter().map(|column| identifier(column)).collect();
        format!("{name} ({})", columns.join(", "))
    }
}

/// Parses privileges, and returns them with the number of consumed tokens.
fn read_privileges(tokens: &[Token]) -> (Vec<Privilege>, usize) {
    let mut privileges = Vec::new();
    let mut position = 0;
    loop {
        let mut words = Vec::new();
        while let Some(Token::Word(word)) = tokens.get(position).filter(|token| !token.is_word("ON")) {
            words.push(word.to_uppercase());
            position += 1;
        }
        if words.is_empty() {
            return (privileges, position);
        }
        let mut columns = Vec::new();
        if tokens.get(position).is_some_and(|token| token.is_symbol('(')) {
            let end = tokens[position..].iter().position(|token| token.is_symbol(')'));
            let Some(end) = end.map(|end| position + end) else { return (privileges, position) };
            columns.extend(tokens[position..end].iter().filter_map(|token| token.text().map(str::to_lowercase)));
            position = end + 1;
        }
        privileges.push(Privilege { name: canonical(&words.join(" ")), columns });
        if !tokens.get(position).is_some_and(|token| token.is_symbol(',')) {
            return (privileges, position);
        }
        position += 1;
    }
}

/// Returns the name under which MariaDB shows a privilege.
fn canonical(name: &str) -> String {
    match name {
        "ALL" => ALL,
        "REPLICATION REPLICA" => "REPLICATION SLAVE",
        "REPLICATION CLIENT" => "BINLOG MONITOR",
        "REPLICA MONITOR" => "SLAVE MONITOR",
        name => name,
    }
    .to_owned()
}

/// The object of a grant: a table, all tables of a database, or everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object {
    /// `None` for all databases. If `table` is `None`, a pattern with the wildcards `_` and `%` and the escape `\`.
    database: Option<String>,
    table: Option<String>,
}

impl Object {
    /// Parses `*.*`, `database.*` or `database.table`. Unless `escape` is set, names may be quoted, and `_` and `%` in
    /// the name of a database are wildcards.
    ///
    /// # Errors
    /// The text is not in one of these forms.
    pub fn parse(text: &str, escape: bool) -> Result<Self, CallError> {
        let invalid = || {
            CallError::Execution(format!(
                "database is invalid: expected '*.*', 'database.*' or 'database.table', got '{text}'"
            ))
        };
        let (database, table) = text.rsplit_once('.').ok_or_else(invalid)?;
        let name = |text: &str| match &tokens(text)[..] {
            [Token::Quoted { text, raw }] if !escape && raw.starts_with('`') => text.clone(),
            _ => text.to_owned(),
        };
        let part = |text: &str| (text != "*").then(|| name(text));
        let object = match (part(database), part(table)) {
            (Some(database), None) if escape => {
                Object { database: Some(database.replace('_', "\\_").replace('%', "\\%")), table: None }
            }
            (database, table) => Object { database, table },
        };
        let is_empty = |part: &Option<String>| part.as_ref().is_some_and(String::is_empty);
        if is_empty(&object.database)
            || is_empty(&object.table)
            || (object.database.is_none() && object.table.is_some())
        {
            return Err(invalid());
        }
        Ok(object)
    }

    /// Returns whether the object is `*.*`.
    pub fn is_everything(&self) -> bool {
        self.database.is_none()
    }

    /// Returns the object as SQL.
    pub fn sql(&self) -> String {
        let part = |part: &Option<String>| part.as_deref().map_or_else(|| "*".to_owned(), identifier);
        format!("{}.{}", part(&self.database), part(&self.table))
    }

    /// Returns whether two objects are the same; servers differ in whether they escape wildcards.
    pub fn is_same(&self, other: &Object) -> bool {
        let plain = |object: &Object| {
            let database = object.database.as_ref();
            match object.table {
                None => database.map(|name| name.replace("\\_", "_").replace("\\%", "%")),
                Some(_) => database.cloned(),
            }
        };
        self.table == other.table && plain(self) == plain(other)
    }
}

/// A `GRANT` statement, as servers show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grant {
    pub privileges: Vec<Privilege>,
    pub object: Object,
    /// The object as written in the statement.
    pub object_text: String,
    pub user: String,
    pub host: String,
    /// Whether the user may grant the privileges to others.
    pub may_grant: bool,
}

impl Grant {
    /// Parses a statement; `None` if it grants a role, a proxy or privileges on a routine.
    pub fn parse(statement: &str) -> Option<Self> {
        let tokens = tokens(statement);
        let tokens =
            tokens.strip_prefix(std::slice::from_ref(tokens.first().filter(|token| token.is_word("GRANT"))?))?;
        let (privileges, length) = read_privileges(tokens);
        let rest = &tokens[length..];
        let (on, rest) = rest.split_first()?;
        let rest = rest.strip_prefix(&[Token::Word("TABLE".into())]).unwrap_or(rest);
        let to = rest.iter().position(|token| token.is_word("TO"))?;
        let object = object(&rest[..to])?;
        let object_text = rest[..to].iter().map(Token::raw).collect();
        let account = &rest[to + 1..];
        let user = account.first()?.text()?.to_owned();
        let host = account.get(1).filter(|token| token.is_symbol('@')).and_then(|_| host(&account[2..]));
        let may_grant = account.windows(2).any(|pair| pair[0].is_word("GRANT") && pair[1].is_word("OPTION"));
        let host = host.unwrap_or_else(|| "%".into());
        on.is_word("ON").then_some(Grant { privileges, object, object_text, user, host, may_grant })
    }
}

/// Parses a host, which consists of several tokens if it is not quoted.
fn host(tokens: &[Token]) -> Option<String> {
    if let Some(Token::Quoted { text, .. }) = tokens.first() {
        return Some(text.clone());
    }
    let mut host = String::new();
    let mut was_word = false;
    for token in tokens {
        match token {
            Token::Word(word) if !was_word => host.push_str(word),
            Token::Symbol('.') => host.push('.'),
            _ => break,
        }
        was_word = matches!(token, Token::Word(_));
    }
    (!host.is_empty()).then_some(host)
}

fn object(tokens: &[Token]) -> Option<Object> {
    let [database, dot, table] = tokens else { return None };
    let part = |token: &Token| match token {
        Token::Symbol('*') => Some(None),
        token => token.text().map(|text| Some(text.to_owned())),
    };
    dot.is_symbol('.').then_some(())?;
    Some(Object { database: part(database)?, table: part(table)? })
}

#[cfg(test)]
mod tests;
