//! Custom serializers: files in `_serializers` and, with `python_fallback`, those of the package `salt`.

use brine_function::{Args, CallError, CallResult};
use brine_value::{Map, Value};

use crate::context::Context;
use crate::custom::{CustomModules, Serialized};

impl CustomModules {
    /// Serializes data with a custom serializer; `None` if there is none of this name. With `is_built_in`, serializers
    /// of the package `salt` are not called.
    pub fn serialize(
        &self,
        context: &Context,
        name: &str,
        is_built_in: bool,
        data: Value,
        options: Map,
    ) -> Option<Result<Serialized, CallError>> {
        let called = self.serializer(context, name, "serialize", is_built_in, data, options)?;
        Some(called.map(|answer| {
            let is_binary = answer.get("binary").is_some_and(Value::is_truthy);
            let content = answer.get("content").cloned().unwrap_or_default();
            // Bytes that are UTF-8 arrive as a string.
            let content = match content {
                Value::Str(text) if is_binary => Value::Bytes(text.into_bytes()),
                content => content,
            };
            Serialized { content, is_binary }
        }))
    }

    /// Deserializes text with a custom serializer, as [`CustomModules::serialize`].
    pub fn deserialize(
        &self,
        context: &Context,
        name: &str,
        is_built_in: bool,
        text: Value,
        options: Map,
    ) -> Option<CallResult> {
        self.serializer(context, name, "deserialize", is_built_in, text, options)
    }

    fn serializer(
        &self,
        context: &Context,
        name: &str,
        operation: &str,
        is_built_in: bool,
        data: Value,
        options: Map,
    ) -> Option<CallResult> {
        let kind = "serializers";
        if is_built_in && !self.may_have(kind, name) {
            return None;
        }
        let function = format!("{name}.{operation}");
        if is_built_in && !self.has(kind, &function) {
            return self.failure(kind, name).map(|failure| Err(CallError::Execution(failure)));
        }
        let args = Args { positional: vec![data], keyword: options };
        let called = self.call_of(context, kind, &function, args);
        called.or_else(|| self.failure(kind, name).map(|failure| Err(CallError::Execution(failure))))
    }
}
