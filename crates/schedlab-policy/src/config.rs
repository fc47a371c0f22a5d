//! One kernel as it was built, booted and tuned: version, features, knobs, HZ, preemption model, CPUs.

use crate::config_error::ConfigError;
use crate::features::{Feature, FeatureSet};
use crate::knobs::{Knob, KnobInfo, Knobs};
use crate::preempt_model::PreemptModel;
use crate::version::choices::Algorithm;
use crate::version::fair::Rules;
use crate::version::placement::PlacementRules;
use crate::version::Version;
use schedlab_model::nearest;
use schedlab_model::{Nanos, SEC};

/// One configured kernel. Built once, then read-only.
#[derive(Clone, Debug)]
pub struct KernelConfig {
    /// The version row.
    pub version: &'static Version,
    /// The features that are on.
    pub features: FeatureSet,
    /// The knob values in force.
    pub knobs: Knobs,
    /// Ticks per second.
    hz: u32,
    /// Length of a tick.
    tick_nsec: Nanos,
    /// Preemption model.
    pub preempt: PreemptModel,
    /// The CPUs of the machine (`nr_cpu_ids`).
    pub nr_cpus: usize,
    /// How many of them are online (`num_online_cpus`), which the slices are scaled by.
    online_cpus: usize,
    /// The rules it follows: the version's, unless an ablation mixes two.
    pub rules: Rules,
    /// Those of placement and balancing, likewise.
    pub placement: PlacementRules,
    normalized: Knobs,
}

impl KernelConfig {
    /// The kernel as it boots on a machine of `nr_cpus` (at least 1) with `hz` (at least 1) ticks per second.
    #[must_use]
    pub fn new(version: &'static Version, nr_cpus: usize, hz: u32) -> Self {
        let normalized = Knobs::normalized(version);
        let mut config = KernelConfig {
            version,
            features: version.feature_set(),
            knobs: normalized,
            hz,
            tick_nsec: 0,
            preempt: version.preempt_default,
            nr_cpus: nr_cpus.max(1),
            online_cpus: nr_cpus.max(1),
            rules: version.rules,
            placement: version.placement,
            normalized,
        };
        config.set_hz(hz);
        config.update_sysctl();
        config.knobs.llc_epoch_period = u64::from(config.hz / 100);
        config
    }

    /// Whether the feature is on.
    #[inline]
    #[must_use]
    pub fn has(&self, feature: Feature) -> bool {
        self.features.has(feature)
    }

    /// Whether the fair class runs EEVDF, not CFS.
    #[inline(always)]
    pub(crate) fn is_eevdf(&self) -> bool {
        self.rules.algorithm == Algorithm::Eevdf
    }

    /// Ticks per second.
    #[inline]
    #[must_use]
    pub fn hz(&self) -> u32 {
        self.hz
    }

    /// Sets the ticks per second, at least 1, and the length of a tick.
    pub(crate) fn set_hz(&mut self, hz: u32) {
        self.hz = hz.max(1);
        self.tick_nsec = SEC / u64::from(self.hz);
    }

    /// Length of a tick (`TICK_NSEC`).
    #[inline]
    #[must_use]
    pub fn tick_nsec(&self) -> Nanos {
        self.tick_nsec
    }

    /// Switches a feature by its kernel name. A feature of which the model has only the name accepts its own default.
    pub fn set_feature(&mut self, name: &str, on: bool) -> Result<(), ConfigError> {
        let version = self.version;
        let known = Feature::find(name).and_then(|f| f.info().default_in(version).map(|default| (f, default)));
        let Some((feature, default)) = known else {
            let names = Feature::all().iter().filter(|info| info.default_in(version).is_some()).map(|info| info.name);
            let nearest = nearest(name, names);
            return Err(ConfigError::UnknownFeature { name: name.to_string(), version: version.name, nearest });
        };
        let info = feature.info();
        if let Some(why) = info.left_out_in(version).filter(|_| on != default) {
            let stays = if default { "on" } else { "off" }.to_owned();
            return Err(ConfigError::NotModelled {
                kind: "feature",
                name: info.name,
                version: version.name,
                stays,
                why,
            });
        }
        self.features.put(feature, on);
        Ok(())
    }

    /// Writes a knob as a running kernel takes it: the effective value, with no effect on scaling. A knob that changes
    /// nothing in the model accepts the value that it has.
    pub fn set_knob(&mut self, name: &str, value: u64) -> Result<(), ConfigError> {
        let info = self.checked_knob(name, value)?;
        let stays = self.knobs.get(info.knob);
        if let Some(why) = info.left_out_in(self.version).filter(|_| value != stays) {
            let (kind, version, stays) = ("knob", self.version.name, stays.to_string());
            return Err(ConfigError::NotModelled { kind, name: info.name, version, stays, why });
        }
        self.put_knob(info.knob, value);
        Ok(())
    }

