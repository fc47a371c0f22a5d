//! Traces as Perfetto's own recorders write them: CPUs apart, compact, compressed; and damaged ones.

use std::io::{BufReader, Cursor, Write};
use std::path::Path;

use super::message::*;
use super::PerfettoReader;
use crate::record::TraceReader;
use crate::TraceError;

fn read(bytes: &[u8]) -> Result<(Vec<String>, u64), TraceError> {
    let input = BufReader::new(Cursor::new(bytes.to_vec()));
    let mut reader = PerfettoReader::new(Box::new(input), Path::new("some.pftrace"))?;
    let mut lines = Vec::new();
    while let Some(record) = reader.next_record()? {
        lines.extend(record.event().map(|event| format!("{event} ({})", record.pid)));
    }
    Ok((lines, reader.lost()))
}

fn packet(bundle: FtraceEventBundle) -> Vec<u8> {
    let packet = TracePacket { ftrace_events: Some(bundle), ..TracePacket::default() };
    let mut bytes = Vec::new();
    prost::encoding::message::encode(1, &packet, &mut bytes);
    bytes
}

fn wakings(cpu: u32, times: &[u64]) -> FtraceEventBundle {
    let waking = |time: &u64| FtraceEvent {
        timestamp: Some(*time),
        sched_waking: Some(SchedWakeup { pid: Some(7), prio: Some(120), target_cpu: Some(0), comm: None }),
        ..FtraceEvent::default()
    };
    FtraceEventBundle { cpu: Some(cpu), event: times.iter().map(waking).collect(), ..FtraceEventBundle::default() }
}

fn compact() -> FtraceEventBundle {
    let compact_sched = CompactSched {
        intern_table: vec!["a".into(), "b".into()],
        switch_timestamp: vec![100, 10, 10],
        switch_prev_state: vec![0, 1, 0x100],
        switch_next_pid: vec![1, 2, 1],
        switch_next_prio: vec![120, 110, 120],
        switch_next_comm_index: vec![0, 1, 0],
        waking_timestamp: vec![105],
        waking_pid: vec![2],
        waking_target_cpu: vec![1],
        waking_prio: vec![110],
        waking_comm_index: vec![1],
    };
    FtraceEventBundle { cpu: Some(1), compact_sched: Some(compact_sched), ..FtraceEventBundle::default() }
}

fn times(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| line[7..17].trim_start_matches('0').to_owned()).collect()
}

#[test]
fn bundles_are_merged_by_time_and_ties_by_place() {
    let bytes =
        [packet(wakings(1, &[30, 40, 90])), packet(wakings(0, &[10, 40, 50])), packet(wakings(1, &[91]))].concat();
    let (lines, _) = read(&bytes).unwrap();
    assert_eq!(times(&lines), ["10 [000]", "30 [001]", "40 [001]", "40 [000]", "50 [000]", "90 [001]", "91 [001]"]);
}

#[test]
fn compact_switches_get_their_prev_from_the_switch_before() {
    let (lines, lost) = read(&packet(compact())).unwrap();
    let want = [
        "0.000000105 [001] sched_waking: pid=2 prio=110 target_cpu=001 (0)",
        "0.000000110 [001] sched_switch: prev_pid=1 prev_prio=120 prev_state=S ==> next_pid=2 next_prio=110 (1)",
        "0.000000120 [001] sched_switch: prev_pid=2 prev_prio=110 prev_state=R ==> next_pid=1 next_prio=120 (2)",
    ];
    assert_eq!(lines, want);
    assert_eq!(lost, 1, "the first switch of the CPU does not say what ran before");
}

#[test]
fn compressed_packets_are_unpacked() {
    let content = [packet(wakings(0, &[10, 30])), packet(wakings(1, &[20])), packet(compact())].concat();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    zlib.write_all(&content).unwrap();
    let outer = TracePacket { compressed_packets: Some(zlib.finish().unwrap()), ..TracePacket::default() };
    let mut bytes = Vec::new();
    prost::encoding::message::encode(1, &outer, &mut bytes);
    assert_eq!(read(&bytes).unwrap(), read(&content).unwrap());
}

#[test]
fn damage_is_named_with_its_offset() {
    let good = packet(wakings(0, &[10]));
    let at = good.len();
    let mut unequal = compact();
    unequal.compact_sched.as_mut().unwrap().switch_next_pid.pop();
    let mut no_comm = compact();
    no_comm.compact_sched.as_mut().unwrap().intern_table.pop();
    let cases = [
        (b"\x12\x00".to_vec(), "expected a packet, found byte 0x12"),
        (b"\x0a".to_vec(), "the file ends inside a packet's length"),
        (b"\x0a\x7f".to_vec(), "the file ends inside a packet"),
        (b"\x0a\xff\xff\xff\xff\x7f".to_vec(), "a packet of 34359738367 bytes"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01".to_vec(), "a packet's length of more than 9 bytes"),
        (packet(wakings(5000, &[1])), "a CPU number that no kernel has"),
        (packet(unequal), "compact events with columns of 3 and 2 values"),
        (packet(no_comm), "no interned comm 1"),
    ];
    for (bad, want) in cases {
        let error = read(&[good.clone(), bad].concat()).unwrap_err().to_string();
        assert!(error.starts_with("some.pftrace: byte ") && error.ends_with(want), "{error} instead of {want}");
        let offset: usize = error["some.pftrace: byte ".len()..].split(':').next().unwrap().parse().unwrap();
        assert!((at..at + 3).contains(&offset), "{error}: the damage is at {at}");
    }
}
