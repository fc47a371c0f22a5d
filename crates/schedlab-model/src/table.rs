//! A vector indexed by ids: of CPUs, tasks, entities.

use std::ops::{Deref, DerefMut, Index, IndexMut};
use std::slice::SliceIndex;

/// A vector that is read and written at single places. An index out of range is an error of the program, as it is with
/// a vector; here the message does not name the index and the length, so that a look-up does not keep them in registers
/// for it (a context switch makes about 180 look-ups). Iterators and slices are those of the vector.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table<T>(Vec<T>);

impl<T, I: SliceIndex<[T]>> Index<I> for Table<T> {
    type Output = I::Output;

    #[inline(always)]
    #[track_caller]
    fn index(&self, place: I) -> &I::Output {
        match self.0.get(place) {
            Some(found) => found,
            None => out_of_range(),
        }
    }
}

impl<T, I: SliceIndex<[T]>> IndexMut<I> for Table<T> {
    #[inline(always)]
    #[track_caller]
    fn index_mut(&mut self, place: I) -> &mut I::Output {
        match self.0.get_mut(place) {
            Some(found) => found,
            None => out_of_range(),
        }
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn out_of_range() -> ! {
    panic!("a table has no such place");
}

impl<T> Deref for Table<T> {
    type Target = Vec<T>;

    #[inline(always)]
    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T> DerefMut for Table<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table(Vec::new())
    }
}

impl<T> From<Vec<T>> for Table<T> {
    fn from(list: Vec<T>) -> Self {
        Table(list)
    }
}

impl<T> FromIterator<T> for Table<T> {
    fn from_iter<I: IntoIterator<Item = T>>(places: I) -> Self {
        Table(places.into_iter().collect())
    }
}

impl<'a, T> IntoIterator for &'a Table<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
