//! The report for people.

use std::fmt::Write;

use crate::Report;
use crate::coverage;
use crate::run::Outcome;

/// The colours of a report.
#[derive(Debug, Clone, Copy, Default)]
pub struct Colours {
    /// Whether colours are used.
    pub on: bool,
}

impl Colours {
    fn paint(self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn line(self, line: &str) -> String {
        match line.get(..1) {
            Some("-") => self.paint("31", line),
            Some("+") => self.paint("32", line),
            _ => line.to_owned(),
        }
    }
}

/// Returns the report: tests that failed with their differences, and counts. `escape` makes text from files harmless for
/// a terminal.
pub fn text(report: &Report, colours: Colours, escape: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut file = None;
    for case in &report.cases {
        if file != Some(&case.file) {
            // Writing into a `String` cannot fail.
            _ = writeln!(out, "{}", escape(&case.file.display().to_string()));
            file = Some(&case.file);
        }
        let name = escape(&case.name);
        match &case.done.outcome {
            Outcome::Passed => _ = writeln!(out, "  {} {name}", colours.paint("32", "pass")),
            Outcome::Skipped(reason) => {
                _ = writeln!(out, "  {} {name}: {}", colours.paint("33", "skip"), escape(reason));
            }
            Outcome::Failed(failures) => {
                let line = if case.line > 0 { format!(" (line {})", case.line) } else { String::new() };
                _ = writeln!(out, "  {} {name}{line}", colours.paint("31", "FAIL"));
                for failed in failures {
                    for line in failed.message.lines() {
                        _ = writeln!(out, "{}", format!("       {}", escape(line)).trim_end());
                    }
                    for line in &failed.difference {
                        _ = writeln!(out, "         {}", colours.line(&escape(line)));
                    }
                }
            }
        }
    }
    for path in &report.written {
        _ = writeln!(out, "wrote {}", escape(&path.display().to_string()));
    }
    for error in &report.broken {
        _ = writeln!(out, "{} {}", colours.paint("31", "error:"), escape(error));
    }
    for root in &report.guessed_roots {
        let root = escape(&root.display().to_string());
        _ = writeln!(
            out,
            "note: no top.sls was found, so states were read below {root}: --file-root names another root"
        );
    }
    if let Some(files) = &report.coverage {
        out.push_str(&coverage::text(files, &escape));
    }
    let (passed, failed, skipped) = report.counts();
    let more = [(failed, "failed"), (skipped, "skipped"), (report.broken.len(), "broken files")];
    let mut counts = format!("{passed} passed");
    for (count, what) in more.iter().filter(|(count, _)| *count > 0) {
        _ = write!(counts, ", {count} {what}");
    }
    let counts = colours.paint(if report.status() == 0 { "32" } else { "31" }, &counts);
    _ = writeln!(out, "{counts} in {:.3} s", report.time.as_secs_f64());
    out
}
