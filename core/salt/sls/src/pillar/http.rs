//! `ext_pillar` `http_json` and `http_yaml`: a minion's pillar from a web server, requested by a
//! function of the host.

use brine_function::Args;
use brine_jinja::Role;
use brine_value::{Map, Value, percent_encoded_path};

use super::at_path;
use super::external::{Call, mapping};

pub(super) fn json(call: &Call<'_>) -> Result<Map, String> {
    request(call, "json")
}

pub(super) fn yaml(call: &Call<'_>) -> Result<Map, String> {
    request(call, "yaml")
}

fn request(call: &Call<'_>, kind: &str) -> Result<Map, String> {
    let url = call.argument(0, "url").ok_or("the url is missing")?.to_string();
    let mut url = url.replace("%s", &percent_encoded_path(call.request.id.as_str()));
    if call.argument(1, "with_grains").is_some_and(Value::is_truthy) {
        url = with_grains(&url, call.request.grains)?;
    }
    let functions = call.request.functions.as_ref().ok_or("HTTP requests are not available here")?;
    // Other arguments go to the function: header_dict, username, password, verify_ssl, ...
    let mut keyword = call.args.keyword.clone();
    for own in ["url", "with_grains", "namespace", "auth"] {
        keyword.shift_remove(own);
    }
    for (place, name) in [(2, "header_dict"), (4, "username"), (5, "password")] {
        keyword.extend(call.args.positional.get(place).map(|value| (name.into(), value.clone())));
    }
    keyword.extend(brine_value::map! {"url" => url, "decode" => true, "decode_type" => kind});
    let query = functions.name_of(Role::HttpQuery).ok_or("HTTP requests are not available here")?;
    let answer = functions.call(query, Args::keyword(keyword)).map_err(|error| error.to_string())?;
    let Some(data) = answer.get("dict") else {
        let error = answer.get("error").map_or_else(|| format!("the response is not {kind}"), ToString::to_string);
        return Err(error);
    };
    let data = mapping(data.clone())?;
    Ok(match call.argument(6, "namespace").filter(|name| name.is_truthy()) {
        Some(name) => brine_value::map! {name.to_string() => data},
        None => data,
    })
}

/// Replaces `<name>` in a URL by the value of that grain.
fn with_grains(url: &str, grains: &Map) -> Result<String, String> {
    let (mut whole, mut rest) = (String::new(), url);
    while let Some((before, after)) = rest.split_once('<') {
        let Some((name, behind)) = after.split_once('>') else { break };
        let value = at_path(grains, name, ":", Value::Nil);
        if !value.is_truthy() {
            return Err(format!("the minion has no grain '{name}'"));
        }
        whole += before;
        whole += &percent_encoded_path(&value.to_string());
        rest = behind;
    }
    Ok(whole + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grains_are_inserted_into_urls() {
        let grains = brine_value::map! {"os" => "De bian", "ip" => brine_value::map! {"a" => "x/y"}, "none" => ""};
        for (url, expected) in [
            ("http://h/<os>/<ip:a>?q=<os>", Ok("http://h/De%20bian/x/y?q=De%20bian".to_owned())),
            ("http://h/plain<", Ok("http://h/plain<".to_owned())),
            ("http://h/<none>", Err("the minion has no grain 'none'".to_owned())),
            ("http://h/<nope>", Err("the minion has no grain 'nope'".to_owned())),
        ] {
            assert_eq!(with_grains(url, &grains), expected, "{url}");
        }
    }
}
