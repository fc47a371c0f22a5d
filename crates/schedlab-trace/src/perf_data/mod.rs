//! `perf.data` as `perf sched record` writes it: attributes, samples with raw tracepoint records, feature sections.
//!
//! Read here and not by a library: the available ones allocate as much memory as the counts of a damaged file state.

mod attr;
mod head;
mod reader;
mod records;
mod sample;
mod unpack;
mod writer;

pub use reader::PerfDataReader;
pub use writer::PerfDataWriter;

/// The magic in the byte order of the recording machine.
pub const MAGIC: &[u8; 8] = b"PERFILE2";

/// Bytes of the file's head, and of that in pipe mode.
const HEAD_BYTES: u64 = 104;
const PIPE_HEAD_BYTES: u64 = 16;
/// Feature bits from here on are those of simpleperf.
const SIMPLEPERF_FEATURES: u32 = 128;

// PERF_RECORD_*, include/uapi/linux/perf_event.h and tools/lib/perf/include/perf/event.h.
const RECORD_LOST: u32 = 2;
const RECORD_COMM: u32 = 3;
const RECORD_SAMPLE: u32 = 9;
const RECORD_LOST_SAMPLES: u32 = 13;
const RECORD_HEADER_ATTR: u32 = 64;
const RECORD_TRACING_DATA: u32 = 66;
const RECORD_FINISHED_ROUND: u32 = 68;
const RECORD_AUXTRACE: u32 = 71;
const RECORD_HEADER_FEATURE: u32 = 80;
const RECORD_COMPRESSED: u32 = 81;
const RECORD_COMPRESSED2: u32 = 83;

// HEADER_*, tools/perf/util/header.h.
const FEATURE_TRACING_DATA: u32 = 1;
const FEATURE_OSRELEASE: u32 = 4;
const FEATURE_NRCPUS: u32 = 7;
const FEATURE_CMDLINE: u32 = 11;
const FEATURE_EVENT_DESC: u32 = 12;
