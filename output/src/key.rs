//! The lists of `salt-key`: a heading for each state, followed by the names of its keys.

use brine_value::Value;

use super::text::sorted_items;
use crate::escape::{escape_control, escape_line};
use crate::{Colour, Colours};

/// The sections of a key list, in order: field, heading, and the colours of heading and names.
const SECTIONS: [(&str, &str, Colour, Colour); 5] = [
    ("local", "Local Keys:", Colour::LightMagenta, Colour::Magenta),
    ("minions", "Accepted Keys:", Colour::LightGreen, Colour::Green),
    ("minions_denied", "Denied Keys:", Colour::LightMagenta, Colour::Magenta),
    ("minions_pre", "Unaccepted Keys:", Colour::LightRed, Colour::Red),
    ("minions_rejected", "Rejected Keys:", Colour::LightBlue, Colour::Blue),
];

/// Formats a key list; `None` if the value is not one.
///
/// A section is a list of names, or a mapping of name to key or fingerprint.
pub fn render(value: &Value, colours: Colours) -> Option<String> {
    let map = value.as_map()?;
    if !map.keys().all(|key| SECTIONS.iter().any(|(field, ..)| key.as_str() == Some(field))) {
        return None;
    }
    let mut out = Vec::new();
    for (field, heading, heading_colour, colour) in SECTIONS {
        let Some(section) = map.get(field) else { continue };
        out.push(colours.paint(heading_colour, heading));
        match section {
            Value::List(names) => {
                let mut names: Vec<String> = names.iter().map(Value::to_string).collect();
                names.sort();
                out.extend(names.iter().map(|name| colours.paint(colour, &escape_line(name))));
            }
            Value::Map(keys) => {
                for (name, text) in sorted_items(keys) {
                    let (name, text) = (name.to_string(), text.to_string());
                    let line = format!("{}:  {}", escape_line(&name), escape_control(&text));
                    out.push(colours.paint(colour, &line));
                }
            }
            _ => {}
        }
    }
    Some(out.join("\n"))
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn each_given_section_has_a_heading() {
        let value = Value::from(map! {
            "minions_pre" => list!["zz2"], "minions_rejected" => list![], "minions" => list!["m2", "m1"],
        });
        assert_eq!(
            render(&value, Colours::OFF).unwrap(),
            "Accepted Keys:\nm1\nm2\nUnaccepted Keys:\nzz2\nRejected Keys:"
        );
    }

    #[test]
    fn keys_and_fingerprints_follow_the_names() {
        let value = Value::from(map! {"local" => map!{"master.pub" => "aa:bb"}, "minions" => map!{"m1" => "1\n2"}});
        assert_eq!(render(&value, Colours::OFF).unwrap(), "Local Keys:\nmaster.pub:  aa:bb\nAccepted Keys:\nm1:  1\n2");
    }

    #[test]
    fn other_values_are_not_key_lists() {
        assert_eq!(render(&Value::from(map! {"bogus" => list!["x"]}), Colours::OFF), None);
        assert_eq!(render(&Value::from("x"), Colours::OFF), None);
    }
}
