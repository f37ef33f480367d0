//! Parses the output of `zypper --xmlout` into a flat list of elements with their attributes and following text.

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

/// An element.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Element {
    /// Its name.
    pub name: String,
    attributes: Vec<(String, String)>,
    /// Text up to the next element.
    pub text: String,
}

impl Element {
    /// Returns an attribute; an empty string if it is missing.
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

/// Returns the elements of a text, up to the first invalid XML.
pub fn elements(text: &str) -> Vec<Element> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().allow_dangling_amp = true;
    reader.config_mut().allow_unmatched_ends = true;
    reader.config_mut().check_end_names = false;
    let (mut elements, mut is_open): (Vec<Element>, bool) = (Vec::new(), false);
    loop {
        let text = match reader.read_event() {
            Ok(Event::Start(tag) | Event::Empty(tag)) => {
                elements.push(element(&tag));
                is_open = true;
                continue;
            }
            Ok(Event::End(_)) => {
                is_open = false;
                continue;
            }
            Ok(Event::Text(text)) => text.xml_content(XmlVersion::Implicit1_0).into_owned(),
            Ok(Event::GeneralRef(reference)) => resolved(&reference),
            Ok(Event::Eof) | Err(_) => return elements,
            Ok(_) => continue,
        };
        if let Some(last) = elements.last_mut().filter(|_| is_open) {
            last.text += &text;
        }
    }
}

/// Returns the elements with a name.
pub fn named<'e>(elements: &'e [Element], name: &'e str) -> impl Iterator<Item = &'e Element> {
    elements.iter().filter(move |element| element.name == name)
}

fn element(tag: &BytesStart<'_>) -> Element {
    let mut attributes = tag.attributes();
    let attributes = attributes.with_checks(false).flatten().map(|attribute| {
        let value = attribute.normalized_value(XmlVersion::Implicit1_0).unwrap_or_else(|_| attribute.value.clone());
        (attribute.key.into_inner().to_owned(), value.into_owned())
    });
    Element { name: tag.name().into_inner().to_owned(), attributes: attributes.collect(), text: String::new() }
}

/// Returns the text of an entity; of an unknown one, itself.
fn resolved(reference: &BytesRef<'_>) -> String {
    let named = || resolve_predefined_entity(reference).map(str::to_owned);
    let numbered = reference.resolve_char_ref().ok().flatten().map(String::from);
    numbered.or_else(named).unwrap_or_else(|| format!("&{};", &**reference))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn elements_are_parsed() {
        let text = "<?xml version='1.0'?>\n<stream>\n<message type=\"info\">Name of &apos;case&apos; &amp;lt; set</message>\n\
                    <solvable status='installed' name=\"brine-one\" edition=\"2:1.0-1\"/>\n</stream>";
        let elements = elements(text);
        let names: Vec<&str> = elements.iter().map(|element| element.name.as_str()).collect();
        assert_eq!(names, ["stream", "message", "solvable"]);
        assert_eq!(elements[1].text, "Name of 'case' &lt; set");
        assert_eq!((elements[1].attribute("type"), elements[1].attribute("none")), ("info", ""));
        assert_eq!((elements[2].attribute("name"), elements[2].attribute("edition")), ("brine-one", "2:1.0-1"));
        assert_eq!(named(&elements, "solvable").count(), 1);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed(text in "[<>/='\"a&; é]{0,40}") {
            elements(&text);
        }
    }
}
