//! The modelled kernels, oldest first: a release, and its deviations from the tables.
//!
//! A name without a row of its own, such as 6.12, is a series and means its newest row (`Version::find`).

use super::choices::{Algorithm, SliceSource, WakeupRule, YieldRule};
use super::fair::Rules;
use super::placement::PlacementRules;
use super::{Names, Version};
use crate::features::Feature;
use crate::history::release::Release;
use crate::knobs::Knob;
use crate::pelt::signals::Signals;
use crate::preempt_model;

pub(super) static VERSIONS: &[Version] = &[
    Version {
        // The series "Optimize the idle CPU search" of 8 July 2019 was posted on this kernel; off as in 5.2.1 itself.
        features: &[(Feature::SisIteratorMask, Some(false))],
        // The kernel has it on; its task_numa_compare is not modelled.
        knobs: &[(Knob::NumaBalancing, Some(0))],
        ..row("5.2", "5.2.1", "CFS of 5.2.1: slices have no floor")
    },
    row("5.7", "5.7.14", "CFS of 5.7.14: nice of a lone task reschedules nothing"),
    debian("5.10", "5.10.262", "CFS of Debian 5.10.262: ALT_PERIOD, knobs in /proc"),
    Version {
        rules: Rules {
            // Read in 5.11.0 and 5.14.2. These three came with 5.14. The row takes them because it is compared with
            // recordings of 5.14.2.
            pick_clears_buddies: false,
            setscheduler_moves: false,
            pelt: Signals { util_est: Signals::at(Release::new("5.13")).util_est, ..Signals::at(Release::new("5.14")) },
            ..Rules::at(Release::new("5.13"))
        },
        ..row("5.13", "5.13.0", "CFS of 5.13: ALT_PERIOD, BASE_SLICE, knobs in debugfs")
    },
    row("5.15", "5.15.148", "CFS of 5.15.148 with its backports of SIS_UTIL"),
    debian("6.1", "6.1.192", "CFS of Debian 6.1.192 with its backports"),
    Version {
        // The series "Implement shared wakequeue in CFS" of 13 June 2023; off as in 6.3.8 itself.
        features: &[(Feature::Swqueue, Some(false))],
        ..row("6.3", "6.3.8", "CFS of 6.3.8: the tick caps slices at sched_latency")
    },
    Version {
        rules: Rules {
            algorithm: Algorithm::Eevdf,
            average_truncates: true,
            average_slices: true,
            slice: SliceSource::LatencyNice,
            wakeup: WakeupRule::Pick,
            yields: YieldRule::LaterDeadline,
            ..Rules::at(Release::new("6.3.8"))
        },
        features: &[
            (Feature::GentleFairSleepers, None),
            (Feature::StartDebit, None),
            (Feature::PlaceLag, Some(true)),
            (Feature::PlaceFudge, Some(true)),
            (Feature::PlaceBonus, Some(false)),
            (Feature::MinimalVa, Some(false)),
            (Feature::Swqueue, Some(false)),
            (Feature::PlaceDeadlineInitial, Some(true)),
            (Feature::LastBuddy, None),
            (Feature::AltPeriod, None),
            (Feature::BaseSlice, None),
        ],
        knobs: &[
            (Knob::Latency, None),
            (Knob::MinGranularity, None),
            (Knob::BaseSlice, Some(750_000)),
            (Knob::WakeupGranularity, None),
            (Knob::IdleMinGranularity, None),
            (Knob::ChildRunsFirst, None),
        ],
        patched: true,
        ..row("eevdf-rfc", "6.3.8", "EEVDF series of March 2023 on 6.3, with latency-nice")
    },
    row("6.6", "6.6.0", "EEVDF of 6.6.0: RUN_TO_PARITY, tree by vruntime"),
    row("6.6.9", "6.6.9", "EEVDF of 6.6.9: 6.6, and reweighting keeps lag"),
    Version {
        preempt_models: preempt_model::WITH_AUTO,
        ..row("6.8", "6.8.0", "EEVDF of 6.8: tree by deadline, reweighting keeps lag")
    },
    row("6.12.0", "6.12.0", "EEVDF of 6.12.0: delayed dequeue, PREEMPT_SHORT"),
    debian("6.12.43", "6.12.43", "EEVDF of Debian 6.12.43: 6.12.0, PICK_BUDDY, shorter slices"),
    debian("6.12.107", "6.12.107", "EEVDF of Debian 6.12.107: zero_vruntime, PICK_BUDDY"),
    debian("6.16", "6.16.12", "EEVDF of Debian 6.16.12: PICK_BUDDY, lazy preemption"),
    debian("6.17", "6.17.13", "EEVDF of Debian 6.17.13: protection by shortest slice"),
    row("6.18.2", "6.18.2", "EEVDF of 6.18.2: protection by shortest slice"),
    debian("6.18.12", "6.18.12", "EEVDF of Debian 6.18.12: zero_vruntime of the tree"),
    row("6.18.44", "6.18.44", "EEVDF of 6.18.44: lag bound, forks never preempt"),
    debian("6.19.6", "6.19.6", "EEVDF of Debian 6.19.6: 6.18.12, forks never preempt"),
    debian("6.19.14", "6.19.14", "EEVDF of Debian 6.19.14: zero point, lag bound of 7.0"),
    debian("7.0.4", "7.0.4", "EEVDF of Debian 7.0.4: wakeups keep delayed entities"),
    debian("7.0", "7.0.13", "EEVDF of Debian 7.0.13: protection apart from the lag"),
    debian("7.1", "7.1.13", "EEVDF of Debian 7.1.13: full-resolution weights, HRTICK"),
    debian("7.2", "7.2.13", "EEVDF of Debian 7.2.13: delayed wakeups charge first"),
    debian("7.3", "7.3.4", "EEVDF of Debian 7.3.4: protection until not eligible"),
];

/// A row that follows the tables, of a kernel whose image is in Debian's archive.
const fn debian(name: &'static str, release: &str, summary: &'static str) -> Version {
    Version { in_debian: true, ..row(name, release, summary) }
}

/// A row that follows the tables.
const fn row(name: &'static str, release: &str, summary: &'static str) -> Version {
    let release = Release::new(release);
    Version {
        name,
        release,
        patched: false,
        in_debian: false,
        summary,
        rules: Rules::at(release),
        placement: PlacementRules::at(release),
        names: Names::at(release),
        features: &[],
        knobs: &[],
        preempt_models: preempt_model::models_at(release),
        preempt_default: preempt_model::default_at(release),
    }
}
