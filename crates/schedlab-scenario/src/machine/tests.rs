use super::*;
use schedlab_model::{CpuId, Distance};
use schedlab_spec::{FrontEnd, Physics, SharedBy};
use std::fs;

#[test]
fn every_preset_loads_and_names_its_sources() {
    let sizes = [
        ("rpi4", 4, 4),
        ("laptop-8", 8, 8),
        ("hikey960", 8, 4),
        ("xeon-1s26c-smt2", 52, 52),
        ("xeon-2s16c-smt2", 64, 32),
        ("xeon-2s28c-smt2", 112, 56),
        ("xeon-2s32c-smt2", 128, 64),
        ("power9-176", 176, 8),
        ("xeon-2s56c-smt2", 224, 112),
        ("power10-480", 480, 4),
    ];
    assert_eq!(preset_ids(), sizes.map(|size| size.0));
    for (id, cpus, llc) in sizes {
        let mut machine = preset(id).unwrap().unwrap();
        assert_eq!((machine.name.as_str(), machine.topology.nr_cpus()), (id, cpus));
        assert_eq!(machine.topology.llc(CpuId(0)).count(), llc, "{id}");
        assert!(!machine.calibrated && !machine.summary.is_empty());
        let needed = crate::keys::COSTS.keys.iter().filter(|key| key.default.is_empty()).count();
        // Exits are a cost of every preset, the walk for idle hints one of powerpc, nested exits, loops of PAUSE and
        // TLB shootdowns of x86; mmap and munmap of all but one.
        let of_guests =
            ["vm-exit", "vm-exit-nested", "idle-hint", "tlb-flush", "cpu-relax", "ple-window", "mmap", "munmap"];
        let costs = machine.costs.each_mut().into_iter().filter(|(name, _)| of_guests.contains(name));
        let of_guests = costs.filter(|(_, cost)| cost[0].typical() > 0).count();
        assert!(of_guests >= 1, "{id}");
        let has = |group: &str| machine.sources.iter().any(|line| line.starts_with(group));
        let optional =
            ["line-transfer: ", "physics: ", "memory: ", "caches: "].into_iter().filter(|group| has(group)).count();
        let optional = optional + machine.sources.iter().filter(|line| line.starts_with("cpu-type.")).count();
        assert_eq!(machine.sources.len(), 1 + needed + optional + of_guests + machine.idle_states.len(), "{id}");
        let physics = machine.physics;
        assert_eq!(has("line-transfer: "), physics.lines, "{id}");
        assert_eq!(has("memory: "), physics.memory, "{id}");
        // On the HiKey the source says why warmth is off.
        let others = Physics { memory: false, warmth: false, ..physics } != Physics::default();
        assert_eq!(has("physics: "), others || id == "hikey960", "{id}");
        assert_eq!(has("caches: "), machine.caches.is_some(), "{id}");
        assert_eq!(physics.warmth, machine.caches.is_some() && id != "hikey960", "{id}");
        assert!(machine.sources.iter().all(|line| !line.contains(sources::NO_SOURCE)), "{id}");
        assert_eq!(machine.smt_rates.len(), machine.topology.smt(CpuId(0)).count(), "{id}");
    }
}

/// The capacities and powers of the HiKey 960 as its kernel computes them from the device tree.
#[test]
fn capacities_and_power_follow_from_the_device_tree() {
    let machine = preset("hikey960").unwrap().unwrap();
    let capacities = machine.topology.capacities().unwrap();
    assert_eq!(capacities.all(), [462, 462, 462, 462, 1024, 1024, 1024, 1024]);
    assert_eq!(462, 592 * 1844 / 2362);
    let [little, big] = capacities.perf_domains() else { panic!("two frequencies") };
    assert_eq!((little.cpus.to_list(), big.cpus.to_list()), ("0-3".to_owned(), "4-7".to_owned()));
    let shown = |domain: &schedlab_model::PerfDomain| -> Vec<(u32, u64)> {
        domain.states.iter().map(|state| (state.performance, state.power)).collect()
    };
    // 110 uW per MHz and V^2: 110 * 0.49 * 533 = 28,728.
    assert_eq!(shown(little)[0], (133, 28_728));
    assert_eq!(shown(big).last(), Some(&(1024, 1_571_911)));
}

