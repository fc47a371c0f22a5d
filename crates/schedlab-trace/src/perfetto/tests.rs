//! Traces as Perfetto's own recorders write them: CPUs apart, compact, compressed; and damaged ones.

use std::io::{BufReader, Cursor, Write};
use std::path::Path;

use prost::Message;

use super::message::*;
use super::PerfettoReader;
use crate::record::TraceReader;
use crate::TraceError;

fn read(bytes: &[u8]) -> Result<(Vec<String>, u64, Vec<String>), TraceError> {
    let input = BufReader::new(Cursor::new(bytes.to_vec()));
    let mut reader = PerfettoReader::new(Box::new(input), Path::new("some.pftrace"))?;
    let (mut lines, mut lost) = (Vec::new(), 0);
    while let Some(record) = reader.next_record()? {
        lost += record.lost();
        lines.extend(record.event().map(|event| format!("{event} ({})", record.pid)));
    }
    Ok((lines, lost, reader.notes()))
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
    FtraceEventBundle {
        cpu: Some(cpu),
        event: times.iter().map(|time| waking(time).encode_to_vec()).collect(),
        ..FtraceEventBundle::default()
    }
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
    let (lines, _, _) = read(&bytes).unwrap();
    assert_eq!(times(&lines), ["10 [000]", "30 [001]", "40 [001]", "40 [000]", "50 [000]", "90 [001]", "91 [001]"]);
}

#[test]
fn compact_switches_get_their_prev_from_the_switch_before() {
    let (lines, lost, notes) = read(&packet(compact())).unwrap();
    let want = [
        "0.000000105 [001] sched_waking: pid=2 prio=110 target_cpu=001 (1)",
        "0.000000110 [001] sched_switch: prev_pid=1 prev_prio=120 prev_state=S ==> next_pid=2 next_prio=110 (1)",
        "0.000000120 [001] sched_switch: prev_pid=2 prev_prio=110 prev_state=R ==> next_pid=1 next_prio=120 (2)",
    ];
    assert_eq!(lines, want);
    assert_eq!(lost, 0, "nothing was lost");
    assert!(notes.len() == 1 && notes[0].starts_with("1 compact switches were left out"), "{notes:?}");
}

/// After a loss it is not known what runs.
#[test]
fn a_loss_is_one_record_and_ends_what_is_known() {
    let second = FtraceEventBundle { lost_events: Some(true), ..later(compact(), 1000) };
    let bytes = [packet(compact()), packet(second)].concat();
    let (lines, lost, notes) = read(&bytes).unwrap();
    assert_eq!((lines.len(), lost), (6, 1));
    assert!(notes[0].starts_with("2 compact switches were left out"), "{notes:?}");
}

/// A wakeup before the first switch has no known waker; a full event of the CPU names what runs.
#[test]
fn wakers_are_known_from_any_event_of_their_cpu() {
    let early = |mut bundle: FtraceEventBundle| {
        bundle.compact_sched.as_mut().unwrap().waking_timestamp[0] = 50;
        bundle
    };
    let (lines, _, notes) = read(&packet(early(compact()))).unwrap();
    assert!(lines[0].ends_with("(0)"), "{lines:?}");
    assert!(notes[1].starts_with("1 wakeups precede the first switch"), "{notes:?}");
    let idle = FtraceEvent { timestamp: Some(40), pid: Some(77), ..FtraceEvent::default() };
    let idle = FtraceEvent {
        sched_waking: wakings(0, &[1])
            .event
            .first()
            .and_then(|bytes| FtraceEvent::decode(&bytes[..]).ok())
            .and_then(|event| event.sched_waking),
        ..idle
    };
    let mut bundle = early(compact());
    bundle.event.push(idle.encode_to_vec());
    let (lines, _, notes) = read(&packet(bundle)).unwrap();
    assert!(lines[1].ends_with("(77)") && notes.len() == 1, "{lines:?} {notes:?}");
}

/// `task_newtask` stands for a fork only where forks were not recorded. Events of other kinds are counted.
#[test]
fn new_tasks_are_forks_and_other_kinds_are_counted() {
    let newtask = TaskNewtask { pid: Some(9), comm: Some("a".into()), clone_flags: Some(17), ..TaskNewtask::default() };
    let newtask =
        FtraceEvent { timestamp: Some(5), pid: Some(7), task_newtask: Some(newtask), ..FtraceEvent::default() };
    let fork = SchedProcessFork { parent_pid: Some(7), child_pid: Some(9), ..SchedProcessFork::default() };
    let fork =
        FtraceEvent { timestamp: Some(6), pid: Some(7), sched_process_fork: Some(fork), ..FtraceEvent::default() };
    // cpu_idle: field 13, a message with one number.
    let other = [&[8, 7, 16, 0][..], &[13 << 3 | 2, 2, 8, 1]].concat();
    let bundle =
        |events: &[Vec<u8>]| FtraceEventBundle { cpu: Some(0), event: events.to_vec(), ..FtraceEventBundle::default() };
    let (lines, _, notes) = read(&packet(bundle(&[newtask.encode_to_vec(), other.clone(), other]))).unwrap();
    assert_eq!(lines, ["0.000000005 [000] sched_process_fork: pid=7 child_pid=9 (7)"]);
    assert_eq!(notes, ["2 ftrace events of other kinds were not read: 2 cpu_idle"]);
    let (lines, _, _) = read(&packet(bundle(&[newtask.encode_to_vec(), fork.encode_to_vec()]))).unwrap();
    assert_eq!(lines, ["0.000000006 [000] sched_process_fork: pid=7 child_pid=9 (7)"]);
}

/// The bits of states are those of the recorded kernel.
#[test]
fn old_kernels_have_other_state_bits() {
    let mut bundle = compact();
    bundle.compact_sched.as_mut().unwrap().switch_prev_state = vec![0, 0x100, 0x800];
    let info = |release: &str| {
        let utsname = Some(Utsname { release: Some(release.into()), ..Utsname::default() });
        let packet =
            TracePacket { system_info: Some(SystemInfo { utsname, num_cpus: None }), ..TracePacket::default() };
        let mut bytes = Vec::new();
        prost::encoding::message::encode(1, &packet, &mut bytes);
        bytes
    };
    for (release, want) in [("4.9.0", ["D", "R"]), ("6.12.0", ["R", "R"])] {
        let (lines, _, _) = read(&[info(release), packet(bundle.clone())].concat()).unwrap();
        let states: Vec<&str> =
            lines[1..].iter().filter_map(|line| line.split("prev_state=").nth(1)?.split(' ').next()).collect();
        assert_eq!(states, want, "{release}");
    }
}

fn later(mut bundle: FtraceEventBundle, by: u64) -> FtraceEventBundle {
    let compact = bundle.compact_sched.as_mut().unwrap();
    compact.switch_timestamp[0] += by;
    compact.waking_timestamp[0] += by;
    bundle
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
