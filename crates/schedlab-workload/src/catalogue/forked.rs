//! What a process that was forked pays for its memory beyond the fork and the exit of a small process.
//!
//! The costs of fork and exit of a machine are those of a minimal program (lat_proc of lmbench), whose own faults they
//! contain: 17.8 per fork, exit and wait, 11 of them in the child (a program that only forks, calls `_exit` and waits;
//! Debian 12, `perf stat` and `perf trace -F all`). A real program touches more pages: it runs more code, writes to
//! more data, and `exit` calls the destructors of its libraries.

use crate::build::Code;
use crate::{MemoryWork, Op, Reg};

use super::stress_ng_memory::PAGE_KIB;

/// Page faults, by what they do.
#[derive(Clone, Copy)]
pub(super) struct Faults {
    /// Maps a page that is in memory: code, data that is only read, and a page that its process alone has left.
    pub map: u64,
    /// Allocates a page and fills it: the copy of a page that parent and child share. It costs what a cleared page
    /// does.
    pub copy: u64,
}

impl Faults {
    /// The faults, counted down in `counter`.
    pub fn meet(self, code: &mut Code, counter: Reg) {
        for (times, work) in [(self.map, MemoryWork::Map), (self.copy, MemoryWork::Zero)] {
            if times > 0 {
                code.repeat(counter, times, |code| code.op(Op::Memory { work, kib: PAGE_KIB }));
            }
        }
    }
}