#[test]
fn types_of_cpus_are_refused_unless_they_are_a_machine() {
    let types = |text: &str| {
        let machine = format!("base = \"rpi4\"\n{text}");
        parse("m.toml", machine.as_bytes(), "m").map(|_| ()).map_err(|error| error.to_string())
    };
    let of = |cpus: &str, capacity: u32, more: &str| {
        format!("[[cpu-type]]\nname = \"a\"\ncpus = \"{cpus}\"\ncapacity = {capacity}\n{more}\n")
    };
    let state = "power-coefficient = 100\nstates = [{ mhz = 500, mv = 700 }]";
    assert_eq!(types(&(of("0-1", 400, state) + &of("2-3", 1024, state))), Ok(()));
    for (text, expected) in [
        (of("0-1", 400, ""), "CPU 2 has no type"),
        (of("0-2", 400, "") + &of("2-3", 1024, ""), "CPU 2 has two types"),
        (of("0-4", 400, ""), "not a list of CPUs of this machine"),
        (of("0-1", 400, "") + &of("2-3", 800, ""), "the largest one is 1024"),
        (of("0-1", 400, state) + &of("2-3", 1024, ""), "some types have states"),
        (of("0-1", 400, "power-coefficient = 100") + &of("2-3", 1024, ""), "belong together"),
        (of("0-1", 400, "power-coefficient = 100\nstates = []") + &of("2-3", 1024, ""), "no state"),
        (
            of("0-1", 400, "power-coefficient = 100\nstates = [{ mhz = 2, mv = 7 }, { mhz = 2, mv = 9 }]")
                + &of("2-3", 1024, ""),
            "not faster",
        ),
        (of("0-1", 0, ""), "capacity"),
    ] {
        let error = types(&text).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let smt = "topology = { cores-per-llc = 2, threads-per-core = 2, smt-rates = [\"100%\", \"60%\"] }\n".to_owned();
    let error = types(&(smt + &of("0-1", 400, "") + &of("2-3", 1024, ""))).unwrap_err();
    assert!(error.contains("several threads per core"), "{error}");
}

/// A number can be looked up where its source says, or it is an estimate that says why.
#[test]
fn no_source_is_from_memory() {
    for id in preset_ids().into_iter().chain([HOST]) {
        let text = presets::text_of(id).unwrap();
        let vague: Vec<&str> = text.lines().filter(|line| line.contains("from memory")).collect();
        assert!(vague.is_empty(), "{id}: {vague:?}");
    }
}

#[test]
fn host_is_this_machine() {
    let machine = preset(HOST).unwrap();
    if Path::new("/sys/devices/system/cpu/online").exists() {
        let machine = machine.unwrap();
        assert!(machine.topology.nr_cpus() >= 1 && machine.summary.contains("not calibrated"));
    }
}

#[test]
fn power10_interleaves_the_halves_of_a_core() {
    let topology = preset("power10-480").unwrap().unwrap().topology;
    assert_eq!(topology.smt(CpuId(0)).to_list(), "0,2,4,6");
    assert_eq!(topology.smt(CpuId(9)).to_list(), "9,11,13,15");
    assert_eq!(topology.distance(CpuId(0), CpuId(1)), Distance::Node);
    assert_eq!(topology.node(CpuId(0)).to_list(), "0-119");
}

#[test]
fn sysfs_is_read_as_the_kernel_writes_it() {
    let root = std::env::temp_dir().join(format!("schedlab-sysfs-{}", std::process::id()));
    let write = |path: &str, text: &str| {
        let path = root.join("devices/system").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("cpu/online", "0-2,4\n");
    for (cpu, siblings, llc) in [(0, "0,2", "0,2"), (1, "1", "1,4"), (2, "0,2", "0,2"), (4, "4", "1,4")] {
        write(&format!("cpu/cpu{cpu}/topology/thread_siblings_list"), siblings);
        write(&format!("cpu/cpu{cpu}/topology/physical_package_id"), "0");
        write(&format!("cpu/cpu{cpu}/cache/index0/level"), "1");
        write(&format!("cpu/cpu{cpu}/cache/index0/shared_cpu_list"), siblings);
        write(&format!("cpu/cpu{cpu}/cache/index3/level"), "3");
        write(&format!("cpu/cpu{cpu}/cache/index3/shared_cpu_list"), llc);
    }
    write("node/node0/cpulist", "0,2\n");
    write("node/node1/cpulist", "1,4\n");
    let topology = host::topology(&root).unwrap();
    fs::remove_dir_all(&root).unwrap();
    assert_eq!(topology.nr_cpus(), 4);
    assert_eq!(topology.smt(CpuId(0)).to_list(), "0,2");
    assert_eq!(topology.llc(CpuId(1)).to_list(), "1,3");
    assert_eq!(topology.distance(CpuId(0), CpuId(1)), Distance::Remote);
    assert!(host::topology(&root).unwrap_err().contains("online"));
}

#[test]
fn bad_machine_files() {
    let cases = [
        ("hz = 250", "m.toml:1:1: the key \"topology\" is missing; expected a table, or a base"),
        (
            "topology = { cores-per-llc = 4 }",
            "m.toml:1:1: the key \"costs.syscall\" is missing; expected every cost, or a base that provides them",
        ),
        ("base = \"laptop\"", "m.toml:1:8: base: unknown preset \"laptop\""),
    ];
    for (text, want) in cases {
        assert_eq!(parse("m.toml", text.as_bytes(), "m").unwrap_err().to_string(), want, "{text}");
    }
    let with_base = [
        (
            "[topology]\nnodes = 64\nllcs-per-node = 64\ncores-per-llc = 64\nthreads-per-core = 1",
            "2:1: topology: 262144 CPUs are more than the 1024 a kernel can have",
        ),
        (
            "[topology]\ncores-per-llc = 0",
            "3:17: topology.cores-per-llc: 0: out of range; expected a whole number from 1 to 1024",
        ),
        (
            "[topology]\ncores-per-llc = 2\nthreads-per-core = 4",
            "2:1: topology: the key \"smt-rates\" is missing; expected the speed of a thread by the number of busy threads of its core",
        ),
        (
            "[topology]\ncores-per-llc = 2\nsmt-rates = [\"90%\"]",
            "4:14: topology.smt-rates: \"90%\": not valid at this position; expected 1 percentages, the first \"100%\", none above the previous one",
        ),
        ("topology = \"moon\"", "2:12: topology: unknown topology \"moon\""),
        ("hz = 99", "2:6: hz: 99: not a timer frequency of the kernel; expected one of 100, 250, 300, 1000"),
        ("[costs.syscal]", "2:8: costs.syscal: unknown key \"syscal\"; expected a key of [costs]"),
        (
            "[costs.syscall]\nconstant = 5",
            "3:12: costs.syscall.constant: 5: the unit is missing; expected a duration such as \"10ms\" (a number and one of ns us ms s min h)",
        ),
        (
            "[costs.syscall]\nquantiles = { p50 = \"2us\", p0 = \"3us\" }",
            "3:13: costs.syscall.quantiles: quantiles need at least two (per mille, value) pairs, ascending in both, per mille within 0..=1000",
        ),
        (
            "[costs.syscall]\nconstant = \"1001ms\"",
            "3:12: costs.syscall.constant: \"1001ms\": out of range; expected a duration from 0s to 1s",
        ),
        (
            "[costs.ipi]\nsame = { quantiles = { p0 = \"1us\", p100 = \"5s\" } }",
            "3:43: costs.ipi.same.quantiles.p100: \"5s\": out of range; expected a duration from 0s to 1s",
        ),
        (
            "[costs.syscall]\nsource = \"x\"",
            "2:1: costs.syscall: neither constant nor quantiles is given; expected one of them",
        ),
        (
            "[costs.ipi]\nsame = { constant = \"0s\" }",
            "2:1: costs.ipi: the key \"smt\" is missing; expected constant or quantiles",
        ),
        (
            "[costs.syscall]\nconstant = \"1us\"\nrange = [\"120%\", \"200%\"]",
            "4:10: costs.syscall.range: \"120%\": out of range; expected at most 100%",
        ),
        (
            "[costs.syscall]\nconstant = \"1us\"\nrange = [\"100%\", \"100%\"]",
            "4:9: costs.syscall.range: an array: out of range; expected two percentages around 100% such as [\"50%\", \"200%\"], from 1% to 10000%",
        ),
        (
            "[costs.syscall]\nconstant = \"1us\"\nrange = [\"50%\"]",
            "4:9: costs.syscall.range: an array: not a range; expected two percentages around 100% such as [\"50%\", \"200%\"]",
        ),
        (
            "[costs.syscall]\nconstant = \"1us\"\nrange = 2",
            "4:9: costs.syscall.range: 2 is not valid here; expected two percentages around 100% such as [\"50%\", \"200%\"]",
        ),
        ("[topology]\ncores-per-llc = 2\nrange = [\"50%\", \"200%\"]", "4:1: topology.range: unknown key \"range\"; expected a key of [topology]"),
        ("idle = []", "2:8: idle: there is no idle state; expected at least one [[idle]] table"),
    ];
    for (text, want) in with_base {
        let text = format!("base = \"laptop-8\"\n{text}\n");
        let error = parse("m.toml", text.as_bytes(), "m").unwrap_err();
        assert_eq!(error.to_string(), format!("m.toml:{want}"), "{text}");
    }
}

#[test]
fn what_a_machine_does_not_say_is_its_base() {
    let text = b"base = \"laptop-8\"\n[topology]\ncores-per-llc = 1\n[costs.tick]\nconstant = \"1us\"\n";
    let machine = parse("small.toml", text, "small").unwrap();
    assert_eq!((machine.topology.nr_cpus(), machine.hz, machine.idle_states.len()), (1, 250, 5));
    assert_eq!(machine.costs.tick, schedlab_workload::Dist::Constant(1000));
    assert!(machine.sources.contains(&"tick: no source given".to_owned()));
}

#[test]
fn an_estimate_states_its_own_range() {
    let own = b"base = \"laptop-8\"
[costs.tick]
constant = \"1us\"
range = [\"40%\", \"150%\"]
[costs.irq]
constant = \"1us\"
[[idle]]
name = \"C1\"
exit = { constant = \"1us\" }
range = [\"1%\", \"10000%\"]
";
    let machine = parse("m.toml", own, "m").unwrap();
    assert_eq!(machine.ranges["tick"], [0.4, 1.5]);
    assert_eq!(machine.ranges["idle.C1"], [0.01, 100.0]);
    assert!(!machine.ranges.contains_key("irq"), "a cost of its own has none of the base");
    let base = preset("laptop-8").unwrap().unwrap();
    assert!(base
        .ranges
        .keys()
        .all(|cost| cost.starts_with("idle.") || machine.ranges.contains_key(cost) || cost == "irq"));
    assert!(machine.ranges.keys().filter(|cost| cost.starts_with("idle.")).eq(["idle.C1"]));
}

/// Both ends of the range, so that a run with other estimates has other rates, and what has no limit keeps none.
#[test]
fn an_estimated_bandwidth_has_a_range() {
    let text = b"base = \"laptop-8\"
[memory]
cpu = 10_000
node = 20_000
range = [\"50%\", \"200%\"]
";
    let machine = parse("m.toml", text, "m").unwrap();
    assert_eq!(machine.ranges["memory"], [0.5, 2.0]);
    for (factor, cpu, node) in [(0.5, 5_000, 10_000), (2.0, 20_000, 40_000)] {
        let mut scaled = machine.clone();
        assert!(scaled.scale("memory", factor, 0));
        let memory = scaled.memory.unwrap();
        assert_eq!((memory.cpu, memory.node, memory.remote), (cpu, node, node));
    }
    let free = schedlab_spec::Memory { cpu: 1, node: u32::MAX, remote: u32::MAX, latency: None }.scaled(0.1);
    assert_eq!((free.cpu, free.node, free.remote), (1, u32::MAX, u32::MAX));
}

#[test]
fn caches_switch_warmth_on() {
    let text = b"base = \"laptop-8\"
[caches]
l2 = { size = \"1MiB\", read = \"20ns\" }
llc = { size = \"8MiB\", read = \"60ns\" }
memory = { read = \"150ns\" }
front-end = { size = \"128KiB\", warm = \"48ns\", cold = \"105ns\" }
range = [\"50%\", \"200%\"]
";
    let mut machine = parse("m.toml", text, "m").unwrap();
    assert!(machine.physics.warmth);
    assert_eq!(machine.ranges["caches"], [0.5, 2.0]);
    let caches = machine.caches.clone().unwrap();
    let levels: Vec<(&str, u64, u64)> = caches.levels.iter().map(|level| (level.name, level.kib, level.read)).collect();
    assert_eq!((levels, caches.memory), (vec![("l2", 1024, 20), ("llc", 8192, 60)], 150));
    let front = |cold| Some(FrontEnd { kib: 128, warm: 48, cold });
    assert_eq!(caches.front_end, front(105));
    assert!(machine.scale("caches", 2.0, 0));
    let scaled = machine.caches.unwrap();
    assert_eq!((scaled.memory, scaled.front_end), (280, front(162)));
    let (table, _) = rpi4_without_caches();
    let mut without = parse("m.toml", table.as_bytes(), "m").unwrap();
    assert!(!without.physics.warmth && !without.scale("caches", 2.0, 0));
}

/// The preset without its caches, and how many lines it has then.
fn rpi4_without_caches() -> (String, usize) {
    let text = include_str!("../../../../machines/rpi4.toml");
    let begin = text.find("[caches]").unwrap();
    let end = begin + text[begin..].find("[[idle]]").unwrap();
    let table = format!("{}{}", &text[..begin], &text[end..]);
    let lines = table.lines().count();
    (table, lines)
}

#[test]
fn warmth_needs_caches() {
    let (table, lines) = rpi4_without_caches();
    let text = format!("{table}\n[physics]\nwarmth = true\n");
    let error = parse("m.toml", text.as_bytes(), "m").unwrap_err();
    let want = format!("m.toml:{}:10: physics.warmth: the machine does not say how large its caches are", lines + 3);
    assert_eq!(error.to_string(), want);
}

/// A cache is shared by those for which it is stated: on a POWER9 two cores share the L2.
#[test]
fn the_cpus_that_share_a_cache_can_be_stated() {
    let shared = |id: &str| -> Vec<(&str, SharedBy)> {
        let caches = preset(id).unwrap().unwrap().caches.unwrap();
        caches.levels.iter().map(|level| (level.name, level.shared_by)).collect()
    };
    assert_eq!(shared("power9-176"), [("l1", SharedBy::Core), ("l2", SharedBy::Llc), ("llc", SharedBy::Llc)]);
    assert_eq!(shared("laptop-8"), [("l1", SharedBy::Core), ("l2", SharedBy::Core), ("llc", SharedBy::Llc)]);
}

#[test]
fn caches_that_cannot_be_are_refused() {
    let cases = [
        ("caches = { llc = { size = \"8MiB\", read = \"60ns\" } }", "2:10: caches: the key \"memory\" is missing; expected a table such as { read = \"100ns\" }"),
        ("caches = { memory = { read = \"60ns\" } }", "2:10: caches: the key \"llc\" is missing; expected a table such as { size = \"1MiB\", read = \"20ns\" }"),
        (
            "[caches]\nl2 = { size = \"2MiB\", read = \"20ns\" }\nllc = { size = \"1MiB\", read = \"20ns\" }",
            "4:16: caches.llc.size: \"1MiB\": smaller than the cache before it; expected caches that grow from l1 to llc",
        ),
        (
            "[caches]\nllc = { size = \"1MiB\", read = \"20ns\" }\nmemory = { read = \"10ns\" }",
            "4:19: caches.memory.read: \"10ns\": faster than the cache before it; expected times that grow from l1 to memory",
        ),
        (
            "[caches]\nllc = { size = \"1MiB\", read = \"20ns\", shared-by = \"core\" }\nmemory = { read = \"90ns\" }",
            "3:51: caches.llc.shared-by: \"core\": shared by fewer CPUs than the cache before it or the domain; expected llc",
        ),
        (
            "[caches]\nl1 = { size = \"1KiB\", read = \"2ns\", shared-by = \"all\" }\nllc = { size = \"1MiB\", read = \"20ns\" }\nmemory = { read = \"90ns\" }",
            "3:49: caches.l1.shared-by: \"all\": unknown CPUs; expected core or llc",
        ),
        (
            "[caches]\nllc = { size = \"1MiB\", read = \"20ns\" }\nmemory = { read = \"90ns\" }\nfront-end = { size = \"64KiB\", warm = \"48ns\", cold = \"47ns\" }",
            "5:53: caches.front-end.cold: \"47ns\": faster than warm code; expected a time that is not below warm",
        ),
    ];
    for (text, want) in cases {
        let text = format!("base = \"laptop-8\"\n{text}\n");
        let error = parse("m.toml", text.as_bytes(), "m").unwrap_err();
        assert_eq!(error.to_string(), format!("m.toml:{want}"), "{text}");
    }
}

/// Positions lie within the call, in order; a wrong table is refused where it is wrong.
#[test]
fn tables_of_sections_are_checked() {
    let read =
        |sections: &str| parse("m.toml", format!("base = \"laptop-8\"\n[[sections]]\n{sections}").as_bytes(), "m");
    let good = "call = \"fork\"\nlength = 10\nmight-sleep = [1, 1, 10]\nspinlock = [[2, 3]]";
    let own = read(good).unwrap().sections;
    assert_eq!((own.len(), own[0].might_sleep.len(), own[0].spinlock[0]), (1, 3, (2, 3)));
    let shipped = preset("laptop-8").unwrap().unwrap().sections;
    assert!(shipped.iter().any(|call| call.call == "exec" && call.might_sleep.len() > 100));
    for (sections, line, why) in [
        ("call = \"forks\"\nlength = 10", 3, "fork"),
        ("call = \"fork\"", 2, "length"),
        ("call = \"fork\"\nlength = 0", 4, "1"),
        ("call = \"fork\"\nlength = 10\ncond-resched = [11]", 5, "10"),
        ("call = \"fork\"\nlength = 10\ncond-resched = [5, 4]", 5, "order"),
        ("call = \"fork\"\nlength = 10\nspinlock = [[5, 4]]", 5, "5"),
        ("call = \"fork\"\nlength = 10\nspinlock = [[5]]", 5, "pairs"),
        ("call = \"fork\"\nlength = 10\n[[sections]]\ncall = \"fork\"\nlength = 10", 5, "twice"),
        ("call = \"fork\"\nlength = 10\nspinlocks = []", 5, "spinlock"),
    ] {
        let error = read(sections).unwrap_err().to_string();
        assert!(error.contains(&format!("m.toml:{line}:")) && error.contains(why), "{sections}: {error}");
    }
    let sizes = |number: u32| {
        (1..=number).map(|kib| format!("call = \"fork\"\nlength = 10\nkib = {kib}\n")).collect::<Vec<_>>()
    };
    assert_eq!(read(&sizes(255).join("[[sections]]\n")).unwrap().sections.len(), 255);
    assert!(read(&sizes(256).join("[[sections]]\n")).unwrap_err().to_string().contains("more than 255"));
}
