//! The message about minions that did not return: red lines below their ids.

use brine_value::Value;

use super::text::{lines, sorted_items};
use crate::escape::{escape_control, escape_line};
use crate::{Colour, Colours};

/// Formats `{id: message}`.
pub fn render(value: &Value, colours: Colours) -> String {
    let mut out = Vec::new();
    write(value, 0, colours, &mut out);
    out.join("\n")
}

fn write(value: &Value, indent: usize, colours: Colours, out: &mut Vec<String>) {
    match value {
        Value::Str(text) => {
            for line in lines(text) {
                out.push(colours.paint(Colour::Red, &format!("{:indent$}{}", "", escape_control(line))));
            }
        }
        Value::Map(map) => {
            for (key, value) in sorted_items(map) {
                let key = key.to_string();
                out.push(format!("{:indent$}{}:", "", colours.paint(Colour::Cyan, &escape_line(&key))));
                write(value, indent + 4, colours, out);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::*;

    #[test]
    fn lines_are_red_including_their_indentation() {
        let value = Value::from(map! {"m2" => "gone\n\nreally"});
        assert_eq!(render(&value, Colours::OFF), "m2:\n    gone\n    \n    really");
        assert_eq!(
            render(&value, Colours::ON).replace('\x1b', "^"),
            "^[0;36mm2^[0;0m:\n^[0;31m    gone^[0;0m\n^[0;31m    ^[0;0m\n^[0;31m    really^[0;0m"
        );
    }
}
