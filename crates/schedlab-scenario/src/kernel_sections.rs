//! Steps in kernel mode: the sections of a system call, page faults, sizes of memory.

use schedlab_workload::verbs::{CallSection, StepKind};
use schedlab_workload::{MemoryWork, Section, SectionContext};

use crate::dist::amount;
use crate::error::Result;
use crate::naming::word;
use crate::value::{Table, Value};

/// Contexts of a section by their keys.
const CONTEXTS: [(&str, SectionContext); 4] = [
    ("preemptible", SectionContext::Preemptible),
    ("spinlock", SectionContext::Spinlock),
    ("preempt-off", SectionContext::PreemptOff),
    ("irq-off", SectionContext::IrqOff),
];
const POINTS: [(&str, bool); 2] = [("cond-resched", false), ("might-sleep", true)];
const FORM: &str =
    "{ preemptible = LENGTH, cond-resched = LENGTH }, { spinlock = LENGTH, lock = NAME }, { preempt-off = LENGTH } or \
                    { irq-off = LENGTH }";
/// Sizes of pages, in KiB.
const PAGES: [(&str, u32); 2] = [("4KiB", 4), ("2MiB", 2048)];
const SIZE: &str = "a size such as \"64KiB\" or \"200MiB\"";

/// Reads the sections of a call.
pub(crate) fn read(value: &Value) -> Result<Vec<CallSection>> {
    let items = value.array("an array of sections")?;
    if items.is_empty() {
        return Err(value.error("there is no section").expected(FORM));
    }
    items.iter().map(|item| section(&item.table(FORM)?)).collect()
}

fn section(table: &Table) -> Result<CallSection> {
    let given: Vec<_> =
        CONTEXTS.iter().filter(|(key, _)| table.entries().iter().any(|(name, _)| name == key)).collect();
    let [(key, context)] = given[..] else { return Err(table.error("not a single section").expected(FORM)) };
    let points: &[&str] = match context {
        SectionContext::Preemptible => &["cond-resched", "might-sleep"],
        SectionContext::Spinlock => &["lock"],
        SectionContext::PreemptOff | SectionContext::IrqOff => &[],
    };
    let table = table.clone().only_these(&[&[*key], points].concat(), &format!("a section {key}"))?;
    let length = amount(&table.require(key, FORM)?)?;
    let mut section = Section { context: *context, might_sleep: false, every: 0 };
    for (key, might_sleep) in POINTS {
        let Some(distance) = table.get(key) else { continue };
        if section.every > 0 {
            return Err(distance.error("a section with two kinds of points").expected("cond-resched or might-sleep"));
        }
        section.every = distance.duration(1..=u64::from(u32::MAX))? as u32;
        section.might_sleep = might_sleep;
    }
    let lock = table.get("lock").map(|value| word(&value).map(str::to_owned)).transpose()?;
    Ok(CallSection { length, section, lock })
}

/// Reads page faults: how many, of which page size, and whether the page has to be cleared.
pub(crate) fn fault(value: &Value, table: &Table) -> Result<StepKind> {
    let times = value.integer(1..=1_000_000)? as u32;
    if let Some(disk) = table.get("major") {
        let table = table.clone().only_these(&["fault", "major", "service"], "a major fault")?;
        let service = amount(&table.require("service", "how long the disk takes for one")?)?;
        return Ok(StepKind::MajorFault { disk: word(&disk)?.to_owned(), service, times });
    }
    if let Some(service) = table.get("service") {
        return Err(service.error("a minor fault has no service").expected("service with major"));
    }
    let kib = table.get("page").map(|page| page.choice(&PAGES)).transpose()?.unwrap_or(4);
    let clear = table.get("clear").map(|clear| clear.boolean()).transpose()?.unwrap_or(false);
    let work = if clear { MemoryWork::Zero } else { MemoryWork::Map };
    Ok(StepKind::Memory { work, kib, times })
}

/// Reads a size, in KiB.
pub(crate) fn kib(value: &Value) -> Result<u32> {
    const UNITS: [(&str, u32); 3] = [("KiB", 1), ("MiB", 1 << 10), ("GiB", 1 << 20)];
    let text = value.string(SIZE)?;
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = UNITS.iter().find(|(name, _)| *name == unit.trim()).map(|(_, factor)| *factor);
    let size = number.parse::<u32>().ok().zip(factor).and_then(|(number, factor)| number.checked_mul(factor));
    match size {
        Some(kib) if (1..=1 << 26).contains(&kib) => Ok(kib),
        _ => Err(value.refuse("not a size").expected(SIZE)),
    }
}
