//! The tracepoints that this crate's writers put into files: their format files and their raw records.
//!
//! Layout and words are those of include/trace/events/sched.h in 6.1, so that perf, trace-cmd and KernelShark read them
//! as the kernel's own. What programs and policy report has tracepoints of a system of its own.

use schedlab_model::Pid;

use super::MAGIC;
use crate::record::{Body, Words};
use crate::{state, Call, Flags, Kind, ScanTimes};

/// Carries an event of which only the text is known.
pub const TEXT_EVENT: &str = "schedlab_text";

/// Events that the recorder lost, in a format that cannot say how many.
pub const LOST_EVENT: &str = "schedlab_lost";

/// One tracepoint.
#[derive(Debug)]
pub struct EventType {
    pub system: &'static str,
    pub name: &'static str,
    fields: &'static [(&'static str, Type)],
    print: &'static str,
}

/// The type of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Type {
    Comm,
    Pid,
    Int,
    Long,
    U64,
    Text,
}

/// A field's value.
enum Value<'a> {
    Number(i64),
    Text(&'a str),
}

use Type::{Comm, Int, Long, Text, U64};

const WAKEE: &[(&str, Type)] = &[("comm", Comm), ("pid", Type::Pid), ("prio", Int), ("target_cpu", Int)];
const WAKEE_PRINT: &str =
    r#""comm=%s pid=%d prio=%d target_cpu=%03d", REC->comm, REC->pid, REC->prio, REC->target_cpu"#;

