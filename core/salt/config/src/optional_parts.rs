//! The parts of Brine that a build can leave out: what each is, and where it is to be had. All messages about a missing part
//! are made here.

use std::fmt;

/// A part that a build can leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionalPart {
    /// What it is: `returner`, or `option`.
    pub kind: &'static str,
    /// The name of the returner or option; for an option that has the part by a value alone, `option: value`.
    pub name: &'static str,
    /// The feature of Cargo that builds it.
    pub feature: &'static str,
    /// The package of a release that has it.
    pub package: &'static str,
}

/// The package with the program, which is built with all features.
const PROGRAM: &str = "brine";

const fn part(kind: &'static str, name: &'static str, feature: &'static str, package: &'static str) -> OptionalPart {
    OptionalPart { kind, name, feature, package }
}

/// Everything that a build can leave out.
pub const OPTIONAL_PARTS: [OptionalPart; 10] = [
    part("option", "cluster", "messaging", PROGRAM),
    part("option", "external_auth: pam", "pam", "brine-pam"),
    part("returner", "amqp", "messaging", PROGRAM),
    part("returner", "kafka", "messaging", PROGRAM),
    part("returner", "mongo", "databases", PROGRAM),
    part("returner", "mysql", "databases", PROGRAM),
    part("returner", "nats", "messaging", PROGRAM),
    part("returner", "pgjsonb", "databases", PROGRAM),
    part("returner", "postgres", "databases", PROGRAM),
    part("returner", "postgres_local_cache", "databases", PROGRAM),
];

/// Returns how to get a part: the end of the message that it is missing.
pub fn remedy_of_missing(kind: &str, name: &str) -> String {
    match OPTIONAL_PARTS.iter().find(|part| part.kind == kind && part.name == name) {
        Some(part) => part.to_string(),
        None => format!("install the package {PROGRAM}"),
    }
}

impl fmt::Display for OptionalPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "install the package {}, or build with `--features {}`", self.package, self.feature)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn project(name: &str) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    #[test]
    fn a_missing_part_names_its_package_and_feature() {
        let missing = remedy_of_missing("returner", "mysql");
        assert_eq!(missing, "install the package brine, or build with `--features databases`");
        let missing = remedy_of_missing("option", "external_auth: pam");
        assert_eq!(missing, "install the package brine-pam, or build with `--features pam`");
        assert_eq!(remedy_of_missing("returner", "other"), "install the package brine");
    }

    #[test]
    fn the_features_of_the_program_are_those_of_the_parts() {
        let manifest = project("Cargo.toml");
        let features = manifest.split("\n[features]\n").nth(1).and_then(|text| text.split("\n[").next()).unwrap();
        let names =
            features.lines().filter_map(|line| Some(line.split_once(" = ")?.0)).filter(|name| !name.starts_with('#'));
        let names: BTreeSet<&str> = names.filter(|name| !["default", "interop"].contains(name)).collect();
        let parts: BTreeSet<&str> = OPTIONAL_PARTS.iter().map(|part| part.feature).collect();
        assert_eq!(names, parts);
    }

    #[test]
    fn the_packages_have_the_parts() {
        let build = project("packaging/build");
        for part in OPTIONAL_PARTS {
            assert!(build.contains(&format!(" pack {} \"", part.package)), "{}", part.package);
            // PAM is a program of its own, and a default.
            let is_built = part.feature == "pam" || build.contains(&format!("--features databases,{}", part.feature));
            assert!(is_built || build.contains(&format!("--features {}", part.feature)), "{}", part.feature);
        }
    }
}
