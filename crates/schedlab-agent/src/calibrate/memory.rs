//! Costs of work on memory, with the steps that a run's tasks take: page faults, munmap, reads of the page cache.
//!
//! A munmap flushes the TLB if any page of the mapping was present. That is measured with pages that have only been
//! read, which all refer to the page of zeros, so that none is freed. What a munmap of `n` such pages takes grows
//! evenly as long as the kernel flushes them one by one, which it does up to 33 (tlb_single_page_flush_ceiling,
//! arch/x86/mm/tlb.c):
//!
//! ```text
//! tlb-flush = t(1) - t(0) - (t(17) - t(1)) / 16
//! ```
//!
//! Now and then a tick comes in a batch of faults or a read and lengthens it by a tenth or more; the simulator adds
//! ticks of its own. So of two measurements in succession the shorter one counts. A munmap takes milliseconds and a
//! tick none of its length that matters.
//!
//! ```text
//! sample = min(t[2 i], t[2 i + 1])
//! ```

use std::collections::BTreeMap;

use schedlab_model::Nanos;

use super::{median, Cost, Effort, Entry};
use crate::clock::now;
use crate::error::{os, Result};
use crate::memory_work::{cached, Memory};
use crate::sys::Pages;

/// Faults between two clock reads; a sample is their mean.
const BATCH: u64 = 32;
/// Pages that one munmap frees.
const FREED: usize = 1024;
/// Pages of a mapping of which none is present.
const MAPPED: usize = 1;
/// Pages of the mapping by which the flush of a TLB is measured.
const FLUSHED: usize = 17;
/// KiB of one read.
const READ: u64 = 256;

/// Measures these costs; `syscall` is known already.
pub fn measure(effort: Effort, costs: &mut BTreeMap<&'static str, Entry>) -> Result<()> {
    let call = median(costs, "syscall");
    let mut put = |key, samples: Vec<Nanos>, how: String| {
        if let Some(cost) = Cost::of(samples, how) {
            costs.insert(key, Entry::One(cost));
        }
        median(costs, key)
    };
    let (maps, unmaps) = mappings(effort.few, call)?;
    put("mmap", maps, format!("mmap() of {MAPPED} private pages less syscall, the shorter of two"));
    put(
        "munmap",
        unmaps,
        format!("munmap() of {MAPPED} pages of which none is present less syscall, the shorter of two"),
    );
    if cfg!(target_arch = "x86_64") {
        let how = format!(
            "munmap() of {FLUSHED} pages of which one refers to the page of zeros less one of which none is present, \
             less a {0}th of what {0} more add, the shorter of two",
            FLUSHED - 1
        );
        put("tlb-flush", flushes(effort.few)?, how);
    }
    let mut memory = Memory::to_measure(FREED)?;
    let mapped = batches(effort.few, &mut memory, Memory::map)?;
    let how = format!("first write to a page of a shared file in memory; means of {BATCH}, the shorter of two");
    let fault = put("fault", mapped, how);
    let cleared = batches(effort.few, &mut memory, Memory::zero)?;
    let quarter = cleared.into_iter().map(|time| time.saturating_sub(fault) / 4).collect();
    let how =
        format!("first write to a private page of 4 KiB less fault, a quarter; means of {BATCH}, the shorter of two");
    put("clear-kib", quarter, how);
    let how = format!("munmap() of {FREED} present pages to which pipes refer less syscall, by page");
    let zap = put("zap-page", frees(effort.few / 10, call, &mut memory, true)?, how);
    let freed = frees(effort.few / 5, call, &mut memory, false)?;
    let freed = freed.into_iter().map(|time| time.saturating_sub(zap)).collect();
    put("unmap-page", freed, format!("munmap() of {FREED} present pages less syscall, by page, less zap-page"));
    let file = cached(READ << 10)?;
    let mut reads = Vec::new();
    for _ in 0..2 * effort.few {
        let begin = now();
        memory.read(&file, READ << 10).map_err(os("preadv"))?;
        reads.push((now() - begin).saturating_sub(call) / READ);
    }
    put(
        "read-kib",
        shorter(&reads),
        format!("preadv() of {READ} KiB of the page cache less syscall, by KiB, the shorter of two"),
    );
    Ok(())
}

/// The shorter of each two measurements in succession: an interrupt in one of them does not count.
fn shorter(times: &[Nanos]) -> Vec<Nanos> {
    times.chunks_exact(2).map(|pair| pair[0].min(pair[1])).collect()
}

/// Samples the time of an mmap, and of the munmap after it.
fn mappings(samples: usize, call: Nanos) -> Result<(Vec<Nanos>, Vec<Nanos>)> {
    let (mut maps, mut unmaps) = (Vec::with_capacity(2 * samples), Vec::with_capacity(2 * samples));
    for _ in 0..2 * samples {
        let begin = now();
        let mapping = Pages::private(MAPPED).map_err(os("mmap"))?;
        let mapped = now();
        drop(mapping);
        maps.push((mapped - begin).saturating_sub(call));
        unmaps.push((now() - mapped).saturating_sub(call));
    }
    Ok((shorter(&maps), shorter(&unmaps)))
}

/// Samples what a munmap takes longer if a page is present, beyond what each further one adds.
fn flushes(samples: usize) -> Result<Vec<Nanos>> {
    let mut times = Vec::with_capacity(samples);
    for _ in 0..samples {
        let [none, one, all] =
            [0, 1, FLUSHED].map(|present| -> Result<Nanos> { Ok(zeros(present)?.min(zeros(present)?)) });
        let (none, one, all) = (none?, one?, all?);
        let further = all.saturating_sub(one) / (FLUSHED as u64 - 1);
        times.push(one.saturating_sub(none + further));
    }
    Ok(times)
}

/// The time of a munmap of pages of which so many refer to the page of zeros.
fn zeros(present: usize) -> Result<Nanos> {
    let mapping = Pages::private(FLUSHED).map_err(os("mmap"))?;
    (0..present).for_each(|page| mapping.read(page));
    let begin = now();
    drop(mapping);
    Ok(now() - begin)
}

/// Samples the time by page of a munmap. Pages to which pipes refer lose their last mapping in it, as all do, but are
/// not freed.
fn frees(samples: usize, call: Nanos, memory: &mut Memory, held: bool) -> Result<Vec<Nanos>> {
    let mut times = Vec::with_capacity(samples);
    for _ in 0..samples {
        memory.fill(FREED).map_err(os("mmap"))?;
        let pipes = if held { memory.held().map_err(os("vmsplice"))? } else { Vec::new() };
        let begin = now();
        memory.free(FREED);
        times.push((now() - begin).saturating_sub(call) / FREED as u64);
        drop(pipes);
    }
    Ok(times)
}

/// Samples the mean time of a fault; pages are freed between the samples.
fn batches(
    samples: usize,
    memory: &mut Memory,
    fault: impl Fn(&mut Memory) -> std::io::Result<()>,
) -> Result<Vec<Nanos>> {
    let mut times = Vec::with_capacity(2 * samples);
    for _ in 0..2 * samples {
        memory.empty().map_err(os("madvise"))?;
        // The mapping and its page tables are not part of the cost.
        fault(memory).map_err(os("mmap"))?;
        let begin = now();
        for _ in 0..BATCH {
            fault(memory).map_err(os("mmap"))?;
        }
        times.push((now() - begin) / BATCH);
    }
    Ok(shorter(&times))
}
