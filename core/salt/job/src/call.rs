//! Calls of the master's own functions (runner and wheel), which Salt stores in the job cache as jobs of the master.

use brine_event::{SENDER_STAMP, SEQ};
use brine_ids::{Jid, MinionId};
use brine_value::{Map, map, msgpack};
use bytes::Bytes;

use super::{InvalidJob, Load, Return};

/// A finished call of a runner or wheel function. It stores the packed body of its `salt/run/JID/ret` event, which is
/// decoded only when it is read: reactions make tens of thousands of calls a second, and few of them are ever queried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    id: MinionId,
    jid: Jid,
    body: Bytes,
}

impl Call {
    /// Creates a call from the packed body of its event. `id` is the master's id.
    pub fn new(id: MinionId, jid: Jid, body: Bytes) -> Self {
        Call { id, jid, body }
    }

    /// Returns the call's job id.
    pub fn jid(&self) -> &Jid {
        &self.jid
    }

    /// Returns the master's id.
    pub fn id(&self) -> &MinionId {
        &self.id
    }

    /// Returns the packed body of the event.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    fn data(&self) -> Result<Map, InvalidJob> {
        msgpack::unpack_map(&self.body).map_err(|error| InvalidJob::Body(error.to_string()))
    }

    /// Returns the job that Salt's job cache would contain for the call: function and user, the master as target, no
    /// arguments.
    pub fn load(&self) -> Result<Load, InvalidJob> {
        Ok(self.load_of(&self.data()?))
    }

    fn load_of(&self, data: &Map) -> Load {
        let mut map = map! {"jid" => &self.jid, "id" => &self.id, "tgt" => &self.id};
        for name in ["fun", "user"] {
            map.extend(data.get(name).map(|value| (name.into(), value.clone())));
        }
        Load { jid: self.jid.clone(), map }
    }

    /// Returns the job's only return, which is the event's whole body.
    pub fn job_return(&self) -> Result<Return, InvalidJob> {
        Ok(self.return_of(self.data()?))
    }

    fn return_of(&self, mut data: Map) -> Return {
        data.retain(|name, _| !matches!(name.as_str(), Some(SEQ | SENDER_STAMP)));
        let fun = data.get("fun").cloned().unwrap_or_default();
        let map = map! {"jid" => &self.jid, "id" => &self.id, "fun" => fun, "return" => data};
        Return { jid: self.jid.clone(), id: self.id.clone(), map }
    }

    /// Returns the results of [`Call::load`] and [`Call::job_return`], decoding the body once.
    pub fn job(&self) -> Result<(Load, Return), InvalidJob> {
        let data = self.data()?;
        Ok((self.load_of(&data), self.return_of(data)))
    }
}
