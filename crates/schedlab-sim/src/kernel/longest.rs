//! The longest sections of kernel code of a CPU in which a task could not be preempted, of the current second.

use schedlab_model::{Nanos, SEC};
use schedlab_trace::{Call, Section};

/// Their work by kind: those of each measured call, and by cause those of all other kernel code.
#[derive(Clone, Copy, Default, Debug)]
pub struct Longest {
    work: [u64; KINDS],
    /// The second after this one.
    until: Nanos,
    /// Work of the call at hand since its last check point.
    pub unbroken: u64,
}

const KINDS: usize = Call::ALL.len() + Section::ALL.len();

impl Longest {
    /// Whether a section of this work is longer than all others of its kind, which it then is for the next ones.
    #[inline(always)]
    pub fn record(&mut self, call: Option<Call>, section: Section, work: u64) -> bool {
        let longest = match call {
            Some(call) => &mut self.work[call as usize],
            None => &mut self.work[Call::ALL.len() + section as usize],
        };
        let longer = work > *longest;
        if longer {
            *longest = work;
        }
        longer
    }

    /// Another second may begin.
    #[inline(always)]
    pub fn forget(&mut self, now: Nanos) {
        if now >= self.until {
            *self = Longest { work: [0; KINDS], until: (now / SEC + 1) * SEC, unbroken: self.unbroken };
        }
    }
}
