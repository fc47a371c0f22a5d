//! Recordings as perf writes them with options: compressed (`record -z`) and in pipe mode (`record -o -`).
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use ruzstd::encoding::{compress_to_vec, CompressionLevel};
use schedlab_model::{CpuId, KernelId};
use schedlab_trace::{create, open, Event, Header, Kind, Sink, TraceError};

const COMPRESSED: u32 = 81;
const FINISHED_ROUND: u32 = 68;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("perf-{name}.data"))
}

/// The events of a file, by their lines.
fn lines(path: &Path) -> Result<Vec<String>, TraceError> {
    let (mut reader, mut lines) = (open(path)?, Vec::new());
    while let Some(record) = reader.next_record()? {
        lines.extend(record.event().map(|event| format!("{event} ({})", record.comm)));
    }
    Ok(lines)
}

/// A recording as this crate writes it, of several rounds.
fn plain(name: &str) -> Vec<u8> {
    let path = path(name);
    let mut writer =
        create(&path, &Header { kernel: Some("6.12.0".into()), nr_cpus: Some(2), ..Header::default() }).unwrap();
    (1..9).for_each(|pid| writer.name(KernelId::FIRST, pid, &format!("task {pid}")));
    for nth in 0..5_000u32 {
        let kind = Kind::Wakeup { pid: 1 + nth as i32 % 8, prio: 120, target_cpu: CpuId(nth % 2) };
        writer.event(&Event::new(1_000 + 10 * u64::from(nth), CpuId(nth / 3 % 2), kind));
    }
    writer.finish().unwrap();
    std::fs::read(path).unwrap()
}

fn number(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

/// Its records: kind and bytes.
fn records(bytes: &[u8]) -> Vec<(u32, &[u8])> {
    let (mut at, size) = (number(bytes, 40), number(bytes, 48));
    let end = at + size;
    let mut records = Vec::new();
    while at < end {
        let kind = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let length = usize::from(u16::from_le_bytes(bytes[at + 6..at + 8].try_into().unwrap()));
        records.push((kind, &bytes[at..at + length]));
        at += length;
    }
    records
}

fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    let size = (body.len() + 8) as u16;
    [&kind.to_le_bytes()[..], &[0, 0], &size.to_le_bytes(), body].concat()
}

/// The file with other records: the places of the features that follow move.
fn with_records(bytes: &[u8], new: &[u8]) -> Vec<u8> {
    let (start, size) = (number(bytes, 40), number(bytes, 48));
    let mut file = [&bytes[..start], new].concat();
    file[48..56].copy_from_slice(&(new.len() as u64).to_le_bytes());
    let table = file.len();
    file.extend_from_slice(&bytes[start + size..]);
    let features = u64::from_le_bytes(bytes[72..80].try_into().unwrap()).count_ones() as usize;
    for nth in 0..features {
        let at = table + 16 * nth;
        let moved = number(&file, at) + new.len() - size;
        file[at..at + 8].copy_from_slice(&(moved as u64).to_le_bytes());
    }
    file
}

/// Frames that end inside records, with the ends of rounds outside, as perf has them.
#[test]
fn compressed_records_are_unpacked() {
    let bytes = plain("plain");
    let want = lines(&path("plain")).unwrap();
    let (mut new, mut content) = (Vec::new(), Vec::new());
    let pack = |content: &mut Vec<u8>, keep: usize, new: &mut Vec<u8>| {
        let rest = content.split_off(content.len() - keep);
        let packed = compress_to_vec(&content[..], CompressionLevel::Fastest);
        new.extend(record(COMPRESSED, &packed));
        *content = rest;
    };
    for (kind, bytes) in records(&bytes) {
        if kind == FINISHED_ROUND {
            pack(&mut content, 0, &mut new);
            new.extend_from_slice(bytes);
        } else {
            content.extend_from_slice(bytes);
        }
        if content.len() > 20_000 {
            pack(&mut content, 13, &mut new);
        }
    }
    pack(&mut content, 0, &mut new);
    let file = path("compressed");
    std::fs::write(&file, with_records(&bytes, &new)).unwrap();
    assert_eq!((lines(&file).unwrap() == want, want.len()), (true, 5_000));
    // A damaged block is named.
    let mut damaged = with_records(&bytes, &new);
    let at = number(&bytes, 40) + 8;
    damaged[at] ^= 0xff;
    std::fs::write(&file, damaged).unwrap();
    assert!(lines(&file).unwrap_err().to_string().contains("compressed records"));
}

