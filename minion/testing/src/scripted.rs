//! Programs for unit tests, whose output comes from a transcript.

use std::path::PathBuf;
use std::sync::Arc;

use brine_context::{Context, Grains, Minion};
use brine_function::Args;
use brine_host::process::{Children, Output, ProcessError, Program};
use brine_host::programs::Programs;
use brine_value::json::to_json;
use brine_value::{Map, Value, map};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// Programs that output the next answer of a transcript for each command; the last answer is repeated.
pub struct Scripted {
    answers: Mutex<Vec<(String, Output)>>,
    ran: Mutex<Vec<String>>,
}

impl Scripted {
    /// Parses a transcript: `$ command`, or a prefix and ` ...`; then the standard output after `| `, the standard
    /// error after `! `, and a non-zero exit status after `= `.
    pub fn new(transcript: &str) -> Arc<Self> {
        let mut answers: Vec<(String, Output)> = Vec::new();
        let push = |text: &mut String, line: &str| {
            text.push_str(if text.is_empty() { "" } else { "\n" });
            text.push_str(line);
        };
        for line in transcript.lines().map(str::trim_start).filter(|line| !line.is_empty()) {
            let (kind, rest) = line.split_at(1);
            let rest = rest.strip_prefix(' ').unwrap_or(rest);
            match (kind, answers.last_mut()) {
                ("$", _) => {
                    let (stdout, stderr) = (String::new(), String::new());
                    answers.push((rest.to_owned(), Output { pid: 1, retcode: 0, stdout, stderr, timed_out: false }));
                }
                ("|", Some((_, output))) => push(&mut output.stdout, rest),
                ("!", Some((_, output))) => push(&mut output.stderr, rest),
                ("=", Some((_, output))) => output.retcode = rest.parse().unwrap(),
                _ => panic!("no line of a transcript: {line}"),
            }
        }
        Arc::new(Scripted { answers: Mutex::new(answers), ran: Mutex::default() })
    }

    /// Returns the commands run since the last call, one per line.
    pub fn ran(&self) -> String {
        std::mem::take(&mut *self.ran.lock()).join("\n")
    }
}

impl Programs for Scripted {
    /// A program exists if the transcript contains it.
    fn find(&self, name: &str) -> Option<PathBuf> {
        let answers = self.answers.lock();
        answers.iter().any(|(line, _)| line.split(' ').next() == Some(name)).then(|| PathBuf::from(name))
    }

    fn run(
        &self,
        program: &Program,
        _children: &Children,
        _cancel: &CancellationToken,
    ) -> Result<Output, ProcessError> {
        self.ran.lock().push(program.command.clone());
        let mut answers = self.answers.lock();
        let fits = |line: &str| match line.strip_suffix(" ...") {
            Some(start) => program.command.starts_with(start),
            None => program.command == line,
        };
        let places: Vec<usize> = (0..answers.len()).filter(|place| fits(&answers[*place].0)).collect();
        let mut output = match places[..] {
            [] => panic!("the transcript has no answer to: {}", program.command),
            [last] => answers[last].1.clone(),
            [first, ..] => answers.remove(first).1,
        };
        if program.merge {
            let said = [std::mem::take(&mut output.stdout), std::mem::take(&mut output.stderr)];
            output.stdout = said.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
        }
        Ok(output)
    }
}

/// Sets the grains and programs of a minion that is not shared yet.
pub fn use_programs(mut minion: Arc<Minion>, grains: Map, programs: Arc<Scripted>) -> Arc<Minion> {
    if let Some(own) = Arc::get_mut(&mut minion) {
        own.grains = Arc::new(Grains::from(grains));
        own.programs = programs;
    }
    minion
}

/// The result of a state function, and the commands that it has run.
pub struct Applied {
    /// The result: success, failure or `None` in test mode.
    pub result: Option<bool>,
    /// The comment.
    pub comment: String,
    /// The changes.
    pub changes: Value,
    /// The commands, one per line.
    pub ran: String,
}

/// Returns the grains of a minion on Debian.
pub fn debian() -> Map {
    map! {"os" => "Debian", "os_family" => "Debian", "kernel" => "Linux"}
}

/// Calls a state function in this context, whose programs are `programs`.
pub fn applied(call: &Context, programs: &Scripted, function: &str, keyword: Map, test: bool) -> Applied {
    let context = crate::state_context(test, call.clone());
    let report = call.minion.states.call(&context, function, Args { keyword, ..Args::default() }).unwrap();
    Applied {
        result: report.get("result").and_then(Value::as_bool),
        comment: report.get("comment").unwrap().to_string(),
        changes: report.get("changes").cloned().unwrap(),
        ran: programs.ran(),
    }
}

/// Returns the results of functions, one per line.
pub fn answers(context: &Context, calls: &[(&str, Value, Map)]) -> String {
    let answer = |(function, positional, keyword): &(&str, Value, Map)| {
        let positional = positional.as_list().unwrap_or_default().to_vec();
        match context.call(function, Args { positional, keyword: keyword.clone() }) {
            Ok(value) => format!("{function}: {}", to_json(&value)),
            Err(error) => format!("{function}: {error}"),
        }
    };
    calls.iter().map(answer).collect::<Vec<_>>().join("\n")
}
