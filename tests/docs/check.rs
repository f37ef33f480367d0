//! Generates the reference of the codes of `brine check`.

use brine_lint::rules::{RULES, Rule};

use super::reference::{code, page, row, table};

const GROUPS: [(&str, &str); 6] = [
    ("B1", "Syntax"),
    ("B2", "Names"),
    ("B3", "References"),
    ("B4", "Arguments"),
    ("B5", "Dangerous and deprecated forms"),
    ("B6", "Style"),
];

const ABOUT: &str = "What [`brine check`](../check.md) finds. An error fails, a warning probably is not what was meant, and \
                     style is a matter of taste.";

/// Returns the page.
pub fn page_of_codes() -> String {
    let cells = |rule: &Rule| {
        let about = if rule.is_default { rule.about.to_owned() } else { format!("{} Off by default.", rule.about) };
        row(&[&code(rule.code), rule.severity.as_str(), rule.title, &about])
    };
    let section = |(start, title): &(&str, &str)| {
        let rows = RULES.iter().filter(|rule| rule.code.starts_with(start)).map(cells);
        format!("## {title}\n\n{}\n", table(&["code", "severity", "finding", "meaning"], rows))
    };
    let mut numbers: Vec<(u16, &str)> =
        RULES.iter().flat_map(|rule| rule.salt_lint.iter().map(|number| (*number, rule.code))).collect();
    numbers.sort_unstable();
    let rows = numbers.iter().map(|(number, name)| row(&[&number.to_string(), &code(name)]));
    let salt_lint = format!(
        "## Rules of salt-lint\n\nA comment `# noqa: NUMBER` ignores the code that covers the rule of this number.\n\n{}",
        table(&["salt-lint", "code"], rows)
    );
    let sections: String = GROUPS.iter().map(section).collect();
    page("Codes of brine check", ABOUT, &format!("{sections}{salt_lint}"))
}
