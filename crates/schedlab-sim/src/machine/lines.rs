//! Cache lines: which CPU has the latest copy of a structure, and the cost of fetching it from there.

use schedlab_model::{CpuId, Nanos};

use super::segment::WORK_SHIFT;
use super::state::Machine;
use super::touched;

/// The lines of one structure that calls touch together.
///
/// The state consists of the last writer, the last reader since then, and all readers since then, folded into 64 bits.
/// CPUs that share a bit are not distinguished: on machines with more than 64 CPUs a read may be free that costs a
/// transfer.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    writer: u16,
    reader: u16,
    readers: u64,
}

/// No CPU.
const NONE: u16 = u16::MAX;

impl Default for Lines {
    fn default() -> Self {
        Lines { writer: NONE, reader: NONE, readers: 0 }
    }
}

impl Lines {
    /// A write by `cpu`: the distance of the CPU that has to give its copy up, of the farther one if both a writer and
    /// a reader have to.
    #[inline]
    fn write(&mut self, cpu: CpuId, far: impl Fn(u16) -> usize) -> Option<usize> {
        let this = cpu.0 as u16;
        if self.writer == this && self.reader == NONE {
            return None;
        }
        let holders = [self.writer, self.reader];
        *self = Lines { writer: this, reader: NONE, readers: 0 };
        holders.into_iter().filter(|holder| *holder != NONE && *holder != this).map(far).max()
    }

    /// A read by `cpu`: the distance of the nearest CPU that has a copy, unless this one has it.
    #[inline]
    fn read(&mut self, cpu: CpuId, far: impl Fn(u16) -> usize) -> Option<usize> {
        let (this, bit) = (cpu.0 as u16, 1 << (cpu.0 % 64));
        if self.writer == this || self.readers & bit != 0 {
            return None;
        }
        let holders = [self.writer, self.reader];
        self.reader = this;
        self.readers |= bit;
        holders.into_iter().filter(|holder| *holder != NONE).map(far).min()
    }
}

impl Machine {
    /// A CPU writes lines of a structure, which arrive in `steps` steps; returns the time that it waits for them, in
    /// ns.
    #[inline]
    pub fn write_lines(&mut self, cpu: CpuId, lines: &mut Lines, steps: u32) -> Nanos {
        if !self.has_lines {
            return 0;
        }
        let distance = lines.write(cpu, |holder| self.distance(cpu, holder));
        self.transfer(cpu, distance, steps)
    }

    /// A CPU reads lines of a structure, which arrive in `steps` steps; returns the time that it waits for them, in ns.
    #[inline]
    pub fn read_lines(&mut self, cpu: CpuId, lines: &mut Lines, steps: u32) -> Nanos {
        if !self.has_lines {
            return 0;
        }
        let distance = lines.read(cpu, |holder| self.distance(cpu, holder));
        self.transfer(cpu, distance, steps)
    }

    /// A CPU reads lines that another CPU has written once and no CPU has read since, in `steps` steps.
    #[inline]
    pub fn read_fresh_lines(&mut self, cpu: CpuId, writer: CpuId, steps: u32) -> Nanos {
        if !self.has_lines {
            return 0;
        }
        let distance = (writer != cpu).then(|| self.distance(cpu, writer.0 as u16));
        self.transfer(cpu, distance, steps)
    }

    /// By how much a CPU that polls a lock slows the holder: each change of the lock's line that the holder still makes
    /// costs a transfer, as the polling CPU has a copy. The typical time, so that a lock that is free draws nothing.
    #[inline]
    pub fn slows_holder(&self, cpu: CpuId, lines: &Lines) -> Nanos {
        match lines.writer {
            NONE => 0,
            writer => self.line_time(cpu, CpuId(u32::from(writer))) * u64::from(touched::POLLED),
        }
    }

    /// The typical time of a transfer between two CPUs.
    #[inline]
    pub fn line_time(&self, cpu: CpuId, other: CpuId) -> Nanos {
        self.line_times[self.topology.distance(cpu, other) as usize]
    }

    /// Charges time that the CPU waits for something outside of it: threads of the core that are busy do not prolong
    /// it.
    #[inline]
    pub fn charge_stall(&mut self, cpu: CpuId, wall: Nanos) {
        if wall > 0 {
            self.cpus[cpu.index()].pending += self.stall(cpu, wall);
        }
    }

    /// That time as work of the CPU. At rate 0, where only the start of a task incurs anything, it is the time itself,
    /// as `sending_delay` takes it to be.
    #[inline]
    pub fn stall(&self, cpu: CpuId, wall: Nanos) -> Nanos {
        match self.cpus[cpu.index()].rate {
            0 => wall,
            rate => (wall * u64::from(rate)) >> WORK_SHIFT,
        }
    }

    fn distance(&self, cpu: CpuId, holder: u16) -> usize {
        self.topology.distance(cpu, CpuId(u32::from(holder))) as usize
    }

    /// Lines of a step arrive together, in the time of one transfer.
    fn transfer(&mut self, cpu: CpuId, distance: Option<usize>, steps: u32) -> Nanos {
        let Some(distance) = distance else { return 0 };
        self.costs.line_transfer[distance].draw(&mut self.cpus[cpu.index()].dice) * u64::from(steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CPUs at a distance of the difference of their numbers.
    fn from(cpu: u32) -> impl Fn(u16) -> usize {
        move |holder| usize::from(holder).abs_diff(cpu as usize)
    }

    #[test]
    fn repeated_touches_are_free() {
        let mut lines = Lines::default();
        assert_eq!(lines.write(CpuId(3), from(3)), None, "nobody has touched it before");
        assert_eq!(lines.write(CpuId(3), from(3)), None);
        assert_eq!(lines.read(CpuId(3), from(3)), None);
        assert_eq!(lines.read(CpuId(5), from(5)), Some(2));
        assert_eq!(lines.read(CpuId(5), from(5)), None);
    }

    #[test]
    fn a_read_comes_from_the_nearest_copy_and_a_write_waits_for_the_farthest() {
        let mut lines = Lines::default();
        lines.write(CpuId(0), from(0));
        lines.read(CpuId(9), from(9));
        assert_eq!(lines.read(CpuId(8), from(8)), Some(1), "from CPU 9");
        assert_eq!(lines.write(CpuId(1), from(1)), Some(7), "from CPU 8");
        assert_eq!(lines.read(CpuId(9), from(9)), Some(8), "the write took every copy away");
    }
}
