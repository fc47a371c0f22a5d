//! How a rule, feature, knob or name is written down: its value over the kernel's releases, and the commit of every
//! change.

pub(crate) mod left_out;
pub(crate) mod release;
pub(crate) mod table;
