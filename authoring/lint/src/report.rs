//! Reports: text with a caret, JSON, SARIF, GitHub's commands, JUnit.

use std::fmt::Write;

use brine_authoring_model::Tree;
use brine_text::xml::escape;
use serde_json::{Value, json};

use crate::finding::Finding;
use crate::rules::RULES;
use crate::rules::Severity;

/// The form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text with the line and a caret.
    Text,
    /// A list of objects.
    Json,
    /// SARIF 2.1.0, which code hosts show beside the code.
    Sarif,
    /// Commands of GitHub Actions.
    Github,
    /// Test cases of JUnit.
    Junit,
}

impl Format {
    /// The names of all forms.
    pub const NAMES: [&str; 5] = ["text", "json", "sarif", "github", "junit"];

    /// Returns the form of a name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "text" => Format::Text,
            "json" => Format::Json,
            "sarif" => Format::Sarif,
            "github" => Format::Github,
            "junit" => Format::Junit,
            _ => return None,
        })
    }
}

/// Returns the report of findings. `is_coloured` applies to text.
pub fn report(tree: &Tree, findings: &[Finding], format: Format, is_coloured: bool) -> String {
    match format {
        Format::Text => {
            findings.iter().map(|finding| text(tree, finding, is_coloured)).collect::<String>() + &summary(findings)
        }
        Format::Json => pretty(&findings.iter().map(|finding| object(tree, finding)).collect::<Vec<_>>().into()),
        Format::Sarif => pretty(&sarif(tree, findings)),
        Format::Github => findings.iter().map(|finding| github(tree, finding)).collect(),
        Format::Junit => junit(tree, findings),
    }
}

