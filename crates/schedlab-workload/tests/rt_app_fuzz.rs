//! Fuzzing of the rt-app reader: whatever the bytes are, it answers, and an error has a place.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use schedlab_workload::rtapp::{read, Calibration, RtApp, RtAppError, Source};

/// A file with one of everything, written for this test.
const SEED: &str = r#"{
  /* a comment */ "global" : { "duration" : 3, "calibration" : "CPU0", default_policy : "SCHED_OTHER", "pi_enabled" : true, "ftrace" : "main,loop" },
  "resources" : { "m" : { "type" : "mutex" } }, // another
  "tasks" : {
    "a" : { "instance" : 2, "loop" : 3, "priority" : -3, "cpus" : [ 0, 1, ], "delay" : 10,
      "phases" : {
        "p" : { "loop" : 2, "run" : 100, "sleep" : 5, "run" : 7, "timer" : { "ref" : "unique", "period" : 1000, "mode" : "absolute" } },
        "q" : { "cpus" : [1], "lock" : "m", "wait" : { "ref" : "c", "mutex" : "m" }, "unlock" : "m", "suspend", "barrier" : "b" },
      } },
    "b" : { "loop" : -1, "runtime1" : 50, "resume" : "a", "sync" : { "ref" : "c", "mutex" : "m2" }, "yield" : "", "barrier" : "b" },
    "c" : { "run" : 1, "fork" : "d", "sem_post" : "s", "policy" : "SCHED_BATCH", "dl-runtime" : 100 },
    "d" : { "instance" : 0, "loop" : 1, "sem_wait" : "s", "run" : 9, "é\u0041" : null }
  }
}"#;

/// The same without its two mistakes.
fn valid() -> String {
    SEED.replace(", \"é\\u0041\" : null", "").replace("\"sync\"", "\"lock\" : \"m2\", \"sync\"")
}

/// Words that mean something somewhere.
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "'",
    "//",
    "/*",
    "*/",
    "\n",
    "\\u",
    "\\",
    "-1",
    "0",
    "1e400",
    "9999999999999999999",
    "true",
    "null",
    "\"tasks\"",
    "\"global\"",
    "\"phases\"",
    "\"loop\"",
    "\"instance\"",
    "\"run\"",
    "\"suspend\"",
    "\"fork\"",
    "\"timer\"",
    "\"barrier\"",
    "\"cpus\"",
    "\"policy\"",
    "4294967296",
    "\u{0}",
    "\u{feff}",
    "é",
    "run : 1,",
];

fn check(bytes: &[u8]) -> Result<RtApp, RtAppError> {
    let got = read("w", &[Source { name: "f", bytes }], 4);
    if let Err(error) = &got {
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u32 + 1;
        assert!(error.line >= 1 && error.line <= lines, "{error:?}");
        assert!(error.column >= 1 && !error.what.is_empty() && error.what.len() < 1000, "{error:?}");
    }
    got
}

/// What is written for the program rt-app reads as the same workload, and is strict JSON without repeated keys.
fn the_program_gets_the_same(app: &RtApp) {
    let ns_per_loop = match app.task_set.calibration {
        Calibration::NsPerLoop(ns) => ns,
        Calibration::Cpu(_) => 1,
    };
    let text = app.task_set.json("/logs", "log", ns_per_loop);
    let strict: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(strict["global"]["logdir"], "/logs");
    // A repeated key would be lost in the parsed value.
    let keys = |text: &str| text.matches("\":").count();
    assert_eq!(keys(&strict.to_string()), keys(&text), "{text}");
    let again = read("w", &[Source { name: "written", bytes: text.as_bytes() }], 4).unwrap();
    let plain = |app: &RtApp| {
        let mut workload = app.workload.clone();
        workload.programs.iter_mut().for_each(|program| program.lines.clear());
        (workload, app.duration)
    };
    let numbered = app.task_set.logged.iter().any(|task| task.written != task.name);
    if numbered {
        assert_eq!(app.workload.tasks.len(), again.workload.tasks.len());
    } else {
        assert_eq!(plain(app), plain(&again), "{text}");
    }
}

