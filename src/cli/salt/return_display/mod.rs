//! Shows the returns of a job one by one or together, counts them, and computes the exit status.

use std::process::ExitCode;

use brine_function::CallError;
use brine_ids::Jid;
use brine_job::trim::TRIMMED;
use brine_job::{Published, Return};
use brine_value::{Map, Value, map};
use brine_wire::PublishRequest;

use super::super::common::ResultPrinter;
use super::super::docs::pointers::explained;
use super::arguments::Arguments;
use super::plan::Planning;
use super::{FAILURE, NO_MINION, NOTHING_RETURNED, docs};
use crate::ui::{bar, print_plain, print_plain_error, symptoms};

/// The number of messages of returns that are kept, to name what the documentation says about them.
const EXPLAINED: usize = 100;

/// The way in which returns are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Each one as it arrives.
    Each,
    /// All together at the end (`--static`).
    Together,
    /// As documentation.
    Docs,
    /// Only their number, as a bar (`--progress`).
    Count,
}

/// The returns of one job.
pub(super) struct ReturnDisplay<'a> {
    arguments: &'a Arguments,
    printer: ResultPrinter,
    form: Form,
    /// The number of minions that are expected to return.
    targeted: usize,
    returned: Vec<String>,
    silent: Vec<String>,
    failed: Vec<String>,
    /// Messages of failures that the documentation explains.
    explained: Vec<String>,
    /// Returns to be shown at the end.
    gathered: Map,
    /// Whether the function is a state function: returns shown together have no outputter hint.
    is_state: bool,
    /// The plan that the returns belong to.
    planning: Option<Planning>,
}

impl<'a> ReturnDisplay<'a> {
    pub(super) fn new(
        arguments: &'a Arguments,
        request: &PublishRequest,
        planning: Option<Planning>,
        printer: ResultPrinter,
    ) -> Self {
        let fun = request.fun.as_str().unwrap_or_default();
        let form = match fun {
            _ if arguments.progress => Form::Count,
            docs::FUNCTION => Form::Docs,
            _ if arguments.fixed => Form::Together,
            _ => Form::Each,
        };
        ReturnDisplay {
            arguments,
            printer,
            form,
            targeted: 0,
            returned: Vec::new(),
            silent: Vec::new(),
            failed: Vec::new(),
            explained: Vec::new(),
            gathered: Map::new(),
            is_state: fun.starts_with("state."),
            planning,
        }
    }

    /// Records the job and the number of minions that are expected to return.
    pub(super) fn expect(&mut self, jid: &Jid, minions: usize) -> anyhow::Result<()> {
        if let Some(planning) = &mut self.planning {
            planning.set_jid(jid);
        }
        self.targeted = minions;
        if self.form == Form::Count { self.count() } else { Ok(()) }
    }

    /// Records a return.
    pub(super) fn returned(&mut self, one: &Return) -> anyhow::Result<()> {
        let id = one.id().to_string();
        if let Some(planning) = &mut self.planning {
            planning.returned(&id, one.value());
            return Ok(());
        }
        let mut has_failed = one.retcode() != 0;
        for error in one.return_errors() {
            print_plain_error(format_args!("{id}: the result is not stored: {error}"));
            has_failed |= !self.arguments.statuses.is_salt();
        }
        if has_failed {
            self.failed.push(id.clone());
        }
        self.returned.push(id.clone());
        let value = one.value();
        if has_failed && self.explained.len() < EXPLAINED {
            self.explained.extend(explained(value).map(str::to_owned));
        }
        match self.form {
            Form::Each => {
                self.printer.set_retcode(one.retcode());
                self.printer.show(&map! {id.as_str() => value.clone()}.into(), one.out().unwrap_or("nested"))?;
            }
            Form::Together => _ = self.gathered.insert(id.into(), value.clone()),
            Form::Docs if value.as_str() != Some(TRIMMED) => docs::gather(&mut self.gathered, value),
            Form::Docs => {}
            Form::Count => self.count()?,
        }
        Ok(())
    }

    /// Shows an empty result, as outputters for programs do.
    pub(super) fn nothing(&mut self) -> anyhow::Result<()> {
        if matches!(self.form, Form::Each | Form::Together) && !self.printer.is_nested() {
            self.printer.show(&Value::map(), "nested")?;
        }
        Ok(())
    }

