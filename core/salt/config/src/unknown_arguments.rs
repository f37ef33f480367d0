//! The handling of unknown arguments of states: the option `state_unknown_arguments`.

use brine_value::{FromValue, Value, WrongType};

use super::options::ANOTHER_WORD;

/// What an argument does that a state function accepts, but does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnknownArguments {
    /// It is named in the result of the state and in the log.
    #[default]
    Warn,
    /// The state fails.
    Fail,
    /// It has no effect, as in Salt.
    Ignore,
}

impl FromValue for UnknownArguments {
    const EXPECTED: &'static str = "warn, fail or ignore";

    fn from_value(value: &Value) -> Option<Self> {
        match value.as_str()? {
            "warn" => Some(UnknownArguments::Warn),
            "fail" => Some(UnknownArguments::Fail),
            "ignore" => Some(UnknownArguments::Ignore),
            _ => None,
        }
    }

    fn try_from_value(value: &Value) -> Result<Self, WrongType> {
        let got = if value.as_str().is_some() { ANOTHER_WORD } else { value.type_name() };
        Self::from_value(value).ok_or(WrongType { expected: Self::EXPECTED, got })
    }
}

impl From<UnknownArguments> for Value {
    fn from(handling: UnknownArguments) -> Self {
        match handling {
            UnknownArguments::Warn => "warn".into(),
            UnknownArguments::Fail => "fail".into(),
            UnknownArguments::Ignore => "ignore".into(),
        }
    }
}
