//! The report in JUnit's format, for CI systems.

use std::fmt::Write;

use brine_text::xml::escape as escaped;

use crate::Report;
use crate::run::Outcome;

/// Returns a report as XML.
pub fn junit(report: &Report) -> String {
    let (_, failed, skipped) = report.counts();
    let all = report.cases.len() + report.broken.len();
    let (errors, time) = (report.broken.len(), report.time.as_secs_f64());
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"{all}\" failures=\"{failed}\" errors=\"{errors}\" \
         skipped=\"{skipped}\" time=\"{time:.3}\">\n"
    );
    for cases in report.cases.chunk_by(|one, next| one.file == next.file) {
        let file = cases.first().map(|case| case.file.display().to_string()).unwrap_or_default();
        let count = |is: fn(&Outcome) -> bool| cases.iter().filter(|case| is(&case.done.outcome)).count();
        let failed = count(|outcome| matches!(outcome, Outcome::Failed(_)));
        let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
        let time: f64 = cases.iter().map(|case| case.done.time.as_secs_f64()).sum();
        // Writing into a `String` cannot fail.
        _ = writeln!(
            out,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\" time=\"{time:.3}\">",
            escaped(&file),
            cases.len()
        );
        for case in cases {
            let (name, time) = (escaped(&case.name), case.done.time.as_secs_f64());
            let file = escaped(&file);
            _ = write!(
                out,
                "    <testcase classname=\"{file}\" name=\"{name}\" file=\"{file}\" line=\"{}\" time=\"{time:.3}\"",
                case.line
            );
            match &case.done.outcome {
                Outcome::Passed => out += "/>\n",
                Outcome::Skipped(reason) => {
                    _ = writeln!(out, ">\n      <skipped message=\"{}\"/>\n    </testcase>", escaped(reason));
                }
                Outcome::Failed(failures) => {
                    out += ">\n";
                    for failed in failures {
                        let (message, text) = (escaped(&failed.message), escaped(&failed.difference.join("\n")));
                        _ = writeln!(out, "      <failure message=\"{message}\">{text}</failure>");
                    }
                    out += "    </testcase>\n";
                }
            }
        }
        out += "  </testsuite>\n";
    }
    if !report.broken.is_empty() {
        let count = report.broken.len();
        _ = writeln!(
            out,
            "  <testsuite name=\"files\" tests=\"{count}\" failures=\"0\" errors=\"{count}\" skipped=\"0\" time=\"0\">"
        );
        for error in &report.broken {
            let error = escaped(error);
            _ = writeln!(
                out,
                "    <testcase classname=\"files\" name=\"{error}\"><error message=\"{error}\"/></testcase>"
            );
        }
        out += "  </testsuite>\n";
    }
    out + "</testsuites>\n"
}
