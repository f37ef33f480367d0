//! Macros with Python's calling convention: errors for surplus arguments, `varargs` and `kwargs`.

use std::sync::Arc;

use minijinja::value::{Enumerator, Kwargs, Object, Tuple, Value as JinjaValue, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};

use super::data::{Dict, split_kwargs};
use super::limits;

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_function("__macro__", |inner: JinjaValue, takes_more: bool| {
        JinjaValue::from_object(Macro::new(inner, takes_more))
    });
}

/// A macro, or the body of a call block.
pub(super) struct Macro {
    inner: JinjaValue,
    parameters: Vec<JinjaValue>,
    /// Whether the macro has `varargs` and `kwargs` after these parameters.
    takes_more: bool,
}

impl Macro {
    fn new(inner: JinjaValue, takes_more: bool) -> Self {
        let names = inner.get_attr("arguments").and_then(|names| names.try_iter().map(Iterator::collect));
        let mut parameters: Vec<JinjaValue> = names.unwrap_or_default();
        if takes_more {
            parameters.truncate(parameters.len().saturating_sub(2));
        }
        Macro { inner, parameters, takes_more }
    }

    /// Returns its name in quotes; a call block has none.
    fn name(&self) -> String {
        let name = self.inner.get_attr("name").ok();
        let name = name.as_ref().and_then(JinjaValue::as_str).filter(|name| *name != "caller");
        name.map_or_else(|| "None".to_owned(), |name| format!("'{name}'"))
    }

    fn calls_back(&self) -> bool {
        self.inner.get_attr("caller").is_ok_and(|caller| caller.is_true())
    }
}

impl std::fmt::Debug for Macro {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name().as_str() {
            "None" => f.write_str("<Macro anonymous>"),
            name => write!(f, "<Macro {name}>"),
        }
    }
}

impl Object for Macro {
    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Str(&["name", "arguments", "caller"])
    }

    fn get_value(self: &Arc<Self>, key: &JinjaValue) -> Option<JinjaValue> {
        match key.as_str()? {
            "arguments" => Some(JinjaValue::from(Tuple::from(self.parameters.clone()))),
            name => self.inner.get_attr(name).ok().filter(|value| !value.is_undefined()),
        }
    }

    fn call(self: &Arc<Self>, state: &mut State<'_, '_>, args: &[JinjaValue]) -> Result<JinjaValue, Error> {
        limits::check_fuel(state)?;
        // The common case: positional arguments only.
        let by_position = !args.last().is_some_and(JinjaValue::is_kwargs);
        if by_position && !self.takes_more && args.len() <= self.parameters.len() {
            return self.inner.call(state, args);
        }
        let named = args.last().filter(|last| last.is_kwargs()).cloned().map(Kwargs::try_from).transpose()?;
        let takes_caller = named.as_ref().is_some_and(|named| named.has("caller"));
        if !self.takes_more && !takes_caller {
            let count = args.len() - usize::from(named.is_some());
            self.refuse_more(count, named.iter().flat_map(Kwargs::args))?;
            return self.inner.call(state, args);
        }
        let parameters = &self.parameters;
        let (mut positional, mut keywords) = split_kwargs(args)?;
        for (_, caller) in keywords.iter_mut().filter(|(name, _)| name == "caller") {
            if caller.downcast_object_ref::<Macro>().is_none() && caller.kind() == ValueKind::Map {
                *caller = JinjaValue::from_object(Macro::new(caller.clone(), false));
            }
        }
        if !self.takes_more {
            self.refuse_more(positional.len(), keywords.iter().map(|(name, _)| name.as_str()))?;
            positional.push(keywords.into_iter().collect::<Kwargs>().into());
            return self.inner.call(state, &positional);
        }
        let more = positional.split_off(positional.len().min(parameters.len()));
        let left = parameters.get(positional.len()..).unwrap_or_default();
        let is_own = |name: &str| name == "caller" || left.iter().any(|parameter| parameter.as_str() == Some(name));
        let (own, others): (Vec<_>, Vec<_>) = keywords.into_iter().partition(|(name, _)| is_own(name));
        let others: Dict = others.into_iter().map(|(name, value)| (JinjaValue::from(name), value)).collect();
        let extra = [
            ("varargs".to_owned(), JinjaValue::from(Tuple::from(more))),
            ("kwargs".to_owned(), JinjaValue::from_object(others)),
        ];
        positional.push(own.into_iter().chain(extra).collect::<Kwargs>().into());
        self.inner.call(state, &positional)
    }

    fn render(self: &Arc<Self>, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Macro {
    /// Returns an error for arguments without a parameter. `positional` is the number of positional arguments, `names`
    /// are the names of the others.
    fn refuse_more<'a>(&self, positional: usize, mut names: impl Iterator<Item = &'a str>) -> Result<(), Error> {
        let refused = |message: String| Err(Error::new(ErrorKind::InvalidOperation, message));
        let left = self.parameters.get(positional..).unwrap_or_default();
        let is_taken = |name: &str| {
            left.iter().any(|parameter| parameter.as_str() == Some(name)) || (name == "caller" && self.calls_back())
        };
        if let Some(unknown) = names.find(|name| !is_taken(name)) {
            return refused(format!("macro {} takes no keyword argument '{unknown}'", self.name()));
        }
        if positional > self.parameters.len() {
            let most = self.parameters.len();
            return refused(format!("macro {} takes not more than {most} argument(s)", self.name()));
        }
        Ok(())
    }
}
