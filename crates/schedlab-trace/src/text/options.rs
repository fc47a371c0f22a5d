//! Lines that options of ftrace make of events and that are not read: what they are, and which option to change.

use super::prefix::NO_TIME;
use crate::error::{Fault, TraceError};

/// What the first line of a file is that is no event; `what` is what was expected.
pub fn not_an_event(line: &str, what: String) -> Fault {
    let line = line.trim();
    let option =
        |name: &str, value: u8| format!("record again after: echo {value} > /sys/kernel/tracing/options/{name}");
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if line.rsplit_once(" type: ").is_some_and(|(_, id)| number(id)) {
        return Fault::foreign("events of ftrace with the option raw or hex, which prints no fields", option("raw", 0));
    }
    if line.split_once(": ").is_some_and(|(name, _)| name.starts_with("sched_") && !name.contains(' ')) {
        return Fault::foreign(
            "events of ftrace without the option context-info: no CPU, no time",
            option("context-info", 1),
        );
    }
    if what.ends_with(NO_TIME) {
        return Fault::foreign(what, "record with a clock in ns: trace-cmd record -C mono, or without -C");
    }
    TraceError::not_a_trace(what)
}

/// What an event is whose fields cannot be read.
pub fn not_its_fields(fields: &str, what: String) -> Fault {
    let raw = fields.split_once("=0x").is_some_and(|(_, value)| value.contains(" ("));
    match raw {
        true => Fault::foreign(
            "events of ftrace with the option fields, which prints raw numbers",
            "record again after: echo 0 > /sys/kernel/tracing/options/fields",
        ),
        false => Fault::Malformed(what),
    }
}