fn pretty(value: &Value) -> String {
    // Values of strings and numbers are always written.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// Lines and columns, counted from 1, of the start and the end.
fn place(tree: &Tree, path: &str, start: usize, end: usize) -> [usize; 4] {
    let Some(file) = tree.file(path) else { return [1, 1, 1, 1] };
    let (start, end) = (file.position(start), file.position(end.max(start)));
    [start.line, start.column, end.line, end.column]
}

fn summary(findings: &[Finding]) -> String {
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let phrase = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let fixes = findings.iter().filter(|finding| finding.fix.as_ref().is_some_and(|fix| fix.is_safe)).count();
    if findings.is_empty() {
        return "no findings\n".to_owned();
    }
    let mut text = format!(
        "{}, {}, {} of style\n",
        phrase(count(Severity::Error), "error", "errors"),
        phrase(count(Severity::Warning), "warning", "warnings"),
        count(Severity::Style)
    );
    if fixes > 0 {
        _ = writeln!(text, "--fix mends {fixes} of them");
    }
    text
}

/// Returns a finding as text: the sentence, the place, the line and a caret.
pub fn text(tree: &Tree, finding: &Finding, is_coloured: bool) -> String {
    let [line, column, end_line, end_column] = place(tree, &finding.path, finding.span.start, finding.span.end);
    let colour =
        |code: &str, text: &str| if is_coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() };
    let hue = match finding.severity {
        Severity::Error => "1;31",
        Severity::Warning => "1;33",
        Severity::Style => "1;36",
    };
    let head = format!("{}[{}]", finding.severity.as_str(), finding.code);
    let message: String = finding.message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut out = format!("{}: {}\n", colour(hue, &head), colour("1", &message));
    let width = line.to_string().len();
    _ = writeln!(out, "{:width$}{} {}:{line}:{column}", "", colour("1;34", "-->"), finding.path);
    let source = tree.file(&finding.path).and_then(|file| file.text.lines().nth(line - 1)).unwrap_or_default();
    let excerpt: String =
        source.chars().take(column + 160).map(|c| if c.is_control() && c != '\t' { ' ' } else { c }).collect();
    let margin: String = source.chars().take(column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    let length = if end_line == line {
        end_column.saturating_sub(column)
    } else {
        source.chars().count() + 1 - column.min(source.chars().count() + 1)
    };
    let bar = colour("1;34", "|");
    _ = writeln!(out, "{:width$} {bar}\n{} {bar} {excerpt}", "", colour("1;34", &line.to_string()));
    _ = writeln!(out, "{:width$} {bar} {margin}{}", "", colour(hue, &"^".repeat(length.clamp(1, 160))));
    for (other, words) in &finding.related {
        let [line, column, ..] = place(tree, &other.path, other.start, other.end);
        _ = writeln!(out, "{:width$} {} {words}: {}:{line}:{column}", "", colour("1;34", "="), other.path);
    }
    out.push('\n');
    out
}

/// Returns a finding as an object.
pub fn object(tree: &Tree, finding: &Finding) -> Value {
    let [line, column, end_line, end_column] = place(tree, &finding.path, finding.span.start, finding.span.end);
    let related = finding.related.iter().map(|(other, words)| {
        let [line, column, ..] = place(tree, &other.path, other.start, other.end);
        json!({"path": other.path, "line": line, "column": column, "message": words})
    });
    let fix = finding.fix.as_ref().map(|fix| {
        let edits = fix.edits.iter().map(|(span, text)| json!({"start": span.start, "end": span.end, "text": text}));
        json!({"title": fix.title, "safe": fix.is_safe, "edits": edits.collect::<Vec<_>>()})
    });
    json!({
        "code": finding.code,
        "severity": finding.severity.as_str(),
        "message": finding.message,
        "path": finding.path,
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
        "start": finding.span.start,
        "end": finding.span.end,
        "related": related.collect::<Vec<_>>(),
        "fix": fix,
    })
}

fn sarif(tree: &Tree, findings: &[Finding]) -> Value {
    let level = |severity| match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Style => "note",
    };
    let rules: Vec<Value> = RULES
        .iter()
        .map(|rule| {
            json!({
                "id": rule.code,
                "shortDescription": {"text": rule.title},
                "fullDescription": {"text": rule.about},
                "defaultConfiguration": {"level": level(rule.severity), "enabled": rule.is_default},
            })
        })
        .collect();
    let region = |path: &str, start: usize, end: usize| {
        let [line, column, end_line, end_column] = place(tree, path, start, end);
        json!({"physicalLocation": {
            "artifactLocation": {"uri": path},
            "region": {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column},
        }})
    };
    let results: Vec<Value> = findings
        .iter()
        .map(|finding| {
            let related = finding.related.iter().map(|(other, words)| {
                let mut location = region(&other.path, other.start, other.end);
                location["message"] = json!({"text": words});
                location
            });
            json!({
                "ruleId": finding.code,
                "level": level(finding.severity),
                "message": {"text": finding.message},
                "locations": [region(&finding.path, finding.span.start, finding.span.end)],
                "relatedLocations": related.collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": {"name": "brine check", "rules": rules}}, "results": results}],
    })
}

fn github(tree: &Tree, finding: &Finding) -> String {
    let [line, column, end_line, end_column] = place(tree, &finding.path, finding.span.start, finding.span.end);
    let command = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Style => "notice",
    };
    let escape = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let path = escape(&finding.path).replace(':', "%3A").replace(',', "%2C");
    format!(
        "::{command} file={path},line={line},col={column},endLine={end_line},endColumn={end_column},title={}::{}\n",
        finding.code,
        escape(&finding.message)
    )
}

fn junit(tree: &Tree, findings: &[Finding]) -> String {
    let failures = findings.iter().filter(|finding| finding.severity > Severity::Style).count();
    let files: Vec<&str> = tree.files().map(|file| file.path.as_str()).collect();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"brine check\" tests=\"{}\" failures=\"{failures}\">\n",
        files.len()
    );
    for path in files {
        let own: Vec<&Finding> = findings.iter().filter(|finding| finding.path == path).collect();
        _ = writeln!(out, "<testcase classname=\"brine check\" name=\"{}\">", escape(path));
        for finding in own.iter().filter(|finding| finding.severity > Severity::Style) {
            let [line, column, ..] = place(tree, path, finding.span.start, finding.span.end);
            _ = writeln!(
                out,
                "<failure type=\"{}\" message=\"{}\">{}:{line}:{column}</failure>",
                finding.code,
                escape(&finding.message),
                escape(path)
            );
        }
        out.push_str("</testcase>\n");
    }
    out.push_str("</testsuite>\n</testsuites>\n");
    out
}
