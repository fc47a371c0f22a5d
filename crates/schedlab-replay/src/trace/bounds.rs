//! Values that no kernel prints are not read, so that nothing that is computed of them overflows.

use schedlab_model::Nanos;
use schedlab_trace::Fields;

/// More than the weights of 2^22 tasks, as many as there can be pids, of nice -20.
const LARGEST_LOAD: u64 = 1 << 40;

/// More than 100 years.
const LATEST: Nanos = 1 << 62;

/// More changes of the wakee than a task makes in a second, after which they are halved.
const MOST_FLIPS: u32 = 1 << 24;

/// `wakee_flips`.
pub(super) fn flips(fields: Fields<'_>, name: &str) -> Option<u32> {
    fields.number(name).filter(|flips| *flips <= MOST_FLIPS)
}

/// More than a minute; `sched_setattr` allows a tenth of a second.
const LONGEST_SLICE: Nanos = 1 << 36;

/// A slice.
pub(super) fn slice(fields: Fields<'_>, name: &str) -> Option<Nanos> {
    fields.number(name).filter(|slice| *slice <= LONGEST_SLICE)
}

/// More than the utilisation of a CPU to which 60 tasks have moved at once; the sum that belongs to it fits 32 bits.
const LARGEST_UTIL: u32 = 1 << 16;

/// A utilisation, measured or estimated.
pub(super) fn util(fields: Fields<'_>, name: &str) -> Option<u32> {
    fields.number(name).filter(|util| *util <= LARGEST_UTIL)
}

/// A load average, a weight or a capacity.
pub(super) fn load(fields: Fields<'_>, name: &str) -> Option<u64> {
    fields.number(name).filter(|load| *load <= LARGEST_LOAD)
}

/// A time of the kernel's clocks, or a tick count.
pub(super) fn time(fields: Fields<'_>, name: &str) -> Option<Nanos> {
    fields.number(name).filter(|time| *time <= LATEST)
}
