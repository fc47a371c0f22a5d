//! `[[guest]]`: kernels whose CPUs are threads of the host, and the values that a variant overrides.

use std::sync::Arc;

use schedlab_model::{suggest, CpuId, CpuMask, KernelId, Nanos, Topology, SEC};
use schedlab_policy::{KernelConfig, Version};
use schedlab_spec::{Guest, GuestAction, IdleHint, Machine, Platform, RunSpec};
use serde_json::{Map, Value as Json};

use crate::attribute_values::{cpus, nice};
use crate::cgroup;
use crate::distribution::Named;
use crate::error::{quote, Result, ScenarioError};
use crate::kernel_settings::{configure, kernel_of, knobs, preempt, refused_key, with_config, RealSettings};
use crate::keys::{GUEST, GUEST_EVENT, VARIANT_GUEST};
use crate::machine::{counted, hz};
use crate::naming::numbered;
use crate::naming::word;
use crate::value::{Table, Value};

/// The switch that hides from a guest which of its vCPUs are preempted. It is none of the scheduler's features.
const VCPU_IS_PREEMPTED: &str = "VCPU_IS_PREEMPTED";

/// The longest halt-polling window.
const LONGEST_POLL: Nanos = SEC;

/// The largest `count`.
const MOST_GUESTS: i64 = 1000;

/// As many guests as a file may declare: `count` of a guest in a guest multiplies.
const MOST_IN_ALL: usize = 10_000;

/// The latest time of an event.
const LONGEST_RUN: Nanos = 1000 * SEC;

/// A guest as declared. A table with `count` declares several, which differ in their names alone.
#[derive(Clone, Debug)]
pub(crate) struct Draft<'a> {
    /// The name in results: of the first guest of a table that of the table, of the second `NAME-2`.
    pub name: String,
    /// The name of its table.
    pub declared: &'a str,
    pub topology: Arc<Topology>,
    /// The kernel that hosts it.
    host: KernelId,
    table: Table<'a>,
}

impl Draft<'_> {
    /// Refuses a name under which results show something else.
    pub fn check_name<'w>(&self, mut workloads: impl Iterator<Item = &'w str>) -> Result<()> {
        if self.name == "sched" || workloads.any(|workload| workload == self.name) {
            let error = self.table.error(format!("{} already names something else in results", quote(&self.name)));
            return Err(error.hint("choose another name for the guest"));
        }
        Ok(())
    }
}

/// Reads the guests of a scenario, without what their kernels are.
pub(crate) fn read<'a>(tables: Vec<Table<'a>>) -> Result<Vec<Draft<'a>>> {
    let mut drafts: Vec<Draft> = Vec::new();
    for table in tables {
        let table = table.only(&GUEST)?;
        let name = word(&table.require("name", "the name shown in results")?)?;
        let topology = Arc::new(topology(&table)?);
        let count = table.get("count").map(|value| value.integer(1..=MOST_GUESTS)).transpose()?.unwrap_or(1);
        let hosts = hosts(&table, &drafts)?;
        let each = hosts.into_iter().flat_map(|host| (0..count).map(move |_| host));
        for (number, host) in each.enumerate() {
            let own = numbered(name, number + 1);
            if drafts.iter().any(|known| known.name == own) {
                return Err(table.error(format!("two guests are named {}", quote(&own))));
            }
            if drafts.len() == MOST_IN_ALL {
                return Err(table.error(format!("a scenario has at most {MOST_IN_ALL} guests")));
            }
            let topology = Arc::clone(&topology);
            drafts.push(Draft { name: own, declared: name, topology, host, table: table.clone() });
        }
    }
    Ok(drafts)
}

/// The kernels that host a guest of this table: that of the machine, or those of every guest of the table that `in`
/// names.
fn hosts(table: &Table, drafts: &[Draft]) -> Result<Vec<KernelId>> {
    let Some(value) = table.get("in") else { return Ok(vec![KernelId::FIRST]) };
    let name = value.string("the name of a [[guest]] above")?;
    let outer = (1..).map(KernelId).zip(drafts).filter(|(_, draft)| draft.declared == name);
    let (kernels, outer): (Vec<_>, Vec<_>) = outer.unzip();
    match outer.first() {
        None => Err(unknown(&value, name, drafts).hint("a guest that hosts another one must be declared before it")),
        Some(draft) if draft.host != KernelId::FIRST => {
            let error = value.refuse("the cost of an exit of a guest in a guest in a guest is not known");
            Err(error.hint("name a guest that has no \"in\" itself"))
        }
        Some(_) => Ok(kernels),
    }
}

