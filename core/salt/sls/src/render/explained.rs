//! Errors of rendering with what a person needs to mend them: the file and line, the text around, the usual cause.

use super::RenderError;

/// An error of rendering a file, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The error.
    pub error: RenderError,
    /// The file and line, such as `web/init.sls:3`.
    pub place: Option<String>,
    /// The lines around the error, with an arrow.
    pub excerpt: Option<String>,
    /// The usual cause, and what to do. It quotes no text of the file.
    pub hint: Option<String>,
}

impl Explained {
    /// Explains an error of a file: `source` is its text, `rendered` the text that its template returned.
    pub fn of(error: RenderError, path: &str, source: &[u8], rendered: &str) -> Self {
        let source = String::from_utf8_lossy(source);
        let (inner, is_moved) = match &error {
            RenderError::Rendered { error, .. } => (&**error, true),
            other => (other, false),
        };
        let (mut place, mut excerpt, mut hint) = (None, None, None);
        match inner {
            RenderError::Yaml(yaml) => {
                let line = error.line().unwrap_or(yaml.line);
                place = Some(format!("{path}:{line}"));
                excerpt = yaml.excerpt(rendered);
                let written = source.lines().nth(line - 1).unwrap_or_default();
                let is_value = || rendered.lines().nth(yaml.line - 1).is_none_or(|line| line != written);
                let is_filled = written.contains("{{") && (is_moved || is_value());
                hint = yaml.hint(rendered).map(|hint| {
                    let value = "; the line has a value of '{{ }}': quote it, or add the filter yaml_dquote";
                    format!("{hint}{}", if is_filled { value } else { "" })
                });
            }
            RenderError::Data { line, .. } => place = Some(format!("{path}:{}", error.line().unwrap_or(*line))),
            // The lines around are part of the message.
            RenderError::Jinja(jinja) if !jinja.imported => place = Some(format!("{path}:{}", jinja.line)),
            _ => {}
        }
        Explained { error, place, excerpt, hint }
    }

    /// Returns all lines that follow the message; empty if nothing more is known.
    pub fn advice(&self) -> String {
        self.lines(self.excerpt.as_deref())
    }

    /// Returns the lines that follow the message, without any text of the file: for those who must not read it.
    pub fn place_and_cause(&self) -> String {
        self.lines(None)
    }

    fn lines(&self, excerpt: Option<&str>) -> String {
        let place = self.place.as_ref().map(|place| format!("\n  --> {place}"));
        let excerpt = excerpt.map(|excerpt| format!("\n{excerpt}"));
        let hint = self.hint.as_ref().map(|hint| format!("\n  hint: {hint}"));
        [place, excerpt, hint].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use brine_jinja::{Context, Host};

    use super::super::Sls;

    #[test]
    fn errors_have_file_line_excerpt_and_cause() {
        for (sls, expected) in [
            (
                "a:\n  file.managed\n    - name: x\n",
                "\n  --> web.sls:3\n 2 |   file.managed\n 3 |     - name: x\n   |           ^\n  hint: line 2 lacks a colon \
                 at its end",
            ),
            (
                "{% set x = '@b' %}\na: {{ x }}\n",
                "\n  --> web.sls:2\n 2 | a: @b\n   |    ^\n  hint: text that begins with '@' must be quoted; the line has a \
                 value of '{{ }}': quote it, or add the filter yaml_dquote",
            ),
            (
                "{% for i in [1, 2] %}\na{{ i }}: b\n{% endfor %}\nc: `d\n",
                "\n  --> web.sls:4\n 4 | a2: b\n 6 | c: `d\n   |    ^\n  hint: text that begins with '`' must be quoted",
            ),
            ("a: {{ nope }}\n", "\n  --> web.sls:1"),
            ("#!json\n{\"a\": }", "\n  --> web.sls:2"),
            ("#!nosuch\n", ""),
        ] {
            let advice = match Sls::compile("web.sls", sls, "jinja|yaml") {
                Ok(compiled) => compiled.render_explained(&Context::new("base"), &Host::new()).unwrap_err().advice(),
                Err(error) => super::Explained::of(error, "web.sls", sls.as_bytes(), "").advice(),
            };
            assert_eq!(advice, expected, "{sls}");
        }
    }
}
