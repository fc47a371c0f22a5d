//! Traces recorded from real kernels, those that replay is tested on: every line is read, and converting keeps every
//! event.

use std::path::{Path, PathBuf};

use schedlab_trace::{copy, create, open, Body, Digest, Header, Sink};

fn recorded() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schedlab-replay/corpus");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(".ftrace.gz"));
    paths.sort();
    paths
}

/// What a trace holds: header, digest of its events, number of events the model has no word for.
fn summary(path: &Path) -> (Header, String, u64) {
    let mut reader = open(path).unwrap_or_else(|error| panic!("{error}"));
    let (mut events, mut others) = (Vec::new(), 0);
    while let Some(record) = reader.next_record().unwrap_or_else(|error| panic!("{error}")) {
        others += u64::from(matches!(record.body, Body::Other { .. }));
        events.extend(record.event());
    }
    assert!(events.len() > 1000);
    // These traces are in microseconds, and trace.dat does not keep the order of one instant on different CPUs.
    events.sort_by_key(|event| (event.time, event.cpu));
    let mut digest = Digest::default();
    events.iter().for_each(|event| digest.event(event));
    let header = reader.header().clone();
    assert!(header.kernel.is_some() && header.get("hz").is_some(), "{}", path.display());
    (header, digest.hex(), others)
}

#[test]
fn every_recorded_trace_is_read_and_converted_whole() {
    assert!(!recorded().is_empty());
    for path in recorded() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let (header, digest, others) = summary(&path);
        // Converting one of each kernel's is enough: the events are of the same kinds.
        if !name.contains("-hack.") {
            continue;
        }
        for suffix in ["ftrace", "txt.gz", "pftrace", "dat"] {
            let converted = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.{suffix}"));
            copy(&mut *open(&path).unwrap(), create(&converted, &header).unwrap()).unwrap();
            let (again, digest_again, others_again) = summary(&converted);
            assert_eq!(
                (&again.kernel, again.nr_cpus, &again.comments),
                (&header.kernel, header.nr_cpus, &header.comments)
            );
            assert_eq!((digest_again, others_again), (digest.clone(), others), "{name} as {suffix}");
            std::fs::remove_file(converted).unwrap();
        }
    }
}
