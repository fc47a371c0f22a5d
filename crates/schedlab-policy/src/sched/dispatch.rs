//! Calls to the classes: to one class by its id, or to every class in order.

use std::ops::ControlFlow;

use schedlab_model::{CpuId, Nanos, TaskId};

use super::{Core, Sched};
use crate::class::{Ask, AskEach, ClassId, ClassList, EachClass, SchedClass, Visit};
use crate::core::types::Tested;
use crate::flags::{Dequeue, Enqueue, WakeFlags};
use crate::group_id::GroupId;
use crate::numa::Access;
use crate::queue_view::QueueView;
use crate::{Moves, Resched, TaskAttr, WakeKind};

/// Access to one class of a scheduler.
pub(super) struct One<'a, L> {
    core: &'a mut Core,
    classes: &'a mut L,
    id: ClassId,
}

/// Access to every class of a scheduler in order. Requests to reschedule are combined.
pub(super) struct Every<'a, L> {
    core: &'a mut Core,
    classes: &'a mut L,
    but: Option<ClassId>,
}

impl<L: ClassList> Sched<L> {
    /// The class with this id.
    #[inline(always)]
    pub(super) fn class(&mut self, id: ClassId) -> One<'_, L> {
        One { core: &mut self.core, classes: &mut self.classes, id }
    }

    /// The class of the task.
    #[inline(always)]
    pub(super) fn class_of(&mut self, task: TaskId) -> One<'_, L> {
        let id = if self.core.has_higher() { self.core.class_of(task) } else { Self::LOWEST };
        self.class(id)
    }

    /// The idle class.
    pub(super) fn idle_class(&mut self) -> One<'_, L> {
        self.class(ClassId(L::LEN - 1))
    }

    /// Every class.
    #[inline(always)]
    pub(super) fn every_class(&mut self) -> Every<'_, L> {
        Every { core: &mut self.core, classes: &mut self.classes, but: None }
    }

    /// Every class but one.
    #[inline(always)]
    pub(super) fn other_classes(&mut self, but: ClassId) -> Every<'_, L> {
        Every { core: &mut self.core, classes: &mut self.classes, but: Some(but) }
    }

    /// The highest class that tasks with these attributes belong to.
    pub(super) fn class_for(&mut self, attr: &TaskAttr) -> ClassId {
        struct For<'a>(&'a TaskAttr, ClassId);
        impl EachClass for For<'_> {
            fn each<C: SchedClass>(&mut self, class: &mut C, id: ClassId) -> ControlFlow<()> {
                self.1 = id;
                if class.takes(self.0) {
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            }
        }
        let mut found = For(attr, ClassId::default());
        self.classes.walk(&mut found);
        found.1
    }

    /// Whether the task is queued or running, or still queued because its dequeue is delayed.
    #[inline]
    #[must_use]
    pub fn on_rq(&self, task: TaskId) -> bool {
        struct OnRq(TaskId);
        impl Ask for OnRq {
            type Out = bool;
            #[inline(always)]
            fn ask<C: SchedClass>(self, class: &C) -> bool {
                class.on_rq(self.0)
            }
        }
        let id = if self.core.has_higher() { self.core.class_of(task) } else { Self::LOWEST };
        self.classes.ask(id, OnRq(task))
    }

    /// Whether the timers of the task have no slack (`rt_or_dl_task_policy`).
    #[must_use]
    pub fn is_precise(&self, task: TaskId) -> bool {
        struct IsPrecise;
        impl Ask for IsPrecise {
            type Out = bool;
            fn ask<C: SchedClass>(self, class: &C) -> bool {
                class.is_precise()
            }
        }
        self.classes.ask(self.core.class_of(task), IsPrecise)
    }

    /// Whether the classes below this one run first on the CPU.
    pub(super) fn defers(&self, class: ClassId, cpu: CpuId) -> bool {
        struct Defers(CpuId);
        impl Ask for Defers {
            type Out = bool;
            fn ask<C: SchedClass>(self, class: &C) -> bool {
                class.defers(self.0)
            }
        }
        self.classes.ask(class, Defers(cpu))
    }

    /// When a class last updated the runqueue's clock.
    #[inline]
    pub(super) fn clock_updated(&self, cpu: CpuId) -> Nanos {
        struct Updated(CpuId);
        impl Ask for Updated {
            type Out = Nanos;
            #[inline(always)]
            fn ask<C: SchedClass>(self, class: &C) -> Nanos {
                class.clock_updated(self.0)
            }
        }
        struct Latest(CpuId, Nanos);
        impl AskEach for Latest {
            fn ask<C: SchedClass>(&mut self, class: &C) {
                self.1 = self.1.max(class.clock_updated(self.0));
            }
        }
        if !self.core.is_mixed() {
            return self.classes.ask(Self::LOWEST, Updated(cpu));
        }
        let mut latest = Latest(cpu, 0);
        self.classes.ask_each(&mut latest);
        latest.1
    }

    /// When [`Sched::timer_expired`] is to be called next.
    #[inline]
    #[must_use]
    pub fn next_timer(&self) -> Option<Nanos> {
        struct Next(Option<Nanos>);
        impl AskEach for Next {
            fn ask<C: SchedClass>(&mut self, class: &C) {
                self.0 = class.next_timer().into_iter().chain(self.0).min();
            }
        }
        if !self.core.is_mixed() {
            return None;
        }
        let mut next = Next(None);
        self.classes.ask_each(&mut next);
        next.0
    }

    /// A snapshot of the CPU's queues of every class, with tasks named by their ids.
    #[must_use]
    pub fn queue_view(&self, cpu: CpuId) -> QueueView {
        struct View<'a>(&'a Core, QueueView);
        impl AskEach for View<'_> {
            fn ask<C: SchedClass>(&mut self, class: &C) {
                class.view(self.0, &mut self.1);
            }
        }
        let mut view = View(&self.core, QueueView { cpu: cpu.0, ..QueueView::default() });
        self.classes.ask_each(&mut view);
        view.1
    }
}

