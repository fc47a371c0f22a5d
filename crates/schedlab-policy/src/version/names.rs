//! The kernel's names of the functions that decide, where they changed over the releases.

use crate::history::release::{value_at, when, Change, Release};

macro_rules! names {
    ($(
        $(#[doc = $about:literal])+
        $field:ident: $first:literal $(, $how:ident $release:literal $origin:ident $text:literal => $value:literal)*;
    )+) => {
        /// Names of functions in `kernel/sched`.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct Names {
            $($(#[doc = $about])+ pub $field: &'static str,)+
        }

        impl Names {
            /// As in `release`.
            #[must_use]
            pub(super) const fn at(release: Release) -> Names {
                Names {$($field: {
                    const CHANGES: &[Change<&str>] =
                        &[$(Change { when: when!($how $release $origin $text), value: $value },)*];
                    value_at($first, CHANGES, release)
                },)+}
            }
        }
    };
}

names! {
    /// Whether a woken task preempts, across the classes (core.c).
    preempt: "check_preempt_curr", from "6.7" by "e23edc86b09d" => "wakeup_preempt";
    /// The same within the fair class.
    preempt_fair: "check_preempt_wakeup",
        from "6.7" by "82845683ca6a" => "check_preempt_wakeup_fair",
        from "7.0" by "704069649b5b" => "wakeup_preempt_fair";
    /// The same within the real-time class.
    preempt_rt: "check_preempt_curr_rt", from "6.7" by "e23edc86b09d" => "wakeup_preempt_rt";
    /// The same within the deadline class.
    preempt_dl: "check_preempt_curr_dl", from "6.7" by "e23edc86b09d" => "wakeup_preempt_dl";
    /// The least busy CPU for a new task.
    idlest_cpu: "find_idlest_cpu", from "6.10" by "686d148cbb5a" => "sched_balance_find_dst_cpu";
    /// The least busy group of a domain for it.
    idlest_group: "find_idlest_group", from "6.10" by "a88b17080294" => "sched_balance_find_dst_group";
    /// The least busy CPU of that group.
    idlest_group_cpu: "find_idlest_group_cpu", from "6.10" by "646ebaf51c64" => "sched_balance_find_dst_group_cpu";
    /// One balancing pass.
    balance: "load_balance", from "6.10" by "4c3e509ea9f2" => "sched_balance_rq";
}

impl Names {
    /// Newidle balancing, which was renamed with the pass.
    #[must_use]
    pub fn newidle(&self) -> &'static str {
        match self.balance {
            "load_balance" => "newidle_balance",
            _ => "sched_balance_newidle",
        }
    }
}
