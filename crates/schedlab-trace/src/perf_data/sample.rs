//! One sample: when, where, and the raw tracepoint record in it.

use schedlab_model::Nanos;

use super::attr::{sample, Layout};
use crate::tracepoint::{Cursor, Endian};

/// The fields of a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample<'a> {
    pub time: Nanos,
    pub cpu: u32,
    pub raw: &'a [u8],
}

/// `read_format` bits.
const READ_ENABLED: u64 = 1;
const READ_RUNNING: u64 = 1 << 1;
const READ_ID: u64 = 1 << 2;
const READ_GROUP: u64 = 1 << 3;
const READ_LOST: u64 = 1 << 4;

impl<'a> Sample<'a> {
    /// Reads a sample's body. `Ok(None)` for one without a tracepoint record; the error says what is missing.
    pub fn parse(body: &'a [u8], layout: Layout, endian: Endian) -> Result<Option<Sample<'a>>, &'static str> {
        let has = |bit: u64| layout.sample_type & bit != 0;
        if !has(sample::RAW) {
            return Ok(None);
        }
        if !has(sample::TIME) || !has(sample::CPU) {
            return Err("samples without time or CPU");
        }
        fields(body, layout, endian).map(Some).ok_or("a sample that ends inside a field")
    }
}

fn fields(body: &[u8], layout: Layout, endian: Endian) -> Option<Sample<'_>> {
    let has = |bit: u64| layout.sample_type & bit != 0;
    let mut cursor = Cursor::new(body, endian);
    for bit in [sample::IDENTIFIER, sample::IP, sample::TID] {
        cursor.take(if has(bit) { 8 } else { 0 })?;
    }
    let time = cursor.u64()?;
    for bit in [sample::ADDR, sample::ID, sample::STREAM_ID] {
        cursor.take(if has(bit) { 8 } else { 0 })?;
    }
    let cpu = cursor.u32()?;
    cursor.take(4)?;
    cursor.take(if has(sample::PERIOD) { 8 } else { 0 })?;
    if has(sample::READ) {
        skip_read(&mut cursor, layout.read_format)?;
    }
    if has(sample::CALLCHAIN) {
        let count = cursor.u64()?;
        cursor.take(count.checked_mul(8)?)?;
    }
    let size = cursor.u32()?;
    Some(Sample { time, cpu, raw: cursor.take(u64::from(size))? })
}

/// When and where a record that is no sample was made, as its end says.
pub fn other(body: &[u8], layout: Layout, endian: Endian) -> (Option<Nanos>, Option<u32>) {
    if !layout.sample_id_all {
        return (None, None);
    }
    let (mut end, mut time, mut cpu) = (body.len(), None, None);
    let fields = [sample::IDENTIFIER, sample::CPU, sample::STREAM_ID, sample::ID, sample::TIME, sample::TID];
    for bit in fields.into_iter().filter(|bit| layout.sample_type & bit != 0) {
        let Some(start) = end.checked_sub(8) else { break };
        match bit {
            sample::CPU => cpu = Some(endian.number(&body[start..start + 4]) as u32),
            sample::TIME => time = Some(endian.number(&body[start..end])),
            _ => {}
        }
        end = start;
    }
    (time, cpu)
}

/// The counter values of PERF_SAMPLE_READ.
fn skip_read(cursor: &mut Cursor<'_>, format: u64) -> Option<()> {
    let count = |bits: &[u64]| bits.iter().filter(|bit| format & **bit != 0).count() as u64;
    if format & READ_GROUP != 0 {
        let members = cursor.u64()?;
        cursor.take(8 * count(&[READ_ENABLED, READ_RUNNING]))?;
        cursor.take(members.checked_mul(8 * (1 + count(&[READ_ID, READ_LOST])))?)?;
    } else {
        cursor.take(8 * (1 + count(&[READ_ENABLED, READ_RUNNING, READ_ID, READ_LOST])))?;
    }
    Some(())
}
