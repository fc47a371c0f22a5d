//! Files as trace-cmd makes them with options that this crate's writer does not use: clocks, instances, stacks, losses.

use std::io::{BufReader, Cursor};
use std::path::Path;

use schedlab_model::{CpuId, Nanos};

use super::TraceDatReader;
use crate::record::{Body, TraceReader, Words};
use crate::tracepoint::{encode, tracing_data};
use crate::{Flags, Kind, TaskState, TraceError};

const PAGE: usize = 4096;

/// An option and its content.
type Opt<'a> = (u16, &'a [u8]);

/// A page with the switches of one CPU at these times.
fn page(times: &[Nanos], lost: Option<u64>) -> Vec<u8> {
    let mut page = times.first().copied().unwrap_or(0).to_le_bytes().to_vec();
    page.extend_from_slice(&[0; 8]);
    let mut last = times.first().copied().unwrap_or(0);
    let mut raw = Vec::new();
    for (nth, time) in times.iter().enumerate() {
        let (prev, next) = if nth % 2 == 0 { (0, 100) } else { (100, 0) };
        let state = if prev == 0 { TaskState::Running } else { TaskState::Sleeping };
        let kind = Kind::Switch { prev, prev_prio: 120, prev_state: state, next, next_prio: 120 };
        let words = Words { comm: "a", other_comm: "b", prev_state: "" };
        encode(&Body::Event(kind, words), Flags::NONE, prev, &mut raw);
        let head = (((*time - last) as u32) << 5) | (raw.len() as u32 / 4);
        page.extend_from_slice(&head.to_le_bytes());
        page.extend_from_slice(&raw);
        last = *time;
    }
    let length = (page.len() - 16) as u64;
    let flags = lost.map_or(0, |_| super::page::MISSED_EVENTS | super::page::MISSED_STORED);
    page[8..16].copy_from_slice(&(length | flags).to_le_bytes());
    page.extend_from_slice(&lost.unwrap_or(0).to_le_bytes());
    page.resize(PAGE, 0);
    page
}

