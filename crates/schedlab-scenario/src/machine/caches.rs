//! The `[caches]` of a machine: sizes, and how fast a program reads from them.

use schedlab_model::{Nanos, USEC};
use schedlab_spec::{CacheLevel, Caches, FrontEnd, SharedBy};

use super::sources::Sources;
use crate::error::Result;
use crate::kernel_sections::kib;
use crate::keys::{CACHE, CACHES, FRONT_END};
use crate::value::{Table, Value};

/// The levels that a machine may have, nearest first.
const LEVELS: [(&str, SharedBy); 3] = [("l1", SharedBy::Core), ("l2", SharedBy::Core), ("llc", SharedBy::Llc)];
const FORM: &str = "a table such as { size = \"1MiB\", read = \"20ns\" }";
const SHARED_BY: &str = "core or llc";

/// Reads the caches of a machine; `None` if neither it nor its base states them.
pub(super) fn read(machine: &Table, base: Option<&Caches>, sources: &mut Sources) -> Result<Option<Caches>> {
    let Some(value) = machine.get("caches") else { return Ok(base.cloned()) };
    let table = value.table("a table of l1, l2, llc and memory")?.only(&CACHES)?;
    sources.read("caches", &table)?;
    table.require("llc", FORM)?;
    let mut levels: Vec<CacheLevel> = Vec::new();
    for (name, shared_by) in LEVELS {
        let Some(value) = table.get(name) else { continue };
        let level = value.table(FORM)?.only(&CACHE)?;
        let nearer = levels.last().copied();
        let size = level.require("size", "a size such as \"1MiB\"")?;
        let kib = u64::from(kib(&size)?);
        if nearer.is_some_and(|nearer| nearer.kib > kib) {
            return Err(size.refuse("smaller than the cache before it").expected("caches that grow from l1 to llc"));
        }
        let shared_by = shared(&level, shared_by, nearer)?;
        levels.push(CacheLevel { name, shared_by, kib, read: time(&level, nearer)? });
    }
    let memory = table.require("memory", "a table such as { read = \"100ns\" }")?;
    let memory = time(
        &memory.table("a table such as { read = \"100ns\" }")?.only_these(&["read"], "memory")?,
        levels.last().copied(),
    )?;
    let front_end = table.get("front-end").map(|value| front_end(&value)).transpose()?;
    Ok(Some(Caches { levels, memory, front_end }))
}

fn front_end(value: &Value) -> Result<FrontEnd> {
    let table =
        value.table("a table such as { size = \"128KiB\", warm = \"48ns\", cold = \"105ns\" }")?.only(&FRONT_END)?;
    let kib = u64::from(kib(&table.require("size", "a size such as \"128KiB\"")?)?);
    let warm = table.require("warm", "how long it takes to execute 1 KiB of code")?.duration(1..=100 * USEC)?;
    let value = table.require("cold", "how long it takes to execute 1 KiB of code that was displaced")?;
    let cold = value.duration(1..=100 * USEC)?;
    match cold < warm {
        true => Err(value.refuse("faster than warm code").expected("a time that is not below warm")),
        false => Ok(FrontEnd { kib, warm, cold }),
    }
}

/// Which CPUs share a cache, if the table says so: not fewer than share the nearer one, and all of its domain share the
/// last.
fn shared(table: &Table, usual: SharedBy, nearer: Option<CacheLevel>) -> Result<SharedBy> {
    let Some(value) = table.get("shared-by") else { return Ok(usual) };
    let shared_by = match value.string(SHARED_BY)? {
        "core" => SharedBy::Core,
        "llc" => SharedBy::Llc,
        _ => return Err(value.refuse("unknown CPUs").expected(SHARED_BY)),
    };
    let narrower = shared_by == SharedBy::Core
        && (usual == SharedBy::Llc || nearer.is_some_and(|nearer| nearer.shared_by == SharedBy::Llc));
    match narrower {
        true => Err(value.refuse("shared by fewer CPUs than the cache before it or the domain").expected("llc")),
        false => Ok(shared_by),
    }
}

/// The time of 1 KiB: not less than from the nearer cache.
fn time(table: &Table, nearer: Option<CacheLevel>) -> Result<Nanos> {
    let value: Value = table.require("read", "how long it takes to read 1 KiB")?;
    let read = value.duration(1..=100 * USEC)?;
    if nearer.is_some_and(|nearer| nearer.read > read) {
        return Err(value.refuse("faster than the cache before it").expected("times that grow from l1 to memory"));
    }
    Ok(read)
}