/// Sets the place of every class.
pub(super) struct Numbered;

impl EachClass for Numbered {
    fn each<C: SchedClass>(&mut self, class: &mut C, id: ClassId) -> ControlFlow<()> {
        class.set_id(id);
        ControlFlow::Continue(())
    }
}

/// The bare classes, a bit each.
pub(super) fn bare(classes: &impl ClassList) -> u32 {
    struct Bare(u32);
    impl AskEach for Bare {
        fn ask<C: SchedClass>(&mut self, class: &C) {
            self.0 |= u32::from(class.is_bare()) << class.id().0;
        }
    }
    let mut found = Bare(0);
    classes.ask_each(&mut found);
    found.0
}

macro_rules! verbs_of_one {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) $(-> $out:ty)?;)+) => {
        impl<L: ClassList> One<'_, L> {
            $(
                #[inline(always)]
                pub fn $name(self, $($arg: $ty),*) $(-> $out)? {
                    struct Call<'a> { core: &'a mut Core, args: ($($ty,)*) }
                    impl Visit for Call<'_> {
                        type Out = verbs_of_one!(@out $($out)?);
                        #[inline(always)]
                        fn visit<C: SchedClass>(self, class: &mut C) -> Self::Out {
                            let ($($arg,)*) = self.args;
                            class.$name(self.core, $($arg),*)
                        }
                    }
                    self.classes.visit(self.id, Call { core: self.core, args: ($($arg,)*) })
                }
            )+
        }
    };
    (@out) => { () };
    (@out $out:ty) => { $out };
}

