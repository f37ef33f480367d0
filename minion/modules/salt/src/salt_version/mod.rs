//! `salt_version`: the code names of Salt's releases, compared with the release in the grain `saltversion`.

use std::cmp::Ordering;

use brine_context::{Context, Module};
use brine_function::{CallResult, Functions, function, registry};
use brine_value::Value;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `salt_version`.
pub static FUNCTIONS: Functions<Context> =
    registry!("salt_version", [get_release_number, equal, greater_than, less_than]);

/// The code names of releases that were numbered by year and month.
const DATED_RELEASES: &[(&str, [i64; 2])] = &[
    ("hydrogen", [2014, 1]),
    ("helium", [2014, 7]),
    ("lithium", [2015, 5]),
    ("beryllium", [2015, 8]),
    ("boron", [2016, 3]),
    ("carbon", [2016, 11]),
    ("nitrogen", [2017, 7]),
    ("oxygen", [2018, 3]),
    ("fluorine", [2019, 2]),
];
/// The number of the first release of [`ELEMENTS`].
const FIRST_ELEMENT_RELEASE: i64 = 3000;
/// The code names of the releases since 3000, in the order of the periodic table.
const ELEMENTS: &[&str] = &[
    "neon",
    "sodium",
    "magnesium",
    "aluminium",
    "silicon",
    "phosphorus",
    "sulfur",
    "chlorine",
    "argon",
    "potassium",
    "calcium",
    "scandium",
    "titanium",
    "vanadium",
    "chromium",
    "manganese",
    "iron",
    "cobalt",
    "nickel",
    "copper",
    "zinc",
    "gallium",
    "germanium",
    "arsenic",
    "selenium",
    "bromine",
    "krypton",
    "rubidium",
    "strontium",
    "yttrium",
    "zirconium",
    "niobium",
    "molybdenum",
    "technetium",
    "ruthenium",
    "rhodium",
    "palladium",
    "silver",
    "cadmium",
    "indium",
    "tin",
    "antimony",
    "tellurium",
    "iodine",
    "xenon",
];

/// Return the number of the release with a code name, or nothing.
///
/// CLI Example:
///
///     salt '*' salt_version.get_release_number 'Oxygen'
#[function]
pub fn get_release_number(
    _context: &Context,
    /// Name or number of a release of Salt.
    name: String,
) -> CallResult {
    let joined = |number: Vec<i64>| number.iter().map(ToString::to_string).collect::<Vec<_>>().join(".");
    Ok(number(&name).map_or(Value::Nil, |number| joined(number).into()))
}

/// Return whether the Salt release of this minion (grain `saltversion`) is the one with a code name.
///
/// CLI Example:
///
///     salt '*' salt_version.equal 'Oxygen'
#[function]
pub fn equal(
    context: &Context,
    /// Name or number of a release of Salt.
    name: String,
) -> CallResult {
    Ok((compared(context, &name) == Some(Ordering::Equal)).into())
}

/// Return whether the Salt release of this minion (grain `saltversion`) is later than the one with a code name.
///
/// CLI Example:
///
///     salt '*' salt_version.greater_than 'Oxygen'
#[function]
pub fn greater_than(
    context: &Context,
    /// Name or number of a release of Salt.
    name: String,
) -> CallResult {
    Ok((compared(context, &name) == Some(Ordering::Greater)).into())
}

/// Return whether the Salt release of this minion (grain `saltversion`) is earlier than the one with a code name.
///
/// CLI Example:
///
///     salt '*' salt_version.less_than 'Oxygen'
#[function]
pub fn less_than(
    context: &Context,
    /// Name or number of a release of Salt.
    name: String,
) -> CallResult {
    Ok((compared(context, &name) == Some(Ordering::Less)).into())
}

fn number(name: &str) -> Option<Vec<i64>> {
    let name = name.to_lowercase();
    if let Some((_, date)) = DATED_RELEASES.iter().find(|(release, _)| *release == name) {
        return Some(date.to_vec());
    }
    let place = ELEMENTS.iter().position(|element| *element == name)?;
    Some(vec![FIRST_ELEMENT_RELEASE + i64::try_from(place).ok()?])
}

/// Compares the release of the grain `saltversion`, without its last number, with that of a code name.
fn compared(context: &Context, name: &str) -> Option<Ordering> {
    let version = context.grains().get("saltversion").map(ToString::to_string)?;
    let (release, _) = version.rsplit_once('.')?;
    let release: Vec<i64> = release.split('.').filter_map(|part| part.parse().ok()).collect();
    Some(release.cmp(&number(name)?))
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;
    use crate::testing::{Scripted, answers, context_with};

    #[test]
    fn code_names_are_compared_with_the_grain() {
        assert_eq!((number("Argon"), number("xenon")), (Some(vec![3008]), Some(vec![3044])));
        let context = context_with(map! {"saltversion" => "3008.3"}, Scripted::new(""));
        insta::assert_snapshot!(answers(&context, &[
            ("salt_version.get_release_number", list!["Oxygen"], map! {}),
            ("salt_version.get_release_number", list!["sodium"], map! {}),
            ("salt_version.get_release_number", list!["kryptonite"], map! {}),
            ("salt_version.equal", list!["argon"], map! {}),
            ("salt_version.equal", list!["kryptonite"], map! {}),
            ("salt_version.greater_than", list!["oxygen"], map! {}),
            ("salt_version.less_than", list!["potassium"], map! {}),
            ("salt_version.less_than", list!["argon"], map! {}),
        ]), @r#"
        salt_version.get_release_number: "2018.3"
        salt_version.get_release_number: "3001"
        salt_version.get_release_number: null
        salt_version.equal: true
        salt_version.equal: false
        salt_version.greater_than: true
        salt_version.less_than: true
        salt_version.less_than: false
        "#);
    }
}