/// Without a topology, the vCPUs are cores of one thread under one last-level cache.
fn topology(table: &Table) -> Result<Topology> {
    let vcpus = cgroup::placed(table.get("vcpus"), |value| Ok(value.integer(1..=1024)? as usize))?;
    let Some(value) = table.get("topology") else {
        let (vcpus, _) = vcpus.ok_or_else(|| {
            table.error("the key \"vcpus\" is missing").expected("the number of vCPUs, or a topology")
        })?;
        let impossible = |error: schedlab_model::TopologyError| table.error(error.to_string());
        return Topology::regular(1, 1, vcpus as u32, 1, true).map_err(impossible);
    };
    let topology = counted(&value.table("a table such as { cores-per-llc = 4, threads-per-core = 2 }")?)?;
    match vcpus {
        Some((vcpus, place)) if vcpus != topology.nr_cpus() => {
            Err(place.refuse(&format!("the topology has {} CPUs", topology.nr_cpus())))
        }
        _ => Ok(topology),
    }
}

/// The guests in each of which a workload runs, those of one table; none: it runs on the host.
pub(crate) fn of_workload<'d, 'a>(table: &Table, drafts: &'d [Draft<'a>]) -> Result<Vec<&'d Draft<'a>>> {
    let Some(value) = table.get("guest") else { return Ok(Vec::new()) };
    let name = value.string("the name of a [[guest]]")?;
    let found: Vec<_> = drafts.iter().filter(|draft| draft.declared == name).collect();
    if found.is_empty() {
        return Err(unknown(&value, name, drafts));
    }
    Ok(found)
}

fn unknown(value: &Value, name: &str, drafts: &[Draft]) -> Box<ScenarioError> {
    let error = value.error(format!("unknown guest {}", quote(name))).expected("the name of a [[guest]]");
    error.hint(suggest(name, drafts.iter().map(|draft| draft.declared)))
}

/// The host as a guest's keys refer to it.
pub(crate) struct Host<'h> {
    pub machine: &'h Machine,
    pub kernel: &'h KernelConfig,
    pub named: Named,
    pub groups: &'h [cgroup::Draft<'h>],
}

impl Host<'_> {
    /// A guest of this variant as the host of others.
    fn outer(guest: &Guest) -> Host<'_> {
        let named = Named { version: guest.run.kernel.version, distribution: None };
        Host { machine: &guest.run.machine, kernel: &guest.run.kernel, named, groups: &[] }
    }
}

/// The guests of a variant, with the values that it overrides, and those values for the results.
pub(crate) fn of_variant(variant: &Table, drafts: &[Draft], host: &Host) -> Result<(Vec<Guest>, Option<Json>)> {
    let all = variant.get("guests").map(|value| value.table("a table: guests.NAME.kernel and so on")).transpose()?;
    for (name, value) in all.iter().flat_map(Table::entries) {
        if drafts.iter().all(|draft| draft.declared != name) {
            return Err(unknown(&value, name, drafts));
        }
    }
    let mut guests: Vec<Guest> = Vec::new();
    for draft in drafts {
        let own = all.as_ref().and_then(|all| all.get(draft.declared));
        let own = own.map(|value| value.table("a table such as { platform = \"x86-kvm\" }")?.only(&VARIANT_GUEST));
        let keys = Keys { draft, own: own.transpose()? };
        let guest = match draft.host.index().checked_sub(1).and_then(|outer| guests.get(outer)) {
            None => keys.guest(host, None)?,
            Some(outer) => keys.guest(&Host::outer(outer), Some(outer))?,
        };
        guests.push(guest);
    }
    let shown = |all: &Table| all.entries().iter().map(|(name, v)| ((*name).into(), v.json())).collect::<Map<_, _>>();
    Ok((guests, all.as_ref().map(|all| shown(all).into())))
}

/// The keys of a guest in a variant.
struct Keys<'d, 'a> {
    draft: &'d Draft<'a>,
    own: Option<Table<'a>>,
}

