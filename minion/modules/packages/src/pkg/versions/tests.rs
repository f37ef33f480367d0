use super::super::apk::Apk;
use super::super::dnf::Dnf;
use super::*;
use crate::testing;

#[test]
fn conditions_are_parsed() {
    for (text, expected) in [
        ("1.0", vec![(Operator::Equal, "1.0")]),
        ("== 1.0", vec![(Operator::Equal, "1.0")]),
        (">=1.2, <2", vec![(Operator::GreaterOrEqual, "1.2"), (Operator::Less, "2")]),
        ("!=3,>2,<=4", vec![(Operator::NotEqual, "3"), (Operator::Greater, "2"), (Operator::LessOrEqual, "4")]),
        ("", vec![]),
    ] {
        assert_eq!(conditions(text), expected, "{text}");
    }
}

#[test]
fn a_single_version_may_be_newer() {
    for (text, expected) in
        [("1.0", Some(">=1.0")), ("== 1.0", Some(">=1.0")), ("1.*", None), ("<2", None), ("1.0, 2.0", None)]
    {
        assert_eq!(or_newer(text).as_deref(), expected, "{text}");
    }
}

#[test]
fn installed_versions_satisfy_requirements() {
    let context = testing::context(&[]);
    for (installed, requirement, ignore_epoch, expected) in [
        ("1.0-1", "1.0-1", None, true),
        ("1.0-1", "1.0", None, true),
        ("1.0-1", "1.1", None, false),
        ("2:1.0-1", "1.0-1", None, true),
        ("2:1.0-1", "1:1.0-1", None, false),
        ("2:1.0-1", "1:1.0-1", Some(true), true),
        ("2:1.0-1", "1.0-1", Some(false), false),
        ("2:1.0-1", "<1.1", None, false),
        ("2:1.0-1", "<1.1", Some(true), true),
        ("1.0-1", "1.*", None, true),
        ("1.0-1", "2.*", None, false),
        ("1.0-1,1.2-1", "1.2-1", None, true),
        ("1.0-1,1.2-1", ">1.0-1, <1.2", None, false),
        ("1.5-1", ">=1.2, <2, !=1.4", None, true),
    ] {
        let report = satisfies(&context, &Dnf, installed, requirement, ignore_epoch);
        assert_eq!(report, Ok(expected), "{installed} {requirement} {ignore_epoch:?}");
    }
}

#[test]
fn a_single_version_is_not_resolved() {
    let desired = [("a".to_owned(), None), ("b".to_owned(), Some("== 1.0".to_owned()))];
    let report = resolve(&testing::context(&[]), &Apk, &desired, &Options::default());
    assert_eq!(report, Ok((vec![("a".into(), None), ("b".into(), Some("1.0".into()))], vec![])));
}
