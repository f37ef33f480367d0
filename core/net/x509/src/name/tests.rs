use brine_value::{list, map};

use super::*;

#[test]
fn names_are_built_from_all_forms_and_shown() {
    for (value, expected) in [
        (Value::from("CN=example.com,O=Example Inc,C=US"), "CN=example.com,O=Example Inc,C=US"),
        (list!["C=US", "O=Example Inc", "CN=a.b+OU=unit"], "CN=a.b+OU=unit,O=Example Inc,C=US"),
        (
            map! {"CN" => "x", "C" => "DE", "MAIL" => "a@b.c", "unknown" => 1}.into(),
            "1.2.840.113549.1.9.1=a@b.c,CN=x,C=DE",
        ),
        ("".into(), ""),
        ("CN=\\ a\\,b\\2Bc\\ ,DC=org".into(), "CN=\\ a\\,b\\+c\\ ,DC=org"),
    ] {
        let name = Name::of(&value).unwrap();
        let read = Name::read(&Reader(name.der()).next().unwrap()).unwrap();
        assert_eq!((read.show(), &read), (expected.to_owned(), &name));
    }
}

#[test]
fn invalid_names_are_refused() {
    for (value, error) in [
        (Value::from("CN"), "Failed parsing rfc4514 dirName string"),
        ("XX=1".into(), "Failed parsing rfc4514 dirName string"),
        (list!["CN=a,O=b"], "Specified string is not a Relative Distinguished Name, but a Distinguished Name."),
        (list!["CN"], "Failed parsing rdn string: CN"),
        (map! {"C" => "USA"}.into(), "Country name must be a 2 character country code"),
        (map! {"CN" => "x".repeat(65)}.into(), "Attribute's length must be >= 1 and <= 64, but it was 65"),
        (1.into(), "Need string, list or dict to parse distinguished names"),
    ] {
        assert_eq!(Name::of(&value).unwrap_err().to_string(), error);
    }
}
