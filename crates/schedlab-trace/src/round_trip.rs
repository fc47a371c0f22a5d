//! What one format writes, its reader reads: events, names, words, flags and unknown events.

use std::io::{BufReader, Cursor, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use schedlab_model::KernelId;

use crate::format::open_input;
use crate::output::{Output, Target};
use crate::perf_data::PerfDataWriter;
use crate::perfetto::PerfettoWriter;
use crate::testing::{any_event, any_trace};
use crate::text::FtraceWriter;
use crate::trace_dat::TraceDatWriter;
use crate::writer::Writer;
use crate::{
    state, Body, Event, Fault, Fields, Flags, Header, Kind, Place, Record, TraceError, TraceReader, TraceWriter, Words,
};
use schedlab_model::CpuId;

type Make = fn(Output, &Header) -> Box<dyn TraceWriter>;

/// A format, and what of a record it can hold beyond the event.
struct Tested {
    name: &'static str,
    make: Make,
    /// The name of the task that ran, where the event itself does not contain it.
    task_comm: bool,
    /// The depths in the flags.
    depths: bool,
    /// The order of events of one instant on different CPUs.
    total_order: bool,
}

const FORMATS: [Tested; 4] = [
    Tested {
        name: "ftrace",
        make: |out, header| Box::new(Writer::new(FtraceWriter::new(out, header))),
        task_comm: true,
        depths: true,
        total_order: true,
    },
    Tested {
        name: "perfetto",
        make: |out, header| Box::new(Writer::new(PerfettoWriter::new(out, header))),
        task_comm: false,
        depths: false,
        total_order: true,
    },
    Tested {
        name: "trace.dat",
        make: |out, header| Box::new(Writer::new(TraceDatWriter::new(out, header, Box::new(Cursor::new(Vec::new()))))),
        task_comm: false,
        depths: true,
        total_order: false,
    },
    Tested {
        name: "perf.data",
        make: |out, header| Box::new(Writer::new(PerfDataWriter::new(out, header))),
        task_comm: false,
        depths: true,
        total_order: true,
    },
];

/// A file in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Target for Memory {
    fn patch(&mut self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        let start = offset as usize;
        self.0.lock().unwrap()[start..start + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

fn written(make: Make, header: &Header, fill: impl FnOnce(&mut dyn TraceWriter)) -> Vec<u8> {
    let memory = Memory::default();
    let mut writer = make(Output::new(Box::new(memory.clone()), Path::new("memory")), header);
    fill(&mut *writer);
    writer.finish().unwrap();
    let bytes = memory.0.lock().unwrap().clone();
    bytes
}

/// Everything a reader returns, in owned form.
#[derive(Default)]
struct Read {
    header: Header,
    events: Vec<Event>,
    names: Vec<(i32, String)>,
    records: Vec<String>,
    lost: u64,
    notes: Vec<String>,
}

fn reader(bytes: &[u8]) -> Result<Box<dyn TraceReader>, TraceError> {
    open_input(Box::new(BufReader::new(Cursor::new(bytes.to_vec()))), Path::new("some.trace"), None)
}

fn read(bytes: &[u8]) -> Result<Read, TraceError> {
    let mut reader = reader(bytes)?;
    let mut read = Read { header: reader.header().clone(), ..Read::default() };
    while let Some(record) = reader.next_record()? {
        read.lost += record.lost();
        read.events.extend(record.event());
        read.names.extend(record.names().map(|(pid, name)| (pid, name.to_owned())));
        read.records.push(format!("{record:?}"));
    }
    read.notes = reader.notes();
    Ok(read)
}

fn header() -> Header {
    Header {
        kernel: Some("6.12.0".into()),
        nr_cpus: Some(4),
        metrics: vec![("probe.latency".into(), "ns".into()), ("x.ops".into(), "count".into())],
        comments: vec!["hz 250".into(), "features PLACE_LAG NO_HRTICK".into()],
    }
}

/// A comm as the kernel allows it: up to 15 bytes, nearly any.
fn any_comm() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,15}", "[ -~]{0,13}[!-~]", Just(" prev_pid=7 [1".to_owned()), Just("a-1 [000] b".to_owned())]
}

/// A comm may hold any byte but 0: no byte of it may end the line that it stands in, nor reach a terminal.
#[test]
fn hostile_comms_stay_on_their_line() {
    let hostile = "a\u{1b}[31m\nb\r\u{202e}c";
    let kind = Kind::Wakeup { pid: 7, prio: 120, target_cpu: CpuId(0) };
    let words = Words { comm: hostile, ..Words::default() };
    let flags = Flags::parse(".....").unwrap();
    let record = Record { time: 5, cpu: CpuId(0), comm: hostile, pid: 3, flags, body: Body::Event(kind, words) };
    let mut header = header();
    header.comments = vec!["workload first\nsecond".into()];
    let bytes = written(FORMATS[0].make, &header, |writer| writer.record(&record));
    let text = String::from_utf8(bytes.clone()).unwrap();
    assert!(text.contains("# workload first?second\n"), "{text}");
    assert!(text.lines().all(|line| !line.contains(char::is_control)), "{text:?}");
    let read = reader(&bytes).unwrap().next_record().unwrap().map(|read| read.comm.to_owned());
    assert_eq!(read.as_deref(), Some("a?[31m?b??c"));
}

proptest! {
    #[test]
    fn simulated_traces_survive(events in any_trace(), comm in "[a-z][a-z0-9/:_-]{0,14}") {
        for Tested { name, make, total_order, .. } in FORMATS {
            let mut events = events.clone();
            if !total_order {
                events.sort_by_key(|event| (event.time, event.cpu));
            }
            let bytes = written(make, &header(), |writer| {
                (1..10).for_each(|pid| writer.name(KernelId::FIRST, pid, &format!("{comm:.12}-{pid}")));
                events.iter().for_each(|event| writer.event(event));
            });
            let read = read(&bytes).map_err(|e| TestCaseError::fail(format!("{name}: {e}")))?;
            prop_assert_eq!(&read.events, &events, "{}", name);
            prop_assert_eq!(&read.header.kernel, &header().kernel);
            prop_assert_eq!(read.header.nr_cpus, Some(4));
            prop_assert_eq!(&read.header.metrics, &header().metrics);
            for (pid, name) in &read.names {
                let want = if *pid < 10 { format!("{comm:.12}-{pid}") } else { "<...>".to_owned() };
                prop_assert_eq!(name, &want);
            }
        }
    }

    #[test]
    fn recorded_events_keep_their_words(
        event in any_event(),
        comms in (any_comm(), any_comm(), any_comm()),
        letters in "R|R\\+|S|D|T|t|X|Z|P|I",
        flags in "[dDb.][NnLB.][HhsZ.][1-9.][1-9.]",
        pid in 0..100,
    ) {
        let (comm, first, second) = (&comms.0, &comms.1, &comms.2);
        let (mut kind, mut words) = (event.kind, Words { comm: first, other_comm: "", prev_state: "" });
        match &mut kind {
            Kind::Switch { prev_state, .. } => {
                *prev_state = state::parse(&letters).unwrap();
                words = Words { prev_state: &letters, other_comm: second, ..words };
            }
            Kind::Fork { .. } => words.other_comm = second,
            Kind::Sample { .. }
        | Kind::Count { .. }
        | Kind::Scan { .. }
        | Kind::Fault { .. }
        | Kind::Resched { .. } | Kind::NonPreemptible { .. } | Kind::Extension { .. } | Kind::LockWait { .. } | Kind::Refill { .. } | Kind::Numa { .. } => words = Words::default(),
            _ => {}
        }
        let flags = Flags::parse(&flags).unwrap();
        let comm = if pid == 0 { "<idle>" } else { comm.trim() };
        let Event { time, cpu, .. } = event;
        let record = Record { time, cpu, comm, pid, flags, body: Body::Event(kind, words) };
        // The comms of these traces are hostile: a comm that looks like the rest of the line cannot be distinguished
        // from it.
        prop_assume!(!comm.contains("] ") && !comm.contains(" ["));
        for Tested { name, make, task_comm, depths, .. } in FORMATS {
            let bytes = written(make, &header(), |writer| writer.record(&record));
            let mut input = reader(&bytes).map_err(|e| TestCaseError::fail(format!("{name}: {e}")))?;
            let read = input.next_record().map_err(|e| TestCaseError::fail(format!("{name}: {e}")))?;
            let mut want = record.clone();
            let comm = read.as_ref().map_or("", |read| read.comm);
            want.comm = if task_comm { want.comm } else { comm };
            if !depths {
                want.flags.0[3..].fill(b'.');
            }
            prop_assert_eq!(read, Some(want), "{}", name);
        }
    }

    #[test]
    fn unknown_events_keep_their_fields(keys in prop::collection::vec(("[a-z_]{1,8}", "-?[0-9a-f+x/]{1,12}"), 0..6)) {
        let text: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let text = text.join(" ");
        let body = Body::Other { name: "rt", fields: Fields(&text) };
        let record = Record { time: 5, cpu: schedlab_model::CpuId(1), comm: "init", pid: 1, flags: Flags::NONE, body };
        for Tested { name, make, .. } in FORMATS {
            let bytes = written(make, &header(), |writer| writer.record(&record));
            let mut input = reader(&bytes).unwrap();
            let read = input.next_record().unwrap().map(|read| read.body);
            prop_assert_eq!(read.as_ref(), Some(&record.body), "{}", name);
        }
    }

    #[test]
    fn damaged_traces_never_panic(events in any_trace(), at in any::<prop::sample::Index>(), with in any::<Vec<u8>>()) {
        for Tested { make, .. } in FORMATS {
            let mut bytes = written(make, &header(), |writer| events.iter().for_each(|event| writer.event(event)));
            let at = at.index(bytes.len());
            let end = (at + with.len()).min(bytes.len());
            bytes.splice(at..end, with.iter().copied());
            let _ = read(&bytes);
            bytes.truncate(at);
            let _ = read(&bytes);
        }
    }

    #[test]
    fn junk_never_panics(bytes in any::<Vec<u8>>(), text in "[ -~\n\\[\\]=:.#-]{0,300}") {
        let _ = read(&bytes);
        let _ = read(text.as_bytes());
    }
}

const EXCERPT: &str = "\
# kernel 6.1.0-test cpus 2 cmdline quiet
# features GENTLE_FAIR_SLEEPERS NO_HRTICK
# tracer: nop
#
# entries-in-buffer/entries-written: 9/9   #P:2
#
            init-1       [000] d..2.     2.440955: sched_stat_runtime: comm=init pid=1 runtime=947058 [ns] vruntime=1833064825 [ns]
CPU:1 [LOST 12 EVENTS]
            init-1       [000] .....     2.440960: sched_process_fork: comm=init pid=1 child_comm=init child_pid=89
   kworker/1:2-68    (     68) [001] d.s4.     2.440970: sched_waking: comm=my prog-1 pid=89 prio=139 target_cpu=001
          <idle>-0       [001] dNh2.     2.440971: sched_wakeup: comm=my prog-1 pid=89 prio=139 target_cpu=001
          <idle>-0       [001] d..2.     2.440972123: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=my prog-1 next_pid=89 next_prio=139
 my prog-1-89 (-------) [001] 2.440980: rt: (__probestub_sched_stat_runtime+0x4/0x10) p=89 v=18446744073709551615 l=-5 on=1
 my prog-1-89      [001] d..2.     2.440990: sched_switch: prev_comm=my prog-1 prev_pid=89 prev_prio=139 prev_state=R+ ==> next_comm=migration/1 next_pid=20 next_prio=0
 => schedule
 my prog-1-89      [001] .N...     2.440991: tracing_mark_write: hello [there] a=b
";

#[test]
fn what_a_kernel_prints_is_read() {
    let read = read(EXCERPT.as_bytes()).unwrap();
    assert_eq!(read.lost, 12);
    assert_eq!(read.header.kernel.as_deref(), Some("6.1.0-test"));
    assert_eq!(read.header.nr_cpus, Some(2));
    assert_eq!(read.header.get("features"), Some("GENTLE_FAIR_SLEEPERS NO_HRTICK"));
    assert!(read.names.contains(&(89, "my prog-1".into())));
    let lines: Vec<String> = read.events.iter().map(Event::to_string).collect();
    assert_eq!(
        lines,
        [
            "2.440955000 [000] sched_stat_runtime: pid=1 runtime=947058 [ns] vruntime=1833064825 [ns]",
            "2.440960000 [000] sched_process_fork: pid=1 child_pid=89",
            "2.440970000 [001] sched_waking: pid=89 prio=139 target_cpu=001",
            "2.440971000 [001] sched_wakeup: pid=89 prio=139 target_cpu=001",
            "2.440972123 [001] sched_switch: prev_pid=0 prev_prio=120 prev_state=R ==> next_pid=89 next_prio=139",
            "2.440990000 [001] sched_switch: prev_pid=89 prev_prio=139 prev_state=R ==> next_pid=20 next_prio=0",
        ]
    );
}

#[test]
fn fields_of_unknown_events_are_numbers_when_asked() {
    let fields = Fields("(stub+0x4/0x10) p=89 v=18446744073709551615 l=-5 c=0x1f p=90 bad=x");
    assert_eq!(fields.number::<i32>("p"), Some(89));
    assert_eq!(fields.number::<u64>("v"), Some(u64::MAX));
    assert_eq!(fields.number::<i64>("v"), None);
    assert_eq!(fields.number::<i64>("l"), Some(-5));
    assert_eq!(fields.number::<u8>("c"), Some(31));
    assert_eq!(fields.number::<u64>("bad"), None);
    assert_eq!(fields.get("absent"), None);
}

/// Each: a line of a tool's output, and the same event as the kernel prints it.
#[test]
fn other_tools_lines_are_read() {
    let kernel_switch = "bash-25 [000]  37.290973: sched_switch: prev_comm=bash prev_pid=25 prev_prio=120 prev_state=R ==> next_comm=memfd:a b next_pid=14 next_prio=98";
    let kernel_wakeup = "bash-25 [000]  37.290973: sched_wakeup_new: comm=my:prog pid=8 prio=120 target_cpu=001";
    let cases = [
        (
            "cpus=2\nm:      bash-25 [000]  37.290973: sched_switch:         bash:25 [120] R ==> memfd:a b:14 [98]",
            kernel_switch,
        ),
        ("   bash-25 [000]  37.290973: sched_wakeup_new:     my:prog:8 [120] CPU:001", kernel_wakeup),
        ("   bash-25 [000]  37.290973: sched_wakeup_new:     my:prog:8 [120] success=1 CPU:001", kernel_wakeup),
        ("   bash    25 [000]  37.290973: sched:sched_wakeup_new: my:prog:8 [120] CPU:001", kernel_wakeup),
        (
            "   bash 20/25 [000]  37.290973: sched:sched_wakeup_new: comm=my:prog pid=8 prio=120 target_cpu=001",
            kernel_wakeup,
        ),
    ];
    for (line, kernel) in cases {
        let (got, want) = (read(line.as_bytes()).unwrap(), read(kernel.as_bytes()).unwrap());
        assert_eq!((got.records, got.events.len()), (want.records, 1), "{line}");
    }
    let spaced = read(b"my perf-exec 19549 [001] 3596.961540: sched:sched_process_exit: comm=a pid=1 prio=3").unwrap();
    assert!(spaced.records[0].contains("comm: \"my perf-exec\", pid: 19549"), "{}", spaced.records[0]);
}

/// Each damaged line, and what the error must say after the file's name.
#[test]
fn errors_name_the_line_and_what_is_wrong() {
    let cases = [
        ("hello", "some.trace:1: expected 'task-pid [cpu] time: event: fields'"),
        ("a-1 [9999] d..2. 1.0: x: y", "some.trace:1: a CPU number that no kernel has"),
        ("a-1 [000] d..2. 99: x: y", "some.trace:1: '99:' is no time in seconds (trace_clock must be local, global, mono or boot)"),
        ("a-1 [000] d..2.......... 1.0: x: y", "some.trace:1: 'd..2..........' is no column of context flags"),
        (
            "# c\na-1 [000] d..2. 1.0: sched_waking: comm=x pid=1 prio=120 target_cpu=5000",
            "some.trace:2: sched_waking does not have the fields a kernel prints: 'comm=x pid=1 prio=120 target_cpu=5000'",
        ),
        (
            "a-1 [000] d..2. 1.5: sched_process_exit: comm=x pid=1 prio=120\na-1 [000] d..2. 1.4: rt: a=1",
            "some.trace:2: time goes back from 1500000000 to 1400000000 ns",
        ),
        (
            "a-1 [000] d..2. 1.5: sched_switch: prev_comm=x prev_pid=1 prev_prio=120 prev_st",
            "some.trace:1: sched_switch does not have the fields a kernel prints: 'prev_comm=x prev_pid=1 prev_prio=120 prev_st'",
        ),
    ];
    for (text, want) in cases {
        assert_eq!(read(text.as_bytes()).err().map(|e| e.to_string()).as_deref(), Some(want), "{text}");
    }
}

#[test]
fn bombs_and_junk_end_early() {
    let zeros = vec![0u8; 10 << 20];
    assert!(read(&zeros).err().unwrap().to_string().starts_with("some.trace:1: a line of more than 65536 bytes"));
    let comments = "#\n".repeat(1 << 20);
    assert!(read(comments.as_bytes()).err().unwrap().to_string().contains("10000 comment lines and no event"));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&zeros).unwrap();
    let bomb = gzip.finish().unwrap();
    assert!(matches!(read(&bomb).err().unwrap().at, Place::Line(1)));
    let cut = &bomb[..bomb.len() / 2];
    assert!(read(cut).is_err());
}

#[test]
fn a_cut_gzip_stream_is_called_truncated() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(EXCERPT.as_bytes()).unwrap();
    let whole = gzip.finish().unwrap();
    assert_eq!(read(&whole).unwrap().events.len(), 6);
    let error = read(&whole[..whole.len() - 9]).err().unwrap();
    assert!(matches!(error.fault, Fault::Truncated(_)), "{error}");
    assert!(error.hint().is_some());
}
