use brine_value::{list, map};

use super::*;
use crate::testing::{Scripted, answers, context, context_with};

const FILE: &str = "<?xml version='1.0' encoding='UTF-8'?>
<!-- kept -->
<root xmlns:x=\"urn:x\" a='1 &amp;&#10;2'>
  <item id=\"1\">one &amp; <![CDATA[<b>]]></item>
  <item id='2' x:id=\"9\">two<sub>deep</sub>tail</item>
  <x:item/>
  <group xmlns=\"urn:d\"><item id=\"3\" >\u{fc}</item><item /></group>
</root>
";

// As found by ElementTree of Python 3.11.
#[test]
fn elements_are_found() {
    let document = Document::parse(FILE.into()).unwrap();
    for (path, expected) in [
        ("item", Some(Some("one & <b>"))),
        ("./item", Some(Some("one & <b>"))),
        ("/item", Some(Some("one & <b>"))),
        ("item[2]", Some(Some("two"))),
        ("item[3]", None),
        ("item[last()]", Some(Some("two"))),
        ("item[last()-1]", Some(Some("one & <b>"))),
        ("item[@id='2']/sub", Some(Some("deep"))),
        ("item[@id=\"2\"]", Some(Some("two"))),
        ("item[@id!='1']", Some(Some("two"))),
        ("item[@{urn:x}id]", Some(Some("two"))),
        ("item[@none]", None),
        ("item[sub]", Some(Some("two"))),
        ("item[sub='deep']", Some(Some("two"))),
        ("item[sub!='deep']", None),
        ("item[.='twodeeptail']", Some(Some("two"))),
        ("item[ . = 'twodeeptail' ]/sub", Some(Some("deep"))),
        ("item[@id='2'][sub]", Some(Some("two"))),
        (".//sub/../../item", Some(Some("one & <b>"))),
        (".//sub", Some(Some("deep"))),
        ("*/sub", Some(Some("deep"))),
        (".//item[@id='3']", None),
        (".//{urn:d}item[@id='3']", Some(Some("\u{fc}"))),
        (".//{*}item[@id='3']", Some(Some("\u{fc}"))),
        (".//{urn:d}*", Some(None)),
        ("{urn:d}group//*", Some(Some("\u{fc}"))),
        ("{urn:d}group/", Some(Some("\u{fc}"))),
        ("{urn:x}item", Some(None)),
        ("..", None),
        ("[1]", None),
        (".", Some(Some("\n  "))),
        ("root", None),
    ] {
        let index = Path::parse(path).unwrap().find(&document);
        assert_eq!(index.map(|index| document.text(index)), expected, "{path}");
    }
}

#[test]
fn unsupported_paths_are_rejected() {
    for (path, message) in [
        ("", "it is empty"),
        ("a/", ""),
        ("a///b", "expected a name or '*' after '//'"),
        ("a//[1]", "expected a name or '*' after '//'"),
        ("a[", "a '[' is not closed"),
        ("a[0]", "positions begin with 1"),
        ("a[-9223372036854775808]", "positions begin with 1"),
        ("a[last()-0]", "the offset from last() must be negative"),
        ("a[first()]", "the condition in brackets is not supported"),
        ("a[@b='c]", "a quote is not closed"),
        ("x:a", "prefixes are unknown: write {namespace}name, or {*}name for any namespace"),
        ("a | b", "unexpected character"),
    ] {
        let error = Path::parse(path).err().map(|error| error.to_string()).unwrap_or_default();
        let expected =
            if message.is_empty() { String::new() } else { format!("'{path}' is not a path to an element: {message}") };
        assert_eq!(error, expected);
    }
}

