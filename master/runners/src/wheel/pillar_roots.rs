//! `wheel.pillar_roots`: the files in the directories of the option `pillar_roots`. Paths cannot leave their root.

super::roots::functions!("pillar_roots", pillar_roots, false, secret);
