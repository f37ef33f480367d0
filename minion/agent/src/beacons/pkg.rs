//! `pkg`: packages that were installed or removed, or have an upgrade.

use std::collections::HashMap;

use brine_function::{Args, CallError};
use brine_value::{Map, Value, map};

use super::settings::Settings;
use super::{Beacon, Kind, Options, PollContext, entry};

struct Packages {
    names: Vec<String>,
    refresh: bool,
    /// The status of each package at the last poll.
    last: HashMap<String, &'static str>,
}

pub(super) const KIND: Kind = Kind {
    name: "pkg",
    doc: "Packages that were installed or removed, or have an upgrade, since the last poll.",
    options: Options::Named(&[
        entry("pkgs", "Required. A list of package names."),
        entry("refresh", "Whether the package lists are refreshed before each poll (False)."),
    ]),
    fields: &[
        entry("pkg", "The name of the package."),
        entry("version", "The installed version, or that of the upgrade."),
        entry("status", "`installed`, `not-installed` or `upgrade`."),
    ],
    start,
    ..Kind::DEFAULT
};

fn start(settings: &Settings) -> Result<Box<dyn Beacon>, String> {
    let names = settings.get("pkgs").ok_or("option 'pkgs' is missing")?;
    let names = names.as_list().ok_or_else(|| format!("option 'pkgs': expected a list of packages, got {names}"))?;
    let names = names.iter().map(ToString::to_string).collect();
    Ok(Box::new(Packages { names, refresh: settings.flag("refresh", false)?, last: HashMap::new() }))
}

impl Packages {
    /// Returns the event of a package whose status has changed since the last poll.
    fn events(&mut self, name: &str, installed: &str, newer: &str) -> Option<Map> {
        let (status, version) = match (installed, newer) {
            ("", _) => ("not-installed", Value::Nil),
            (installed, "") => ("installed", installed.into()),
            (_, newer) => ("upgrade", newer.into()),
        };
        let last = self.last.insert(name.to_owned(), status)?;
        (last != status).then(|| map! {"pkg" => name, "version" => version, "status" => status})
    }
}

impl Beacon for Packages {
    fn poll(&mut self, poll: &PollContext<'_>) -> Result<Vec<Map>, String> {
        let ask = |fun: &str, args: Args| poll.context.call(fun, args).map_err(|error: CallError| error.to_string());
        if self.refresh {
            ask("pkg.refresh_db", Args::default())?;
        }
        let mut report = Vec::new();
        for name in self.names.clone() {
            let of = |fun| ask(fun, Args::positional([name.as_str().into()])).map(|version| version.to_string());
            let (installed, newer) = (of("pkg.version")?, of("pkg.latest_version")?);
            report.extend(self.events(&name, &installed, &newer));
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::super::tests::wrong;
    use super::*;

    #[test]
    fn changes_since_the_last_poll_are_reported() {
        let mut packages = Packages { names: vec![], refresh: false, last: HashMap::new() };
        for (installed, newer, report) in [
            ("1.0", "", None),
            ("1.0", "", None),
            ("1.0", "1.1", Some(("upgrade", Value::from("1.1")))),
            ("1.0", "1.2", None),
            ("1.2", "", Some(("installed", "1.2".into()))),
            ("", "1.2", Some(("not-installed", Value::Nil))),
        ] {
            let expected =
                report.map(|(status, version)| map! {"pkg" => "zsh", "version" => version, "status" => status});
            assert_eq!(packages.events("zsh", installed, newer), expected);
        }
    }

    #[test]
    fn options_are_checked() {
        for (config, error) in [
            (list![], "option 'pkgs' is missing"),
            (list![map! {"pkgs" => "zsh"}], "option 'pkgs': expected a list of packages, got zsh"),
        ] {
            assert_eq!(wrong("pkg", &config), error);
        }
    }
}