static EVENT_TYPES: [EventType; 19] = [
    EventType {
        system: "sched",
        name: "sched_switch",
        fields: &[
            ("prev_comm", Comm),
            ("prev_pid", Type::Pid),
            ("prev_prio", Int),
            ("prev_state", Long),
            ("next_comm", Comm),
            ("next_pid", Type::Pid),
            ("next_prio", Int),
        ],
        print: concat!(
            r#""prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d next_prio=%d", "#,
            r#"REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & 0xff) ? __print_flags(REC->prev_state & 0xff, "|", "#,
            r#"{ 0x01, "S" }, { 0x02, "D" }, { 0x04, "T" }, { 0x08, "t" }, { 0x10, "X" }, { 0x20, "Z" }, { 0x40, "P" }, { 0x80, "I" }) : "R", "#,
            r#"REC->prev_state & 0x100 ? "+" : "", REC->next_comm, REC->next_pid, REC->next_prio"#
        ),
    },
    EventType { system: "sched", name: "sched_waking", fields: WAKEE, print: WAKEE_PRINT },
    EventType { system: "sched", name: "sched_wakeup", fields: WAKEE, print: WAKEE_PRINT },
    EventType { system: "sched", name: "sched_wakeup_new", fields: WAKEE, print: WAKEE_PRINT },
    EventType {
        system: "sched",
        name: "sched_migrate_task",
        fields: &[("comm", Comm), ("pid", Type::Pid), ("prio", Int), ("orig_cpu", Int), ("dest_cpu", Int)],
        print: r#""comm=%s pid=%d prio=%d orig_cpu=%d dest_cpu=%d", REC->comm, REC->pid, REC->prio, REC->orig_cpu, REC->dest_cpu"#,
    },
    EventType {
        system: "sched",
        name: "sched_process_fork",
        fields: &[("parent_comm", Comm), ("parent_pid", Type::Pid), ("child_comm", Comm), ("child_pid", Type::Pid)],
        print: r#""comm=%s pid=%d child_comm=%s child_pid=%d", REC->parent_comm, REC->parent_pid, REC->child_comm, REC->child_pid"#,
    },
    EventType {
        system: "sched",
        name: "sched_process_exit",
        fields: &[("comm", Comm), ("pid", Type::Pid), ("prio", Int)],
        print: r#""comm=%s pid=%d prio=%d", REC->comm, REC->pid, REC->prio"#,
    },
    EventType {
        system: "sched",
        name: "sched_stat_runtime",
        fields: &[("comm", Comm), ("pid", Type::Pid), ("has_vruntime", Int), ("runtime", U64), ("vruntime", U64)],
        // Without the vruntime, which not every record has: a made-up 0 would look like one.
        print: r#""comm=%s pid=%d runtime=%Lu [ns]", REC->comm, REC->pid, (unsigned long long)REC->runtime"#,
    },
    EventType {
        system: "schedlab",
        name: "schedlab_sample",
        fields: &[("pid", Type::Pid), ("metric", Int), ("value", U64)],
        print: r#""pid=%d metric=%d value=%Lu", REC->pid, REC->metric, (unsigned long long)REC->value"#,
    },
    EventType {
        system: "schedlab",
        name: "schedlab_count",
        fields: &[("pid", Type::Pid), ("metric", Int), ("count", U64)],
        print: r#""pid=%d metric=%d count=%Lu", REC->pid, REC->metric, (unsigned long long)REC->count"#,
    },
    EventType {
        system: "schedlab",
        name: "schedlab_scan",
        fields: &[
            ("pid", Type::Pid),
            ("tested", U64),
            ("cost", U64),
            ("sibling", Int),
            ("core", U64),
            ("cpu", U64),
            ("smt", U64),
        ],
        print: concat!(
            r#""pid=%d tested=%Lu cost=%Lu sibling=%d core=%Lu cpu=%Lu smt=%Lu", "#,
            r#"REC->pid, (unsigned long long)REC->tested, (unsigned long long)REC->cost, REC->sibling, "#,
            r#"(unsigned long long)REC->core, (unsigned long long)REC->cpu, (unsigned long long)REC->smt"#
        ),
    },
    EventType {
        system: "schedlab",
        name: "schedlab_lock",
        fields: &[("pid", Type::Pid), ("lock", Int), ("wait", U64)],
        print: r#""pid=%d lock=%d wait=%Lu", REC->pid, REC->lock, (unsigned long long)REC->wait"#,
    },
    EventType {
        system: "schedlab",
        name: TEXT_EVENT,
        fields: &[("name", Text), ("text", Text)],
        print: r#""%s: %s", __get_str(name), __get_str(text)"#,
    },
    EventType {
        system: "schedlab",
        name: "schedlab_fault",
        fields: &[("pid", Type::Pid), ("kib", U64), ("major", Int)],
        print: r#""pid=%d kib=%Lu major=%d", REC->pid, (unsigned long long)REC->kib, REC->major"#,
    },
    EventType {
        system: "schedlab",
        name: "schedlab_resched",
        fields: &[("pid", Type::Pid), ("waited", U64), ("section", Text)],
        print: r#""pid=%d waited=%Lu section=%s", REC->pid, (unsigned long long)REC->waited, __get_str(section)"#,
    },
    EventType {
        system: "schedlab",
        name: "schedlab_extension",
        fields: &[("pid", Type::Pid), ("what", Text)],
        print: r#""pid=%d what=%s", REC->pid, __get_str(what)"#,
    },
    EventType {
        system: "schedlab",
        name: "schedlab_refill",
        fields: &[("pid", Type::Pid), ("kib", U64), ("time", U64)],
        print: r#""pid=%d kib=%Lu time=%Lu", REC->pid, (unsigned long long)REC->kib, (unsigned long long)REC->time"#,
    },
    EventType {
        system: "schedlab",
        name: "schedlab_nonpreemptible",
        fields: &[("pid", Type::Pid), ("time", U64), ("section", Text), ("call", Text)],
        print: concat!(
            r#""pid=%d time=%Lu section=%s call=%s", "#,
            r#"REC->pid, (unsigned long long)REC->time, __get_str(section), __get_str(call)"#
        ),
    },
    EventType {
        system: "schedlab",
        name: "schedlab_numa",
        fields: &[("pid", Type::Pid), ("faults", U64), ("local", U64), ("migrated", U64), ("time", U64)],
        print: concat!(
            r#""pid=%d faults=%Lu local=%Lu migrated=%Lu time=%Lu", REC->pid, (unsigned long long)REC->faults, "#,
            r#"(unsigned long long)REC->local, (unsigned long long)REC->migrated, (unsigned long long)REC->time"#
        ),
    },
];

