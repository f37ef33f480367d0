//! The colours of Salt's outputters.

/// A colour of Salt's palette.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Failures, keys of failed jobs, pending keys.
    Red,
    /// Strings, unchanged states, accepted keys.
    Green,
    /// Keys, states with changes, summaries.
    Cyan,
    /// Local and denied keys.
    Magenta,
    /// Rejected keys.
    Blue,
    /// Warnings and compile errors.
    LightRed,
    /// Heading of accepted keys.
    LightGreen,
    /// Numbers, booleans, states that would change.
    LightYellow,
    /// Heading of rejected keys.
    LightBlue,
    /// Heading of local and denied keys.
    LightMagenta,
    /// Lines around the rows of a table.
    LightGray,
    /// Rows of a table.
    White,
    /// Keys above a table.
    DarkGray,
}

impl Colour {
    fn escape(self) -> &'static str {
        match self {
            Colour::Red => "\x1b[0;31m",
            Colour::Green => "\x1b[0;32m",
            Colour::Blue => "\x1b[0;34m",
            Colour::Magenta => "\x1b[0;35m",
            Colour::Cyan => "\x1b[0;36m",
            Colour::LightRed => "\x1b[0;1;31m",
            Colour::LightGreen => "\x1b[0;1;32m",
            Colour::LightYellow => "\x1b[0;1;33m",
            Colour::LightBlue => "\x1b[0;1;34m",
            Colour::LightMagenta => "\x1b[0;1;35m",
            Colour::LightGray => "\x1b[0;37m",
            Colour::White => "\x1b[0;1;37m",
            Colour::DarkGray => "\x1b[0;1;30m",
        }
    }
}

/// The switch between coloured and plain text. Plain by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Colours {
    enabled: bool,
}

impl Colours {
    /// Text is coloured.
    pub const ON: Colours = Colours { enabled: true };
    /// Text is plain.
    pub const OFF: Colours = Colours { enabled: false };

    /// Returns the escape sequence that starts a colour; empty if colours are off.
    pub fn start(self, colour: Colour) -> &'static str {
        if self.enabled { colour.escape() } else { "" }
    }

    /// Returns the escape sequence that ends any colour; empty if colours are off.
    pub fn end(self) -> &'static str {
        if self.enabled { "\x1b[0;0m" } else { "" }
    }

    /// Returns the text with the escape sequences of a colour, or unchanged if colours are off.
    pub fn paint(self, colour: Colour, text: &str) -> String {
        format!("{}{text}{}", self.start(colour), self.end())
    }
}