#[test]
fn edits_leave_the_rest_of_the_file() {
    let document = Document::parse(FILE.into()).unwrap();
    let index = |path: &str| Path::parse(path).unwrap().find(&document).unwrap();
    for (path, text, from, to) in [
        ("item", "a<b>&\"\r", "one &amp; <![CDATA[<b>]]>", "a&lt;b&gt;&amp;\"&#13;"),
        ("item[2]", "2\n\u{e9}", ">two<sub>", ">2\n\u{e9}<sub>"),
        ("item[2]", "", ">two<sub>", "><sub>"),
        ("{urn:x}item", "new", "<x:item/>", "<x:item>new</x:item>"),
        ("{urn:x}item", "", "<x:item/>", "<x:item/>"),
        (".//{urn:d}item[2]", "1", "<item />", "<item>1</item>"),
    ] {
        assert_eq!(document.with_text(index(path), text), Ok(FILE.replacen(from, to, 1)), "{path}");
    }
    for (path, name, value, from, to) in [
        ("item", "id", "<'\">\n", "id=\"1\"", "id=\"&lt;&apos;&quot;&gt;&#10;\""),
        ("item[2]", "id", "7", "id='2'", "id='7'"),
        ("item[2]", "{urn:x}id", "7", "x:id=\"9\"", "x:id=\"7\""),
        ("item[2]", "x:id", "7", "x:id=\"9\"", "x:id=\"7\""),
        ("item", "x:new", "", "id=\"1\"", "id=\"1\" x:new=\"\""),
        ("item", "xml:lang", "de", "id=\"1\"", "id=\"1\" xml:lang=\"de\""),
        ("{urn:x}item", "new", "a", "<x:item/>", "<x:item new=\"a\"/>"),
        (".//{urn:d}item", "new", "a", "id=\"3\" >", "id=\"3\" new=\"a\" >"),
    ] {
        assert_eq!(document.with_attribute(index(path), name, value), Ok(FILE.replacen(from, to, 1)), "{path} {name}");
    }
    assert_eq!(document.with_text(index("item"), "a\0"), Err(XmlError::Character(0)));
    for name in ["", "a b", "a=\"b\"", "1", "xmlns", "-a", "a\n", ":a", "x:", "x:a:b"] {
        assert!(document.with_attribute(index("item"), name, "v").is_err(), "{name}");
    }
    assert_eq!(document.with_attribute(index("item"), "{urn:d}a", "v"), Err(XmlError::Namespace("urn:d".into())));
    assert_eq!(document.with_attribute(index("item"), "xmlns:a", "v"), Err(XmlError::Prefix("xmlns".into())));
}

#[test]
fn invalid_documents_are_rejected() {
    for text in [
        "",
        "text",
        "<a>",
        "<a></b>",
        "</a>",
        "<a/><b/>",
        "<a/>text",
        "<a b/>",
        "<a b=c/>",
        "<a b='1' b='2'/>",
        "<a xmlns:x='u' xmlns:y='u' x:b='1' y:b='2'/>",
        "<a b='1'c='2'/>",
        "<a b='<'/>",
        "<a b='&none;'/>",
        "<a>&none;</a>",
        "<a>&#xffffffffff;</a>",
        "<x:a/>",
        "<a><!-- -- --></a>",
        "<?xml version='1.0' encoding='latin1'?><a>\u{e9}</a>",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
    ] {
        assert!(Document::parse(text.into()).is_err(), "{text}");
    }
    assert!(Document::parse(b"<a>\xff</a>".into()).is_err());
    let deep = "<a>".repeat(100_000) + "x" + &"</a>".repeat(100_000);
    let document = Document::parse(deep.into_bytes()).unwrap();
    let index = Path::parse(".//a//a//a[.='x']").unwrap().find(&document);
    assert_eq!(index, Some(3));
}

#[test]
fn ascii_documents_stay_ascii() {
    let text = "\u{feff}<?xml version='1.0' encoding='us-ascii'?><a/>";
    assert!(Document::parse(text.into()).is_err());
    let document = Document::parse(text.trim_start_matches('\u{feff}').into()).unwrap();
    assert!(document.with_text(0, "\u{e9}").unwrap().ends_with("<a>&#233;</a>"));
    let document = Document::parse("\u{feff}<a b='1'/>".into()).unwrap();
    assert_eq!(document.with_attribute(0, "b", "2").unwrap(), "\u{feff}<a b='2'/>");
}

