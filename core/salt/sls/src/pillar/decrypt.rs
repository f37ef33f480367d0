//! `decrypt_pillar`: values of the pillar that the renderers `gpg` and `nacl` decrypt.

use brine_config::opts::shared;
use brine_value::{Map, Value};

use super::{PillarRequest, PillarSource};
use crate::gpg::Gpg;
use crate::render::nacl;

/// The renderers that decrypt.
const RENDERERS: [&str; 2] = ["gpg", "nacl"];

/// Returns the paths of `decrypt_pillar` with their renderers.
fn paths(opts: &Map) -> Vec<(String, String)> {
    let default = shared::decrypt_pillar_default(opts);
    let one = |path: &Value, renderer: Option<&Value>| {
        let renderer = renderer.and_then(Value::as_str).filter(|renderer| !renderer.is_empty());
        (path.to_string(), renderer.unwrap_or(&default).to_owned())
    };
    match shared::decrypt_pillar(opts) {
        Value::Map(map) => map.iter().map(|(path, renderer)| one(path, Some(renderer))).collect(),
        Value::List(items) => items
            .iter()
            .map(|item| match item.as_map().and_then(Map::first) {
                Some((path, renderer)) => one(path, Some(renderer)),
                None => one(item, None),
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Returns Salt's error for a renderer that is not allowed (`decrypt_pillar_renderers`), or that does not decrypt.
fn refusal(opts: &Map, renderer: &str) -> Option<String> {
    let allowed = shared::decrypt_pillar_renderers(opts);
    if !allowed.iter().any(|allowed| allowed == renderer) {
        let allowed = allowed.join(", ");
        return Some(format!("'{renderer}' is not a valid decryption renderer. Valid choices are: {allowed}"));
    }
    (!RENDERERS.contains(&renderer)).then(|| format!("Decryption renderer '{renderer}' is not available"))
}

/// Checks the options without any pillar, and returns their errors.
pub(super) fn check(opts: &Map) -> Vec<String> {
    let refused = |(path, renderer): (String, String)| {
        refusal(opts, &renderer).map(|error| format!("option 'decrypt_pillar': '{path}': {error}"))
    };
    paths(opts).into_iter().filter_map(refused).collect()
}

/// Whether a value has something to decrypt, at any depth.
pub(super) fn is_encrypted(value: &Value) -> bool {
    Gpg::contains_message(value) || nacl::contains_box(value)
}

/// Decrypts the values of a pillar. Their errors are added to those of the pillar.
pub(super) fn decrypt(source: &PillarSource, request: &PillarRequest<'_>, pillar: &mut Map, errors: &mut Vec<String>) {
    let delimiter = shared::decrypt_pillar_delimiter(&source.opts);
    for (path, renderer) in paths(&source.opts) {
        let mut parent = Some(&mut *pillar);
        let mut keys: Vec<&str> = path.split(&*delimiter).collect();
        let last = keys.pop().unwrap_or_default();
        for key in keys {
            parent = parent.and_then(|map| map.get_mut(key)).and_then(Value::as_map_mut);
        }
        let Some(value) = parent.and_then(|map| map.get_mut(last)) else { continue };
        let decrypted = match (refusal(&source.opts, &renderer), &request.functions) {
            (Some(error), _) => Err(error),
            (None, Some(host)) if renderer == "nacl" => nacl::decrypt(value, host).map_err(|error| error.to_string()),
            (None, None) if renderer == "nacl" => Err("functions are not available here".to_owned()),
            (None, _) => source.gpg.decrypt(value).map_err(|error| error.to_string()),
        };
        errors.extend(decrypted.err().map(|error| format!("Failed to decrypt pillar key '{path}': {error}")));
    }
}
