//! The table of all codes. The reference page is made of it.

use Severity::{Error, Style, Warning};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A matter of style.
    Style,
    /// Something that works, but probably not as meant, or that is dangerous.
    Warning,
    /// Something that fails.
    Error,
}

impl Severity {
    /// Returns the word in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Style => "style",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A kind of finding.
#[derive(Debug)]
pub struct Rule {
    /// The code.
    pub code: &'static str,
    /// The usual severity.
    pub severity: Severity,
    /// What is found, in a few words.
    pub title: &'static str,
    /// Why it matters, and what to do.
    pub about: &'static str,
    /// The numbers of salt-lint's rules that it covers.
    pub salt_lint: &'static [u16],
    /// Whether it is reported unless `select` names it.
    pub is_default: bool,
}

const fn rule(code: &'static str, severity: Severity, title: &'static str, about: &'static str) -> Rule {
    Rule { code, severity, title, about, salt_lint: &[], is_default: true }
}

impl Rule {
    const fn covers(mut self, numbers: &'static [u16]) -> Self {
        self.salt_lint = numbers;
        self
    }

    const fn on_request(mut self) -> Self {
        self.is_default = false;
        self
    }
}

/// All rules, sorted by code. `B1` is syntax, `B2` names, `B3` references, `B4` arguments, `B5` dangerous forms, `B6`
/// style.
pub const RULES: &[Rule] = &[
    rule(
        "B101",
        Error,
        "Jinja cannot be parsed",
        "The file cannot be rendered. The place is that of Jinja's own error.",
    ),
    rule(
        "B102",
        Error,
        "The text is not YAML",
        "Every choice of branches is read; the place is in the source, also behind tags of Jinja.",
    ),
    rule(
        "B103",
        Error,
        "A key stands twice in a mapping",
        "Salt refuses such a file. Keys in different branches of one condition are not reported.",
    ),
    rule("B104", Error, "The data are no states", "An SLS is a mapping of ids to functions with lists of arguments."),
    rule("B105", Error, "Unknown renderer", "The first line `#!...` names a renderer that does not exist."),
    rule(
        "B201",
        Error,
        "Unknown state function",
        "Neither Brine nor `_states` of the tree has it. The nearest name is given.",
    ),
    rule(
        "B202",
        Error,
        "Unknown execution function",
        "A template calls a function that neither Brine nor `_modules` of the tree has. Calls that `'x.y' in salt` guards \
         are not reported.",
    ),
    rule("B203", Error, "Unknown filter", "Jinja has no filter of this name."),
    rule("B204", Error, "Unknown test", "Jinja has no test of this name."),
    rule(
        "B205",
        Warning,
        "Misspelt grain",
        "One letter differs from the name of a grain that all minions have. Other unknown grains may be your own.",
    ),
    rule(
        "B206",
        Error,
        "Unknown function of a reaction",
        "A reactor file names an execution, runner or wheel function that does not exist.",
    ),
    rule(
        "B207",
        Error,
        "Unknown function that a state calls",
        "`module.run`, `salt.function`, `salt.runner`, `salt.wheel` or `salt.parallel_runners` names a function that does not \
         exist.",
    ),
    rule(
        "B208",
        Warning,
        "Unknown option of a master or minion",
        "A configuration file has an option that neither Brine nor Salt knows, or one without an effect in Brine. Options of \
         modules have a dot and are not reported.",
    ),
    rule(
        "B209",
        Error,
        "Unknown type of a target",
        "`tgt_type` of a step of an orchestration, or of a reaction, is no type of targets. The nearest one is given.",
    ),
    rule(
        "B301",
        Error,
        "A requisite matches nothing",
        "No state of the tree has this id or name with this module. A requisite that an expression may satisfy is not \
         reported.",
    ),
    rule("B302", Error, "An included SLS does not exist", "No file of the tree has this name, below any root."),
    rule(
        "B303",
        Error,
        "An extended id does not exist",
        "Neither this file nor one that it includes has the id: add the file to `include`.",
    ),
    rule("B304", Error, "An imported template does not exist", "No file of the tree has this path, below any root."),
    rule("B305", Warning, "A `salt://` source does not exist", "No file of the tree has this path, below any root."),
    rule("B306", Error, "An SLS of the top file does not exist", "No file of the tree has this name."),
    rule(
        "B307",
        Error,
        "The same id in two files of one run",
        "One file includes the other, or a third one includes both: Salt refuses to compile the run.",
    ),
    rule(
        "B308",
        Error,
        "Undefined variable",
        "The template neither assigns nor imports the variable, and Salt does not provide it.",
    ),
    rule(
        "B309",
        Warning,
        "A pillar key that no pillar file provides",
        "The look-up has no default, so that the render fails without the key.",
    ),
    rule(
        "B310",
        Style,
        "An include that nothing refers to",
        "No requisite and no `extend` of the file needs it. It may be meant to be applied as well.",
    )
    .on_request(),
    rule(
        "B311",
        Error,
        "A template does not export the imported name",
        "It neither assigns a variable nor defines a macro of this name.",
    ),
    rule(
        "B312",
        Warning,
        "`pillar.get('a:b')` looks up no path",
        "The method `get` of a mapping takes `a:b` as one key; the function `pillar.get` of `salt` follows the path. The same \
         applies to `grains.get`.",
    )
    .covers(&[211]),
    rule(
        "B313",
        Warning,
        "The name of an SLS file has a dot",
        "A dot in the name of an SLS stands for a directory, so that nothing can refer to the file.",
    )
    .covers(&[214]),
    rule(
        "B314",
        Style,
        "The tree refers to others",
        "Several SLS or templates are not there, as if formulas, a private pillar or submodules were elsewhere: they are not \
         reported one by one. `external` of `brine.toml` names what other trees have.",
    ),
    rule(
        "B315",
        Warning,
        "A reactor file does not exist",
        "The tree has reactor files, and none has the name that an entry of `reactor` in a configuration file gives.",
    ),
    rule(
        "B316",
        Error,
        "An SLS of an orchestration step does not exist",
        "`sls` of `salt.state` names a file that the tree does not have.",
    ),
    rule(
        "B317",
        Error,
        "A nodegroup that no configuration defines",
        "The master configuration of the tree defines nodegroups, and the target of a step or a reaction names another one.",
    ),
    rule(
        "B318",
        Warning,
        "A pattern of tags that no event matches",
        "An entry of `reactor`, or `salt.wait_for_event`, has a pattern that looks like that of an event in the reference of \
         events, and none matches: it is misspelt, has a slash too much or too few, or is a regular expression. Patterns of \
         your own events are not reported.",
    ),
    rule(
        "B319",
        Warning,
        "A field that events do not have",
        "A reactor file reads a field of `data` that no event has whose tag the entries of the file match, by the reference of \
         events.",
    ),
    rule(
        "B320",
        Warning,
        "An `init.sls` that another file hides",
        "`web.sls` and `web/init.sls` are both the SLS `web`: the first is read, as in Salt, and the second never is.",
    ),
    rule(
        "B401",
        Warning,
        "Unknown argument",
        "Neither the state function nor the state engine knows it. Words of Ansible, Puppet and Chef get what takes their \
         place.",
    ),
    rule("B402", Warning, "Wrong type of an argument", "The function expects another type."),
    rule("B403", Error, "A required argument is missing", "The function refuses to run without it."),
    rule("B404", Warning, "An argument stands twice", "The last one counts."),
    rule(
        "B405",
        Warning,
        "A mapping that is not indented",
        "What follows `- context:` or `- defaults:` must be indented by four spaces: at two, its keys are arguments of the state.",
    )
    .covers(&[219]),
    rule(
        "B406",
        Error,
        "Wrong type of an option of a master or minion",
        "The daemon refuses to start with it.",
    ),
    rule(
        "B407",
        Error,
        "Invalid target",
        "The master cannot read `tgt` of a step or a reaction, or it selects no minion whatever the fleet is.",
    ),
    rule(
        "B408",
        Error,
        "A called function does not take an argument",
        "A template, `module.run`, a step of an orchestration, `mine_functions` or `schedule` calls a function that refuses \
         the argument. Functions of the tree, and those that take any argument, are not checked.",
    ),
    rule(
        "B409",
        Error,
        "A required argument of a called function is missing",
        "A template, `module.run`, a step of an orchestration, `mine_functions` or `schedule` calls a function without an \
         argument that it requires.",
    ),
    rule(
        "B501",
        Warning,
        "`cmd.run` runs at each run",
        "Without `unless`, `onlyif`, `creates` or `onchanges` the command runs, and reports changes, every time.",
    ),
    rule(
        "B502",
        Warning,
        "A pipe hides failures",
        "The status of `a | b` is that of `b`. Write `set -o pipefail` with `shell: /bin/bash`, or avoid the pipe.",
    ),
    rule(
        "B503",
        Warning,
        "A secret in plain text",
        "Everybody who reads the tree has it, and every minion that gets the file. Take it from the pillar, encrypted or of \
         an external source.",
    ),
    rule(
        "B504",
        Warning,
        "Input of an event is not encoded",
        "A sender may write YAML into the reactor file. Write `| json` or `| yaml_encode` after the expression.",
    ),
    rule("B505", Warning, "Deprecated form", "Salt keeps it for old files; another form has taken its place.")
        .covers(&[213, 901]),
    rule(
        "B506",
        Warning,
        "A secret in plain text in the pillar",
        "Everybody who reads the tree has it. Encrypt it, as with the renderer `gpg`, or take it from an external source.",
    )
    .on_request(),
    rule("B601", Style, "Whitespace at the end of a line", "It shows in every diff.").covers(&[201]),
    rule("B602", Style, "A tab", "YAML is indented with spaces; a tab in the indentation is an error.")
        .covers(&[203]),
    rule("B603", Style, "A line of more than 160 characters", "Long lines are hard to review.").covers(&[204]),
    rule("B604", Style, "No spaces inside of Jinja's braces", "Write `{{ name }}`, `{% if x %}` and `{# text #}`.")
        .covers(&[202, 206, 209]),
    rule(
        "B605",
        Style,
        "A file mode that is a number",
        "YAML may read it as octal or decimal: quote it, as in `'0644'`.",
    )
    .covers(&[207, 208, 210]),
    rule("B606", Style, "No line end at the end of the file", "Tools that join files would join the lines."),
    rule(
        "B607",
        Style,
        "A space that is no blank",
        "A no-break space or one of another width looks like a blank, but YAML and Jinja take it as a letter.",
    )
    .covers(&[212]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_and_unique() {
        assert!(RULES.is_sorted_by(|one, other| one.code < other.code));
    }
}
