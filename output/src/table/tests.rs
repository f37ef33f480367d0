use brine_value::{list, map};

use super::*;

fn plain(value: impl Into<Value>) -> Option<String> {
    render(&value.into(), &TableOptions::default(), Colours::OFF)
}

#[test]
fn mappings_have_a_heading() {
    let rows = list![map! {"mac_x" => "40:A6", "active" => true}, map! {"mac_x" => "1", "active" => false}];
    let lines = [
        "m1:",
        "----------",
        "    out:",
        "    ----------",
        "        ------------------",
        "        | Active | Mac X |",
        "        ------------------",
        "        |  True  | 40:A6 |",
        "        ------------------",
        "        | False  |   1   |",
        "        ------------------",
    ];
    assert_eq!(plain(map! {"m1" => map!{"out" => rows}}).unwrap(), lines.join("\n"));
}

#[test]
fn texts_are_one_column_and_long_ones_are_wrapped() {
    let long = format!("{} tail", "x".repeat(48));
    let table = plain(map! {"m" => list![long, "b"]}).unwrap();
    let middle: Vec<&str> = table.lines().skip(3).map(str::trim).collect();
    assert_eq!(middle[0].trim_matches(['|', ' ']), "x".repeat(48));
    assert_eq!(middle[1].trim_matches(['|', ' ']), "tail");
    assert!(middle[2].starts_with("----"));
}

#[test]
fn rows_of_lists_have_no_heading() {
    let rule = format!("    {}", "-".repeat(9));
    assert_eq!(
        plain(list![list!["a", "b"], list!["c", "d"]]).unwrap(),
        [rule.as_str(), "    | a | b |", &rule, "    | c | d |", &rule].join("\n")
    );
}

#[test]
fn other_values() {
    assert_eq!(plain(map! {"m" => true}).unwrap(), "m:\n----------");
    assert_eq!(plain(map! {"m" => list![1, "x"]}).unwrap(), "m:\n----------", "rows of two kinds");
    assert_eq!(plain(map! {"m" => list![1, 2]}), None);
    assert_eq!(plain(map! {"m" => list![list![1]]}), None);
    assert_eq!(plain(map! {"m" => list![Map::new()]}), None);
}

#[test]
fn centring_matches_python() {
    for (text, width, want) in [("ab", 5, "  ab "), ("a", 4, " a  "), ("abc", 3, "abc"), ("a", 2, "a ")] {
        assert_eq!(centred(text, width), want);
    }
}
#[test]
fn options_have_salts_names_and_effects() {
    let data: Value = map! {"m1" => map!{"out" => list![map! {"a" => "1", "b" => "xyz"}, map! {"a" => "22", "b" => "w"}], "heads" => list!["One", "Two"]}}.into();
    let render_with = |settings: &[(&str, Value)]| {
        let mut options = TableOptions::default();
        for (name, value) in settings {
            options.set(name, value);
        }
        render(&data, &options, Colours::OFF).unwrap()
    };
    insta::assert_snapshot!(render_with(&[("rows_key", "out".into()), ("labels_key", "heads".into()), ("title", "Rows".into()), ("justify", "Left".into())]), @r"
    Rows

        -------------
        | One | Two |
        -------------
        | 1   | xyz |
        -------------
        | 22  | w   |
        -------------
    ");
    insta::assert_snapshot!(render_with(&[("rows_key", "out".into()), ("separate_rows", false.into()), ("delim", " ".into()), ("prefix", "".into()), ("suffix", "".into()), ("row_delimiter", "=".into()), ("justify", "right".into())]), @r"
         A   B
        ======
         1 xyz
        22   w
    ");
    insta::assert_snapshot!(render_with(&[("rows_key", "none".into())]), @"");
    insta::assert_snapshot!(render_with(&[("rows_key", "out".into()), ("has_header", false.into()), ("separate_rows", false.into()), ("nested_indent", 2.into()), ("width", "x".into())]), @r"
          | A  |  B  |
          | 1  | xyz |
          | 22 |  w  |
    ");
}
