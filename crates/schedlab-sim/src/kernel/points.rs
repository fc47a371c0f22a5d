//! Where a request to reschedule is honoured, by preemption model: in which modes at once, and whether the check points
//! in kernel code reschedule.

use schedlab_model::Nanos;
use schedlab_policy::PreemptModel;
use schedlab_spec::CallSections;
use schedlab_trace::{Call, Section};

use super::percpu::PerCpu;
use super::sections::{Sections, Size};
use crate::machine::{Mode, Segment, WORK_SHIFT};

/// The preemption model as the simulator uses it.
#[derive(Debug)]
pub struct Points {
    /// Modes that a request seen by the kernel's entry code ends at once, one bit per mode.
    preempted: u16,
    cond_resched: bool,
    might_sleep: bool,
    sections: Sections,
    has_transfers: bool,
}

impl Points {
    /// Those of a model, with the machine's table of sections.
    pub fn of(model: PreemptModel, table: &[CallSections]) -> Points {
        let bit = |mode: Mode| 1u16 << mode as u16;
        let mut preempted = bit(Mode::User) | bit(Mode::Stream) | bit(Mode::Wall) | bit(Mode::Spin) | bit(Mode::Guest);
        if model.is_preemptible() {
            preempted |= bit(Mode::Kernel);
        }
        if model.has_sleeping_locks() {
            preempted |= bit(Mode::Locked);
        }
        let sections = Sections::new(table, model);
        let has_transfers = sections.any_transfer();
        Points {
            preempted,
            cond_resched: model.has_cond_resched(),
            might_sleep: model.has_might_resched(),
            sections,
            has_transfers,
        }
    }

    /// Whether reads and writes have sections that matter.
    #[inline(always)]
    pub fn has_transfers(&self) -> bool {
        self.has_transfers
    }

    /// A read or write of so many bytes among the measured calls, and which call it is.
    #[inline]
    pub fn transfer(&self, socket: bool, write: bool, bytes: u32) -> (Call, &Size) {
        let call = match (socket, write) {
            (false, false) => Call::PipeRead,
            (false, true) => Call::PipeWrite,
            (true, false) => Call::SocketReceive,
            (true, true) => Call::SocketSend,
        };
        (call, self.sections.nearest(call, u64::from(bytes)))
    }

    /// The number of a call that works on so many KiB among the measured calls.
    pub fn call(&self, call: Call, kib: u32) -> u8 {
        self.sections.nearest(call, u64::from(kib) << 10).number
    }

    /// The number of the batches in which pages are freed; 0 if requests are honoured at check points instead, or
    /// anywhere.
    pub fn free_batch(&self) -> u8 {
        if self.preempts(Mode::Kernel) {
            self.call(Call::FreeBatch, 0)
        } else {
            0
        }
    }

    /// What a fault that allocates a page is, and its work, if such faults take `mean` on average: one of each `batch`
    /// drains the batch of new pages.
    pub fn allocating_fault(&self, drains: bool, batch: u32, mean: Nanos) -> (Call, Nanos) {
        let (call, length) = if drains {
            (Call::FaultDrain, self.sections.draining_fault(batch))
        } else {
            (Call::FaultClear, self.sections.plain_fault())
        };
        let all = self.sections.plain_fault() * u64::from(batch - 1) + self.sections.draining_fault(batch);
        (call, (u128::from(mean) * u128::from(batch) * u128::from(length) / u128::from(all.max(1))) as Nanos)
    }

    /// Whether the CPU calls `__schedule` as soon as its overhead is spent.
    #[inline(always)]
    pub fn switches_now(&self, cpu: &PerCpu, segment: &Segment) -> bool {
        let kernel_points = segment.mode == Mode::Kernel && (segment.call != 0 || segment.every != 0);
        if kernel_points && cpu.need_resched {
            return self.within_call(cpu, segment) == Some(0);
        }
        self.leaves(cpu, segment)
    }

    /// The work until the segment gets to a place at which it honours the request that it has; `None`: at its end.
    #[inline(always)]
    pub fn until_honoured(&self, cpu: &PerCpu, segment: &Segment) -> Option<u64> {
        let points = cpu.need_resched && segment.mode == Mode::Kernel && (segment.call != 0 || segment.every != 0);
        if points {
            self.within_call(cpu, segment)
        } else {
            None
        }
    }

    /// The measured call that it executes.
    pub fn call_of(&self, segment: &Segment) -> Option<Call> {
        self.sections.call(segment.call)
    }

    /// The work of the longest part of a segment that has just begun in which no request is honoured, and the measured
    /// call that it executes.
    #[inline(always)]
    pub fn longest_closed(&self, segment: &Segment) -> (u64, Option<Call>) {
        if segment.call != 0 {
            return self.sections.longest_closed(segment.call, segment.measured());
        }
        (if segment.work_left == 0 { 0 } else { self.longest_closed_of_mode(segment) }, None)
    }

    #[inline(never)]
    fn longest_closed_of_mode(&self, segment: &Segment) -> u64 {
        match segment.mode {
            Mode::Kernel | Mode::Locked if self.preempts(segment.mode) => 0,
            Mode::Kernel if self.has_points(segment) => {
                let before = if segment.work_left > segment.tail { segment.every_before } else { 0 };
                (u64::from(segment.every.max(before)) << WORK_SHIFT).min(segment.work_left)
            }
            Mode::Kernel | Mode::Locked | Mode::PreemptOff | Mode::IrqOff => segment.work_left,
            _ => 0,
        }
    }

    /// Whether a request seen by the kernel's entry code ends the mode at once.
    #[inline(always)]
    pub fn preempts(&self, mode: Mode) -> bool {
        self.preempted >> mode as u16 & 1 != 0
    }

    /// Whether the segment has check points that honour a request.
    #[inline(always)]
    pub fn has_points(&self, segment: &Segment) -> bool {
        segment.every != 0 && if segment.might_sleep { self.might_sleep } else { self.cond_resched }
    }

    /// What the task is in, as events name it.
    pub fn section(&self, segment: &Segment) -> Section {
        let critical = self.preempts(Mode::Kernel)
            && segment.mode == Mode::Kernel
            && segment.call != 0
            && self.until_open(segment) != Some(0);
        if critical {
            Section::Spinlock
        } else {
            segment.mode.section()
        }
    }

    #[inline(always)]
    fn leaves(&self, cpu: &PerCpu, segment: &Segment) -> bool {
        cpu.resched_seen && self.preempts(segment.mode)
    }

    /// The same of a call with points or measured sections that has a full request.
    #[inline(never)]
    fn within_call(&self, cpu: &PerCpu, segment: &Segment) -> Option<u64> {
        let preemptible = self.preempts(Mode::Kernel);
        if preemptible && !cpu.resched_seen {
            return None;
        }
        if segment.call != 0 {
            return self.until_open(segment);
        }
        if preemptible {
            return Some(0);
        }
        self.has_points(segment).then(|| segment.until_point())
    }

    /// The work until a call with measured sections gets to a part in which a request is honoured; `None`: at its end.
    fn until_open(&self, segment: &Segment) -> Option<u64> {
        let (total, left) = (segment.measured(), segment.work_left);
        if segment.every == 0 {
            return self.sections.until_open(segment.call, total, left);
        }
        // Batches: what precedes the first is open, and so is the end of each.
        if left > segment.tail {
            return Some(0);
        }
        let of_batch = (left.max(1) - 1) % total + 1;
        Some(self.sections.until_open(segment.call, total, of_batch).unwrap_or(of_batch))
    }
}
