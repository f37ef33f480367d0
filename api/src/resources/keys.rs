//! Keys of minions: `/keys` and `/keys/ID`.

use axum::http::header;
use axum::response::Response;
use brine_ids::MinionId;
use brine_value::{Map, Value, map};

use crate::answer::{Answer, typed};
use crate::context::RequestContext;
use crate::error::ApiError;
use crate::lowstate::RawChunk;

/// Handles `GET /keys`.
pub(crate) async fn list(context: RequestContext) -> Answer {
    wheel(context, map! {"fun" => "key.list_all"}).await
}

/// Handles `GET /keys/ID`.
pub(crate) async fn finger(context: RequestContext) -> Answer {
    let chunk = map! {"fun" => "key.finger", "match" => context.param()};
    wheel(context, chunk).await
}

async fn wheel(context: RequestContext, mut chunk: Map) -> Answer {
    chunk.insert("client".into(), "wheel".into());
    let answers = context.run(vec![RawChunk::own(chunk)], Some(&context.sender()?.token)).await?;
    context.reply(&map! {"return" => result(&answers)?}.into())
}

/// Returns the result of a wheel function.
fn result(answers: &[Value]) -> Result<Value, ApiError> {
    let data = answers.first().and_then(|answer| answer.get("data"));
    let field = |name: &str| data.and_then(|data| data.get(name)).cloned().unwrap_or_default();
    if field("success").is_truthy() {
        Ok(field("return"))
    } else {
        Err(ApiError::bad_request(field("return").to_string()))
    }
}

/// Handles `POST /keys`: generates a key pair and returns it as a tar archive.
pub(crate) async fn generate(mut context: RequestContext) -> Answer {
    let mut lowstate = context.login_payload().await?.lowstate()?;
    let mut chunk = if lowstate.is_empty() { Map::new() } else { lowstate.swap_remove(0) };
    let id = chunk.shift_remove("mid").or_else(|| chunk.shift_remove("id_")).map(|id| id.to_string());
    let id: MinionId = id
        .ok_or_else(|| ApiError::bad_request("The request lacks 'mid': name the minion"))?
        .parse()
        .map_err(|error| ApiError::bad_request(format!("'mid' is invalid: {error}")))?;
    chunk.extend(map! {"client" => "wheel", "fun" => "key.gen_accept", "id_" => &id});
    for name in ["keysize", "force"] {
        // Form fields are always strings.
        if let Some(Value::Str(text)) = chunk.get(name) {
            let read = brine_function::arguments::parse_value(text);
            chunk.insert(name.into(), read);
        }
    }
    let answers = context.run(vec![RawChunk::own(chunk)], None).await;
    let made = result(&answers?)?;
    let text = |name: &str| made.get(name).and_then(Value::as_str).unwrap_or_default();
    let (public, private) = (text("pub"), text("priv"));
    if private.is_empty() {
        return Err(ApiError::bad_request(format!("The minion '{id}' has a key already: send force to replace it")));
    }
    let archive = archive(&[("minion.pub", public), ("minion.pem", private)]).map_err(|_| ApiError::internal())?;
    attachment(archive, &id)
}

fn attachment(archive: Vec<u8>, id: &MinionId) -> Answer {
    let mut response: Response = typed("application/x-tar", archive);
    // The id is used in a file name, but an operator may accept ids with any characters.
    let name: String = id
        .as_str()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' })
        .collect();
    let named = format!("attachment; filename=\"saltkeys-{name}.tar\"").parse().map_err(|_| ApiError::internal())?;
    response.headers_mut().insert(header::CONTENT_DISPOSITION, named);
    response.headers_mut().insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Returns a tar archive of files with mode 0600.
fn archive(files: &[(&str, &str)]) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, text) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(jiff::Timestamp::now().as_second().unsigned_abs());
        header.set_cksum();
        archive.append_data(&mut header, name, text.as_bytes())?;
    }
    archive.into_inner()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn archives_hold_the_files() {
        let bytes = archive(&[("minion.pub", "public"), ("minion.pem", "private")]).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let files = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            (entry.path().unwrap().display().to_string(), text)
        });
        let expected = [("minion.pub", "public"), ("minion.pem", "private")];
        assert_eq!(files.collect::<Vec<_>>(), expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
    }
}
