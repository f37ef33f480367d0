//! What is reported: `[check]` of `brine.toml`, the command line, and comments `# brine: ignore CODE` in files.

use brine_authoring_model::{File, Layout};
use brine_text::glob::fnmatch;
use brine_value::Value;

use crate::finding::{Finding, rule};

/// The choice of findings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Codes or their beginnings that are reported; all that are on by default if it is empty.
    pub select: Vec<String>,
    /// Codes or their beginnings that are not reported.
    pub ignore: Vec<String>,
    /// Globs of paths that are not reported.
    pub exclude: Vec<String>,
    /// The paths that are reported: files, or directories with all below; everything if it is empty.
    pub paths: Vec<String>,
    /// The roots of states, if they are named.
    pub file_roots: Vec<String>,
    /// The roots of the pillar, if they are named.
    pub pillar_roots: Vec<String>,
    /// Globs of SLS, templates and modules that other trees or packages provide.
    pub external: Vec<String>,
}

/// The error of a configuration file; displays the place and the expected form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidOptions(String);

impl Options {
    /// Parses a configuration file.
    ///
    /// # Errors
    /// As for [`Options::read`], or a text that is not TOML.
    pub fn parse(text: &str) -> Result<Self, InvalidOptions> {
        let data = brine_sls::toml::load(text)
            .map_err(|error| InvalidOptions(format!("line {}: {}", error.line, error.message)))?;
        Options::read(&data)
    }

    /// Reads the section `[check]` of a configuration file, as parsed from TOML.
    ///
    /// # Errors
    /// An option that does not exist, or whose value is no list of strings.
    pub fn read(data: &Value) -> Result<Self, InvalidOptions> {
        let mut options = Options::default();
        let Some(section) = data.get("check") else { return Ok(options) };
        let Value::Map(section) = section else {
            return Err(InvalidOptions("section 'check' is invalid: expected a table".to_owned()));
        };
        for (name, value) in section {
            let list = match name.as_str() {
                Some("select") => &mut options.select,
                Some("ignore") => &mut options.ignore,
                Some("exclude") => &mut options.exclude,
                Some("file_roots") => &mut options.file_roots,
                Some("pillar_roots") => &mut options.pillar_roots,
                Some("external") => &mut options.external,
                _ => {
                    return Err(InvalidOptions(format!(
                        "option '{name}' is invalid: expected select, ignore, exclude, file_roots, pillar_roots or \
                         external"
                    )));
                }
            };
            let no_list = || InvalidOptions(format!("option '{name}' is invalid: expected a list, got '{value}'"));
            let items = value.as_list().ok_or_else(no_list)?;
            list.extend(items.iter().map(ToString::to_string));
        }
        Ok(options)
    }

    /// Returns the roots, if they are named.
    pub fn layout(&self) -> Option<Layout> {
        let clean = |roots: &[String]| {
            roots
                .iter()
                .map(|root| root.trim_matches('/').trim_start_matches("./").trim_matches('.').to_owned())
                .collect()
        };
        let is_named = !self.file_roots.is_empty() || !self.pillar_roots.is_empty();
        is_named.then(|| Layout { state_roots: clean(&self.file_roots), pillar_roots: clean(&self.pillar_roots) })
    }

    /// Whether findings of a file are reported.
    pub fn includes(&self, path: &str) -> bool {
        let is_wanted = self.paths.is_empty()
            || self.paths.iter().any(|prefix| {
                prefix.is_empty()
                    || path == prefix
                    || path.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.starts_with('/'))
            });
        is_wanted && !self.exclude.iter().any(|glob| fnmatch(glob, path))
    }

    /// Whether another tree or a package provides an SLS, a template or a module.
    pub fn is_external(&self, name: &str) -> bool {
        let first = name.split(['.', '/']).next().unwrap_or(name);
        self.external.iter().any(|glob| fnmatch(glob, name) || fnmatch(glob, first))
    }

    /// Whether a finding is reported.
    pub fn reports(&self, file: &File, finding: &Finding) -> bool {
        self.selects(finding) && !Comments::of(file).is_some_and(|comments| comments.ignore(file, finding))
    }

    /// Removes the findings of a file that are not reported.
    pub fn retain(&self, file: &File, findings: &mut Vec<Finding>) {
        let comments = Comments::of(file);
        findings.retain(|finding| {
            self.selects(finding) && !comments.as_ref().is_some_and(|comments| comments.ignore(file, finding))
        });
    }

    fn selects(&self, finding: &Finding) -> bool {
        let starts = |list: &[String]| list.iter().any(|start| finding.code.starts_with(start.as_str()));
        let is_default = rule(finding.code).is_none_or(|rule| rule.is_default);
        let is_selected = if self.select.is_empty() { is_default } else { starts(&self.select) };
        is_selected && !starts(&self.ignore)
    }
}

/// The lines of a file that has comments which ignore findings.
struct Comments<'f>(Vec<&'f str>);

impl<'f> Comments<'f> {
    fn of(file: &'f File) -> Option<Self> {
        let has_comments = file.text.contains("brine: ignore") || file.text.contains("noqa");
        has_comments.then(|| Comments(file.text.lines().collect()))
    }

    /// Whether a comment on the line or above it, or one for the whole file, ignores the code of a finding.
    fn ignore(&self, file: &File, finding: &Finding) -> bool {
        let names = |line: &str, word: &str| {
            let Some((_, codes)) = line.split_once(word) else { return false };
            let codes = codes.split("#}").next().unwrap_or_default();
            codes.split([',', ' ']).map(str::trim).any(|code| !code.is_empty() && finding.code.starts_with(code))
        };
        let Comments(lines) = self;
        let line = file.position(finding.span.start).line;
        let at =
            |number: usize| number.checked_sub(1).and_then(|number| lines.get(number)).copied().unwrap_or_default();
        let above = at(line.saturating_sub(1));
        is_ignored_by_salt_lint(at(line), finding)
            || names(at(line), "brine: ignore ")
            || above.trim_start().starts_with(['#', '{']) && names(above, "brine: ignore ")
            || lines.iter().any(|line| names(line, "brine: ignore-file "))
    }
}

/// Whether a comment for salt-lint, `# noqa: 206`, ignores the code by its number there.
fn is_ignored_by_salt_lint(line: &str, finding: &Finding) -> bool {
    let Some((_, numbers)) = line.split_once("noqa") else { return false };
    let rule_numbers = rule(finding.code).map(|rule| rule.salt_lint).unwrap_or_default();
    let mut numbers = numbers.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse::<u16>().ok());
    numbers.any(|number| rule_numbers.contains(&number))
}
