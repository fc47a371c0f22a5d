//! The features and knobs that a row has: what its release says, unless the row differs from its release.

use super::Version;
use crate::features::{Feature, FeatureInfo, FeatureSet};
use crate::history::release::{value_at, Release};
use crate::knobs::{Knob, KnobInfo, Knobs};

impl FeatureInfo {
    /// The default in a kernel; `None` where the feature does not exist.
    #[must_use]
    pub fn default_in(&self, version: &Version) -> Option<bool> {
        let own = version.features.iter().find(|(feature, _)| *feature == self.feature);
        own.map_or_else(|| value_at(self.first, self.changes, version.release), |(_, default)| *default)
    }

    /// Why switching it would change nothing in the model of that kernel, where that is so.
    #[must_use]
    pub fn left_out_in(&self, version: &Version) -> Option<&'static str> {
        self.left_out.as_ref()?.in_release(version.release)
    }
}

impl FeatureSet {
    /// The features that a kernel boots with.
    #[must_use]
    pub fn defaults(version: &Version) -> FeatureSet {
        let mut set = FeatureSet::default();
        for info in Feature::all() {
            set.put(info.feature, info.default_in(version) == Some(true));
        }
        set
    }
}

/// The release that moved the knobs from sysctls with bounds to debugfs (8a99b6833c88).
const DEBUGFS: Release = Release::new("5.13");

impl KnobInfo {
    /// Whether a kernel has the knob.
    #[must_use]
    pub fn exists_in(&self, version: &Version) -> bool {
        self.default_in(version).is_some()
    }

    /// Smallest and largest value that a kernel takes.
    #[must_use]
    pub fn range_in(&self, version: &Version) -> (u64, u64) {
        if version.release.contains(DEBUGFS) {
            self.range
        } else {
            self.range_up_to_5_12
        }
    }

    /// The default in a kernel, before scaling; `None` where the knob does not exist.
    #[must_use]
    pub fn default_in(&self, version: &Version) -> Option<u64> {
        let own = version.knobs.iter().find(|(knob, _)| *knob == self.knob);
        own.map_or_else(|| value_at(self.first, self.changes, version.release), |(_, default)| *default)
    }

    /// Why a write would change nothing in the model of that kernel, where that is so.
    #[must_use]
    pub fn left_out_in(&self, version: &Version) -> Option<&'static str> {
        self.left_out.as_ref()?.in_release(version.release)
    }
}

impl Knobs {
    /// The unscaled ("normalized") values that a kernel is built with.
    #[must_use]
    pub(crate) fn normalized(version: &Version) -> Knobs {
        let mut knobs = Knobs { nr_latency: 8, ..Knobs::default() };
        for info in Knob::all() {
            knobs.put(info.knob, info.default_in(version).unwrap_or(info.introduced_with()));
        }
        knobs
    }
}
