//! Probes whose fields have values that no kernel prints, CPUs that the machine does not have among them, are replayed
//! without a panic.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::path::Path;

use schedlab_model::{stream, Stream};
use schedlab_replay::{replay, row_of, Options};
use schedlab_trace::{Body, Fields, Header, Record, TraceError, TraceReader};

const RECORDS: u32 = 2_500;
const EXTREMES: [&str; 7] = ["0", "1", "-1", "77", "4294967295", "1099511627776", "18446744073709551615"];

/// The first records of a trace; some fields of its probes have other values.
struct Damaged {
    reader: Box<dyn TraceReader>,
    draw: Stream,
    text: String,
    left: u32,
}

impl TraceReader for Damaged {
    fn header(&self) -> &Header {
        self.reader.header()
    }

    fn next_record(&mut self) -> Result<Option<Record<'_>>, TraceError> {
        self.left = self.left.saturating_sub(1);
        let Some(record) = self.reader.next_record()?.filter(|_| self.left > 0) else { return Ok(None) };
        let Body::Other { name, fields } = record.body else { return Ok(Some(record)) };
        self.text = damage(fields, &mut self.draw);
        Ok(Some(Record { body: Body::Other { name, fields: Fields(&self.text) }, ..record }))
    }
}

/// One field in forty has another value.
fn damage(fields: Fields<'_>, draw: &mut Stream) -> String {
    let mut word = |(key, value)| match draw.below(40) {
        0 => format!("{key}={}", EXTREMES[draw.below(EXTREMES.len() as u64) as usize]),
        _ => format!("{key}={value}"),
    };
    fields.iter().map(&mut word).collect::<Vec<_>>().join(" ")
}

#[test]
fn no_value_of_a_probe_ends_the_program() {
    for name in [
        "5.7.14-2cpu-chaos-seed302",
        "5.15.148-4cpu-mix",
        "6.3.8-eevdf-rfc-4cpu-mix",
        "6.8.1-2cpu-hogs-autogroup",
        "6.1.192-4cpu-hogs-autogroup",
        "7.2.13-8cpu-threads",
        "7.3.4-4cpu-mix",
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("corpus/{name}.ftrace.gz"));
        for seed in 0..12 {
            let reader = schedlab_trace::open(&path).unwrap();
            let row = row_of(reader.header().kernel.as_deref().unwrap()).unwrap();
            let mut trace = Damaged { reader, draw: stream(seed, name), text: String::new(), left: RECORDS };
            let report = replay(&mut trace, row, &Options::default()).unwrap();
            assert!(!report.to_string().is_empty());
        }
    }
}
