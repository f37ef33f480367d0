//! Parses the output of `mdadm --detail`.

use brine_value::{Map, Value, map};

/// A member of an array.
pub(super) struct Member {
    number: String,
    major: String,
    minor: String,
    raid_device: String,
    state: String,
    pub device: String,
}

impl Member {
    /// Parses a line such as `0  8  1  0  active sync  /dev/sda1`.
    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [number, major, minor, raid_device, state @ .., device] = &words[..] else { return None };
        device.starts_with("/dev/").then(|| Member {
            number: (*number).to_owned(),
            major: (*major).to_owned(),
            minor: (*minor).to_owned(),
            raid_device: (*raid_device).to_owned(),
            state: state.join(" "),
            device: (*device).to_owned(),
        })
    }
}

impl From<Member> for Value {
    fn from(member: Member) -> Self {
        map! {
            "device" => member.device, "major" => member.major, "minor" => member.minor, "number" => member.number,
            "raiddevice" => member.raid_device, "state" => member.state,
        }
        .into()
    }
}

/// The details of an array.
pub(super) struct Detail {
    fields: Map,
    pub members: Vec<Member>,
}

impl Detail {
    pub fn parse(device: &str, output: &str) -> Self {
        let mut detail = Detail { fields: Map::new(), members: Vec::new() };
        for line in output.lines().filter(|line| !line.starts_with(device)) {
            match line.split_once(" : ") {
                Some((name, value)) => {
                    let name = name.trim().to_lowercase().replace(' ', "_");
                    detail.fields.insert(name.into(), value.trim().into());
                }
                None => detail.members.extend(Member::parse(line)),
            }
        }
        detail
    }
}

impl From<Detail> for Map {
    fn from(detail: Detail) -> Self {
        let named = |member: Member| (Value::from(member.number.as_str()), Value::from(member));
        let mut all = map! {"members" => detail.members.into_iter().map(named).collect::<Map>()};
        all.extend(detail.fields);
        all
    }
}

/// Parses the lines of `mdadm --detail --scan`: a keyword, the device and pairs such as `UUID=...`.
pub(super) fn arrays(output: &str) -> Map {
    let array = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let device = words.next()?;
        let pairs = words.filter_map(|word| word.split_once('='));
        let mut about = map! {"device" => device};
        about.extend(pairs.map(|(name, value)| (name.to_lowercase().into(), value.into())));
        Some((device.into(), about.into()))
    };
    output.lines().filter_map(array).collect()
}