#[test]
fn values_are_read_and_set() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.xml").display().to_string();
    std::fs::write(&file, FILE).unwrap();
    let answers = answers(
        &context(&[]),
        &[
            ("xml.get_value", list![file.as_str(), "item[2]"], map! {}),
            ("xml.get_value", list![file.as_str(), "{urn:x}item"], map! {}),
            ("xml.get_value", list![file.as_str(), "none"], map! {}),
            ("xml.get_attribute", list![file.as_str(), "item[2]"], map! {}),
            ("xml.get_attribute", list![file.as_str(), "."], map! {}),
            ("xml.get_attribute", list![file.as_str(), "none"], map! {}),
            ("xml.set_value", list![file.as_str(), "none", "a"], map! {}),
            ("xml.set_value", list![file.as_str(), "item[2]", 3], map! {}),
            ("xml.get_value", list![file.as_str(), "item[2]"], map! {}),
            ("xml.set_attribute", list![file.as_str(), "item[2]", "id", true], map! {}),
            ("xml.set_attribute", list![file.as_str(), "none", "id", true], map! {}),
            ("xml.get_attribute", list![file.as_str(), "item[2]"], map! {}),
            ("xml.get_value", list![file.as_str(), "a["], map! {}),
            ("xml.get_value", list!["/nonexistent.xml", "a"], map! {}),
            ("xml.get_value", list!["/dev/null", "a"], map! {}),
        ],
    );
    insta::assert_snapshot!(answers, @r#"
    xml.get_value: "two"
    xml.get_value: null
    xml.get_value: false
    xml.get_attribute: {"id": "2", "{urn:x}id": "9"}
    xml.get_attribute: {"a": "1 &\n2"}
    xml.get_attribute: false
    xml.set_value: false
    xml.set_value: true
    xml.get_value: "3"
    xml.set_attribute: true
    xml.set_attribute: false
    xml.get_attribute: {"id": "True", "{urn:x}id": "9"}
    xml.get_value: ERROR: 'a[' is not a path to an element: a '[' is not closed
    xml.get_value: ERROR: cannot read /nonexistent.xml: No such file or directory (os error 2); create it, or correct the path in the configuration
    xml.get_value: ERROR: reading /dev/null failed: the document is not well-formed at byte 0: no element found
    "#);
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(written, FILE.replace("id='2'", "id='True'").replace(">two<", ">3<"));
}

#[test]
fn the_state_compares_the_text() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.xml").display().to_string();
    for (xpath, value, test, result, comment) in [
        ("item[2]", "two", false, Some(true), "two is already present"),
        ("{urn:x}item", "", false, Some(true), " is already present"),
        ("item[2]", "3", true, None, "FILE will be updated"),
        ("item[2]", "3", false, Some(true), "FILE updated"),
        ("{urn:x}item", "3", false, Some(true), "FILE updated"),
        ("none", "3", true, Some(false), "xpath query none not found in FILE"),
        ("none", "3", false, Some(false), "xpath query none not found in FILE"),
    ] {
        std::fs::write(&file, FILE).unwrap();
        let programs = Scripted::new("");
        let call = context_with(map! {}, programs.clone());
        let value: Value = value.parse::<i64>().map_or_else(|_| value.into(), Value::from);
        let args = map! {"name" => file.as_str(), "xpath" => xpath, "value" => value};
        let report = brine_testing::applied(&call, &programs, "xml.value_present", args, test);
        assert_eq!((report.result, report.comment.replace(&file, "FILE")), (result, comment.to_owned()), "{xpath}");
        assert_eq!(std::fs::read_to_string(&file).unwrap() != FILE, comment == "FILE updated", "{xpath}");
        assert_eq!(report.changes.is_truthy(), comment.contains("updated"), "{xpath}");
    }
}
