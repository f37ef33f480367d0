//! Changes of tables, chains and rules.

use brine_function::CallError;
use brine_value::Value;

use super::listing;
use super::ruleset::{Report, Ruleset, name, nft};

/// The hook of a base chain, which the kernel passes packets to.
pub(super) struct Hook {
    /// `filter`, `nat` or `route`.
    pub kind: String,
    /// Name of the hook, such as `input`.
    pub name: String,
    /// Number, or name such as `filter`.
    pub priority: String,
}

/// A rule to delete.
#[derive(Clone, Copy)]
pub(super) enum Which<'r> {
    /// By its handle.
    Handle(u64),
    /// By its text.
    Text(&'r str),
}

impl Ruleset<'_> {
    /// Runs a command that changes something. Returns the error output if it fails.
    fn change(&self, words: &[&str]) -> Result<Option<String>, CallError> {
        let output = nft(self.context, &[], words)?;
        if output.retcode == 0 {
            return Ok(None);
        }
        self.context.set_retcode(output.retcode);
        tracing::error!(jid = self.context.job.jid, "nft {} failed: {}", words.join(" "), output.stderr);
        Ok(Some(output.stderr))
    }

    /// Runs a command that changes something. The report of a failure has the error output after its message.
    fn report(&self, words: &[&str], success: String, failed: &str) -> Result<Report, CallError> {
        Ok(match self.change(words)? {
            None => Report::ok(success),
            Some(reason) => Report::no(format!("{failed}\n{reason}").trim_end()),
        })
    }

    /// Creates a table unless it exists.
    pub(super) fn new_table(&self, table: &str) -> Result<Report, CallError> {
        let report = self.check_table(table)?;
        if report.result {
            return Ok(report);
        }
        let what = format!("Table {table} in family {}", self.name);
        let words = ["add", "table", self.family.word(), table];
        self.report(&words, format!("{what} created"), &format!("{what} could not be created"))
    }

    /// Deletes a table with all that it has.
    pub(super) fn delete_table(&self, table: &str) -> Result<Report, CallError> {
        let report = self.check_table(table)?;
        if !report.result {
            return Ok(report);
        }
        let what = format!("Table {table} in family {}", self.name);
        let words = ["delete", "table", self.family.word(), table];
        self.report(&words, format!("{what} deleted"), &format!("{what} could not be deleted"))
    }

    /// Creates a chain: a base chain, or one that other chains jump to.
    pub(super) fn new_chain(&self, table: &str, chain: &str, hook: Option<&Hook>) -> Result<Report, CallError> {
        let report = self.check_table(table)?;
        if !report.result {
            return Ok(report);
        }
        let what = format!("Chain {chain} in table {table} in family {}", self.name);
        if self.check_chain(table, chain)?.result {
            return Ok(Report::no(format!("{what} already exists")));
        }
        let mut words = vec!["add", "chain", self.family.word(), table, chain];
        let block;
        if let Some(Hook { kind, name, priority }) = hook {
            let text = format!("type {kind} hook {name} priority {priority}");
            listing::validate(&text).map_err(CallError::Execution)?;
            block = format!("{{ {text}; }}");
            words.push(&block);
        }
        self.report(&words, format!("{what} created"), &format!("{what} could not be created"))
    }

    /// Deletes a chain that has no rules and that no rule jumps to.
    pub(super) fn delete_chain(&self, table: &str, chain: &str) -> Result<Report, CallError> {
        let report = self.check_place(table, chain)?;
        if !report.result {
            return Ok(report);
        }
        let what = format!("Chain {chain} in table {table} in family {}", self.name);
        let words = ["delete", "chain", self.family.word(), table, chain];
        self.report(&words, format!("{what} deleted"), &format!("{what} could not be deleted"))
    }

    /// Adds a rule unless the chain has it: `insert` before the others or the rule with a handle, `add` after the others.
    pub(super) fn add(
        &self,
        verb: &str,
        [table, chain, rule]: [&str; 3],
        position: Option<u64>,
    ) -> Result<Report, CallError> {
        let report = self.check_place(table, chain)?;
        if !report.result {
            return Ok(report);
        }
        let family = &self.name;
        if self.find(table, chain, rule)?.is_some() {
            let message = format!("Rule {rule} chain {chain} in table {table} in family {family} already exists");
            return Ok(Report::no(message));
        }
        let mut words = vec![verb, "rule", self.family.word(), table, chain];
        let handle;
        if let Some(position) = position {
            handle = position.to_string();
            words.extend(["position", &handle]);
        }
        words.push(rule);
        let what = format!("rule \"{rule}\" chain {chain} in table {table} in family {family}.");
        self.report(&words, format!("Added {what}"), &format!("Failed to add {what}"))
    }

    /// Deletes a rule of a chain.
    pub(super) fn delete(&self, table: &str, chain: &str, which: Which<'_>) -> Result<Report, CallError> {
        let report = self.check_place(table, chain)?;
        if !report.result {
            return Ok(report);
        }
        let family = &self.name;
        let (rule, name) = match which {
            Which::Text(rule) => (self.find(table, chain, rule)?, rule.to_owned()),
            Which::Handle(handle) => {
                let mut rules = self.rules(table, chain)?.into_iter();
                (rules.find(|rule| rule.handle == handle), handle.to_string())
            }
        };
        let Some(rule) = rule else {
            let message = format!("Rule {name} chain {chain} in table {table} in family {family} does not exist");
            return Ok(Report::no(message));
        };
        let handle = rule.handle.to_string();
        let words = ["delete", "rule", self.family.word(), table, chain, "handle", &handle];
        let text = if matches!(which, Which::Text(_)) { &name } else { &rule.text };
        let success = format!("Deleted rule \"{text}\" in chain {chain} in table {table} in family {family}.");
        let failed = format!("Failed to delete rule \"{text}\" in chain {chain}  table {table} in family {family}");
        self.report(&words, success, &failed)
    }

    /// Deletes the rules of a chain, or of all chains of a table.
    pub(super) fn flush(&self, table: &str, chain: Option<&str>) -> Result<Report, CallError> {
        let report = match chain {
            Some(chain) => self.check_place(table, chain)?,
            None => self.check_table(table)?,
        };
        if !report.result {
            return Ok(report);
        }
        let (family, word) = (&self.name, self.family.word());
        let (words, what) = match chain {
            Some(chain) => {
                let what = format!("from chain {chain} in table {table} in family {family}.");
                (vec!["flush", "chain", word, table, chain], what)
            }
            None => (vec!["flush", "table", word, table], format!("from table {table} in family {family}.")),
        };
        self.report(&words, format!("Flushed rules {what}"), &format!("Failed to flush rules {what}"))
    }

    /// Returns the policy of a base chain.
    pub(super) fn policy(&self, table: &str, chain: &str) -> Result<Option<String>, CallError> {
        let (table, chain) = (name("table", table)?, name("chain", chain)?);
        let chain = self.chain(table, chain)?;
        Ok(chain.and_then(|chain| chain.get("policy").and_then(Value::as_str).map(str::to_owned)))
    }

    /// Sets the policy of an existing base chain. Returns whether that succeeded.
    pub(super) fn set_policy(&self, table: &str, chain: &str, policy: &str) -> Result<bool, CallError> {
        let policy = name("policy", policy)?;
        // Without a hook, a chain has no policy.
        if self.policy(table, chain)?.is_none() {
            return Ok(false);
        }
        let block = format!("{{ policy {policy}; }}");
        Ok(self.change(&["add", "chain", self.family.word(), table, chain, &block])?.is_none())
    }
}
