//! A task's position in its program.

use std::collections::VecDeque;

use schedlab_model::{Nanos, Stream};
use schedlab_workload::{Label, REGISTERS};

use super::lines::Shared;
use super::objects::Futex;
use crate::kernel::Handle;
use crate::machine::{Mode, Segment, WORK_SHIFT};

/// Longest step, 13 days: beyond any run, and far from overflow as work or as a time.
pub const AMOUNT_MAX: Nanos = 1 << 50;

/// The `phase` of a munmap that has held `mmap_lock` for writing and has not begun with the pages.
pub const UNMAP_PAGES_NEXT: u8 = 1;

/// The `phase` of a munmap that flushes the TLB of its own CPU.
pub const UNMAP_FLUSHED: u8 = 2;

/// What happens when the current segment ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The operation at `pc` begins.
    Fetch,
    /// The operation at `pc` takes effect.
    Effect,
}

/// What an operation needs.
pub enum Next {
    /// No time: on to the next operation.
    Done,
    /// No time: on to this label.
    Goto(Label),
    /// A segment of work, after which the operation takes effect.
    Work(Mode, Nanos),
    /// The same of a call with measured sections, as the kernel numbers them (0: none), in kernel mode.
    Call(u8, Nanos),
    /// The same of work whose last `tail` consists of batches that each have the sections of that call.
    Batches(u8, Nanos),
    /// The task is leaving the CPU (blocks, exits, migrates), or its segment is set up already.
    Stop,
}

/// A task's place in its program, and what belongs to it alone.
#[derive(Clone, Debug)]
pub struct Position {
    pub workload: u16,
    /// Index of its program among those of all workloads.
    pub program: u32,
    pub pc: Label,
    pub step: Step,
    /// User-mode work of steps too short for a segment of their own; joins the next segment.
    pub carry: u64,
    /// Bytes left of the channel call in progress.
    pub io_left: u32,
    /// How far an exec has come (not yet balanced, balanced, loaded), a FUTEX_WAIT (queued or not), or a munmap.
    pub phase: u8,
    /// The operation blocked and has been woken since it began.
    pub resumed: bool,
    pub registers: [i64; REGISTERS],
    pub own: Futex,
    pub stack: Vec<Handle>,
    pub mail: VecDeque<i64>,
    /// Draws of its program.
    pub stream: Stream,
    /// Identity of its streams, from which its children's are derived.
    pub key: u64,
    pub forked: u32,
    /// Jumps and beginnings of work without length since time last passed for it.
    pub idle_steps: u32,
    /// Work spent spinning for the lock at hand.
    pub spun: u64,
    /// It waits for the `mmap_lock` of its process, for writing or not, since this time.
    pub mmap_wait: Option<(bool, Nanos)>,
    /// Its last mmap has no page yet.
    pub fresh_mapping: bool,
    /// The length of its next sleep for that lock.
    pub sleep: Nanos,
    /// The per-CPU lock it holds: the object and the CPU.
    pub cpu_lock: Option<(u32, usize)>,
    /// The lines and the lock of its own futex word, where they cost something.
    pub shared: Option<Box<Shared>>,
}

impl Position {
    /// The start of a program.
    pub fn new(workload: u16, program: u32, entry: Label, key: u64, stream: Stream) -> Self {
        Position {
            workload,
            program,
            pc: entry,
            step: Step::Fetch,
            carry: 0,
            io_left: 0,
            phase: 0,
            resumed: false,
            registers: [0; REGISTERS],
            own: Futex::default(),
            stack: Vec::new(),
            mail: VecDeque::new(),
            stream,
            key,
            forked: 0,
            idle_steps: 0,
            spun: 0,
            mmap_wait: None,
            fresh_mapping: false,
            sleep: 0,
            cpu_lock: None,
            shared: None,
        }
    }

    /// A register; a number beyond the last wraps round, so that no program can panic the simulator.
    #[inline]
    pub fn register(&mut self, register: u8) -> &mut i64 {
        &mut self.registers[register as usize % REGISTERS]
    }

    /// On to the next operation; false, as [`Position::follow`].
    #[inline(always)]
    pub fn advance(&mut self) -> bool {
        self.pc += 1;
        self.step = Step::Fetch;
        false
    }

    /// On to the label. A loop in which no time passes has a jump, or an operation that begins again: both are counted.
    #[inline(always)]
    pub fn jump(&mut self, to: Label) -> bool {
        self.pc = to;
        self.step = Step::Fetch;
        self.idle_steps += 1;
        false
    }

    /// A segment of work begins, after which the operation takes effect; whether it takes any time.
    #[inline(always)]
    pub fn work(&mut self, segment: &mut Segment, mode: Mode, amount: Nanos) -> bool {
        segment.work_left = (amount.min(AMOUNT_MAX) << WORK_SHIFT) + std::mem::take(&mut self.carry);
        segment.mode = mode;
        segment.call = 0;
        self.step = Step::Effect;
        let takes = segment.work_left > 0;
        self.idle_steps = (self.idle_steps + 1) * u32::from(!takes);
        takes
    }

    /// A call with measured sections begins; whether it takes any time.
    pub fn call(&mut self, segment: &mut Segment, call: u8, amount: Nanos) -> bool {
        let takes = self.work(segment, Mode::Kernel, amount);
        if call != 0 {
            (segment.call, segment.tail) = (call, amount.min(AMOUNT_MAX) << WORK_SHIFT);
        }
        takes
    }

    /// Does what an operation needs; whether the interpreter has to stop.
    #[inline]
    pub fn follow(&mut self, segment: &mut Segment, next: Next) -> bool {
        match next {
            Next::Done => self.advance(),
            Next::Goto(label) => self.jump(label),
            Next::Work(mode, amount) => self.work(segment, mode, amount),
            Next::Call(call, amount) => self.call(segment, call, amount),
            Next::Batches(call, amount) => {
                let takes = self.work(segment, Mode::Kernel, amount);
                segment.call = call;
                takes
            }
            Next::Stop => true,
        }
    }
}
