//! From a raw record to an event: scheduler tracepoints become events of the model, all others become text.

use schedlab_model::{CpuId, Pid, MAX_CPUS};

use super::{Endian, Field, Format, Shape, TEXT_EVENT};
use crate::item::What;
use crate::state::StateBits;
use crate::{Flags, Kind};

/// Every format of a file.
#[derive(Clone, Default, Debug)]
pub struct Decoder {
    endian: Endian,
    formats: Vec<(Format, Option<Known>)>,
    /// Position in `formats` plus 1, by id.
    slot_of_id: Vec<u32>,
    /// The bits of `prev_state` of the recorded kernel.
    states: StateBits,
}

/// A scheduler event, with the positions of the fields its kind needs, in the order of [`KNOWN`].
#[derive(Clone, Copy, Debug)]
struct Known {
    event: usize,
    fields: [usize; 7],
}

/// The scheduler events and the fields they need.
const KNOWN: [(&str, &[&str]); 8] = [
    ("sched_switch", &["prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid", "next_prio"]),
    ("sched_waking", &["comm", "pid", "prio", "target_cpu"]),
    ("sched_wakeup", &["comm", "pid", "prio", "target_cpu"]),
    ("sched_wakeup_new", &["comm", "pid", "prio", "target_cpu"]),
    ("sched_migrate_task", &["comm", "pid", "prio", "orig_cpu", "dest_cpu"]),
    ("sched_process_fork", &["parent_comm", "parent_pid", "child_comm", "child_pid"]),
    ("sched_process_exit", &["comm", "pid", "prio"]),
    ("sched_stat_runtime", &["comm", "pid", "runtime"]),
];

impl Decoder {
    /// Takes the formats; if two have the same id, the later one is used.
    pub fn new(formats: Vec<Format>, endian: Endian) -> Decoder {
        let mut decoder = Decoder { endian, ..Decoder::default() };
        for format in formats {
            let id = usize::from(format.id);
            if decoder.slot_of_id.len() <= id {
                decoder.slot_of_id.resize(id + 1, 0);
            }
            let known = Known::of(&format);
            if format.name == "sched_switch" {
                decoder.states = StateBits::of_print_format(&format.print).unwrap_or_default();
            }
            decoder.formats.push((format, known));
            decoder.slot_of_id[id] = decoder.formats.len() as u32;
        }
        decoder
    }

    /// Decodes one record: the flags and the pid of the task that ran, and what the event says. `None` for an event
    /// whose format the file does not hold. The error says what is wrong with the record.
    pub fn decode(&self, raw: &[u8]) -> Result<Option<(Flags, Pid, What)>, String> {
        let id = raw.get(..2).ok_or("a record too short for its type")?;
        let id = self.endian.number(id) as usize;
        let slot = self.slot_of_id.get(id).copied().unwrap_or(0) as usize;
        let Some((format, known)) = slot.checked_sub(1).map(|slot| &self.formats[slot]) else { return Ok(None) };
        let record = Record { raw, endian: self.endian };
        let common = |name: &str| format.index_of(name).map_or(Ok(0), |i| record.number(&format.fields[i]));
        let flags = Flags::of_bits(common("common_flags")? as u8, common("common_preempt_count")? as u8);
        let pid = common("common_pid")? as Pid;
        let what = match known {
            Some(known) => known.decode(format, record, &self.states)?,
            None if format.name == TEXT_EVENT => record.any_event(format)?,
            None => What::Text { name: format.name.clone(), fields: record.text_of(format)? },
        };
        if let Some(impossible) = what.impossible() {
            return Err(format!("{}: {impossible}", format.name));
        }
        Ok(Some((flags, pid, what)))
    }
}

impl Known {
    fn of(format: &Format) -> Option<Known> {
        let event = KNOWN.iter().position(|(name, _)| *name == format.name)?;
        let mut fields = [0; 7];
        for (slot, name) in fields.iter_mut().zip(KNOWN[event].1) {
            *slot = format.index_of(name)?;
        }
        Some(Known { event, fields })
    }

    fn decode(&self, format: &Format, record: Record<'_>, states: &StateBits) -> Result<What, String> {
        let number = |i: usize| record.number(&format.fields[self.fields[i]]).map(|value| value as i32);
        let wide = |i: usize| record.number(&format.fields[self.fields[i]]);
        let text = |i: usize| record.text(&format.fields[self.fields[i]]);
        let cpu = |i: usize| match u32::try_from(number(i)?) {
            Ok(cpu) if (cpu as usize) < MAX_CPUS => Ok(CpuId(cpu)),
            _ => Err(format!("{}: a CPU number that no kernel has", format.name)),
        };
        let one = |kind| Ok(What::one(kind, text(0)?));
        match KNOWN[self.event].0 {
            "sched_switch" => {
                let (state, letters) = states.state(wide(3)?);
                let kind = Kind::Switch {
                    prev: number(1)?,
                    prev_prio: number(2)?,
                    prev_state: state,
                    next: number(5)?,
                    next_prio: number(6)?,
                };
                Ok(What::Event { kind, comm: text(0)?, other_comm: text(4)?, prev_state: letters })
            }
            "sched_waking" => one(Kind::Waking { pid: number(1)?, prio: number(2)?, target_cpu: cpu(3)? }),
            "sched_wakeup" => one(Kind::Wakeup { pid: number(1)?, prio: number(2)?, target_cpu: cpu(3)? }),
            "sched_wakeup_new" => one(Kind::WakeupNew { pid: number(1)?, prio: number(2)?, target_cpu: cpu(3)? }),
            "sched_migrate_task" => {
                one(Kind::Migrate { pid: number(1)?, prio: number(2)?, orig_cpu: cpu(3)?, dest_cpu: cpu(4)? })
            }
            "sched_process_fork" => {
                let kind = Kind::Fork { parent: number(1)?, child: number(3)? };
                Ok(What::Event { kind, comm: text(0)?, other_comm: text(2)?, prev_state: String::new() })
            }
            "sched_process_exit" => one(Kind::Exit { pid: number(1)?, prio: number(2)? }),
            _ => {
                let optional = |name| format.index_of(name).map(|i| record.number(&format.fields[i])).transpose();
                let present = optional("has_vruntime")? != Some(0);
                let vruntime = optional("vruntime")?.filter(|_| present).map(|value| value as u64);
                one(Kind::Runtime { pid: number(1)?, runtime: wide(2)? as u64, vruntime })
            }
        }
    }
}

