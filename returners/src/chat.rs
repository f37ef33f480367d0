//! Text messages about returns: helpers that the returners for chat services share.

use brine_job::Return;
use brine_value::Value;

/// Returns the text of a return, as Salt's chat returners send it. `value` is the returned value as text.
pub(crate) fn text_of(job_return: &Return, value: &str) -> String {
    let field = |name: &str| job_return.map().get(name).unwrap_or(&Value::Nil).to_string();
    format!(
        "id: {}\r\nfunction: {}\r\nfunction args: {}\r\njid: {}\r\nreturn: {value}\r\n",
        field("id"),
        field("fun"),
        field("fun_args"),
        field("jid")
    )
}

/// Returns a text between the marks of preformatted text. Marks in the text cannot end it early.
pub(crate) fn preformatted(text: &str) -> String {
    format!("```{}```", text.replace("```", "'''"))
}

/// Truncates a text to `limit` characters, and logs this.
pub(crate) fn cut(returner: &str, text: String, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text,
        Some((end, _)) => {
            tracing::warn!(returner, limit, "a message is longer than the service takes: it is cut off");
            text[..end].to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn texts_have_the_fields_of_the_return() {
        let one = map! {"jid" => "20261120235852025555", "id" => "web1", "fun" => "test.arg", "fun_args" => list!["a"], "return" => 1};
        let text = text_of(&Return::from_map(one).unwrap(), "1");
        assert_eq!(
            text,
            "id: web1\r\nfunction: test.arg\r\nfunction args: ['a']\r\njid: 20261120235852025555\r\nreturn: 1\r\n"
        );
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("x", "üüü".to_owned(), 2), "üü");
        assert_eq!(cut("x", "üü".to_owned(), 2), "üü");
        assert_eq!(preformatted("a```b"), "```a'''b```");
    }
}
