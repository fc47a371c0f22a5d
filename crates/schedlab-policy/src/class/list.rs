//! The classes of a scheduler in their order, each a field of its own type.

use std::ops::ControlFlow;

use super::SchedClass;
use crate::core::class_id::ClassId;

/// A call to one class of a list.
pub trait Visit {
    /// The result.
    type Out;

    /// Calls the class.
    fn visit<C: SchedClass>(self, class: &mut C) -> Self::Out;
}

/// A read-only call to one class of a list.
pub trait Ask {
    /// The result.
    type Out;

    /// Calls the class.
    fn ask<C: SchedClass>(self, class: &C) -> Self::Out;
}

/// A call to every class of a list in turn.
pub trait EachClass {
    /// Calls the class; `Break` ends the walk.
    fn each<C: SchedClass>(&mut self, class: &mut C, id: ClassId) -> ControlFlow<()>;
}

/// A read-only call to every class of a list in turn.
pub trait AskEach {
    /// Calls the class.
    fn ask<C: SchedClass>(&mut self, class: &C);
}

/// The classes of a scheduler, highest first (`for_each_class`). Made by [`class_list!`](crate::class_list).
pub trait ClassList {
    /// The number of classes, `idle` included.
    const LEN: u8;

    /// Calls the class with this id, or the last one if there is none.
    fn visit<V: Visit>(&mut self, id: ClassId, call: V) -> V::Out;

    /// Calls the class with this id, read-only, or the last one if there is none.
    fn ask<A: Ask>(&self, id: ClassId, question: A) -> A::Out;

    /// Calls the classes from the highest to the lowest.
    fn walk<E: EachClass>(&mut self, call: &mut E);

    /// Calls the classes from the highest to the lowest, read-only.
    fn ask_each<A: AskEach>(&self, question: &mut A);
}

/// Declares a struct with one field per class, the highest class first, and makes it a [`ClassList`]. The last class
/// has to be [`Idle`](crate::class::Idle).
///
/// ```
/// use schedlab_policy::class::{ClassList, Idle};
/// schedlab_policy::class_list! {
///     /// Nothing ever runs.
///     pub struct OnlyIdle { idle: Idle }
/// }
/// assert_eq!(OnlyIdle::LEN, 1);
/// ```
#[macro_export]
macro_rules! class_list {
    ($(#[$meta:meta])* $vis:vis struct $List:ident { $($field:ident: $Class:ty),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        $vis struct $List {
            $(#[doc = concat!("`", stringify!($field), "_sched_class`.")] pub $field: $Class),+
        }

        impl $crate::class::ClassList for $List {
            const LEN: u8 = [$(stringify!($field)),+].len() as u8;

            #[inline(always)]
            fn visit<V: $crate::class::Visit>(&mut self, id: $crate::class::ClassId, call: V) -> V::Out {
                let mut at = 0;
                $(
                    if id.0 == at || at + 1 == Self::LEN {
                        return call.visit(&mut self.$field);
                    }
                    at += 1;
                )+
                unreachable!("the last class takes what is left, class {at} of {}", Self::LEN)
            }

            #[inline(always)]
            fn ask<A: $crate::class::Ask>(&self, id: $crate::class::ClassId, question: A) -> A::Out {
                let mut at = 0;
                $(
                    if id.0 == at || at + 1 == Self::LEN {
                        return question.ask(&self.$field);
                    }
                    at += 1;
                )+
                unreachable!("the last class takes what is left, class {at} of {}", Self::LEN)
            }

            #[inline(always)]
            fn ask_each<A: $crate::class::AskEach>(&self, question: &mut A) {
                $(question.ask(&self.$field);)+
            }

            #[inline(always)]
            fn walk<E: $crate::class::EachClass>(&mut self, call: &mut E) {
                let mut at = 0;
                $(
                    if call.each(&mut self.$field, $crate::class::ClassId(at)).is_break() {
                        return;
                    }
                    at += 1;
                )+
                debug_assert_eq!(at, Self::LEN);
            }
        }
    };
}
