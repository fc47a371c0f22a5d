//! A segment: what a CPU executes until the next point at which something has to be decided.

use schedlab_model::Nanos;
use schedlab_trace::Section;

/// Work is kept in ns on a CPU of rate 1, shifted left by this, so that rates in 1/1024 divide nothing.
pub const WORK_SHIFT: u32 = 10;
/// Work of a ns on a CPU of rate 1.
pub const NS: u64 = 1 << WORK_SHIFT;

/// What a segment is. The order matters: `is_plain` is the range from `User` to `IrqOff`, and `is_kernel` is everything
/// from `Kernel` on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub enum Mode {
    /// User mode until the wall clock reaches `Segment::until`.
    Wall,
    /// User mode until another task releases the lock that this one spins on.
    Spin,
    /// A vCPU's thread in the guest, until the guest leaves it or the host takes the CPU.
    Guest,
    /// A vCPU's thread polling for the end of a halt, until the wall clock reaches `Segment::until`.
    Poll,
    /// Work in user mode.
    User,
    /// Work in user mode that waits for memory, whose bandwidth CPUs share.
    Stream,
    /// Work in kernel mode that may be preempted.
    Kernel,
    /// Work in kernel mode under a spinlock.
    Locked,
    /// Work in kernel mode with preemption disabled.
    PreemptOff,
    /// Work in kernel mode with interrupts disabled.
    IrqOff,
    /// Kernel mode, until the task gets the spinlock of the kernel for which it spins with preemption disabled.
    LockSpin,
    /// A guest's CPU that halts until it is kicked, because the spinlock that it waits for has been held for long
    /// (`pv_wait`).
    PvWait,
}

impl Mode {
    /// As events name it.
    pub fn section(self) -> Section {
        match self {
            Mode::User | Mode::Stream | Mode::Wall | Mode::Spin | Mode::Guest => Section::User,
            Mode::Poll | Mode::Kernel => Section::Kernel,
            Mode::Locked | Mode::LockSpin | Mode::PvWait => Section::Spinlock,
            Mode::PreemptOff => Section::PreemptOff,
            Mode::IrqOff => Section::IrqOff,
        }
    }

    /// Whether the task waits for a lock that its holder hands over, or that it has to look at again.
    #[inline(always)]
    pub fn polls_lock(self) -> bool {
        matches!(self, Mode::Spin | Mode::LockSpin | Mode::PvWait)
    }

    /// Whether it ends when its work is done, and for no other reason.
    #[inline(always)]
    pub fn is_plain(self) -> bool {
        (Mode::User..=Mode::IrqOff).contains(&self)
    }

    /// Whether it is kernel mode.
    #[inline(always)]
    pub fn is_kernel(self) -> bool {
        self >= Mode::Kernel
    }
}

/// What is left of a segment. A task that is not on a CPU keeps its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Overhead to be spent before the work continues.
    pub cost_left: u64,
    /// Work left.
    pub work_left: u64,
    /// When it ends, in [`Mode::Wall`] and [`Mode::Poll`].
    pub until: Nanos,
    /// What it is.
    pub mode: Mode,
    /// The call of kernel mode whose measured sections it executes, as the kernel numbers them; 0: none.
    pub call: u8,
    /// Whether its points are might_sleep(), not cond_resched().
    pub might_sleep: bool,
    /// Work between two points where kernel code offers to reschedule, in ns; the last one is at its end. 0: it has
    /// none. With a `call`, the work of each batch of the tail, which has the sections of that call.
    pub every: u32,
    /// Before the last `tail` of the work, the same of that part; 0: all of it is the tail.
    pub every_before: u32,
    /// Work that has points every `every` ns, at the end of the segment; of a `call` without batches, all of its work.
    pub tail: u64,
}

impl Segment {
    /// Nothing to do, in user mode.
    pub const EMPTY: Segment = Segment {
        cost_left: 0,
        work_left: 0,
        until: 0,
        mode: Mode::User,
        call: 0,
        might_sleep: false,
        every: 0,
        every_before: 0,
        tail: 0,
    };

    /// The work of its `call`, or of each batch.
    #[inline]
    pub fn measured(&self) -> u64 {
        if self.every == 0 {
            self.tail
        } else {
            u64::from(self.every) << WORK_SHIFT
        }
    }

    /// Whether nothing is left but what other tasks decide.
    #[inline(always)]
    pub fn is_done(&self, now: Nanos) -> bool {
        self.cost_left == 0 && if self.mode.is_plain() { self.work_left == 0 } else { self.waits_no_longer(now) }
    }

    /// The same of a segment that does not end with its work.
    #[inline(never)]
    fn waits_no_longer(&self, now: Nanos) -> bool {
        match self.mode {
            Mode::Wall | Mode::Poll => now >= self.until,
            // It tests its lock.
            Mode::LockSpin | Mode::PvWait => true,
            _ => false,
        }
    }

    /// Work until the next point, 0 at one. Times are whole ns, so on a slower thread a point is passed by the work of
    /// less than one.
    #[inline]
    pub fn until_point(&self) -> u64 {
        let before = self.every_before != 0 && self.work_left > self.tail;
        let (left, every) =
            if before { (self.work_left - self.tail, self.every_before) } else { (self.work_left, self.every) };
        let every = u64::from(every.max(1)) << WORK_SHIFT;
        let until = left % every;
        if every - until < NS {
            return 0;
        }
        until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_that_end_with_their_work_and_modes_of_the_kernel() {
        let modes = [
            (Mode::Wall, (false, false)),
            (Mode::Spin, (false, false)),
            (Mode::Guest, (false, false)),
            (Mode::Poll, (false, false)),
            (Mode::User, (true, false)),
            (Mode::Stream, (true, false)),
            (Mode::Kernel, (true, true)),
            (Mode::Locked, (true, true)),
            (Mode::PreemptOff, (true, true)),
            (Mode::IrqOff, (true, true)),
            (Mode::LockSpin, (false, true)),
            (Mode::PvWait, (false, true)),
        ];
        for (mode, wanted) in modes {
            assert_eq!((mode.is_plain(), mode.is_kernel()), wanted, "{mode:?}");
        }
    }

    #[test]
    fn points_are_counted_from_the_end_of_each_part() {
        let ns = |work: u64| work << WORK_SHIFT;
        let segment = |left, every_before| Segment {
            work_left: ns(left),
            mode: Mode::Kernel,
            every: 30,
            every_before,
            tail: ns(70),
            ..Segment::EMPTY
        };
        // Work left, distance of points before the last 70 ns, work until the next point.
        let cases =
            [(100, 10, 0), (95, 10, 5), (71, 10, 1), (70, 10, 10), (60, 10, 0), (29, 10, 29), (95, 0, 5), (71, 0, 11)];
        for (left, every_before, until) in cases {
            assert_eq!(segment(left, every_before).until_point(), ns(until), "{left} {every_before}");
        }
    }
}