/// A file of one CPU with a top buffer and instances.
fn file(options: &[Opt<'_>], top: &[Vec<u8>], instances: &[(&str, Vec<Vec<u8>>)]) -> Vec<u8> {
    let mut head = tracing_data("6", PAGE as u32, "");
    head.extend_from_slice(&1u32.to_le_bytes());
    head.extend_from_slice(b"options  \0");
    let mut places = Vec::new();
    let option = |head: &mut Vec<u8>, id: u16, content: &[u8]| {
        head.extend_from_slice(&id.to_le_bytes());
        head.extend_from_slice(&(content.len() as u32).to_le_bytes());
        head.extend_from_slice(content);
    };
    options.iter().for_each(|(id, content)| option(&mut head, *id, content));
    for (name, _) in instances {
        places.push(head.len() + 6);
        option(&mut head, 3, &[&[0; 8], name.as_bytes(), &[0]].concat());
    }
    head.extend_from_slice(&[0; 2]);
    // The places of each buffer's pages, then the pages, each buffer on pages of its own.
    let mut file = head;
    let mut buffers: Vec<&[Vec<u8>]> = vec![top];
    buffers.extend(instances.iter().map(|(_, pages)| &pages[..]));
    let mut tables = Vec::new();
    for nth in 0..buffers.len() {
        if nth > 0 {
            let at = file.len() as u64;
            file[places[nth - 1]..places[nth - 1] + 8].copy_from_slice(&at.to_le_bytes());
        }
        file.extend_from_slice(super::head::FLYRECORD);
        tables.push(file.len());
        file.extend_from_slice(&[0; 16]);
    }
    for (pages, table) in buffers.into_iter().zip(tables) {
        file.resize(file.len().next_multiple_of(PAGE), 0);
        let (offset, size) = (file.len() as u64, (pages.len() * PAGE) as u64);
        file[table..table + 8].copy_from_slice(&offset.to_le_bytes());
        file[table + 8..table + 16].copy_from_slice(&size.to_le_bytes());
        pages.iter().for_each(|page| file.extend_from_slice(page));
    }
    file
}

/// Times of events, with the number of lost events before each.
type Read = Vec<(Nanos, u64)>;

/// The events and the notes.
fn read(bytes: &[u8], buffer: Option<&str>) -> Result<(Read, Vec<String>), TraceError> {
    let input = BufReader::new(Cursor::new(bytes.to_vec()));
    let mut reader = TraceDatReader::new(Box::new(input), Path::new("some.dat"), buffer)?;
    let mut found = Vec::new();
    while let Some(record) = reader.next_record()? {
        assert_eq!(record.cpu, CpuId(0));
        found.push((record.time, record.lost()));
    }
    Ok((found, reader.notes()))
}

const TIMES: [Nanos; 2] = [3_000_000, 6_000_000];

#[test]
fn clocks_other_than_ns_are_converted_or_refused() {
    const CLOCK: u16 = 4;
    const TSC2NSEC: u16 = 14;
    let scale = [&(1u32 << 31).to_le_bytes()[..], &32u32.to_le_bytes(), &0u64.to_le_bytes()].concat();
    let pages = [page(&TIMES, None)];
    let plain = vec![(3_000_000, 0), (6_000_000, 0)];
    let halved = vec![(1_500_000, 0), (3_000_000, 0)];
    type Case<'a> = (&'a [Opt<'a>], Result<Read, &'a str>);
    let cases: [Case<'_>; 7] = [
        (&[], Ok(plain.clone())),
        (&[(CLOCK, b"[local] global counter x86-tsc\n\0")], Ok(plain.clone())),
        (&[(CLOCK, b"local [mono] x86-tsc\n\0"), (TSC2NSEC, &scale)], Ok(plain)),
        (&[(CLOCK, b"local [x86-tsc]\n\0"), (TSC2NSEC, &scale)], Ok(halved)),
        (&[(CLOCK, b"local [x86-tsc]\n\0")], Err("the clock x86-tsc, the counter of the CPU")),
        (&[(CLOCK, b"local [counter] mono\n\0")], Err("the clock counter, which counts events")),
        (&[(CLOCK, b"local [uptime] mono\n\0")], Err("the clock uptime, which counts ticks")),
    ];
    for (options, want) in cases {
        match (read(&file(options, &pages, &[]), None), want) {
            (Ok((found, _)), Ok(want)) => assert_eq!(found, want, "{options:?}"),
            (Err(error), Err(want)) => {
                assert!(error.to_string().contains(want), "{error}");
                assert!(error.hint().is_some_and(|hint| hint.contains("-C mono")), "{error}");
            }
            (found, want) => panic!("{options:?}: {found:?} instead of {want:?}"),
        }
    }
}

#[test]
fn one_buffer_of_several_is_read_and_the_others_are_named() {
    let (top, one, two) = ([page(&TIMES, None)], vec![page(&[1, 2, 3], None)], vec![page(&[7], None)]);
    let both = file(&[], &top, &[("one", one.clone()), ("two", two.clone())]);
    let (found, notes) = read(&both, None).unwrap();
    assert_eq!(found.len(), 2);
    assert!(notes[0].starts_with("the buffers one, two were not read"), "{notes:?}");
    let (found, notes) = read(&both, Some("one")).unwrap();
    assert_eq!(found.len(), 3);
    assert!(notes[0].starts_with("the buffers top, two were not read"), "{notes:?}");
    assert_eq!(read(&both, Some("top")).unwrap().0.len(), 2);
    let error = read(&both, Some("three")).unwrap_err().to_string();
    assert!(error.ends_with("no buffer 'three'; the file has top, one, two"), "{error}");
    // Only an instance has events, as with `trace-cmd record -B one`.
    let (found, notes) = read(&file(&[], &[], &[("one", one)]), None).unwrap();
    assert_eq!((found.len(), notes.len()), (3, 0));
}

#[test]
fn losses_are_records_at_their_time() {
    let pages = [page(&TIMES, None), page(&[9_000_000, 9_000_001], Some(182))];
    let (found, _) = read(&file(&[], &pages, &[]), None).unwrap();
    assert_eq!(found, [(3_000_000, 0), (6_000_000, 0), (9_000_000, 182), (9_000_000, 0), (9_000_001, 0)]);
}