    /// Takes a knob over from a recorded kernel, also one whose write changes nothing here.
    pub fn restore_knob(&mut self, name: &str, value: u64) -> Result<(), ConfigError> {
        let info = self.checked_knob(name, value)?;
        self.put_knob(info.knob, value);
        Ok(())
    }

    /// The knob of this kernel, if it takes the value.
    fn checked_knob(&self, name: &str, value: u64) -> Result<&'static KnobInfo, ConfigError> {
        let version = self.version;
        let Some(info) = Knob::find(name).filter(|info| info.exists_in(version)) else {
            let names = Knob::all().iter().filter(|info| info.exists_in(version)).map(|info| info.name);
            let nearest = nearest(name, names);
            return Err(ConfigError::UnknownKnob { name: name.to_string(), version: version.name, nearest });
        };
        let range = self.knob_range(info);
        if value < range.0 || value > range.1 {
            return Err(ConfigError::KnobRange { name: info.name, version: version.name, value, range });
        }
        Ok(info)
    }

    /// A write to tunable_scaling derives the normalized values and `sched_nr_latency` anew (`sched_update_scaling`);
    /// where they are sysctls, one to the lengths does too.
    fn put_knob(&mut self, knob: Knob, value: u64) {
        self.knobs.put(knob, value);
        let sysctl = self.rules.sysctl_updates_nr_latency
            && matches!(knob, Knob::Latency | Knob::MinGranularity | Knob::WakeupGranularity);
        if sysctl || knob == Knob::TunableScaling {
            self.normalized.unscale_from(&self.knobs, self.get_update_sysctl_factor());
            self.knobs.nr_latency = self.knobs.latency.div_ceil(self.knobs.min_granularity.max(1));
        }
    }

    /// What a knob takes now: the runtime of real-time tasks must fit their period (`sched_rt_global_validate`).
    fn knob_range(&self, info: &KnobInfo) -> (u64, u64) {
        let (least, most) = info.range_in(self.version);
        match info.knob {
            Knob::RtPeriod => (least.max(self.knobs.rt_runtime_us), most),
            Knob::RtRuntime => (least, most.min(self.knobs.rt_period_us)),
            _ => (least, most),
        }
    }

    /// Takes over the value before scaling too.
    pub(crate) fn take_normalized(&mut self, other: &KernelConfig, knob: Knob) {
        self.normalized.put(knob, other.normalized.get(knob));
    }

    /// base_slice before scaling (`normalized_sysctl_sched_base_slice`).
    #[must_use]
    pub fn normalized_base_slice(&self) -> Nanos {
        self.normalized.base_slice
    }

    /// Chooses the preemption model.
    pub fn set_preempt(&mut self, model: PreemptModel) -> Result<(), ConfigError> {
        let supported = self.version.preempt_models;
        if !supported.contains(&model) {
            let supported = supported.iter().map(|model| model.name()).collect();
            let (version, exists_in) = (self.version.name, model.exists_in());
            return Err(ConfigError::Preempt { model: model.name(), exists_in, version, supported });
        }
        if model.has_sleeping_locks() {
            // kernel/sched/features.h under CONFIG_PREEMPT_RT.
            self.features.put(Feature::TtwuQueue, false);
        }
        self.preempt = model;
        Ok(())
    }

    /// `rq_attach_root` of all CPUs when `cpu_active_mask` has changed to `active` CPUs; `leaves`: a CPU has left it,
    /// which from 6.10 on is still online then.
    pub(crate) fn domains_rebuilt(&mut self, active: usize, leaves: bool) {
        self.online_cpus = active + usize::from(leaves && self.placement.hotplug_is_synchronous);
        self.update_sysctl();
    }

    /// Derives the effective values from the normalized ones (`update_sysctl`, which `rq_online_fair` calls).
    fn update_sysctl(&mut self) {
        let factor = self.get_update_sysctl_factor();
        self.knobs.scale_from(&self.normalized, factor);
    }

    /// `get_update_sysctl_factor`.
    fn get_update_sysctl_factor(&self) -> u64 {
        let cpus = self.online_cpus.min(8) as u64;
        match self.knobs.tunable_scaling {
            0 => 1,
            2 => cpus,
            _ => 1 + u64::from(cpus.ilog2()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::MSEC;

    fn config(version: &str, cpus: usize) -> KernelConfig {
        KernelConfig::new(Version::find(version).unwrap(), cpus, 250)
    }

    #[test]
    fn defaults_scale_with_the_logarithm_of_cpus() {
        for (cpus, factor) in [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (480, 4)] {
            let knobs = config("6.1", cpus).knobs;
            assert_eq!(knobs.latency, 6 * MSEC * factor, "{cpus} CPUs");
            assert_eq!(knobs.min_granularity, 750_000 * factor);
            assert_eq!(knobs.wakeup_granularity, MSEC * factor);
            assert_eq!(knobs.idle_min_granularity, 750_000);
            assert_eq!(knobs.nr_latency, 8);
            assert_eq!(config("6.12.0", cpus).knobs.base_slice, 750_000 * factor);
        }
        assert_eq!(config("6.1", 1).tick_nsec(), 4 * MSEC);
    }

    #[test]
    fn a_write_to_scaling_acts_at_the_next_hotplug_and_is_refused() {
        let mut c = config("6.1", 8);
        c.set_knob("min_granularity_ns", 4_000_000).unwrap();
        assert_eq!(c.knobs.nr_latency, 8, "a debugfs write alone leaves it");
        let refused = c.set_knob("tunable_scaling", 0).unwrap_err().to_string();
        assert!(
            refused.contains("only when a CPU goes online or offline") && refused.ends_with("it stays 1"),
            "{refused}"
        );
        c.restore_knob("tunable_scaling", 0).unwrap();
        assert_eq!((c.knobs.latency, c.knobs.nr_latency), (24 * MSEC, 6));
        c.restore_knob("tunable_scaling", 2).unwrap();
        c.update_sysctl();
        assert_eq!((c.knobs.latency, c.knobs.min_granularity), (24 * MSEC, 4 * MSEC));
        c.domains_rebuilt(2, true);
        assert_eq!(c.knobs.latency, 6 * MSEC);
    }

    #[test]
    fn what_a_version_lacks_is_refused_with_the_nearest_name() {
        let mut c = config("6.12.0", 8);
        for (feature, nearest) in [("GENTLE_FAIR_SLEEPERS", None), ("RUN_TO_PARTY", Some("RUN_TO_PARITY"))] {
            let error = c.set_feature(feature, true).unwrap_err();
            assert!(error.to_string().contains("6.12.0 has no feature"), "{error}");
            if let Some(name) = nearest {
                assert!(error.hint().unwrap().contains(name));
            }
        }
        assert!(c.set_feature("RUN_TO_PARITY", false).is_ok() && !c.has(Feature::RunToParity));
        assert!(c.set_feature("HRTICK", false).is_ok());
        assert_eq!(
            c.set_feature("DOUBLE_TICK", true).unwrap_err().to_string(),
            "feature DOUBLE_TICK of kernel 6.12.0 is not simulated: nothing reads it since check_preempt_tick() was removed; it stays off"
        );
        assert!(c.set_knob("latency_ns", 1).unwrap_err().to_string().contains("no knob latency_ns"));
        let mut old = config("5.7", 8);
        for (knob, refused) in [("latency_ns", 99_999), ("min_granularity_ns", 1_000_000_001), ("nr_migrate", 1 << 31)]
        {
            assert!(old.set_knob(knob, refused).is_err() && config("6.1", 8).set_knob(knob, refused).is_ok(), "{knob}");
        }
        assert!(old.set_knob("rt_runtime_us", 1_000_001).unwrap_err().to_string().contains("0 to 1000000"));
        assert!(old.set_knob("rt_period_us", 949_999).unwrap_err().to_string().contains("takes 950000 to "));
        assert!(old.set_knob("rt_period_us", 2_000_000).is_ok() && old.set_knob("rt_runtime_us", 1_000_001).is_ok());
        assert!(c.set_knob("base_slice_ns", 0).unwrap_err().to_string().contains("takes 1 to "));
        assert_eq!(c.set_preempt(PreemptModel::Lazy).unwrap_err().hint().unwrap(), "it has none, voluntary, full, rt");
        assert!(c.set_preempt(PreemptModel::Rt).is_ok() && !c.has(Feature::TtwuQueue));
        for (row, model, reason) in [
            ("6.12.0", PreemptModel::Lazy, "which exists from 6.13 on"),
            ("6.6", PreemptModel::AutoNone, "which exists in 6.8 with the series PREEMPT_AUTO"),
            ("6.6", PreemptModel::Rt, "which exists from 6.12 on"),
            ("7.0", PreemptModel::Voluntary, "from 7.0 on only architectures without lazy preemption"),
        ] {
            let refused = config(row, 8).set_preempt(model).unwrap_err().to_string();
            assert!(refused.contains(reason), "{refused}");
        }
        assert!(config("6.8", 8).set_preempt(PreemptModel::AutoVoluntary).is_ok());
        assert_eq!("full".parse(), Ok(PreemptModel::Full));
        assert!("fulll".parse::<PreemptModel>().unwrap_err().hint().unwrap().contains("full"));
    }
}