verbs_of_one! {
    fn task_fork(cpu: CpuId, task: TaskId, now: Nanos) -> Resched;
    fn task_dead(task: TaskId);
    fn enqueue_task(cpu: CpuId, task: TaskId, flags: Enqueue, now: Nanos);
    fn dequeue_task(cpu: CpuId, task: TaskId, flags: Dequeue, now: Nanos) -> bool;
    fn yield_task(cpu: CpuId, now: Nanos);
    fn yield_to_task(cpu: CpuId, task: TaskId, now: Nanos) -> bool;
    fn wakeup_preempt(cpu: CpuId, task: TaskId, flags: WakeFlags, need_resched: bool, now: Nanos) -> Resched;
    fn pick_task(cpu: CpuId, now: Nanos) -> Option<TaskId>;
    fn pick_next_task(cpu: CpuId, now: Nanos) -> Option<TaskId>;
    fn sched_balance_newidle(cpu: CpuId, now: Nanos) -> Moves;
    fn throttle_work(task: TaskId, now: Nanos) -> bool;
    fn numa_access(cpu: CpuId, task: TaskId, user: Nanos, may_move: bool, now: Nanos) -> Access;
    fn put_prev_task(cpu: CpuId, prev: TaskId, now: Nanos);
    fn set_next_task(cpu: CpuId, next: TaskId, first: bool, now: Nanos);
    fn task_woken(task: TaskId, need_resched: bool, now: Nanos) -> Moves;
    fn task_tick(cpu: CpuId, curr: TaskId, now: Nanos) -> Resched;
    fn switching_from(task: TaskId, now: Nanos);
    fn switched_from(task: TaskId, now: Nanos);
    fn switched_to(cpu: CpuId, task: TaskId, running: bool, now: Nanos) -> Resched;
    fn set_cpus_allowed(task: TaskId, now: Nanos);
}

impl<L: ClassList> One<'_, L> {
    /// [`SchedClass::select_task_rq`].
    pub fn select_task_rq(
        self,
        task: TaskId,
        kind: WakeKind,
        tested: &mut Tested,
        now: Nanos,
    ) -> (CpuId, &'static str) {
        struct Call<'a>(&'a mut Core, TaskId, WakeKind, &'a mut Tested, Nanos);
        impl Visit for Call<'_> {
            type Out = (CpuId, &'static str);
            #[inline(always)]
            fn visit<C: SchedClass>(self, class: &mut C) -> Self::Out {
                class.select_task_rq(self.0, self.1, self.2, self.3, self.4)
            }
        }
        self.classes.visit(self.id, Call(self.core, task, kind, tested, now))
    }

    /// [`SchedClass::switching_to`].
    pub fn switching_to(self, task: TaskId, attr: &TaskAttr, queued: bool, now: Nanos) {
        struct Call<'a>(&'a mut Core, TaskId, &'a TaskAttr, bool, Nanos);
        impl Visit for Call<'_> {
            type Out = ();
            fn visit<C: SchedClass>(self, class: &mut C) {
                class.switching_to(self.0, self.1, self.2, self.3, self.4);
            }
        }
        self.classes.visit(self.id, Call(self.core, task, attr, queued, now));
    }

    /// [`SchedClass::prio_changed`].
    pub fn prio_changed(self, task: TaskId, old: &TaskAttr, attr: &TaskAttr, now: Nanos) -> Resched {
        struct Call<'a>(&'a mut Core, TaskId, &'a TaskAttr, &'a TaskAttr, Nanos);
        impl Visit for Call<'_> {
            type Out = Resched;
            fn visit<C: SchedClass>(self, class: &mut C) -> Resched {
                class.prio_changed(self.0, self.1, self.2, self.3, self.4)
            }
        }
        self.classes.visit(self.id, Call(self.core, task, old, attr, now))
    }
}

/// The combined results of a call to every class.
trait Join {
    fn join(&mut self, other: Self);
}

impl Join for () {
    #[inline(always)]
    fn join(&mut self, (): ()) {}
}

impl Join for Resched {
    fn join(&mut self, other: Resched) {
        *self = other.max(*self);
    }
}

impl Join for Moves {
    #[inline]
    fn join(&mut self, other: Moves) {
        if *self == Moves::default() {
            *self = other;
        } else {
            self.add(other);
        }
    }
}