/// The bytes of one record.
#[derive(Clone, Copy)]
struct Record<'a> {
    raw: &'a [u8],
    endian: Endian,
}

impl<'a> Record<'a> {
    fn bytes(self, offset: usize, size: usize, field: &Field) -> Result<&'a [u8], String> {
        let end = offset.checked_add(size);
        let bytes = end.and_then(|end| self.raw.get(offset..end));
        bytes.ok_or_else(|| format!("field {} lies outside of a record of {} bytes", field.name, self.raw.len()))
    }

    /// A number with its sign.
    fn number(self, field: &Field) -> Result<i64, String> {
        let bytes = self.bytes(field.offset, field.size, field)?;
        if bytes.is_empty() || bytes.len() > 8 {
            return Err(format!("field {} is a number of {} bytes", field.name, bytes.len()));
        }
        let unused = 64 - 8 * bytes.len() as u32;
        let value = self.endian.number(bytes) << unused;
        Ok(if field.signed { value as i64 >> unused } else { (value >> unused) as i64 })
    }

    /// Text up to its NUL.
    fn text(self, field: &Field) -> Result<String, String> {
        let bytes = match field.shape {
            Shape::Located | Shape::LocatedFromHere => {
                let at = self.endian.number(self.bytes(field.offset, field.size, field)?);
                let base = if field.shape == Shape::LocatedFromHere { field.offset + field.size } else { 0 };
                self.bytes(base + (at & 0xffff) as usize, (at >> 16 & 0xffff) as usize, field)?
            }
            _ => self.bytes(field.offset, field.size, field)?,
        };
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }

    /// An event that came from a format with other field types, as text.
    fn any_event(self, format: &Format) -> Result<What, String> {
        let field = |name| format.index_of(name).map_or(Ok(String::new()), |i| self.text(&format.fields[i]));
        Ok(What::Text { name: field("name")?, fields: field("text")? })
    }

    /// Every field but the common ones as `key=value`.
    fn text_of(self, format: &Format) -> Result<String, String> {
        let mut text = String::new();
        for field in format.fields.iter().filter(|field| !field.name.starts_with("common_")) {
            let value = match field.shape {
                Shape::Number if field.signed => self.number(field)?.to_string(),
                Shape::Number => (self.number(field)? as u64).to_string(),
                // A record may end before an array does: the stacks of `trace-cmd record -T` are as long as they are.
                Shape::Bytes => {
                    let rest = self.raw.len().saturating_sub(field.offset);
                    let bytes = self.bytes(field.offset.min(self.raw.len()), field.size.min(rest), field)?;
                    bytes.iter().map(|b| format!("{b:02x}")).collect()
                }
                _ => self.text(field)?,
            };
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&field.name);
            text.push('=');
            text.push_str(&value);
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `trace-cmd record -T` declares eight callers; a record has as many as the stack.
    #[test]
    fn a_stack_may_be_shorter_than_declared() {
        let field = |name: &str, offset: usize, size: usize| {
            format!("\tfield:{name};\toffset:{offset};\tsize:{size};\tsigned:0;\n")
        };
        let fields = [
            field("unsigned short common_type", 0, 2),
            field("int common_pid", 4, 4),
            field("int size", 8, 4),
            field("unsigned long caller[8]", 16, 64),
        ];
        let text = format!("name: kernel_stack\nID: 4\nformat:\n{}", fields.concat());
        let decoder = Decoder::new(vec![Format::parse("ftrace", &text).unwrap()], Endian::Little);
        for callers in [0, 1, 8] {
            let mut raw = vec![4, 0, 0, 0, 7, 0, 0, 0, callers, 0, 0, 0, 0, 0, 0, 0];
            raw.resize(16 + 8 * usize::from(callers), 0xab);
            let (_, pid, what) = decoder.decode(&raw).unwrap().unwrap();
            let What::Text { name, fields } = what else { panic!("{what:?}") };
            let stack = format!("size={callers} caller={}", "ab".repeat(8 * usize::from(callers)));
            assert_eq!((pid, name.as_str(), fields), (7, "kernel_stack", stack));
        }
        assert!(decoder.decode(&[4, 0, 0, 0, 7, 0]).is_err(), "a number is whole");
    }
}
