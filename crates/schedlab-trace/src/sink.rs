//! Where events go: metrics, digest, writers. Chosen at compile time, so that an unused one costs nothing.

use schedlab_model::{KernelId, Pid};

use crate::Event;

/// Takes events in time order.
pub trait Sink {
    /// Takes one event.
    fn event(&mut self, event: &Event);

    /// A task of the kernel got its name (`comm`); sent before the first event that mentions `pid` and again when it changes.
    fn name(&mut self, _kernel: KernelId, _pid: Pid, _name: &str) {}
}

/// Drops everything.
#[derive(Clone, Copy, Default, Debug)]
pub struct Discard;

impl Sink for Discard {
    #[inline]
    fn event(&mut self, _event: &Event) {}
}

/// Gives every event to both. Always inlined, as the sinks of every run are: the emitter knows the kind of event, so
/// what remains of either sink is its treatment of that kind.
#[derive(Clone, Default, Debug)]
pub struct Tee<A, B>(pub A, pub B);

impl<A: Sink, B: Sink> Sink for Tee<A, B> {
    #[inline(always)]
    fn event(&mut self, event: &Event) {
        self.0.event(event);
        self.1.event(event);
    }

    fn name(&mut self, kernel: KernelId, pid: Pid, name: &str) {
        self.0.name(kernel, pid, name);
        self.1.name(kernel, pid, name);
    }
}

impl<S: Sink> Sink for Option<S> {
    #[inline(always)]
    fn event(&mut self, event: &Event) {
        if let Some(sink) = self {
            sink.event(event);
        }
    }

    fn name(&mut self, kernel: KernelId, pid: Pid, name: &str) {
        if let Some(sink) = self {
            sink.name(kernel, pid, name);
        }
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    #[inline(always)]
    fn event(&mut self, event: &Event) {
        (**self).event(event);
    }

    fn name(&mut self, kernel: KernelId, pid: Pid, name: &str) {
        (**self).name(kernel, pid, name);
    }
}

impl<S: Sink + ?Sized> Sink for Box<S> {
    #[inline(always)]
    fn event(&mut self, event: &Event) {
        (**self).event(event);
    }

    fn name(&mut self, kernel: KernelId, pid: Pid, name: &str) {
        (**self).name(kernel, pid, name);
    }
}
