//! Attributes of installed packages from the rpm database.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use brine_context::Context;
use brine_context::programs::run;
use brine_function::CallError;
use brine_function::arguments::names;
use brine_host::programs::argument;
use brine_value::{Map, Value};
use jiff::Timestamp;

use super::evr;

/// The attributes with their part of the query. Without a value, `(none)` or nothing is printed.
const FIELDS: [(&str, &str); 20] = [
    ("name", "%{NAME}"),
    ("relocations", "%|PREFIXES?{[%{PREFIXES} ]}:{(not relocatable)}|"),
    ("version", "%{VERSION}"),
    ("vendor", "%{VENDOR}"),
    ("release", "%{RELEASE}"),
    ("epoch", "%|EPOCH?{%{EPOCH}}|"),
    ("build_date_time_t", "%{BUILDTIME}"),
    ("build_date", "%{BUILDTIME}"),
    ("install_date_time_t", "%{INSTALLTIME}"),
    ("install_date", "%{INSTALLTIME}"),
    ("build_host", "%{BUILDHOST}"),
    ("group", "%{GROUP}"),
    ("source_rpm", "%{SOURCERPM}"),
    ("size", "%{LONGSIZE}"),
    ("arch", "%{ARCH}"),
    ("license", "%|LICENSE?{%{LICENSE}}|"),
    ("packager", "%|PACKAGER?{%{PACKAGER}}|"),
    ("url", "%|URL?{%{URL}}|"),
    ("summary", "%{SUMMARY}"),
    ("signature", SIGNATURE),
];
const SIGNATURE: &str = "%|DSAHEADER?{%{DSAHEADER:pgpsig}}:{%|RSAHEADER?{%{RSAHEADER:pgpsig}}:{(none)}|}|";
/// The only attribute with several lines; it is queried last.
const DESCRIPTION: &str = "description";
/// The attribute for the full version, with epoch and release.
const EDITION: (&str, &str) = ("edition", "%|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}");
/// The separators after a field and after a package, which no field contains.
const FIELD_END: char = '\x1f';
const PACKAGE_END: char = '\x1e';

/// A query about packages.
#[derive(Debug, Clone, Default)]
pub struct InfoQuery {
    /// The names; none for all.
    pub names: Vec<String>,
    /// The attributes; none for all.
    pub attributes: Vec<String>,
    /// Whether all installed versions are returned, as a list with `edition`, instead of the newest.
    pub all_versions: bool,
}

impl InfoQuery {
    /// Parses the arguments of `pkg.info_installed` and `lowpkg.info`.
    pub fn read(args: &[Value], kwargs: &Map) -> Self {
        InfoQuery {
            names: args.iter().map(ToString::to_string).collect(),
            attributes: kwargs.get("attr").filter(|attr| attr.is_truthy()).map(names).unwrap_or_default(),
            all_versions: kwargs.get("all_versions").is_some_and(Value::is_truthy),
        }
    }

    fn has(&self, attribute: &str) -> bool {
        self.attributes.is_empty() || self.attributes.iter().any(|asked| asked == attribute)
    }

    /// Returns the attributes with their part of the query.
    fn fields(&self) -> Vec<(&'static str, &'static str)> {
        let asked = FIELDS.into_iter().filter(|(name, _)| *name == "name" || self.has(name));
        let description = self.has(DESCRIPTION).then_some((DESCRIPTION, "%{DESCRIPTION}"));
        asked.chain([EDITION]).chain(description).collect()
    }
}

/// Returns the attributes of packages from rpm, by name. Unknown packages are left out.
///
/// # Errors
/// None of the attributes is known, or rpm cannot be run.
pub fn described(context: &Context, asked: &InfoQuery) -> Result<Map, CallError> {
    let is_known = |name: &String| name == DESCRIPTION || FIELDS.iter().any(|(field, _)| field == name);
    if !asked.attributes.is_empty() && !asked.attributes.iter().any(is_known) {
        return Err(CallError::Execution("No valid attributes found.".into()));
    }
    let fields = asked.fields();
    let format: String = fields.iter().flat_map(|(_, field)| field.chars().chain([FIELD_END])).collect();
    let mut words = vec!["rpm".to_owned(), if asked.names.is_empty() { "-qa" } else { "-q" }.to_owned()];
    words.extend(["--queryformat".to_owned(), format!("{format}{PACKAGE_END}")]);
    for name in &asked.names {
        words.push(argument(name)?);
    }
    // The exit status is ignored: it is a failure if one of the packages is unknown.
    let output = run(context, &words, &[("LC_ALL", "C"), ("TZ", "UTC")])?;
    let attributes: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let packages = output.stdout.split(PACKAGE_END).filter_map(|text| package(text, &attributes));
    Ok(collected(packages, asked.all_versions))
}

/// Parses the fields of a package. Returns its name, edition and attributes.
fn package(text: &str, attributes: &[&str]) -> Option<(String, String, Map)> {
    let values: Vec<&str> = text.split(FIELD_END).collect();
    if values.len() <= attributes.len() {
        return None;
    }
    let mut about = Map::new();
    let (mut name, mut edition) = (String::new(), String::new());
    for (attribute, value) in attributes.iter().zip(values) {
        match *attribute {
            // Messages on unknown packages may precede the name.
            "name" => value.lines().last().unwrap_or_default().clone_into(&mut name),
            "edition" => value.clone_into(&mut edition),
            "build_date" | "install_date" => {
                about.extend(date(value).map(|date| ((*attribute).into(), date.into())));
            }
            "build_date_time_t" | "install_date_time_t" => {
                about.extend(value.parse::<i64>().ok().map(|time| ((*attribute).into(), time.into())));
            }
            _ if value.is_empty() => {}
            _ => _ = about.insert((*attribute).into(), value.into()),
        }
    }
    // Keys of repositories are packages, too.
    (!name.is_empty() && !name.starts_with("gpg-pubkey")).then_some((name, edition, about))
}

/// Returns a time as `2026-11-26T08:00:00Z`.
fn date(seconds: &str) -> Option<String> {
    let time = Timestamp::from_second(seconds.parse().ok()?).ok()?;
    Some(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Returns the newest version of each package, or all.
fn collected(packages: impl Iterator<Item = (String, String, Map)>, all_versions: bool) -> Map {
    let mut by_name: BTreeMap<String, Vec<(String, Map)>> = BTreeMap::new();
    for (name, edition, about) in packages {
        by_name.entry(name).or_default().push((edition, about));
    }
    let newest_first = |a: &(String, Map), b: &(String, Map)| -> Ordering { evr::compare(&b.0, &a.0) };
    by_name
        .into_iter()
        .filter_map(|(name, mut versions)| {
            versions.sort_by(newest_first);
            let value = if all_versions {
                let with_edition = versions.into_iter().map(|(edition, mut about)| {
                    about.insert("edition".into(), edition.into());
                    Value::from(about)
                });
                with_edition.collect()
            } else {
                versions.into_iter().next()?.1.into()
            };
            Some((name.into(), value))
        })
        .collect()
}