impl<'a> Keys<'_, 'a> {
    /// The variant's value, or else the guest's own.
    fn get(&self, key: &str) -> Option<Value<'a>> {
        self.own.as_ref().and_then(|own| own.get(key)).or_else(|| self.draft.table.get(key))
    }

    /// The tables that set a key: the guest's, then the variant's.
    fn tables(&self) -> impl Iterator<Item = &Table<'a>> {
        std::iter::once(&self.draft.table).chain(&self.own)
    }

    /// The guest on its host, which is the guest `outer` if there is one.
    fn guest(&self, host: &Host, outer: Option<&Guest>) -> Result<Guest> {
        let platform = self.platform()?;
        if let Some(outer) = outer {
            self.check_nested(platform, outer)?;
        }
        let (kernel, vcpu_is_preempted, autogroup) = self.kernel(host)?;
        let flag = |key: &str| self.get(key).map(|value| value.boolean()).transpose();
        let haltpoll = self.haltpoll(platform, &kernel)?;
        let yields = kernel.version.paravirt().sched_yield && host.kernel.version.paravirt().sched_yield;
        Ok(Guest {
            name: self.draft.name.clone(),
            host: self.draft.host,
            run: RunSpec { autogroup, ..self.run(host, kernel, outer.is_some()) },
            platform,
            affinity: self.affinity(host, flag("pinned")?.unwrap_or(false))?,
            cgroup: self.cgroup(host, outer.is_some())?,
            nice: self.get("nice").map(|value| nice(&value)).transpose()?.unwrap_or(0),
            vcpu_is_preempted,
            idle_hint: self.idle_hint(platform)?,
            paravirt_time_accounting: flag("paravirt_time_accounting")?.unwrap_or(false),
            halt_poll_max: self.halt_poll_max(platform, haltpoll)?,
            haltpoll,
            pv_spinlocks: self.x86_feature(platform, "pv_spinlocks", true)?,
            pv_tlb_flush: self.x86_feature(platform, "pv_tlb_flush", true)?,
            pv_sched_yield: self.x86_feature(platform, "pv_sched_yield", yields)?,
            enable_apicv: self.apicv(platform, outer)?,
            enable_ipiv: self.ipiv(platform, host, outer)?,
            events: self.get("events").map_or_else(|| Ok(Vec::new()), |value| events(&value))?,
        })
    }

    /// What the guest runs, without its workloads and without what it shares with its host.
    fn run(&self, host: &Host, kernel: KernelConfig, nested: bool) -> RunSpec {
        let topology = Arc::clone(&self.draft.topology);
        let machine = if nested { host.machine.nested_guest(topology) } else { host.machine.guest(topology) };
        RunSpec {
            machine: Arc::new(machine),
            kernel,
            workloads: Arc::default(),
            cgroups: Arc::default(),
            autogroup: false,
            duration: 0,
            warmup: 0,
            seed: 0,
            noise: false,
            ties: None,
            hotplug: Arc::default(),
            guests: Arc::default(),
        }
    }

    /// Only KVM on x86 hosts a guest in a guest here, and only on machines for which the cost of its exits is known.
    fn check_nested(&self, platform: Platform, outer: &Guest) -> Result<()> {
        let Some(place) = self.draft.table.get("in") else { return Ok(()) };
        if platform != Platform::X86Kvm || outer.platform != Platform::X86Kvm {
            return Err(place.refuse("a guest in a guest is modelled only for platform \"x86-kvm\""));
        }
        if outer.run.machine.costs.vm_exit_nested.typical() == 0 {
            let error = place.refuse("the machine states no cost \"vm-exit-nested\"");
            return Err(error.hint("choose a machine that has one, or set costs.vm-exit-nested"));
        }
        Ok(())
    }

    fn platform(&self) -> Result<Platform> {
        let Some(value) = self.get("platform") else {
            let error = self.draft.table.error("the key \"platform\" is missing");
            let names: Vec<&str> = Platform::ALL.iter().map(|(name, _)| *name).collect();
            return Err(error.expected(format!("one of {}", names.join(", "))));
        };
        let platform = value.choice(&Platform::ALL)?;
        let threads = self.draft.topology.smt(CpuId(0)).count();
        if platform == Platform::Powervm && threads > 1 {
            let error = value.refuse("PowerVM dispatches whole cores, and only cores of one thread are modelled");
            return Err(error.hint("set threads-per-core = 1 in the guest's topology"));
        }
        Ok(platform)
    }

    /// The kernel, whether its `vcpu_is_preempted` is in use, and whether its sessions are groups.
    fn kernel(&self, host: &Host) -> Result<(KernelConfig, bool, bool)> {
        let mut named = self.get("kernel").map_or(Ok(host.named), |value| kernel_of(&value))?;
        for table in self.tables() {
            named = with_config(table, named)?;
        }
        let version: &'static Version = named.version;
        let own_hz = self.get("hz").map(|value| hz(&value)).transpose()?;
        let nr_cpus = self.draft.topology.nr_cpus();
        let hz = own_hz.or(named.distribution.map(|config| config.hz)).unwrap_or(host.machine.hz);
        let mut kernel = KernelConfig::new(version, nr_cpus, hz);
        configure(&self.tables().collect::<Vec<_>>(), &mut kernel, named)?;
        let mut informed = true;
        for table in self.tables() {
            // What only real kernels have is an error here: there is no real guest.
            let mut settings = RealSettings::default();
            preempt(table, &mut kernel, &mut settings)?;
            knobs(table, &mut kernel, &mut settings)?;
            if let Some(error) = settings.not_simulated {
                return Err(error);
            }
            informed = features(table, &mut kernel)?.unwrap_or(informed);
        }
        Ok((kernel, informed, named.distribution.is_some_and(|config| config.autogroup)))
    }

    fn affinity(&self, host: &Host, pinned: bool) -> Result<Vec<Option<CpuMask>>> {
        let nr_cpus = host.machine.topology.nr_cpus();
        let mask = self.get("cpus").map(|value| cpus(&value, nr_cpus)).transpose()?;
        let vcpus = self.draft.topology.nr_cpus();
        if !pinned {
            return Ok(vec![mask; vcpus]);
        }
        let allowed = mask.unwrap_or(CpuMask::first(nr_cpus));
        let places: Vec<_> = allowed.iter().collect();
        // vCPUs beyond the CPUs start again with the first one.
        Ok((0..vcpus).map(|vcpu| Some(CpuMask::from_iter([places[vcpu % places.len()]]))).collect())
    }

    fn cgroup(&self, host: &Host, nested: bool) -> Result<Option<String>> {
        let Some(value) = self.get("cgroup") else { return Ok(None) };
        if nested {
            return Err(value.refuse("control groups inside a guest are not modelled"));
        }
        let path = cgroup::path(&value)?;
        cgroup::check_declared(&value, &path, host.groups)?;
        Ok(Some(path))
    }

    /// The longest window of the host, which a guest with cpuidle-haltpoll turns off (MSR_KVM_POLL_CONTROL).
    fn halt_poll_max(&self, platform: Platform, haltpoll: bool) -> Result<Nanos> {
        match self.get("halt_poll_ns") {
            Some(value) if haltpoll => {
                let error = value.refuse("a guest with haltpoll disables halt polling on its host");
                Err(error.hint("leave halt_poll_ns out, or haltpoll"))
            }
            Some(value) if platform == Platform::PowerpcKvm => {
                Err(value.refuse("KVM on POWER9 and later does not poll for a vCPU that has ceded"))
            }
            Some(value) => value.duration(0..=LONGEST_POLL),
            None if haltpoll => Ok(0),
            None => Ok(platform.costs().halt_poll_max),
        }
    }

    fn haltpoll(&self, platform: Platform, kernel: &KernelConfig) -> Result<bool> {
        let Some(value) = self.get("haltpoll") else { return Ok(false) };
        let on = value.boolean()?;
        if on && platform != Platform::X86Kvm {
            return Err(value.refuse("cpuidle-haltpoll is a driver for platform \"x86-kvm\" only"));
        }
        if on && !kernel.version.paravirt().haltpoll {
            let name = kernel.version.name;
            return Err(value.refuse(&format!("row {name} has no haltpoll governor, which was added in 5.4")));
        }
        Ok(on)
    }

    /// What KVM offers on x86 and distributions build kernels with, as far as the versions have it.
    fn x86_feature(&self, platform: Platform, key: &str, has: bool) -> Result<bool> {
        let Some(value) = self.get(key) else { return Ok(has && platform == Platform::X86Kvm) };
        if platform != Platform::X86Kvm {
            return Err(value.error("it is modelled only for platform \"x86-kvm\""));
        }
        let on = value.boolean()?;
        if on && !has {
            return Err(value.refuse("it needs 5.3 or later in the guest and on the host"));
        }
        Ok(on)
    }

    /// Posted interrupts. KVM offers them to a guest in a guest only if the outer guest has them.
    fn apicv(&self, platform: Platform, outer: Option<&Guest>) -> Result<bool> {
        let Some(value) = self.get("enable_apicv") else { return Ok(false) };
        let on = value.boolean()?;
        if on && platform != Platform::X86Kvm {
            return Err(value.refuse("posted interrupts are modelled only for platform \"x86-kvm\""));
        }
        if on && outer.is_some_and(|outer| !outer.enable_apicv) {
            let error = value.refuse("the outer guest has no posted interrupts");
            return Err(error.hint("set enable_apicv = true for the outer guest, too"));
        }
        Ok(on)
    }

    /// IPI virtualization, which needs posted interrupts.
    fn ipiv(&self, platform: Platform, host: &Host, outer: Option<&Guest>) -> Result<bool> {
        let Some(value) = self.get("enable_ipiv") else { return Ok(false) };
        let on = value.boolean()?;
        if on && !self.apicv(platform, outer)? {
            return Err(value
                .refuse("IPI virtualization needs posted interrupts")
                .hint("set enable_apicv = true, too"));
        }
        if on && !host.kernel.version.paravirt().ipiv {
            let name = host.kernel.version.name;
            return Err(
                value.refuse(&format!("a host of row {name} has no IPI virtualization, which was added in 6.0"))
            );
        }
        if on && outer.is_some() {
            return Err(value.refuse("KVM does not offer IPI virtualization to a guest in a guest"));
        }
        Ok(on)
    }

    fn idle_hint(&self, platform: Platform) -> Result<IdleHint> {
        let Some(value) = self.get("idle_hint") else { return Ok(IdleHint::Off) };
        let hint = value.choice(&[("off", IdleHint::Off), ("vpa", IdleHint::Vpa), ("hcall", IdleHint::Hcall)])?;
        if hint != IdleHint::Off && platform != Platform::PowerpcKvm {
            return Err(value.error("idle hints were proposed for platform \"powerpc-kvm\" only"));
        }
        Ok(hint)
    }
}

