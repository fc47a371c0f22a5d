//! Steps that move bytes between CPU and memory: a copy within the task's own buffer, which is as large as its largest
//! step.
//!
//! Half of the bytes are read and half are written, whatever the mix of the program is. The buffer stays in the cache
//! if it fits there, as the program's arrays would.

use schedlab_workload::{Op, Program};

use crate::error::{AgentError, Result};
use crate::memory::available_kib;

/// Refuses steps for which this machine has too little memory.
pub fn check<'a>(programs: impl Iterator<Item = &'a Program>) -> Result<()> {
    let bytes_of = |op: &Op| if let Op::Stream { bytes } = op { u64::from(*bytes) } else { 0 };
    let largest = programs.flat_map(|program| &program.ops).map(bytes_of).max().unwrap_or(0);
    if largest >> 10 > available_kib() / 4 {
        let what = format!("a step moves {} MB, more than a quarter of the available memory", largest / 1_000_000);
        return Err(AgentError::cannot(what, "memory = 4096 in [arm.vm], or smaller arrays"));
    }
    Ok(())
}

/// Moves this many bytes, half of them in each direction.
pub fn stream(buffer: &mut Vec<u8>, bytes: u32) {
    let half = bytes.div_ceil(2) as usize;
    if buffer.len() < 2 * half {
        // Written by the task itself, so that the pages are on its node.
        buffer.resize(2 * half, 1);
    }
    let (from, to) = buffer.split_at_mut(half);
    to[..half].copy_from_slice(from);
    std::hint::black_box(buffer);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_arrives_and_the_buffer_grows_once() {
        let mut buffer = Vec::new();
        for bytes in [1, 5, 4096, 100] {
            stream(&mut buffer, bytes);
        }
        assert!(buffer.len() == 4096 && buffer.iter().all(|byte| *byte == 1));
    }

    #[test]
    fn steps_beyond_the_memory_are_refused() {
        let program = |bytes| Program { ops: vec![Op::Stream { bytes }], ..Program::default() };
        assert!(check([program(4096)].iter()).is_ok());
        let all: Vec<Program> = (0..3).map(|_| program(u32::MAX)).collect();
        assert_eq!(check(all.iter()).is_err(), available_kib() / 4 < u64::from(u32::MAX) >> 10);
    }
}
