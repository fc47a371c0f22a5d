//! Damaged scenarios: after cutting, doubling, swapping or overwriting parts, the reader returns a scenario or one
//! error.

use proptest::prelude::*;
use schedlab_scenario::Scenario;

/// Texts that reach every part of the reader.
const SEEDS: [&str; 4] = [
    include_str!("../../../scenarios/eevdf-vs-cfs.toml"),
    include_str!("../../../scenarios/custom-program.toml"),
    include_str!("../../../scenarios/hogs.toml"),
    MIXED,
];

const MIXED: &str = r#"
machine = { base = "rpi4", hz = 1000, sections = [{ call = "fork", length = 10, might-sleep = [1], spinlock = [[2, 3]] }], topology = { cores-per-llc = 2, nodes = 2 }, costs = { tick = { quantiles = { p0 = "1us", p100 = "9us" }, source = "x" } } }
duration = "1.5s"
seeds = [1, 2, 3]
hotplug = [{ at = "2ms", offline = "1-2" }, { at = "5ms", online = "2" }]
workload = [
    { use = "schbench", name = "s", message-threads = 2, runtime = 5, slice = "3ms", cpus = "0-1" },
    { name = "p", count = 3, delay = "1ms", timer-slack = "1us", program = [
        { loop = 3, do = [ { lock = "m" }, { run = { normal = { mean = "1ms", sd = "10us" } } }, { unlock = "m" }, "yield" ] },
        { cond-wait = "c", mutex = "m" }, { sem-wait = "s" }, { barrier = "b" }, { read = "q", bytes = 7 }, { nice = -3 },
        { cpus = "0" }, { slice = "0s" }, { policy = "batch" }, { count = "ops", by = 2 }, "exit",
    ] },
]
variant = [
    { name = "a", kernel = "6.12.0", features = { RUN_TO_PARITY = false }, knobs = { base_slice = "3ms", nr_migrate = 8 }, hz = 100, preempt = "full", tasks.s.nice = 3 },
    { name = "b", kernel = "6.12.0" },
]
metric = [{ of = "sched.wakeup_latency", stat = "p99.9", margin = "0.5%", better = "neither" }]
"#;

/// Fragments that are valid somewhere in a scenario.
const TOKENS: [&str; 24] = [
    "\"",
    "'",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ",",
    "\n",
    "\"\"\"",
    "#",
    "\u{0}",
    "\u{feff}",
    "-1",
    "99999999999999999999",
    "1e308",
    "nan",
    "\"1ms\"",
    "\"0s\"",
    "true",
    "[workload]",
    "name",
    "\u{1f980}",
    "1979-05-27",
];

#[derive(Clone, Debug)]
enum Damage {
    Cut(usize, usize),
    Double(usize, usize),
    Insert(usize, usize),
    Byte(usize, u8),
    Swap(usize, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (any::<usize>(), 0..40usize).prop_map(|(at, len)| Damage::Cut(at, len)),
        (any::<usize>(), 0..40usize).prop_map(|(at, len)| Damage::Double(at, len)),
        (any::<usize>(), any::<usize>()).prop_map(|(at, token)| Damage::Insert(at, token)),
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Damage::Swap(a, b)),
    ]
}

fn apply(mut bytes: Vec<u8>, damage: &Damage) -> Vec<u8> {
    let end = bytes.len();
    if end == 0 {
        return bytes;
    }
    match *damage {
        Damage::Cut(at, len) => drop(bytes.drain(at % end..(at % end + len).min(end))),
        Damage::Double(at, len) => {
            let piece = bytes[at % end..(at % end + len).min(end)].to_vec();
            bytes.splice(at % end..at % end, piece);
        }
        Damage::Insert(at, token) => {
            bytes.splice(at % end..at % end, TOKENS[token % TOKENS.len()].bytes());
        }
        Damage::Byte(at, byte) => bytes[at % end] = byte,
        Damage::Swap(a, b) => {
            // Swapped lines move keys to other tables.
            let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
            let count = lines.len();
            lines.swap(a % count, b % count);
            bytes = lines.join(&b'\n');
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_scenarios_yield_a_scenario_or_one_error(seed in 0..SEEDS.len(), damages in prop::collection::vec(damage(), 1..6)) {
        let bytes = damages.iter().fold(SEEDS[seed].as_bytes().to_vec(), apply);
        if let Err(error) = Scenario::parse(&String::from_utf8_lossy(&bytes), "fuzz.toml", None) {
            let shown = error.to_string();
            prop_assert!(shown.starts_with("fuzz.toml:") && !shown.contains('\n'), "{}", shown);
            prop_assert!(!error.message.is_empty());
        }
    }

    #[test]
    fn any_text_yields_one_error(text: String) {
        prop_assert!(Scenario::parse(&text, "fuzz.toml", None).is_err());
    }

    #[test]
    fn any_overrides_are_accepted_or_refused(text: String) {
        let _ = Scenario::parse(MIXED, "fuzz.toml", Some(&text));
    }
}

#[test]
fn the_undamaged_texts_are_valid() {
    for text in SEEDS {
        if let Err(error) = Scenario::parse(text, "fuzz.toml", None) {
            panic!("{error}; {:?}", error.hint);
        }
    }
}
