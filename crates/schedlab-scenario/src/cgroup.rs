//! `[[cgroup]]`: control groups of the cpu controller, and the values with which a variant overrides theirs.

use std::ops::RangeInclusive;

use schedlab_policy::fair::GroupShares;
use schedlab_policy::Version;
use schedlab_spec::{Cgroup, CpuMax};
use serde_json::{json, Map, Value as Json};

use crate::attribute_values::nice;
use crate::error::{quote, Result};
use crate::keys::{CGROUP, CGROUP_EVENT, VARIANT_CGROUP};
use crate::units;
use crate::value::{Table, Value};
use schedlab_model::{suggest, CpuMask, Nanos, MSEC, SEC};

/// A declared control group.
#[derive(Clone, Debug)]
pub(crate) struct Draft<'a> {
    /// Its path, from the root.
    pub path: String,
    /// The values in its table.
    pub files: Files<'a>,
    /// Its table, if it has one.
    pub table: Option<Table<'a>>,
}

/// The values of a group in one table; `None` where the table does not set them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files<'a> {
    shares: Option<(GroupShares, Value<'a>)>,
    idle: Option<(bool, Value<'a>)>,
    latency_nice: Option<(i8, Value<'a>)>,
    quota: Option<(Nanos, Value<'a>)>,
    period: Option<(Nanos, Value<'a>)>,
    burst: Option<(Nanos, Value<'a>)>,
    cpus: Option<(CpuMask, Value<'a>)>,
    later: Vec<(Nanos, CpuMask)>,
}

/// The maximum depth of a path. The kernel has no limit by default.
const DEEPEST: usize = 32;

/// Reads the groups. Includes the parents of declared groups, and the groups `made` by rt-app files.
pub(crate) fn read<'a>(tables: Vec<Table<'a>>, made: Vec<String>) -> Result<Vec<Draft<'a>>> {
    let mut drafts: Vec<Draft> = Vec::new();
    for table in tables {
        let table = table.only(&CGROUP)?;
        let name = table.require("name", FORM)?;
        let path = path(&name)?;
        if drafts.iter().any(|known| known.path == path) {
            return Err(table.error(format!("two cgroups are named {}", quote(&path))));
        }
        let files = Files::read(&table)?;
        files.check(&Files::default())?;
        drafts.push(Draft { path, files, table: Some(table) });
    }
    let declared: Vec<String> = drafts.iter().map(|draft| draft.path.clone()).chain(made).collect();
    for path in declared {
        let above = path.char_indices().skip(1).filter(|(_, c)| *c == '/').map(|(at, _)| path[..at].to_owned());
        for path in above.chain([path.clone()]) {
            if drafts.iter().all(|known| known.path != path) {
                drafts.push(Draft { path, files: Files::default(), table: None });
            }
        }
    }
    // A path sorts after its parents.
    drafts.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(drafts)
}

const FORM: &str = "a path such as \"web/fast\"";

/// Normalises a path to begin at the root.
pub(crate) fn path(value: &Value) -> Result<String> {
    let text = value.string(FORM)?;
    let parts: Vec<&str> = text.strip_prefix('/').unwrap_or(text).split('/').collect();
    let plain = |part: &&str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    if parts.len() > DEEPEST {
        return Err(value.refuse("too deep").expected(format!("at most {DEEPEST} levels")));
    }
    if !parts.iter().all(plain) {
        return Err(value.refuse("not a valid cgroup path").expected(FORM));
    }
    Ok(format!("/{}", parts.join("/")))
}

/// Refuses a path that is not declared by a `[[cgroup]]`.
pub(crate) fn check_declared(value: &Value, path: &str, drafts: &[Draft]) -> Result<()> {
    if drafts.iter().any(|draft| draft.path == path) {
        return Ok(());
    }
    let error = value.error(format!("unknown cgroup {}", quote(path))).expected("the name of a [[cgroup]]");
    Err(error.hint(suggest(path, drafts.iter().map(|draft| draft.path.as_str()))))
}

/// Reads the values that a variant overrides, by path.
pub(crate) fn overrides<'a>(table: &Table<'a>, drafts: &[Draft]) -> Result<Vec<(String, Files<'a>)>> {
    let Some(value) = table.get("cgroups") else { return Ok(Vec::new()) };
    let all = value.table("a table such as { \"web\" = { weight = 300 } }")?;
    let mut changes = Vec::new();
    for (name, value) in all.entries() {
        let path = format!("/{}", name.strip_prefix('/').unwrap_or(name));
        check_declared(&value, &path, drafts)?;
        let own = value.table("a table such as { weight = 300 }")?.only(&VARIANT_CGROUP)?;
        let files = Files::read(&own)?;
        let declared = drafts.iter().find(|draft| draft.path == path);
        files.check(declared.map_or(&Files::default(), |draft| &draft.files))?;
        changes.push((path, files));
    }
    Ok(changes)
}

impl<'a> Files<'a> {
    fn read(table: &Table<'a>) -> Result<Self> {
        let idle = placed(table.get("idle"), |value| value.boolean())?;
        let shares = shares(table)?;
        if let (Some((_, place)), Some((true, _))) = (&shares, &idle) {
            return Err(place.error("the weight of an idle group cannot be set").hint("remove one of the two"));
        }
        let latency_nice = placed(table.get("latency_nice"), nice)?;
        let quota = placed(table.get("quota"), quota)?;
        let period = placed(table.get("period"), |value| value.duration(PERIODS))?;
        let burst = placed(table.get("burst"), |value| value.duration(0..=1000 * SEC))?;
        let cpus = placed(table.get("cpus"), cpu_list)?;
        let later = table.get("events").map(|value| events(&value)).transpose()?.unwrap_or_default();
        if let Some(value) = table.get("partition") {
            let why = "cpuset partitions are not modelled: they rebuild the scheduling domains";
            return Err(value.error(why).hint("leave partition out; cpus alone confines the tasks of a group"));
        }
        Ok(Files { shares, idle, latency_nice, quota, period, burst, cpus, later })
    }

    /// Refuses CPUs that the machine does not have.
    pub fn check_cpus(&self, table: &Table, nr_cpus: usize) -> Result<()> {
        let machine = CpuMask::first(nr_cpus);
        let masks = self.cpus.iter().map(|cpus| &cpus.0).chain(self.later.iter().map(|(_, cpus)| cpus));
        match masks.into_iter().find(|mask| !mask.without(&machine).is_empty()) {
            None => Ok(()),
            Some(mask) => {
                let last = nr_cpus - 1;
                let message = format!("the group has CPUs {}, but the machine has CPUs 0 to {last}", mask.to_list());
                Err(table.error(message).hint("choose a larger machine or other cpus"))
            }
        }
    }

    /// Refuses values that contradict those of the group, `before`, that the table does not override.
    fn check(&self, before: &Files<'a>) -> Result<()> {
        let idle = before.idle.as_ref().is_some_and(|idle| idle.0) && self.idle.is_none();
        if let (Some((_, place)), true) = (&self.shares, idle) {
            return Err(place.error("the weight of an idle group cannot be set").hint("idle = false"));
        }
        let Some((quota, _)) = self.quota.as_ref().or(before.quota.as_ref()) else {
            let alone = [("period", &self.period), ("burst", &self.burst)];
            return match alone.into_iter().find_map(|(key, file)| Some((key, file.as_ref()?))) {
                Some((key, (_, place))) => Err(place.error(format!("{key} without quota")).hint("quota = \"50ms\"")),
                None => Ok(()),
            };
        };
        match (&self.burst, &self.quota, &before.burst) {
            (Some((_, place)), ..) => place.duration(0..=(*quota).min(1000 * SEC)).map(drop),
            (None, Some((_, place)), Some((burst, _))) if burst > quota => {
                let message = format!("the group's burst of {} exceeds this quota", units::show_duration(*burst));
                Err(place.error(message).hint("burst = \"0s\""))
            }
            _ => Ok(()),
        }
    }

    /// Refuses values that the kernel of a variant does not support.
    pub fn check_kernel(&self, version: &Version, variant: &str) -> Result<()> {
        if let Some((_, place)) = self.idle.as_ref().filter(|(idle, _)| *idle && !version.has_cpu_idle()) {
            let message =
                format!("kernel {} of variant \"{variant}\" has no cpu.idle (available since 5.15)", version.name);
            return Err(place.error(message).hint("set cgroups.GROUP.idle in the variants whose kernel supports it"));
        }
        let burst = self.burst.as_ref().filter(|(burst, _)| *burst > 0 && !version.rules.bandwidth_burst);
        if let Some((_, place)) = burst {
            let message =
                format!("kernel {} of variant \"{variant}\" has no burst (available since 5.14)", version.name);
            return Err(place.error(message).hint("remove burst"));
        }
        let latency_nice = self.latency_nice.as_ref().filter(|_| !version.has_latency_nice());
        if let Some((_, place)) = latency_nice {
            let message = format!("kernel {} of variant \"{variant}\" has no latency nice for groups", version.name);
            return Err(place.error(message).hint("set cgroups.GROUP.latency_nice in variants with eevdf-rfc"));
        }
        Ok(())
    }

    /// Applies the values to a group; values that are not set are kept.
    pub fn apply(&self, cgroup: &mut Cgroup) {
        cgroup.idle = self.idle.as_ref().map_or(cgroup.idle, |idle| idle.0);
        cgroup.shares = self.shares.as_ref().map(|shares| shares.0).or(cgroup.shares);
        let written = |file: &Option<(Nanos, Value)>, before: Nanos| file.as_ref().map_or(before, |file| file.0);
        let before = cgroup.bandwidth.unwrap_or(CpuMax { quota: 0, period: USUAL_PERIOD, burst: 0 });
        let max = CpuMax {
            quota: written(&self.quota, before.quota),
            period: written(&self.period, before.period),
            burst: written(&self.burst, before.burst),
        };
        cgroup.bandwidth = (1..UNLIMITED).contains(&max.quota).then_some(max);
        cgroup.cpus = self.cpus.as_ref().map(|cpus| cpus.0).or(cgroup.cpus);
        if !self.later.is_empty() {
            cgroup.cpus_later.clone_from(&self.later);
        }
        cgroup.latency_nice = self.latency_nice.as_ref().map_or(cgroup.latency_nice, |nice| nice.0);
    }

    /// The values as JSON, for the results.
    pub fn show(&self) -> Json {
        let mut shown = Map::new();
        match self.shares.as_ref().map(|shares| shares.0) {
            Some(GroupShares::Weight(weight)) => shown.insert("weight".into(), json!(weight)),
            Some(GroupShares::Nice(nice)) => shown.insert("weight-nice".into(), json!(nice)),
            Some(GroupShares::Shares(shares)) => shown.insert("shares".into(), json!(shares)),
            None => None,
        };
        self.idle.as_ref().map(|idle| shown.insert("idle".into(), json!(idle.0)));
        for (key, file) in [("quota", &self.quota), ("period", &self.period), ("burst", &self.burst)] {
            let text = |value: Nanos| if value == UNLIMITED { "max".to_owned() } else { units::show_duration(value) };
            file.as_ref().map(|file| shown.insert(key.into(), json!(text(file.0))));
        }
        self.cpus.as_ref().map(|cpus| shown.insert("cpus".into(), json!(cpus.0.to_list())));
        if !self.later.is_empty() {
            let event =
                |(at, cpus): &(Nanos, CpuMask)| json!({ "at": units::show_duration(*at), "cpus": cpus.to_list() });
            shown.insert("events".into(), self.later.iter().map(event).collect());
        }
        self.latency_nice.as_ref().map(|nice| shown.insert("latency_nice".into(), json!(nice.0)));
        shown.into()
    }
}

/// Of `cpu.max`: no limit.
const UNLIMITED: Nanos = Nanos::MAX;

/// Reads the quota: a duration, or `max`.
fn quota(value: &Value) -> Result<Nanos> {
    match value.as_string() {
        Some("max") => Ok(UNLIMITED),
        _ => value
            .duration(MSEC..=1000 * SEC)
            .map_err(|error| error.expected("\"max\", or a duration from 1ms to 1000s")),
    }
}

/// Reads a CPU list.
pub(crate) fn cpu_list(value: &Value) -> Result<CpuMask> {
    const FORM: &str = "a CPU list such as \"0-3,8\"";
    let mask = CpuMask::from_list(value.string(FORM)?).filter(|mask| !mask.is_empty());
    mask.ok_or_else(|| value.refuse("not a CPU list").expected(FORM))
}

/// Reads when the CPUs of a group change.
fn events(value: &Value) -> Result<Vec<(Nanos, CpuMask)>> {
    const FORM: &str = "tables such as { at = \"500ms\", cpus = \"0-1\" }";
    let mut events: Vec<(Nanos, CpuMask)> = Vec::new();
    for entry in value.array(FORM)? {
        let table = entry.table(FORM)?.only(&CGROUP_EVENT)?;
        let at = table.require("at", "a duration such as \"500ms\"")?;
        let time = at.duration(1..=1000 * SEC)?;
        if events.last().is_some_and(|(before, _)| *before >= time) {
            return Err(at.error("this event is not later than the one before it"));
        }
        events.push((time, cpu_list(&table.require("cpus", FORM)?)?));
    }
    Ok(events)
}

/// An optional value with its position for later errors.
pub(crate) fn placed<'a, T>(
    value: Option<Value<'a>>,
    read: impl Fn(&Value<'a>) -> Result<T>,
) -> Result<Option<(T, Value<'a>)>> {
    value.map(|value| Ok((read(&value)?, value))).transpose()
}

/// The range that `cpu.max` accepts.
const PERIODS: RangeInclusive<Nanos> = MSEC..=SEC;
const USUAL_PERIOD: Nanos = 100 * MSEC;

fn shares<'a>(table: &Table<'a>) -> Result<Option<(GroupShares, Value<'a>)>> {
    let mut found = None;
    for key in ["weight", "weight-nice", "shares"] {
        let Some(value) = table.get(key) else { continue };
        let shares = match key {
            "weight" => GroupShares::Weight(value.integer(1..=10_000)? as u64),
            "weight-nice" => GroupShares::Nice(nice(&value)?),
            _ => GroupShares::Shares(value.integer(2..=1 << 18)? as u64),
        };
        if found.replace((shares, value)).is_some() {
            return Err(table
                .key_error(key, "a group can have only one weight")
                .expected("one of weight, weight-nice, shares"));
        }
    }
    Ok(found)
}