/// One change to a file.
#[derive(Clone, Debug)]
enum Change {
    Cut(usize, usize),
    Put(usize, &'static str),
    Byte(usize, u8),
    Repeat(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let at = 0usize..4096;
    prop_oneof![
        (at.clone(), 1usize..40).prop_map(|(at, len)| Change::Cut(at, len)),
        (at.clone(), prop::sample::select(WORDS)).prop_map(|(at, word)| Change::Put(at, word)),
        (at.clone(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        (at, 1usize..200).prop_map(|(at, len)| Change::Repeat(at, len)),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    let (Change::Cut(at, _) | Change::Put(at, _) | Change::Byte(at, _) | Change::Repeat(at, _)) = change;
    let at = at % (bytes.len() + 1);
    match change {
        Change::Cut(_, len) => drop(bytes.drain(at..(at + len).min(bytes.len()))),
        Change::Put(_, word) => drop(bytes.splice(at..at, word.bytes())),
        Change::Byte(_, byte) if at < bytes.len() => bytes[at] = *byte,
        Change::Byte(..) => {}
        Change::Repeat(_, len) => {
            let part = bytes[at..(at + len).min(bytes.len())].to_vec();
            drop(bytes.splice(at..at, part));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_files_never_panic(changes in prop::collection::vec(change(), 1..12)) {
        let mut bytes = valid().into_bytes();
        changes.iter().for_each(|change| apply(&mut bytes, change));
        if let Ok(app) = check(&bytes) {
            the_program_gets_the_same(&app);
        }
    }

    #[test]
    fn words_in_any_order_never_panic(words in prop::collection::vec(prop::sample::select(WORDS), 0..60)) {
        let _ = check(words.concat().as_bytes());
    }

    #[test]
    fn bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = check(&bytes);
    }
}

#[test]
fn the_seed_itself_runs_but_for_its_unknown_key() {
    let error = check(SEED.as_bytes()).unwrap_err();
    assert_eq!((error.line, error.key.as_str()), (12, "tasks.d.éA"));
    let error = check(SEED.replace(", \"é\\u0041\" : null", "").as_bytes()).unwrap_err();
    assert!(error.what.contains("mutex m2 is not held"), "{error}");
    let app = check(valid().as_bytes()).unwrap();
    assert_eq!(app.workload.tasks.len(), 3);
    the_program_gets_the_same(&app);
}

#[test]
fn ten_megabytes_of_junk_are_one_error() {
    let mib = 10 << 20;
    let noise = |seed: u64| {
        let mut rng = schedlab_model::stream(seed, "junk");
        std::iter::repeat_with(move || rng.next_u64().to_le_bytes()).flatten().take(mib).collect::<Vec<u8>>()
    };
    let keys = |text: &str| format!("{{\"tasks\":{{\"t\":{{{}}}}}}}", text.repeat(mib / text.len())).into_bytes();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("noise", noise(1)),
        ("brackets", vec![b'['; mib]),
        ("braces", "{\"a\":".repeat(mib / 5).into_bytes()),
        ("numbers", format!("[{}", "1,".repeat(mib / 2)).into_bytes()),
        ("one string", format!("\"{}", "x".repeat(mib)).into_bytes()),
        ("one comment", format!("/*{}", "*".repeat(mib)).into_bytes()),
        ("one number", "1".repeat(mib).into_bytes()),
        ("white space", vec![b' '; mib]),
        ("lines", vec![b'\n'; mib]),
        ("one key", format!("{{{}", "x".repeat(mib)).into_bytes()),
        ("unknown keys", keys("\"xyzzy\":1,")),
        ("too many events", keys("\"run\":1,")),
        ("barriers", keys("\"barrier\":\"b\",")),
        ("timers", keys("\"timer\":{\"ref\":\"unique\",\"period\":1},")),
    ];
    for (name, bytes) in cases {
        let got = check(&bytes);
        // The last two are long, and right.
        assert_eq!(got.is_ok(), ["barriers", "timers"].contains(&name), "{name}");
    }
}

#[test]
fn many_repeated_names_stay_within_time() {
    let tasks: String = (0..20_000)
        .map(|i| format!("\"t{i}\":{{\"loop\":1,\"run\":1,\"timer\":{{\"ref\":\"x{i}\",\"period\":1}}}},"))
        .collect();
    assert!(check(format!("{{\"tasks\":{{{tasks}}}}}").as_bytes()).is_ok());
    let forks: String = (0..2_000)
        .map(|i| format!("\"t{i}\":{{\"instance\":{},\"loop\":1,\"fork\":\"t{}\"}},", usize::from(i == 0), i + 1))
        .collect();
    let chain = format!("{{\"tasks\":{{{forks}\"t2000\":{{\"instance\":0,\"loop\":1,\"run\":1}}}}}}");
    assert!(check(chain.as_bytes()).unwrap_err().what.contains("nested more than"));
}
