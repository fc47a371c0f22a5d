//! Traces as tools print them with options that change their lines: each is read, or refused with what it is.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::io::Write;
use std::path::{Path, PathBuf};

use schedlab_trace::{copy, create, open, open_buffer, TraceError};

const IN: &str =
    "prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=work next_pid=100 next_prio=120";
const OUT: &str =
    "prev_comm=work prev_pid=100 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120";

/// Every case is in the table of the guide, with the message of those that are refused.
fn documented(name: &str, message: Option<&str>) {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/trace-formats.md");
    let text = std::fs::read_to_string(&guide).unwrap();
    let row = text.lines().find(|line| line.starts_with('|') && line.ends_with(&format!("| `{name}` |")));
    let row = row.unwrap_or_else(|| panic!("no row for {name} in {}", guide.display()));
    assert!(message.is_none_or(|message| row.contains(message)), "{row}: {message:?}");
}

/// Every row names a case of this file, or a function of another test.
#[test]
fn every_row_of_the_guide_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = std::fs::read_to_string(root.join("../../docs/guides/trace-formats.md")).unwrap();
    let this = std::fs::read_to_string(root.join("tests/kinds.rs")).unwrap();
    let rows = guide.lines().filter(|line| line.starts_with("| ") && line.ends_with("` |"));
    let mut count = 0;
    for row in rows {
        let case = row.trim_end_matches("` |").rsplit_once('`').unwrap().1;
        let tested = match case.split_once("::") {
            Some((file, test)) => {
                let text = std::fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
                text.contains(&format!("#[test]\nfn {test}()")) || text.contains(&format!("#[test]\n    fn {test}()"))
            }
            None => this.contains(&format!("\"{case}\"")),
        };
        assert!(tested, "no test for {row}");
        count += 1;
    }
    assert!(count > 50, "{count}");
}

/// What a trace holds.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Held {
    /// Scheduler events: time in us and text.
    events: Vec<String>,
    others: usize,
    /// Losses: CPU, count.
    lost: Vec<(u32, u64)>,
    notes: Vec<String>,
    flags: Vec<String>,
}

fn held(path: &Path, buffer: Option<&str>) -> Result<Held, TraceError> {
    let mut reader = open_buffer(path, buffer)?;
    let mut held = Held::default();
    while let Some(record) = reader.next_record()? {
        match (record.event(), record.lost()) {
            (Some(event), _) => {
                held.events.push(event.to_string());
                held.flags.push(record.flags.to_string());
            }
            (None, 0) => held.others += 1,
            (None, lost) => held.lost.push((record.cpu.0, lost)),
        }
    }
    held.notes = reader.notes();
    Ok(held)
}

fn file(name: &str, content: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kinds-{name}"));
    std::fs::write(&path, content).unwrap();
    path
}

