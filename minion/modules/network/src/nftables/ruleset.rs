//! The current rules of an address family, read by the program `nft`.

use brine_context::Context;
use brine_function::CallError;
use brine_host::process::Output;
use brine_host::programs::program;
use brine_value::json::from_json;
use brine_value::{Value, map};

use super::family::Family;
use super::listing::{self, Listed};

/// The options of older releases for numbers instead of names.
pub(super) const NUMERIC: [&str; 3] = ["--numeric"; 3];

/// The answer of a function: whether it succeeded, or something exists, and a message.
pub(super) struct Report {
    pub result: bool,
    pub comment: String,
}

impl Report {
    pub(super) fn ok(comment: impl Into<String>) -> Self {
        Report { result: true, comment: comment.into() }
    }

    pub(super) fn no(comment: impl Into<String>) -> Self {
        Report { result: false, comment: comment.into() }
    }
}

impl From<Report> for Value {
    fn from(report: Report) -> Self {
        map! {"comment" => report.comment, "result" => report.result}.into()
    }
}

/// The rules of an address family.
pub(super) struct Ruleset<'c> {
    pub context: &'c Context,
    pub family: Family,
    /// The family as its caller calls it, for messages.
    pub name: String,
}

impl<'c> Ruleset<'c> {
    pub(super) fn new(context: &'c Context, name: &str) -> Result<Self, CallError> {
        Ok(Ruleset { context, family: Family::parse(name)?, name: name.to_owned() })
    }

    /// Returns the output of a command that reads. A failure is an error: an unreadable ruleset is not an empty one.
    pub(super) fn read(&self, options: &[&str], words: &[&str]) -> Result<String, CallError> {
        let output = nft(self.context, options, words)?;
        if output.retcode == 0 {
            return Ok(output.stdout);
        }
        Err(CallError::Execution(format!("nft {} failed: {}", words.join(" "), output.stderr)))
    }

    /// Returns the names of the tables.
    pub(super) fn tables(&self) -> Result<Vec<String>, CallError> {
        let listing = self.read(&[], &["list", "tables", self.family.word()])?;
        let prefix = format!("table {} ", self.family.word());
        Ok(listing.lines().filter_map(|line| line.strip_prefix(&prefix)).map(|table| table.trim().to_owned()).collect())
    }

    /// Returns whether a table exists.
    pub(super) fn check_table(&self, table: &str) -> Result<Report, CallError> {
        let (table, family) = (name("table", table)?, &self.name);
        Ok(if self.tables()?.iter().any(|existing| existing == table) {
            Report::ok(format!("Table {table} in family {family} exists"))
        } else {
            Report::no(format!("Table {table} in family {family} does not exist"))
        })
    }

    /// Returns whether a chain exists.
    pub(super) fn check_chain(&self, table: &str, chain: &str) -> Result<Report, CallError> {
        let (table, chain, family) = (name("table", table)?, name("chain", chain)?, &self.name);
        let listing = self.read(&[], &["list", "chains", self.family.word()])?;
        let (table_line, chain_line) =
            (format!("table {} {table} {{", self.family.word()), format!("chain {chain} {{"));
        let mut lines =
            listing.lines().skip_while(|line| !line.starts_with(&table_line)).skip(1).take_while(|line| *line != "}");
        Ok(if lines.any(|line| line.trim() == chain_line) {
            Report::ok(format!("Chain {chain} in table {table} in family {family} exists"))
        } else {
            Report::no(format!("Chain {chain} in table {table} in family {family} does not exist"))
        })
    }

    /// Returns whether a chain and its table exist; if not, which of them does not.
    pub(super) fn check_place(&self, table: &str, chain: &str) -> Result<Report, CallError> {
        let report = self.check_table(table)?;
        if report.result { self.check_chain(table, chain) } else { Ok(report) }
    }

    /// Returns the rules of an existing chain.
    pub(super) fn rules(&self, table: &str, chain: &str) -> Result<Vec<Listed>, CallError> {
        let listing = self.read(&["--handle"], &["list", "chain", self.family.word(), table, chain])?;
        Ok(listing::parse(&listing))
    }

    /// Returns a rule of an existing chain.
    pub(super) fn find(&self, table: &str, chain: &str, rule: &str) -> Result<Option<Listed>, CallError> {
        listing::validate(rule).map_err(CallError::Execution)?;
        Ok(self.rules(table, chain)?.into_iter().find(|listed| listing::is_same(rule, &listed.text)))
    }

    /// Returns whether a chain has a rule.
    pub(super) fn check(&self, table: &str, chain: &str, rule: &str) -> Result<Report, CallError> {
        let place = self.check_place(table, chain)?;
        if !place.result {
            return Ok(place);
        }
        let at = format!("Rule {rule} in chain {chain} in table {table} in family {}", self.name);
        Ok(match self.find(table, chain, rule)? {
            Some(_) => Report::ok(format!("{at} exists")),
            None => Report::no(format!("{at} does not exist")),
        })
    }

    /// Returns a chain as nft describes it in JSON: name, type, hook, priority and policy.
    pub(super) fn chain(&self, table: &str, chain: &str) -> Result<Option<Value>, CallError> {
        let listing = self.read(&["--json"], &["list", "chains", self.family.word()])?;
        let is = |entry: &Value, key: &str, value: &str| entry.get(key).and_then(Value::as_str) == Some(value);
        let chains = objects(&listing).into_iter().filter_map(|object| object.get("chain").cloned());
        Ok(chains.into_iter().find(|entry| is(entry, "table", table) && is(entry, "name", chain)))
    }
}

/// Runs the program. nft joins the words of a command and splits them again, so callers check names and rules first.
pub(super) fn nft(context: &Context, options: &[&str], words: &[&str]) -> Result<Output, CallError> {
    if context.minion.programs.find("nft").is_none() {
        return Err(CallError::Execution("program nft not found: install nftables".into()));
    }
    let command: Vec<String> =
        ["nft"].iter().chain(options).chain(&["--"]).chain(words).map(|word| (*word).to_owned()).collect();
    context.run_program(&program(&command, &[])).map_err(CallError::execution)
}

/// Returns the objects of nft's JSON; none if it is not valid.
pub(super) fn objects(json: &str) -> Vec<Value> {
    let objects =
        from_json(json).ok().and_then(|root| root.get("nftables").and_then(Value::as_list).map(<[Value]>::to_vec));
    objects.unwrap_or_default()
}

/// Checks that a name is one of nft's grammar: anything else could be a command of its own.
pub(super) fn name<'n>(what: &str, name: &'n str) -> Result<&'n str, CallError> {
    let is_first = |c: char| c.is_ascii_alphabetic() || "_.".contains(c);
    let is_other = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
    if name.starts_with(is_first) && name.chars().all(is_other) {
        return Ok(name);
    }
    let name = name.escape_debug();
    let expected = "a letter, '_' or '.', then letters, digits, '_', '.', '/' and '-'";
    Err(CallError::Execution(format!("{what} '{name}' is invalid: expected {expected}")))
}
