//! The modelled kernels, oldest first: a release, and what differs from what the tables say of it.

use super::choices::{Algorithm, SliceSource, WakeupRule, YieldRule};
use super::fair::Rules;
use super::load::Signals;
use super::placement::PlacementRules;
use super::release::Release;
use super::{Names, Version};
use crate::features::Feature;
use crate::knobs::Knob;
use crate::preempt_model;

pub(super) static VERSIONS: &[Version] = &[
    Version {
        // The series "Optimize the idle CPU search" of 8 July 2019 was posted on this kernel; off as in 5.2.1 itself.
        features: &[(Feature::SisIteratorMask, Some(false))],
        ..row("5.2", "5.2.1", "CFS as in 5.2.1: the period counts the queue's own entities, slices have no floor")
    },
    row("5.7", "5.7.14", "CFS as in 5.7.14: as 5.2, but a nice change of a lone task no longer reschedules"),
    debian(
        "5.10",
        "5.10.262",
        "CFS as in Debian 5.10.262: 5.10 with ALT_PERIOD and BASE_SLICE from 5.13, knobs in /proc",
    ),
    Version {
        rules: Rules {
            // Read in 5.11.0 and 5.14.2, between which it lies: these two came with 5.14 and are taken from there.
            pick_clears_buddies: false,
            pelt: Signals { util_est: Signals::at(Release::new("5.13")).util_est, ..Signals::at(Release::new("5.14")) },
            ..Rules::at(Release::new("5.13"))
        },
        ..row("5.13", "5.13", "CFS as in 5.13 (between 5.11 and 5.14.2): ALT_PERIOD and BASE_SLICE, knobs in debugfs")
    },
    row(
        "5.15",
        "5.15.148",
        "CFS as in 5.15.148 with its backports of SIS_UTIL; held against Ubuntu's 5.15.0-25 and 5.15.0-204",
    ),
    debian("6.1", "6.1.192", "CFS as in Debian 6.1.192 (stable backports included, autogroup off)"),
    Version {
        // The series "Implement shared wakequeue in CFS" of 13 June 2023; off as in 6.3.8 itself.
        features: &[(Feature::Swqueue, Some(false))],
        ..row("6.3", "6.3.8", "CFS as in 6.3.8: the tick caps slices at sched_latency")
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
        ..row(
            "eevdf-rfc",
            "6.3.8",
            "the EEVDF series of March 2023 on 6.3: latency-nice, PLACE_FUDGE, PLACE_BONUS, a pick at every tick",
        )
    },
    row("6.6", "6.6", "EEVDF as in 6.6.0: RUN_TO_PARITY, one slice for all, tree by vruntime"),
    Version {
        preempt_models: preempt_model::WITH_AUTO,
        ..row(
            "6.8",
            "6.8",
            "EEVDF as in 6.8: tree by deadline, reweighting keeps the lag; held against Ubuntu's 6.8.0-31",
        )
    },
    row("6.12.0", "6.12", "EEVDF as in vanilla 6.12.0: delayed dequeue, custom slices, PREEMPT_SHORT"),
    debian(
        "6.12.107",
        "6.12.107",
        "EEVDF as in Debian 6.12.107: zero_vruntime, PICK_BUDDY, 0.70 ms base slice on one CPU, yield gives up the request",
    ),
    debian(
        "6.16",
        "6.16.12",
        "EEVDF as in Debian 6.16.12: 6.12.0 with PICK_BUDDY, 0.70 ms base slice on one CPU and lazy rescheduling",
    ),
    debian("6.17", "6.17.13", "EEVDF as in Debian 6.17.13: 6.16 with protection by shortest slice (vprot)"),
    row("6.18.2", "6.18.2", "EEVDF as in 6.18.2: protection by shortest slice (vprot), lazy rescheduling"),
    debian("6.18.12", "6.18.12", "EEVDF as in Debian 6.18.12: 6.18.2 with a zero_vruntime that follows the tree"),
    row(
        "6.18.44",
        "6.18.44",
        "EEVDF as in 6.18.44: 6.18.2 with zero_vruntime, lag bound by the longest slice, forks never preempt",
    ),
    debian("6.19.6", "6.19.6", "EEVDF as in Debian 6.19.6: 6.18.12, but forks never preempt"),
    debian(
        "6.19.14",
        "6.19.14",
        "EEVDF as in Debian 6.19.14: 6.19.6 with the zero point, the lag bound and protection of 7.0",
    ),
    debian("7.0.4", "7.0.4", "EEVDF as in Debian 7.0.4: 7.0 whose wakeups leave delayed entities on the queue"),
    debian("7.0", "7.0.13", "EEVDF as in Debian 7.0.13: 6.18.44 with the protection apart from the lag"),
    debian("7.1", "7.1.13", "EEVDF as in Debian 7.1.13: full-resolution weights, lag that heals while delayed, HRTICK"),
    debian("7.2", "7.2.13", "EEVDF as in Debian 7.2.13: 7.1 whose delayed wakeups charge the running task first"),
    debian(
        "7.3",
        "7.3.4",
        "EEVDF as in Debian 7.3.4: protection until not eligible, eligible shorter slices always preempt",
    ),
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
