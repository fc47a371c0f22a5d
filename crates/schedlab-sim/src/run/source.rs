//! Sources of events: of which kernel, what, on which CPU. Each has at most one event pending.

use schedlab_model::{CpuId, KernelId};

use super::order::Phase;

/// What an event is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Source {
    /// The segment that the CPU executes ends.
    Segment = 0,
    /// The scheduler tick.
    Tick = 1,
    /// The reschedule interrupt.
    Resched = 2,
    /// The wakelist's interrupt.
    Call = 3,
    /// The CPU leaves its idle state.
    IdleExit = 4,
    /// The earliest high-resolution timer.
    HrTimer = 5,
    /// The end of a slice.
    HrTick = 6,
    /// The CPU has selected one for a task that it wakes, and gets to the runqueue.
    Wakeup = 7,
    /// The next start of a workload's own tasks; one per kernel, on CPU 0 as those below.
    Start = 8,
    /// The timers of the groups' bandwidth pools.
    Bandwidth = 9,
    /// The timers of the scheduling classes: periods and servers.
    Classes = 10,
    /// A guest's CPU halts.
    Halt = 11,
    /// An idle CPU has polled for as long as it may.
    PollLimit = 12,
    /// A guest is paused, resumed or killed, or the CPUs of control groups change; one per kernel, on CPU 0.
    Action = 13,
    /// The interrupt that requests a TLB flush.
    Flush = 14,
    /// The time slice extension of the running task is over.
    SliceTimer = 15,
    /// The network card's interrupt: requests of clients on other machines.
    Network = 16,
}

/// Bits of the number of a source.
const SOURCE_BITS: u32 = 5;

impl Source {
    /// The source with this number.
    #[inline]
    fn from_number(number: u32) -> Source {
        match number {
            0 => Source::Segment,
            1 => Source::Tick,
            2 => Source::Resched,
            3 => Source::Call,
            4 => Source::IdleExit,
            5 => Source::HrTimer,
            6 => Source::HrTick,
            7 => Source::Wakeup,
            8 => Source::Start,
            9 => Source::Bandwidth,
            10 => Source::Classes,
            11 => Source::Halt,
            12 => Source::PollLimit,
            13 => Source::Action,
            14 => Source::Flush,
            15 => Source::SliceTimer,
            _ => Source::Network,
        }
    }

    /// When its events are handled within an instant.
    #[inline]
    pub fn phase(self) -> Phase {
        match self {
            Source::Segment => Phase::Segment,
            Source::Tick => Phase::Tick,
            Source::Resched | Source::Call | Source::Wakeup | Source::Flush => Phase::Ipi,
            Source::IdleExit | Source::Halt | Source::PollLimit => Phase::IdleExit,
            Source::HrTimer | Source::HrTick | Source::Classes | Source::SliceTimer | Source::Network => Phase::Timer,
            Source::Start | Source::Bandwidth | Source::Action => Phase::Control,
        }
    }

    /// Whether it interrupts what the CPU executes.
    #[inline]
    pub fn is_interrupt(self) -> bool {
        self.needs_cpu() && !matches!(self, Source::Segment | Source::Wakeup)
    }

    /// Whether it needs the CPU to execute: a CPU at rate 0 holds it until the rate is back.
    #[inline]
    pub fn needs_cpu(self) -> bool {
        (self as u8) < Source::Start as u8 || matches!(self, Source::Flush | Source::SliceTimer | Source::Network)
    }

    /// Every source that needs the CPU, in the order of their numbers.
    pub fn on_cpus() -> impl Iterator<Item = Source> {
        (0..=Source::Network as u32).map(Source::from_number).filter(|source| source.needs_cpu())
    }
}

/// Packs (kernel, kind, CPU) into dense numbers for the event queue.
#[derive(Clone, Copy, Debug)]
pub struct Sources {
    /// Low bits of a source that hold its CPU: enough for the kernel with the most.
    cpu_bits: u32,
    /// A mask of these bits.
    cpu_mask: u32,
}

impl Sources {
    pub fn new(nr_cpus: usize) -> Self {
        let cpus = nr_cpus.next_power_of_two();
        Sources { cpu_bits: cpus.trailing_zeros(), cpu_mask: cpus as u32 - 1 }
    }

    /// How many sources so many kernels have.
    pub fn count(self, kernels: usize) -> usize {
        kernels << (SOURCE_BITS + self.cpu_bits)
    }

    #[inline]
    pub fn pack(self, kernel: KernelId, source: Source, cpu: CpuId) -> u32 {
        (u32::from(kernel.0) << SOURCE_BITS | source as u32) << self.cpu_bits | cpu.0
    }

    #[inline]
    pub fn unpack(self, source: u32) -> (KernelId, Source, CpuId) {
        let (cpu, upper) = (source & self.cpu_mask, source >> self.cpu_bits);
        let source = Source::from_number(upper & ((1 << SOURCE_BITS) - 1));
        (KernelId((upper >> SOURCE_BITS) as u16), source, CpuId(cpu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_source_has_a_number_of_its_own() {
        assert_eq!(Source::from_number(Source::Flush as u32), Source::Flush);
        assert_eq!(Source::from_number(Source::SliceTimer as u32), Source::SliceTimer);
        assert_eq!(Source::from_number(Source::Network as u32), Source::Network);
        for nr_cpus in [1, 3, 480] {
            let sources = Sources::new(nr_cpus);
            let mut seen = BTreeSet::new();
            for kernel in (0..3).map(KernelId) {
                for source in (0..=Source::Network as u32).map(Source::from_number) {
                    for cpu in (0..nr_cpus as u32).map(CpuId) {
                        let number = sources.pack(kernel, source, cpu);
                        assert_eq!(sources.unpack(number), (kernel, source, cpu));
                        assert!((number as usize) < sources.count(3) && seen.insert(number));
                    }
                }
            }
        }
    }
}