impl Moves {
    fn add(&mut self, other: Moves) {
        self.moved.extend(other.moved);
        other.resched.iter().for_each(|(cpu, resched)| self.ask(*cpu, *resched));
        self.passes += other.passes;
        self.looked_at += other.looked_at;
    }
}

impl Join for Vec<CpuId> {
    fn join(&mut self, other: Vec<CpuId>) {
        self.extend(other);
    }
}

impl Join for Option<CpuId> {
    fn join(&mut self, other: Option<CpuId>) {
        *self = self.or(other);
    }
}

impl<L: ClassList> Every<'_, L> {
    /// [`SchedClass::task_new`] of a task of this class.
    pub fn task_new(self, task: TaskId, attr: &TaskAttr, class: ClassId) {
        struct Call<'a>(&'a mut Core, TaskId, &'a TaskAttr, ClassId);
        impl EachClass for Call<'_> {
            fn each<C: SchedClass>(&mut self, class: &mut C, id: ClassId) -> ControlFlow<()> {
                class.task_new(self.0, self.1, self.2, id == self.3);
                ControlFlow::Continue(())
            }
        }
        self.classes.walk(&mut Call(self.core, task, attr, class));
    }
}

macro_rules! verbs_of_every {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) $(-> $out:ty)?;)+) => {
        impl<L: ClassList> Every<'_, L> {
            $(
                #[inline(always)]
                pub fn $name(self, $($arg: $ty),*) $(-> $out)? {
                    struct Call<'a> {
                        core: &'a mut Core,
                        but: Option<ClassId>,
                        out: verbs_of_every!(@out $($out)?),
                        args: ($($ty,)*)
                    }
                    impl EachClass for Call<'_> {
                        #[inline(always)]
                        fn each<C: SchedClass>(&mut self, class: &mut C, id: ClassId) -> ControlFlow<()> {
                            if self.but != Some(id) {
                                let ($($arg,)*) = self.args;
                                self.out.join(class.$name(self.core, $($arg),*));
                            }
                            ControlFlow::Continue(())
                        }
                    }
                    let out = Default::default();
                    let mut call = Call { core: self.core, but: self.but, out, args: ($($arg,)*) };
                    self.classes.walk(&mut call);
                    call.out
                }
            )+
        }
    };
    (@out) => { () };
    (@out $out:ty) => { $out };
}

verbs_of_every! {
    fn migrate_task_rq(task: TaskId, from: CpuId, to: CpuId, now: Nanos);
    fn balance(cpu: CpuId, now: Nanos) -> Moves;
    fn sched_balance_newidle(cpu: CpuId, now: Nanos) -> Moves;
    fn balance_callback(cpu: CpuId, now: Nanos) -> Moves;
    fn update_curr(cpu: CpuId, now: Nanos);
    fn reweight_task(task: TaskId, nice: i8, now: Nanos) -> Resched;
    fn set_slice(task: TaskId, slice: Option<Nanos>, now: Nanos) -> Resched;
    fn task_change_group(task: TaskId, group: GroupId, now: Nanos) -> Resched;
    fn clear_resched(cpu: CpuId);
    fn idle_changed(cpu: CpuId, idle: bool, now: Nanos);
    fn timer_expired(now: Nanos) -> Moves;
    fn bandwidth_timers(now: Nanos) -> Vec<CpuId>;
    fn task_cache_work(cpu: CpuId, task: TaskId, now: Nanos);
    fn domains_rebuilt(leaves: bool, now: Nanos);
    fn active_load_balance_cpu_stop(cpu: CpuId, dest: CpuId, now: Nanos) -> Moves;
    fn sched_balance_domains(cpu: CpuId, idle: bool, now: Nanos) -> Moves;
    fn nohz_balancer_kick(cpu: CpuId, now: Nanos) -> Option<CpuId>;
    fn nohz_idle_balance(cpu: CpuId, now: Nanos) -> Moves;
    fn drain_log();
    fn set_log(on: bool, views: bool);
}
