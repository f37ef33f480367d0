//! The findings as text for people and as JSON for machines. Everything in them may come from others: minions, log lines,
//! names of processes.

use std::path::Path;

use brine_doctor::finding::{to_values, trimmed};
use brine_doctor::{Finding, Repair, Severity, kinds};
use brine_value::{Map, Value, json, map};

use super::Examined;
use crate::escape::{escape_json, escape_line};
use crate::ui::{Colour, Colours, symptoms};

/// A mend that was tried.
pub(super) struct Made {
    pub repair: Repair,
    /// Why it could not be made.
    pub error: Option<String>,
}

/// Returns the report as JSON.
pub(super) fn json(examined: &Examined, made: &[Made]) -> String {
    escape_json(&json::to_json_pretty(&data(examined, made).into(), 2)).into_owned()
}

/// Returns the report as data.
pub(super) fn data(examined: &Examined, made: &[Made]) -> Map {
    let roles: Vec<Value> = examined.host.configured.iter().map(|one| one.role().name().into()).collect();
    let fixed: Vec<Value> = made
        .iter()
        .map(|one| {
            let command = one.repair.to_string();
            map! {"command" => command, "error" => one.error.clone().map_or(Value::Nil, Value::from)}.into()
        })
        .collect();
    map! {
        "version" => brine_config::VERSION,
        "time" => jiff::Timestamp::now().to_string(),
        "seconds" => (examined.time.as_secs_f64() * 1000.0).round() / 1000.0,
        "roles" => roles,
        "user" => crate::cli::privileges::user_name().unwrap_or_default(),
        "findings" => to_values(&examined.findings),
        "fixed" => fixed,
    }
}

/// Returns the report as text.
pub(super) fn text(examined: &Examined, made: &[Made], bundle: Option<&Path>, colours: Colours) -> String {
    let mut lines = Vec::new();
    for one in made {
        let command = escape_line(&one.repair.to_string()).into_owned();
        lines.push(match &one.error {
            None => colours.paint(Colour::Green, &format!("done:    {command}")),
            Some(error) => colours.paint(Colour::Red, &format!("failed:  {command}: {}", escape_line(error))),
        });
    }
    if !made.is_empty() {
        lines.push(String::new());
    }
    let findings = trimmed(examined.findings.clone());
    for finding in &findings {
        lines.extend(of_finding(finding, colours));
        lines.push(String::new());
    }
    lines.push(summary(examined, colours));
    if let Some(path) = bundle {
        let path = escape_line(&path.display().to_string()).into_owned();
        lines.push(format!(
            "{path}: versions, masked configuration, ends of logs, metrics, findings; read it before you send it"
        ));
    }
    lines.join("\n")
}

fn of_finding(finding: &Finding, colours: Colours) -> Vec<String> {
    let (colour, word) = match finding.kind.severity {
        Severity::Error => (Colour::LightRed, "ERROR"),
        Severity::Warning => (Colour::LightYellow, "WARNING"),
        Severity::Note => (Colour::Cyan, "NOTE"),
    };
    let head = format!("{word} {}", finding.kind.name);
    let mut lines =
        vec![format!("{} {}: {}", colours.paint(colour, &head), finding.role.name(), escape_line(&finding.what))];
    for (label, text) in [("where", &finding.place), ("why", &finding.why), ("mend", &finding.mend)] {
        if !text.is_empty() {
            let text = escape_line(text).into_owned();
            let text = if label == "mend" { colours.paint(Colour::Green, &text) } else { text };
            lines.push(format!("  {:<6} {text}", format!("{label}:")));
        }
    }
    if finding.more > 0 {
        lines.push(format!("  and {} more like this; --json has all", finding.more));
    }
    // Either names the option of a finding about the configuration.
    if let Some(section) = symptoms::of_finding(finding.kind.name, &format!("{}: {}", finding.what, finding.why)) {
        lines.push(format!("  {:<6} brine docs {section}", "more:"));
    }
    lines
}

fn summary(examined: &Examined, colours: Colours) -> String {
    let count = |severity| examined.findings.iter().filter(|one| one.kind.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let roles: Vec<&str> = examined.host.configured.iter().map(|one| one.role().name()).collect();
    let roles = if roles.is_empty() { "nothing".to_owned() } else { roles.join(" and ") };
    let time = format!("{:.1} s", examined.time.as_secs_f64());
    let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let unseen = examined.findings.iter().filter(|one| *one.kind == kinds::NOT_SEEN).count();
    if errors + warnings == 0 && unseen > 0 {
        return format!("examined: {roles}, in {time}; nothing is wrong with what this user may see");
    }
    if errors + warnings == 0 {
        return colours.paint(Colour::Green, &format!("examined: {roles}, in {time}; nothing is wrong"));
    }
    let fixable = examined.findings.iter().filter(|one| one.repair.is_some()).count();
    let fixable = if fixable > 0 { format!("; brine doctor --fix mends {fixable} of them") } else { String::new() };
    format!("examined: {roles}, in {time}; {}, {}{fixable}", plural(errors, "error"), plural(warnings, "warning"))
}

#[cfg(test)]
mod tests {
    use brine_doctor::Role;

    use super::*;

    #[test]
    fn what_others_say_is_escaped() {
        let finding = Finding::new(&kinds::MINION_SILENT, Role::Master, "a\x1b]0;x\x07\nERROR fake")
            .at("\u{202e}x")
            .because("\u{9b}2J")
            .mended_by("rm \x1b[A");
        let lines = of_finding(&finding, Colours::OFF);
        assert_eq!(lines.len(), 5);
        assert_eq!(lines.last().unwrap(), "  more:  brine docs troubleshooting#there-is-no-return");
        let text = lines.join("");
        assert!(!text.chars().any(|c| c.is_control() || c == '\u{202e}'), "{text:?}");
    }
}
