//! How a table of rules is written: one entry per rule with its value over the kernel's releases.

use super::release::When;

/// One rule of a table.
pub(crate) struct Rule<R> {
    /// What it is called.
    pub name: &'static str,
    /// What it decides, in one sentence.
    pub effect: &'static str,
    /// The kernel function that decides it.
    pub function: &'static str,
    /// Who reads it, and with what it can be exchanged.
    pub scope: Scope,
    /// The changes, without their values.
    pub history: &'static [When],
    /// The value of a row as text.
    pub show: fn(&R) -> String,
    /// Whether two rows follow it alike.
    pub same: fn(&R, &R) -> bool,
    /// Copies the value from another row.
    pub take: fn(&mut R, &R),
}

/// Who reads a rule, and with what an ablation exchanges it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Scope {
    pub read_by: ReadBy,
    pub exchanged: Exchanged,
}

/// Which algorithm of the fair class reads a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReadBy {
    Cfs,
    Eevdf,
    Both,
}

/// With what a rule is exchanged between two rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exchanged {
    /// On its own.
    Alone,
    /// With the algorithm, if that differs.
    WithAlgorithm,
    /// With the algorithm or with the kind of slice protection, if one of them differs.
    WithProtection,
    /// With the preemption model.
    WithPreemption,
}

impl Scope {
    const fn new(read_by: ReadBy, exchanged: Exchanged) -> Scope {
        Scope { read_by, exchanged }
    }
}

pub(crate) const CFS: Scope = Scope::new(ReadBy::Cfs, Exchanged::WithAlgorithm);
pub(crate) const EEVDF: Scope = Scope::new(ReadBy::Eevdf, Exchanged::WithAlgorithm);
/// Both algorithms read it, each with values of its own.
pub(crate) const EITHER: Scope = Scope::new(ReadBy::Both, Exchanged::WithAlgorithm);
pub(crate) const BOTH: Scope = Scope::new(ReadBy::Both, Exchanged::Alone);
pub(crate) const EEVDF_PROTECTION: Scope = Scope::new(ReadBy::Eevdf, Exchanged::WithProtection);
pub(crate) const EITHER_PROTECTION: Scope = Scope::new(ReadBy::Both, Exchanged::WithProtection);
pub(crate) const PREEMPTION: Scope = Scope::new(ReadBy::Both, Exchanged::WithPreemption);

/// The text of a value.
pub(crate) trait Shown {
    fn shown(&self) -> String;
}

impl Shown for bool {
    fn shown(&self) -> String {
        if *self { "yes" } else { "no" }.to_owned()
    }
}

macro_rules! shown_as_number {
    ($($type:ty)*) => {
        $(impl Shown for $type {
            fn shown(&self) -> String {
                self.to_string()
            }
        })*
    };
}
shown_as_number!(u32 u64);

/// An enum whose variants have a text: `Variant = "text"`.
macro_rules! choices {
    ($(#[doc = $about:literal])+ pub enum $Name:ident { $($(#[doc = $doc:literal])+ $Variant:ident = $text:literal,)+ }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $Name { $($(#[doc = $doc])+ $Variant,)+ }

        impl $crate::history::table::Shown for $Name {
            fn shown(&self) -> String {
                match self { $($Name::$Variant => $text.to_owned(),)+ }
            }
        }
    };
}

/// A struct of rules and its table. An entry reads
///
/// ```text
/// /// What it decides.
/// SCOPE "name" in "kernel_function"
/// field: Type = VALUE_IN_THE_OLDEST_ROW,
///     from "6.12" by "COMMIT" => VALUE,
///     seen "6.1.192" by "COMMIT" => VALUE;
/// ```
///
/// `, with field: Type` behind the table's name puts another such struct inside.
macro_rules! rules {
    (
        $(#[doc = $about:literal])+
        pub struct $Name:ident in $TABLE:ident $(, with $nested:ident: $Nested:ty)*;
        $(
            $(#[doc = $effect:literal])+
            $scope:ident $name:literal in $function:literal
            $field:ident: $type:ty = $first:expr
            $(, $how:ident $release:literal $origin:ident $text:literal => $value:expr)*;
        )+
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $Name {
            $($(#[doc = $effect])+ pub $field: $type,)+
            $(#[doc = concat!("The rules of [`", stringify!($Nested), "`].")] pub $nested: $Nested,)*
        }

        impl $Name {
            /// As in `release`.
            #[must_use]
            pub const fn at(release: $crate::history::release::Release) -> Self {
                use $crate::history::release::{value_at, when, Change};
                Self {
                    $($field: {
                        const CHANGES: &[Change<$type>] =
                            &[$(Change { when: when!($how $release $origin $text), value: $value },)*];
                        value_at($first, CHANGES, release)
                    },)+
                    $($nested: <$Nested>::at(release),)*
                }
            }
        }

        pub(crate) const $TABLE: &[$crate::history::table::Rule<$Name>] = &[$(
            $crate::history::table::Rule {
                name: $name,
                effect: concat!($($effect),+).trim_ascii(),
                function: $function,
                scope: $crate::history::table::$scope,
                history: &[$($crate::history::release::when!($how $release $origin $text),)*],
                show: |rules| $crate::history::table::Shown::shown(&rules.$field),
                same: |a, b| a.$field == b.$field,
                take: |rules, from| rules.$field = from.$field,
            },
        )+];
    };
}

pub(crate) use {choices, rules};