    /// Records a minion that did not return.
    pub(super) fn missing(&mut self, id: &str, jid: &Jid, published: &Published) -> anyhow::Result<()> {
        if let Some(planning) = &mut self.planning {
            planning.silent(id);
            return Ok(());
        }
        self.silent.push(id.to_owned());
        match self.form {
            Form::Each if self.arguments.hide_timeout => Ok(()),
            Form::Each => self.printer.show(&map! {id => published.no_return(id, jid.as_str())}.into(), "no_return"),
            Form::Count => self.count(),
            Form::Together | Form::Docs => Ok(()),
        }
    }

    fn count(&mut self) -> anyhow::Result<()> {
        let ended = self.returned.len() + self.silent.len();
        let all = self.targeted;
        self.printer.progress(&format!("{} {ended} of {all} minions have returned", bar(ended as u64, all as u64)))
    }

    /// Returns the plan that the returns belong to, and the printer that shows it; this display if they belong to none.
    pub(super) fn into_planning(mut self) -> Result<(Planning, ResultPrinter), Box<Self>> {
        match self.planning.take() {
            Some(planning) => Ok((planning, self.printer)),
            None => Err(Box::new(self)),
        }
    }

    /// Shows the remaining output, and returns the exit status.
    pub(super) fn finish(mut self) -> anyhow::Result<ExitCode> {
        match self.form {
            Form::Each => {}
            Form::Count => {
                self.printer.clear_progress()?;
                print_plain(self.summary());
                return Ok(self.status());
            }
            Form::Docs => return self.finish_docs(),
            Form::Together => {
                if self.gathered.is_empty() {
                    self.nothing()?;
                    print_plain_error(NOTHING_RETURNED);
                    return Ok(ExitCode::from(NO_MINION));
                }
                show_together(&mut self.printer, std::mem::take(&mut self.gathered), self.is_state)?;
                return Ok(self.status());
            }
        }
        if self.arguments.summary && !self.printer.has_outputter() {
            print_plain(self.summary());
        }
        Ok(self.status())
    }

    fn finish_docs(mut self) -> anyhow::Result<ExitCode> {
        if self.returned.is_empty() {
            print_plain_error("No minions found to gather docs from");
            return Ok(ExitCode::from(NO_MINION));
        }
        if self.gathered.is_empty() {
            let name = self.arguments.words.get(2..).unwrap_or_default().join(" ");
            print_plain_error(format_args!("ERROR: no documentation found for '{name}'"));
            return Ok(self.arguments.statuses.of(FAILURE));
        }
        let is_missing = |(fun, doc): (&Value, &Value)| {
            // A suggestion may follow.
            doc.as_str().is_some_and(|doc| doc.starts_with(&CallError::NotAvailable(fun.to_string()).to_string()))
        };
        let all_missing = self.gathered.iter().all(is_missing);
        docs::show(&self.gathered, &mut self.printer)?;
        Ok(if all_missing { self.arguments.statuses.of(FAILURE) } else { ExitCode::SUCCESS })
    }

    fn summary(&self) -> String {
        let line = "-".repeat(43);
        let mut text = format!(
            "\n\n{line}\nSummary\n{line}\n# of minions targeted: {}\n# of minions returned: {}\n# of minions that did not return: {}\n# of minions with errors: {}\n",
            self.targeted,
            self.returned.len(),
            self.silent.len(),
            self.failed.len()
        );
        if self.arguments.verbose {
            for (what, ids) in [("not responding", &self.silent), ("with failures", &self.failed)] {
                if !ids.is_empty() {
                    text += &format!("Minions {what}: {}\n", ids.join(" "));
                }
            }
        }
        text + &line
    }

    fn status(&self) -> ExitCode {
        if self.returned.is_empty() && self.silent.is_empty() {
            print_plain_error(NOTHING_RETURNED);
            return ExitCode::from(NO_MINION);
        }
        if self.failed.is_empty() && self.silent.is_empty() {
            return ExitCode::SUCCESS;
        }
        print_plain_error("ERROR: Minions returned with non-zero exit code");
        if !self.silent.is_empty() {
            symptoms::note("Minion did not return");
        }
        for message in &self.explained {
            symptoms::note(message);
        }
        if self.form == Form::Each { ExitCode::FAILURE } else { self.arguments.statuses.of(FAILURE) }
    }
}

/// Shows returns of several minions as one document, sorted by minion.
pub(super) fn show_together(printer: &mut ResultPrinter, mut returns: Map, is_state: bool) -> anyhow::Result<()> {
    returns.sort_by_key(|id: &Value, _| id.to_string());
    printer.show(&returns.into(), if is_state { "highstate" } else { "nested" })
}

#[cfg(test)]
mod tests;