/// Attributes, features and formats are records before the first sample.
#[test]
fn pipe_mode_is_read() {
    let bytes = plain("for-pipe");
    let want = lines(&path("for-pipe")).unwrap();
    let mut pipe = [&bytes[..8], &16u64.to_le_bytes()[..]].concat();
    let (attrs, size, entry) = (number(&bytes, 24), number(&bytes, 32), number(&bytes, 16));
    for at in (attrs..attrs + size).step_by(entry) {
        let (ids, length) = (number(&bytes, at + entry - 16), number(&bytes, at + entry - 8));
        pipe.extend(record(64, &[&bytes[at..at + entry - 16], &bytes[ids..ids + length]].concat()));
    }
    let table = number(&bytes, 40) + number(&bytes, 48);
    let features = u64::from_le_bytes(bytes[72..80].try_into().unwrap());
    for (nth, feature) in (0..64u64).filter(|bit| features >> bit & 1 == 1).enumerate() {
        let (at, length) = (number(&bytes, table + 16 * nth), number(&bytes, table + 16 * nth + 8));
        let content = &bytes[at..at + length];
        if feature == 1 {
            pipe.extend(record(66, &(length as u32).to_le_bytes()));
            pipe.extend_from_slice(content);
        } else {
            pipe.extend(record(80, &[&feature.to_le_bytes()[..], content].concat()));
        }
    }
    records(&bytes).into_iter().for_each(|(_, record)| pipe.extend_from_slice(record));
    let file = path("pipe");
    std::fs::write(&file, &pipe).unwrap();
    assert_eq!((lines(&file).unwrap() == want, want.len()), (true, 5_000));
    assert_eq!(open(&file).unwrap().header().kernel.as_deref(), Some("6.12.0"));
    for cut in (0..pipe.len()).step_by(997) {
        std::fs::write(&file, &pipe[..cut]).unwrap();
        let _ = lines(&file);
    }
}

/// What perf records here with these options is read as `perf script` prints it.
#[test]
fn what_perf_records_here_with_options_is_read_as_perf_reads_it() {
    let skip = |why: &str| {
        let _ = writeln!(std::io::stdout(), "\nskipped: recordings of perf with options: {why}");
    };
    for (name, options) in [("real-z", &["-z"][..]), ("real-pipe", &[][..])] {
        let (file, pipe) = (path(name), name == "real-pipe");
        let target = if pipe { "-" } else { file.to_str().unwrap() };
        let mut perf = Command::new("perf");
        perf.args(["record", "-e", "sched:*", "-a", "-o", target]).args(options).args(["--", "sleep", "0.05"]);
        let Ok(done) = perf.output() else { return skip("perf is not installed") };
        if !done.status.success() {
            return skip("perf record is not possible here");
        }
        if pipe {
            std::fs::write(&file, &done.stdout).unwrap();
        }
        let text = Command::new("perf").args(["script", "--ns", "-i"]).arg(&file).output().unwrap().stdout;
        if text.is_empty() {
            return skip("perf script reads nothing");
        }
        let as_text = file.with_extension("txt");
        std::fs::write(&as_text, text).unwrap();
        let events = |path: &Path| -> Vec<String> {
            let without_names = |line: String| line.rsplit_once(" (").map(|(event, _)| event.to_owned());
            let all = lines(path).unwrap_or_else(|error| panic!("{name}: {error}")).into_iter();
            let mut all: Vec<String> = all.filter_map(without_names).collect();
            // Plugins print a run time without the vruntime.
            all.iter_mut().for_each(|line| line.truncate(line.find(" vruntime").unwrap_or(line.len())));
            all
        };
        let (got, want) = (events(&file), events(&as_text));
        let first = got.iter().zip(&want).find(|(got, want)| got != want);
        assert_eq!((first, got.len()), (None, want.len()), "{name}");
        assert!(got.len() > 2);
    }
}

/// perf writes the totals of its events at the end, without a time: they hold what the kernel has reported before, and
/// are no records that go back in time.
#[test]
fn totals_of_lost_samples_at_the_end_count_once() {
    let bytes = plain("totals");
    // tid, time, CPU and identifier end every record.
    let end = |time: u64| [0, time, 0, 0].map(u64::to_le_bytes).concat();
    let kernel = record(2, &[&[1u64, 30].map(u64::to_le_bytes).concat()[..], &end(50_000)].concat());
    let total = |count: u64| record(13, &[&count.to_le_bytes()[..], &end(0)].concat());
    let lost = |new: &[Vec<u8>]| {
        let (start, size) = (number(&bytes, 40), number(&bytes, 48));
        let file = path("totals");
        let all = [&bytes[start..start + size], &new.concat()].concat();
        std::fs::write(&file, with_records(&bytes, &all)).unwrap();
        let (mut reader, mut lost) = (open(&file).unwrap(), Vec::new());
        while let Some(record) = reader.next_record().unwrap() {
            lost.extend(Some(record.lost()).filter(|lost| *lost > 0));
        }
        lost
    };
    assert_eq!(lost(&[kernel.clone(), total(30), total(0)]), [30]);
    assert_eq!(lost(&[kernel, total(10), total(25)]), [30, 5]);
    assert_eq!(lost(&[total(7), total(2)]), [7, 2]);
}
