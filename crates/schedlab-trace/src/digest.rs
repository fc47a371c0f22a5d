//! A run's fingerprint: equal traces, equal digests, on every machine.

use xxhash_rust::xxh3::Xxh3;

use crate::{Event, Kind, Sink};

/// One encoded event: five words of eight bytes.
type Encoded = [[u8; 8]; 5];
/// Events hashed at once.
const BLOCK: usize = 256;

/// XXH3-128 over the encoded events. Names of tasks are not part of it.
pub struct Digest {
    hash: Xxh3,
    block: Box<[Encoded; BLOCK]>,
    /// Events in the block.
    filled: usize,
    /// Events hashed.
    hashed: u64,
}

impl Default for Digest {
    fn default() -> Self {
        Digest { hash: Xxh3::new(), block: Box::new([Encoded::default(); BLOCK]), filled: 0, hashed: 0 }
    }
}

impl Digest {
    /// How many events it contains.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.hashed + self.filled as u64
    }

    /// The digest: 32 hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> String {
        let mut hash = self.hash.clone();
        hash.update(self.block[..self.filled].as_flattened().as_flattened());
        format!("{:032x}", hash.digest128())
    }

    #[cold]
    #[inline(never)]
    fn flush(&mut self) {
        self.hash.update(self.block.as_flattened().as_flattened());
        self.hashed += BLOCK as u64;
        self.filled = 0;
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Digest({}, {} events)", self.hex(), self.events())
    }
}

impl Sink for Digest {
    #[inline(always)]
    fn event(&mut self, event: &Event) {
        if matches!(event.kind, Kind::Resched { .. } | Kind::NonPreemptible { .. }) {
            return;
        }
        self.block[self.filled % BLOCK] = encode(event);
        self.filled += 1;
        if self.filled == BLOCK {
            self.flush();
        }
    }
}

/// The fixed little-endian form of an event: time, cpu, kind (with the state or a presence flag in its second byte),
/// kernel, two 32-bit and two 64-bit fields in the order of the kind's declaration, unused ones 0.
#[inline(always)]
fn encode(event: &Event) -> Encoded {
    let (tag, small, [a, b], [x, y]) = fields(&event.kind);
    let pair = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
    let marks = u32::from(tag) | u32::from(small) << 8 | u32::from(event.kernel.0) << 16;
    [event.time, pair(event.cpu.0, marks), pair(a as u32, b as u32), x, y].map(u64::to_le_bytes)
}

/// `(tag, small field, 32-bit fields, 64-bit fields)`. Tags are part of every stored digest: never renumber one.
#[inline(always)]
fn fields(kind: &Kind) -> (u8, u8, [i32; 2], [u64; 2]) {
    let pair = |high: i32, low: i32| u64::from(high as u32) << 32 | u64::from(low as u32);
    match *kind {
        Kind::Switch { prev, prev_prio, prev_state, next, next_prio } => {
            (1, prev_state as u8, [prev, next], [pair(prev_prio, next_prio), 0])
        }
        Kind::Waking { pid, prio, target_cpu } => (2, 0, [pid, prio], [u64::from(target_cpu.0), 0]),
        Kind::Wakeup { pid, prio, target_cpu } => (3, 0, [pid, prio], [u64::from(target_cpu.0), 0]),
        Kind::WakeupNew { pid, prio, target_cpu } => (4, 0, [pid, prio], [u64::from(target_cpu.0), 0]),
        Kind::Migrate { pid, prio, orig_cpu, dest_cpu } => {
            (5, 0, [pid, prio], [u64::from(orig_cpu.0), u64::from(dest_cpu.0)])
        }
        Kind::Fork { parent, child } => (6, 0, [parent, child], [0, 0]),
        Kind::Exit { pid, prio } => (7, 0, [pid, prio], [0, 0]),
        Kind::Runtime { pid, runtime, vruntime } => {
            (8, u8::from(vruntime.is_some()), [pid, 0], [runtime, vruntime.unwrap_or(0)])
        }
        Kind::Sample { pid, metric, value } => (9, 0, [pid, i32::from(metric)], [value, 0]),
        Kind::Count { pid, metric, count } => (10, 0, [pid, i32::from(metric)], [count, 0]),
        Kind::Scan { pid, tested, cost, functions: _ } => (11, 0, [pid, tested as i32], [cost, 0]),
        Kind::Fault { pid, kib, major } => (12, u8::from(major), [pid, kib as i32], [0, 0]),
        Kind::Resched { pid, waited, section } => (13, section as u8, [pid, 0], [waited, 0]),
        Kind::NonPreemptible { pid, time, section, call } => {
            (17, section as u8, [pid, call.map_or(-1, |call| call as i32)], [time, 0])
        }
        Kind::Extension { pid, what } => (15, what as u8, [pid, 0], [0, 0]),
        Kind::LockWait { pid, lock, wait } => (14, lock as u8, [pid, 0], [wait, 0]),
        Kind::Numa { pid, faults, local, migrated, time } => {
            (18, 0, [pid, faults as i32], [u64::from(local) << 32 | u64::from(migrated), time])
        }
        Kind::Refill { pid, kib, time } => (16, 0, [pid, kib as i32], [time, 0]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::any_event;
    use proptest::prelude::*;
    use schedlab_model::{CpuId, KernelId};

    fn digest(events: &[Event]) -> String {
        let mut digest = Digest::default();
        events.iter().for_each(|event| digest.event(event));
        assert_eq!(digest.events(), events.len() as u64);
        digest.hex()
    }

    #[test]
    fn the_encoding_is_pinned() {
        let exit = Event::new(1, CpuId(2), Kind::Exit { pid: 3, prio: 120 });
        assert_eq!(digest(&[]), "99aa06d3014798d86001c324468d497f");
        assert_eq!(digest(&[exit]), "0d3e3506e6332257e2d195c3d3cfd97b");
        assert_eq!(digest(&vec![exit; 1000]), "96f74e6b2480fbde17bb59623c8da578");
    }

    proptest! {
        #[test]
        fn different_events_encode_differently(a in any_event(), b in any_event(), kernel in any::<u16>()) {
            prop_assert_eq!(a == b, encode(&a) == encode(&b));
            let of_kernel = Event { kernel: KernelId(kernel), ..a };
            prop_assert_eq!(a == of_kernel, encode(&a) == encode(&of_kernel));
        }
    }
}