/// Every tracepoint, in the order of its id.
pub fn event_types() -> &'static [EventType] {
    &EVENT_TYPES
}

/// Ids below are those of ftrace's own events.
const FIRST_ID: u16 = 400;
/// Bytes of the common fields.
const COMMON_BYTES: usize = 8;
/// TASK_COMM_LEN.
const COMM_BYTES: usize = 16;
/// No text field is longer: two of them must fit into a page of the ring buffer.
const TEXT_BYTES: usize = 1900;

impl EventType {
    /// Its number in records.
    pub fn id(&self) -> u16 {
        let index = EVENT_TYPES.iter().position(|known| known.name == self.name).unwrap_or(0);
        FIRST_ID + index as u16
    }

    /// Its format file.
    pub fn format(&self) -> String {
        let mut text = format!("name: {}\nID: {}\nformat:\n", self.name, self.id());
        let line = |declaration: &str, offset: usize, size: usize, signed: u8| {
            format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n")
        };
        text += &line("unsigned short common_type", 0, 2, 0);
        text += &line("unsigned char common_flags", 2, 1, 0);
        text += &line("unsigned char common_preempt_count", 3, 1, 0);
        text += &line("int common_pid", 4, 4, 1);
        // This empty line ends the common fields for libtraceevent.
        text.push('\n');
        let mut offset = COMMON_BYTES;
        for (name, kind) in self.fields {
            offset = offset.next_multiple_of(kind.alignment());
            text += &line(&kind.declare(name), offset, kind.size(), kind.signed());
            offset += kind.size();
        }
        text + "\nprint fmt: " + self.print + "\n"
    }
}

impl Type {
    fn size(self) -> usize {
        match self {
            Comm => COMM_BYTES,
            Type::Pid | Int | Text => 4,
            Long | U64 => 8,
        }
    }

    fn alignment(self) -> usize {
        if self == Comm {
            1
        } else {
            self.size()
        }
    }

    fn signed(self) -> u8 {
        u8::from(matches!(self, Type::Pid | Int | Long))
    }

    fn declare(self, name: &str) -> String {
        match self {
            Comm => format!("char {name}[{COMM_BYTES}]"),
            Type::Pid => format!("pid_t {name}"),
            Int => format!("int {name}"),
            Long => format!("long {name}"),
            U64 => format!("u64 {name}"),
            Text => format!("__data_loc char[] {name}"),
        }
    }
}