fn read(name: &str, text: &str) -> Held {
    held(&file(name, text.as_bytes()), None).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The same two switches, as each tool prints them.
#[test]
fn every_tools_lines_are_read() {
    let ftrace = format!("# tracer: nop\n<idle>-0 [000] d..2. 1.000000: sched_switch: {IN}\nwork-100 [000] d..2. 1.000500: sched_switch: {OUT}\n");
    let want = read("plain.ftrace", &ftrace);
    assert_eq!(want.events.len(), 2);
    let perf = |time: &str, extra: &str, text: &str| {
        let task = if text == IN { "swapper     0" } else { "work   100" };
        format!("{task} [000]     {time}: {extra}sched:sched_switch: {text}\n")
    };
    let chain = "\tffffffff81a1b2c3 __schedule+0x123 ([kernel.kallsyms])\n\tffffffff81a1b2d0 schedule+0x12 ([kernel.kallsyms])\n\n";
    let report = |middle: &str| {
        format!(
            "<idle>-0     [000]     1.000000: {middle}sched_switch: {IN}\n  work-100   [000]     1.000500: {middle}sched_switch: {OUT}\n"
        )
    };
    let raw = |text: &str| {
        text.replace(" ==> ", " ").replace("prev_state=S", "prev_state=1").replace("prev_state=R", "prev_state=0")
    };
    let mmap = "perf 7/7 [000] 0.000000: PERF_RECORD_MMAP2 7/7: [0x400000(0x1000) @ 0 08:01 5 0]: r-xp /usr/bin/perf\n";
    let html = "<!DOCTYPE html>\n<html>\n<body>\n<script>var a = 1;</script>\n<script class=\"trace-data\" type=\"application/text\">\n";
    let cases: Vec<(&str, String)> = vec![
        ("blank.ftrace", format!("\n\n{ftrace}")),
        ("bom.ftrace", format!("\u{feff}{ftrace}")),
        ("crlf.ftrace", ftrace.replace('\n', "\r\n")),
        ("seven-columns.ftrace", ftrace.replace("d..2.", "d...2..")),
        (
            "latency.ftrace",
            format!(
                "# tracer: nop\n#\n# nop latency trace v1.1.5 on 6.12.0\n# latency: 0 us, #2/2, CPU#0 | (M:preempt VP:0 #P:2)\n\
                 #                  _------=> CPU#\n#                 / _-----=> irqs-off/BH-disabled\n#  cmd     pid   |||||| time  |   caller\n\
                 \x20 <idle>-0         0d..2. 1000000us+: sched_switch: {IN}\n    work-100       0d..2. 1000500us : sched_switch: {OUT}\n"
            ),
        ),
        ("atrace.txt", format!("capturing trace... done\nTRACE:\n{ftrace}")),
        ("systrace.html", format!("{html}{ftrace}</script>\n<script class=\"trace-data\" type=\"application/text\">\nPROCESS DUMP\n</script>\n")),
        ("version.txt", format!("version = 6\nCPU 1 is empty\ncpus=2\n{}", report(""))),
        ("ts-diff.txt", format!("cpus=2\n{}", report("(+500)   "))),
        ("raw.txt", format!("cpus=2\n{}", raw(&report("")))),
        (
            "debug.txt",
            format!("cpus=2\nCPU:0 [SUBBUFFER START] [1000000:0x1000]\n{}", report("").replace('\n', " [500:0x5c:36]\n")),
        ),
        ("verbose.txt", format!("version = 7\nregistering plugin: /usr/lib/plugin_kvm.so\ncpus=2\n{}", report(""))),
        ("wakeups.txt", format!("cpus=2\n{}\nAverage wakeup latency: 1118.646 usecs\n\nRT task timings:\n", report(""))),
        ("latency-report.txt", format!("cpus=2\n{}", report("").replace("     [000]  ", " 0d..2.   "))),
        ("stack.txt", format!("cpus=1\n{}=> schedule\n=> 1\n", report(""))),
        ("perf.txt", perf("1.000000", "", IN) + &perf("1.000500", "", OUT)),
        ("perf-period.txt", perf("1.000000", "         1 ", IN) + &perf("1.000500", "         1 ", OUT)),
        ("perf-chain.txt", perf("1.000000", "", IN) + chain + &perf("1.000500", "", OUT) + chain),
        ("perf-mmap.txt", mmap.to_owned() + &perf("1.000000", "", IN) + &perf("1.000500", "", OUT)),
    ];
    for (name, text) in cases {
        documented(name, None);
        let got = read(name, &text);
        assert_eq!((&got.events, got.others, got.lost.len()), (&want.events, 0, 0), "{name}");
    }
}

/// The newline of a marker ends neither the trace nor the event after it.
#[test]
fn free_text_may_have_several_lines() {
    documented("marker.ftrace", None);
    let marker = "work-100 [000] ..... 1.000100: tracing_mark_write: a=1\nb=2\n\n  c\n";
    let text = format!("# tracer: nop\n{marker}work-100 [000] d..2. 1.000500: sched_switch: {OUT}\n");
    let got = read("marker.ftrace", &text);
    assert_eq!((got.events.len(), got.others), (1, 1));
    let path =
        file("no-marker.ftrace", format!("work-100 [000] d..2. 1.000500: sched_switch: {OUT}\nb=2\n").as_bytes());
    let error = held(&path, None).unwrap_err();
    assert!(error.to_string().contains(":2: expected 'task-pid [cpu]"), "{error}");
    assert_eq!(error.hint(), Some("the file is damaged there"));
}

/// Each mark of lost events, and the CPU and number that it states.
#[test]
fn every_mark_of_lost_events_is_a_record() {
    let switch = |time: &str| format!("work-100 [000] {time}: sched_switch: {OUT}\n");
    let perf = |what: &str| format!("work   100 [001]     1.000600: {what}\n");
    let cases = [
        ("CPU:3 [LOST 182 EVENTS]\n".to_owned(), (3, 182)),
        ("CPU:0 [LOST EVENTS]\n".to_owned(), (0, 1)),
        ("CPU:0 [182 EVENTS DROPPED]\n".to_owned(), (0, 182)),
        ("CPU:2 [EVENTS DROPPED]\n".to_owned(), (2, 1)),
        (perf("PERF_RECORD_LOST lost 1158"), (1, 1158)),
        (perf("PERF_RECORD_LOST_SAMPLES lost 7"), (1, 7)),
    ];
    for (nth, (mark, want)) in cases.into_iter().enumerate() {
        let text = format!("cpus=4\n{}{mark}{}", switch("1.000500"), switch("1.001000"));
        let name = ["lost-0.txt", "lost-1.txt", "lost-2.txt", "lost-3.txt", "lost-4.txt", "lost-5.txt"][nth];
        documented(name, None);
        let got = read(name, &text);
        assert_eq!((got.events.len(), got.lost), (2, vec![want]), "{mark}");
    }
}

/// Every format holds a loss: where it was, how many events, and between which events.
#[test]
fn losses_survive_conversion() {
    let switch = |cpu: u32, time: &str| format!("work-100 [{cpu:03}] d..2. {time}: sched_switch: {OUT}\n");
    let text = [
        "# kernel 6.12.0 cpus 2\nCPU:1 [LOST 5 EVENTS]\n".to_owned(),
        switch(0, "1.0"),
        switch(1, "1.1"),
        "CPU:0 [LOST 182 EVENTS]\n".to_owned(),
        switch(1, "1.2"),
        switch(0, "1.3"),
        "CPU:1 [LOST 9 EVENTS]\n".to_owned(),
    ];
    let source = file("losses.ftrace", text.concat().as_bytes());
    let want = held(&source, None).unwrap();
    assert_eq!(want.lost, [(1, 5), (0, 182), (1, 9)]);
    for suffix in ["ftrace", "txt.gz", "pftrace", "dat", "data"] {
        let target = source.with_extension(suffix).with_file_name(format!("kinds-losses-copy.{suffix}"));
        let mut reader = open(&source).unwrap();
        let writer = create(&target, &reader.header().clone()).unwrap();
        copy(&mut *reader, writer).unwrap();
        let got = held(&target, None).unwrap();
        assert_eq!((got.events, got.lost), (want.events.clone(), want.lost.clone()), "{suffix}");
    }
}

/// `trace-cmd report` of several buffers prints each event with the name of its buffer; those of the top one are
/// indented by the longest name.
#[test]
fn one_buffer_of_a_report_is_read() {
    let top = format!("           <idle>-0     [000]     1.000000: sched_switch: {IN}\n");
    let foo = format!("foo:       <idle>-0     [000]     1.000000: sched_switch: {IN}\n");
    let dropped =
        format!("foo:  CPU:0 [3 EVENTS DROPPED]\n      work-100     [000]     1.000200: sched_switch: {OUT}\n");
    let both = file("buffers.txt", format!("cpus=1\n{foo}{top}{dropped}").as_bytes());
    let got = held(&both, None).unwrap();
    assert_eq!((got.events.len(), got.lost.len()), (1, 0));
    assert!(got.notes[0].starts_with("the buffer foo was not read"), "{:?}", got.notes);
    let got = held(&both, Some("foo")).unwrap();
    assert_eq!((got.events.len(), got.lost), (2, vec![(0, 3)]));
    assert!(got.notes[0].starts_with("the buffer top was not read"), "{:?}", got.notes);
    let alone = file("buffer.txt", format!("cpus=1\n{foo}").as_bytes());
    let got = held(&alone, None).unwrap();
    assert_eq!((got.events.len(), got.notes.len()), (1, 0));
    let error = held(&both, Some("bar")).unwrap_err().to_string();
    assert!(error.ends_with("no buffer 'bar'; the file has top, foo"), "{error}");
    // `trace-cmd report -i a.dat -i b.dat` prints the name of a file as that of a buffer.
    let two = format!("a.dat: cpus=1\nb.dat: cpus=1\n{}{}", foo.replace("foo", "a.dat"), foo.replace("foo", "b.dat"));
    let got = held(&file("files.txt", two.as_bytes()), None).unwrap();
    assert_eq!(got.events.len(), 1);
    assert!(got.notes[0].starts_with("the buffer b.dat was not read"), "{:?}", got.notes);
    ["buffers.txt", "files.txt"].iter().for_each(|name| documented(name, None));
}

/// Files that are not read: what the error says about them.
#[test]
fn other_files_are_named() {
    let cases: [(&str, &[u8], &str); 13] = [
        ("page.html", b"<html><body>hello</body></html>\n", "an HTML page without a trace"),
        ("trace.json", b"{\"traceEvents\":[]}", "JSON, not a trace of the scheduler"),
        ("trace.zip", b"PK\x03\x04....", "a zip archive"),
        ("stream", b"\xc1\x1f\xfc\xc1....", "CTF"),
        ("metadata", b"/* CTF 1.8 */", "CTF"),
        ("vmlinux.btf", b"\x9f\xeb\x01\x00", "BTF"),
        ("report.trace", b"SIMPLEPERF....", "simpleperf"),
        ("empty", b"", "the file is empty"),
        ("words.txt", b"hello world\n", "expected 'task-pid [cpu] time: event: fields'"),
        ("raw.ftrace", b"# tracer: nop\n8586 1 3386913961797 type: 366\n", "events of ftrace with the option raw"),
        ("no-context.ftrace", b"sched_switch: prev_comm=a prev_pid=1\n", "without the option context-info"),
        (
            "fields.ftrace",
            b"bash-86 [001] ..... 1.0: sched_wakeup: comm=a pid=0x5c (92) prio=0x78 (120) target_cpu=0x1 (1)\n",
            "events of ftrace with the option fields",
        ),
        ("tsc.txt", b"cpus=2\n a-86 [001] 7809337175184: sched_wakeup: a:92 [120] CPU:001\n", "is no time in seconds"),
    ];
    for (name, content, want) in cases {
        documented(name, Some(want));
        let error = held(&file(name, content), None).unwrap_err();
        assert!(error.to_string().contains(want), "{error}");
        assert!(error.hint().is_some_and(|hint| !hint.contains("damaged")), "{error}");
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kinds-threads.data");
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["header", "data.0"] {
        std::fs::File::create(folder.join(name)).unwrap().write_all(b"x").unwrap();
    }
    documented("threads.data", Some("a directory of perf record --threads"));
    assert!(held(&folder, None).unwrap_err().to_string().contains("perf record --threads"));
}
