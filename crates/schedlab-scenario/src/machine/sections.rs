//! The `[[sections]]` of a machine: where the system calls of its kernel may reschedule, as `calibrate --sections`
//! measures it.

use std::sync::{Arc, OnceLock};

use schedlab_spec::CallSections;

use crate::error::Result;
use crate::keys::SECTIONS_OF_CALL;
use crate::text::Text;
use crate::value::{Table, Value};

/// The calls, and the part of one, that `calibrate --sections` measures.
const CALLS: [&str; 21] = [
    "pipe-write",
    "pipe-read",
    "socket-send",
    "socket-receive",
    "futex-wake",
    "futex-wait",
    "open",
    "close",
    "read-file",
    "poll",
    "fault",
    "fault-clear",
    "fault-drain",
    "mmap",
    "munmap",
    "fork",
    "exit",
    "exec",
    "clone",
    "exit-thread",
    "free-batch",
];
/// The longest call: a second, if an instruction takes a ns.
const LONGEST: i64 = 1_000_000_000;
/// The most tables: the simulator numbers them in a byte.
const MOST: usize = 255;
const FORM: &str = "[[sections]] tables as `schedlab calibrate --sections` writes them";
const SPAN: &str = "pairs of a beginning and an end";

/// Reads the sections of a machine. If they are missing they are those of its base, or the shipped table.
pub(super) fn read(machine: &Table, base: Option<&Arc<Vec<CallSections>>>) -> Result<Arc<Vec<CallSections>>> {
    match (machine.get("sections"), base) {
        (Some(value), _) => table(&value).map(Arc::new),
        (None, Some(base)) => Ok(Arc::clone(base)),
        (None, None) => shipped(),
    }
}

/// The table that was measured on one kernel, for every machine that has none: only shares of a call's length are taken
/// from it.
fn shipped() -> Result<Arc<Vec<CallSections>>> {
    static READ: OnceLock<Arc<Vec<CallSections>>> = OnceLock::new();
    if let Some(read) = READ.get() {
        return Ok(Arc::clone(read));
    }
    let text = Text::new("machines/sections.toml", include_bytes!("../../../../machines/sections.toml"))?;
    let document = text.parse()?;
    let root = Table::root(&text, &document);
    let read = Arc::new(table(&root.require("sections", FORM)?)?);
    Ok(Arc::clone(READ.get_or_init(|| read)))
}

fn table(value: &Value) -> Result<Vec<CallSections>> {
    let mut calls: Vec<CallSections> = Vec::new();
    for item in value.array(FORM)? {
        let next = call(&item)?;
        if calls.iter().any(|known| known.call == next.call && known.kib == next.kib) {
            return Err(item.error(format!("the call {} of {} KiB is there twice", next.call, next.kib)));
        }
        if calls.len() == MOST {
            return Err(item.error(format!("more than {MOST} tables")).expected("fewer sizes of the calls"));
        }
        calls.push(next);
    }
    Ok(calls)
}

fn call(value: &Value) -> Result<CallSections> {
    let table = value.table(FORM)?.only(&SECTIONS_OF_CALL)?;
    let name = table.require("call", "the name of a call")?;
    let call = name.string("the name of a call")?;
    if !CALLS.contains(&call) {
        return Err(name.unknown("call", call, CALLS));
    }
    let kib = table.get("kib").map(|kib| kib.integer(0..=1 << 20)).transpose()?.unwrap_or(0) as u32;
    let length = table.require("length", "its length in instructions")?.integer(1..=LONGEST)? as u32;
    let points = |key: &str| positions(&table, key, length);
    let spans = |key: &str| spans(&table, key, length);
    Ok(CallSections {
        call: call.to_owned(),
        kib,
        length,
        cond_resched: points("cond-resched")?,
        might_sleep: points("might-sleep")?,
        spinlock: spans("spinlock")?,
        irq_off: spans("irq-off")?,
        page_table: spans("page-table")?,
    })
}

/// Positions of check points, in order.
fn positions(table: &Table, key: &str, length: u32) -> Result<Vec<u32>> {
    let Some(value) = table.get(key) else { return Ok(Vec::new()) };
    let mut from = 0;
    let mut found = Vec::new();
    for position in value.array("an array of positions")? {
        let at = position.integer(0..=i64::from(length))? as u32;
        if at < from {
            return Err(position.refuse("before the previous one").expected("positions in order"));
        }
        from = at;
        found.push(at);
    }
    Ok(found)
}

fn spans(table: &Table, key: &str, length: u32) -> Result<Vec<(u32, u32)>> {
    let Some(value) = table.get(key) else { return Ok(Vec::new()) };
    value.array(SPAN)?.iter().map(|span| self::span(span, length)).collect()
}

fn span(value: &Value, length: u32) -> Result<(u32, u32)> {
    let [begin, end] = &value.array(SPAN)?[..] else { return Err(value.error("not a section").expected(SPAN)) };
    let first = begin.integer(0..=i64::from(length))?;
    Ok((first as u32, end.integer(first..=i64::from(length))? as u32))
}