/// Writes the raw record of an event into `out`, which is emptied before; returns the event's type.
pub fn encode(body: &Body<'_>, flags: Flags, pid: Pid, out: &mut Vec<u8>) -> &'static EventType {
    match body {
        Body::Event(kind, words) => encode_kind(kind, words, flags, pid, out),
        Body::Lost(count) => {
            let text = format!("count={count}");
            record(12, [Value::Text(LOST_EVENT), Value::Text(&text)], flags, pid, out)
        }
        Body::Other { name, fields } => record(12, [Value::Text(name), Value::Text(fields.0)], flags, pid, out),
    }
}

fn encode_kind(kind: &Kind, words: &Words<'_>, flags: Flags, at: Pid, out: &mut Vec<u8>) -> &'static EventType {
    let comm = || Value::Text(words.comm);
    let other_comm = || Value::Text(words.other_comm);
    let int = |value: i32| Value::Number(i64::from(value));
    let uint = |value: u32| Value::Number(i64::from(value));
    let wide = |value: u64| Value::Number(value as i64);
    match *kind {
        Kind::Switch { prev, prev_prio, prev_state, next, next_prio } => {
            let bits = Value::Number(state::bits(words.prev_state, prev_state));
            let values = [comm(), int(prev), int(prev_prio), bits, other_comm(), int(next), int(next_prio)];
            record(0, values, flags, at, out)
        }
        Kind::Waking { pid, prio, target_cpu } => {
            record(1, [comm(), int(pid), int(prio), uint(target_cpu.0)], flags, at, out)
        }
        Kind::Wakeup { pid, prio, target_cpu } => {
            record(2, [comm(), int(pid), int(prio), uint(target_cpu.0)], flags, at, out)
        }
        Kind::WakeupNew { pid, prio, target_cpu } => {
            record(3, [comm(), int(pid), int(prio), uint(target_cpu.0)], flags, at, out)
        }
        Kind::Migrate { pid, prio, orig_cpu, dest_cpu } => {
            record(4, [comm(), int(pid), int(prio), uint(orig_cpu.0), uint(dest_cpu.0)], flags, at, out)
        }
        Kind::Fork { parent, child } => record(5, [comm(), int(parent), other_comm(), int(child)], flags, at, out),
        Kind::Exit { pid, prio } => record(6, [comm(), int(pid), int(prio)], flags, at, out),
        Kind::Runtime { pid, runtime, vruntime } => {
            let present = int(i32::from(vruntime.is_some()));
            record(7, [comm(), int(pid), present, wide(runtime), wide(vruntime.unwrap_or(0))], flags, at, out)
        }
        Kind::Sample { pid, metric, value } => {
            record(8, [int(pid), int(i32::from(metric)), wide(value)], flags, at, out)
        }
        Kind::Count { pid, metric, count } => {
            record(9, [int(pid), int(i32::from(metric)), wide(count)], flags, at, out)
        }
        Kind::Scan { pid, tested, cost, functions: ScanTimes { sibling, core, cpu, smt } } => {
            let times = [int(i32::from(sibling)), uint(core), uint(cpu), uint(smt)];
            let [sibling, core, cpu, smt] = times;
            record(10, [int(pid), uint(tested), wide(cost), sibling, core, cpu, smt], flags, at, out)
        }
        Kind::Fault { pid, kib, major } => record(13, [int(pid), uint(kib), int(i32::from(major))], flags, at, out),
        Kind::Resched { pid, waited, section } => {
            record(14, [int(pid), wide(waited), Value::Text(section.name())], flags, at, out)
        }
        Kind::NonPreemptible { pid, time, section, call } => {
            let call = call.map_or("-", Call::name);
            record(17, [int(pid), wide(time), Value::Text(section.name()), Value::Text(call)], flags, at, out)
        }
        Kind::Extension { pid, what } => record(15, [int(pid), Value::Text(what.name())], flags, at, out),
        Kind::Refill { pid, kib, time } => record(16, [int(pid), uint(kib), wide(time)], flags, at, out),
        Kind::Numa { pid, faults, local, migrated, time } => {
            record(18, [int(pid), uint(faults), uint(local), uint(migrated), wide(time)], flags, at, out)
        }
        Kind::LockWait { pid, lock, wait } => record(11, [int(pid), int(lock as i32), wide(wait)], flags, at, out),
    }
}

/// Lays the values out as the type at `index` says.
fn record<const N: usize>(
    index: usize,
    values: [Value<'_>; N],
    flags: Flags,
    pid: Pid,
    out: &mut Vec<u8>,
) -> &'static EventType {
    let event_type = &EVENT_TYPES[index];
    let (bits, preempt_count) = flags.to_bits();
    out.clear();
    out.extend_from_slice(&(FIRST_ID + index as u16).to_le_bytes());
    out.extend_from_slice(&[bits, preempt_count]);
    out.extend_from_slice(&pid.to_le_bytes());
    let mut texts = Vec::new();
    for ((_, kind), value) in event_type.fields.iter().zip(values) {
        out.resize(out.len().next_multiple_of(kind.alignment()), 0);
        match value {
            Value::Number(number) => out.extend_from_slice(&number.to_le_bytes()[..kind.size()]),
            Value::Text(text) if *kind == Comm => {
                let end = out.len() + COMM_BYTES;
                out.extend_from_slice(cut(text, COMM_BYTES - 1));
                out.resize(end, 0);
            }
            Value::Text(text) => {
                texts.push((out.len(), cut(text, TEXT_BYTES)));
                out.extend_from_slice(&[0; 4]);
            }
        }
    }
    for (at, text) in texts {
        let place = (text.len() as u32 + 1) << 16 | out.len() as u32;
        out[at..at + 4].copy_from_slice(&place.to_le_bytes());
        out.extend_from_slice(text);
        out.push(0);
    }
    out.resize(out.len().next_multiple_of(4), 0);
    event_type
}

/// Truncates to at most this many bytes, at the end of a character.
fn cut(text: &str, most: usize) -> &[u8] {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text.as_bytes()[..end]
}

/// The head that trace.dat (version `6`) and perf's TRACING_DATA (version `0.6`) share, up to the names of tasks.
pub fn tracing_data(version: &str, page_size: u32, names: &str) -> Vec<u8> {
    let mut data = MAGIC.to_vec();
    data.extend_from_slice(version.as_bytes());
    data.extend_from_slice(&[0, 0, 8]);
    data.extend_from_slice(&page_size.to_le_bytes());
    for (name, text) in [("header_page", header_page(page_size)), ("header_event", HEADER_EVENT.to_owned())] {
        data.extend_from_slice(name.as_bytes());
        data.push(0);
        sized(&mut data, &text);
    }
    data.extend_from_slice(&0u32.to_le_bytes());
    let systems = ["sched", "schedlab"];
    data.extend_from_slice(&(systems.len() as u32).to_le_bytes());
    for system in systems {
        data.extend_from_slice(system.as_bytes());
        data.push(0);
        let events = || EVENT_TYPES.iter().filter(|event_type| event_type.system == system);
        data.extend_from_slice(&(events().count() as u32).to_le_bytes());
        events().for_each(|event_type| sized(&mut data, &event_type.format()));
    }
    // Neither kallsyms nor printk formats.
    data.extend_from_slice(&[0; 8]);
    sized(&mut data, names);
    data
}

fn sized(data: &mut Vec<u8>, text: &str) {
    data.extend_from_slice(&(text.len() as u64).to_le_bytes());
    data.extend_from_slice(text.as_bytes());
}

/// The layout of a ring-buffer page, as in events/header_page.
fn header_page(page_size: u32) -> String {
    let data = page_size - 16;
    format!(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
         \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
         \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
         \tfield: char data;\toffset:16;\tsize:{data};\tsigned:0;\n"
    )
}

/// The layout of an event's header, as in events/header_event.
const HEADER_EVENT: &str = "# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n\
                            \tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\tdata max type_len  == 28\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Fields;
    use crate::tracepoint::{Decoder, Endian, Format};

    #[test]
    fn every_format_file_is_read_back() {
        for event_type in event_types() {
            let format = Format::parse(event_type.system, &event_type.format()).unwrap();
            assert_eq!((format.name.as_str(), format.id), (event_type.name, event_type.id()));
            assert_eq!(format.fields.len(), 4 + event_type.fields.len());
        }
    }

    #[test]
    fn long_texts_are_cut_and_fit_their_record() {
        let formats = event_types().iter().filter_map(|e| Format::parse(e.system, &e.format())).collect();
        let decoder = Decoder::new(formats, Endian::Little);
        let text = "ä".repeat(40_000);
        let mut raw = Vec::new();
        encode(&Body::Other { name: &text, fields: Fields(&text) }, Flags::NONE, 1, &mut raw);
        assert!(raw.len() < 4000);
        assert!(decoder.decode(&raw).unwrap().is_some());
        assert!(decoder.decode(&raw[..30]).is_err());
    }
}