/// What is done to a guest, in ascending order of time, each at a time at which it has an effect.
fn events(value: &Value) -> Result<Vec<(Nanos, GuestAction)>> {
    let mut events: Vec<(Nanos, GuestAction)> = Vec::new();
    let example = "a table such as { at = \"1s\", action = \"pause\" }";
    for entry in value.array(&format!("a list, each element {example}"))? {
        let table = entry.table(example)?.only(&GUEST_EVENT)?;
        let at = table.require("at", "a duration such as \"1s\"")?;
        let time = at.duration(1..=LONGEST_RUN)?;
        if events.last().is_some_and(|(before, _)| *before >= time) {
            return Err(at.error("this event is not later than the one before it"));
        }
        let action = table.require("action", "pause, resume or kill")?;
        let found = action.choice(&GuestAction::ALL)?;
        let paused = match events.last() {
            Some((_, GuestAction::Kill)) => return Err(action.error("the guest has already been killed")),
            last => matches!(last, Some((_, GuestAction::Pause))),
        };
        match (found, paused) {
            (GuestAction::Pause, true) => return Err(action.error("the guest is paused already")),
            (GuestAction::Resume, false) => return Err(action.error("the guest is not paused")),
            _ => events.push((time, found)),
        }
    }
    Ok(events)
}

/// Sets the features of a table. Returns VCPU_IS_PREEMPTED, if the table sets it.
fn features(table: &Table, kernel: &mut KernelConfig) -> Result<Option<bool>> {
    let Some(value) = table.get("features") else { return Ok(None) };
    let features = value.table("a table such as { VCPU_IS_PREEMPTED = false }")?;
    let mut informed = None;
    for (name, value) in features.entries() {
        let on = value.boolean()?;
        if name == VCPU_IS_PREEMPTED {
            informed = Some(on);
        } else {
            kernel.set_feature(name, on).map_err(|error| refused_key(&features, name, &error))?;
        }
    }
    Ok(informed)
}
