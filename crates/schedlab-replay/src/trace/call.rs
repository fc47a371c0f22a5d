//! The entry of a system call, in each of the forms in which traces hold it:
//!
//! - ftrace text, `sys_setpriority(which: 0, who: 1f, niceval: fffffffb)`: numbers in base 16, the name ends at the
//!   first argument's
//! - `trace-cmd report` and `perf script`, `sys_enter_setpriority: which: 0x00000000, who: 0x0000001f, niceval:
//!   0xfffffffb`
//! - binary files, whose fields are numbers of 64 bits: `sys_enter_setpriority: __syscall_nr=141 which=0 who=31
//!   niceval=4294967291`

use schedlab_trace::Fields;

/// A system call with its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call<'a> {
    /// Without `sys_`.
    pub name: &'a str,
    /// The name of the argument with which `text` begins; empty if `text` names it.
    first: &'a str,
    text: &'a str,
}

impl<'a> Call<'a> {
    /// An event by its name and text, if it is the entry of a system call.
    pub fn of(event: &'a str, fields: Fields<'a>) -> Option<Self> {
        let text = fields.0;
        if let Some(name) = event.strip_prefix("sys_enter_") {
            return Some(Call { name, first: "", text });
        }
        // A call without arguments has no colon, which ends the name of an event.
        let whole = if event.is_empty() { text } else { event };
        let (name, first) = whole.strip_prefix("sys_")?.split_once('(')?;
        Some(if event.is_empty() { Call { name, first: "", text: "" } } else { Call { name, first, text } })
    }

    /// An argument in the width of the register that held it.
    pub fn argument(&self, name: &str) -> Option<u64> {
        if name == self.first {
            return hexadecimal(self.text);
        }
        if let Some(number) = Fields(self.text).get(name) {
            return number.parse().ok();
        }
        let named = |part: &'a str| part.trim().strip_prefix(name)?.strip_prefix(": ");
        self.text.split(',').find_map(named).and_then(hexadecimal)
    }

    /// An `int`: some kernels print it with its sign extended to 64 bits, some without.
    pub fn int(&self, name: &str) -> Option<i32> {
        self.argument(name).map(|argument| argument as i32)
    }
}

fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.split([',', ')']).next()?.trim();
    u64::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_read_in_every_form() {
        for (event, text, name, argument, value) in [
            ("sys_setpriority(which", "0, who: 1f, niceval: fffffffffffffffb)", "setpriority", "which", Some(0)),
            ("sys_setpriority(which", "0, who: 1f, niceval: fffffffffffffffb)", "setpriority", "niceval", Some(-5)),
            ("sys_setpriority(which", "0, who: 1f, niceval: fffffffb)", "setpriority", "niceval", Some(-5)),
            (
                "sys_enter_setpriority",
                "which: 0x00000000, who: 0x0000001f, niceval: 0xfffffffb",
                "setpriority",
                "niceval",
                Some(-5),
            ),
            (
                "sys_enter_setpriority",
                "__syscall_nr=141 which=0 who=31 niceval=4294967291",
                "setpriority",
                "niceval",
                Some(-5),
            ),
            (
                "sys_enter_setpriority",
                "__syscall_nr=141 which=0 who=31 niceval=18446744073709551611",
                "setpriority",
                "niceval",
                Some(-5),
            ),
            ("sys_enter_setpriority", "__syscall_nr=141 which=0 who=31 niceval=5", "setpriority", "who", Some(31)),
            ("sys_enter_setpriority", "__syscall_nr=141 which=0 who=31 niceval=5", "setpriority", "pid", None),
            (
                "sys_sched_setscheduler(pid",
                "1f, policy: 40000003, param: 7ffd1c)",
                "sched_setscheduler",
                "pid",
                Some(31),
            ),
            ("", "sys_sched_yield()", "sched_yield", "pid", None),
            ("sys_enter_sched_yield", "", "sched_yield", "pid", None),
        ] {
            let call = Call::of(event, Fields(text)).unwrap();
            assert_eq!((call.name, call.int(argument)), (name, value), "{event} {text}");
        }
        for (event, text) in [("sched_switch", "prev_comm=a"), ("sys_exit", "NR 24 = 0"), ("", "a note"), ("rt", "p=1")]
        {
            assert_eq!(Call::of(event, Fields(text)), None, "{event} {text}");
        }
    }
}
