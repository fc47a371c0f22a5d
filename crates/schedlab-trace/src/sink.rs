//! Where events go: metrics, digest, writers. Chosen at compile time, so that an unused one costs nothing.

use schedlab_model::{CpuId, KernelId, Nanos, Pid};

use crate::{Event, Flags};

/// Takes events in time order.
pub trait Sink {
    /// Takes one event.
    fn event(&mut self, event: &Event);

    /// A task of the kernel got its name (`comm`); sent before the first event that mentions `pid` and again when it
    /// changes.
    fn name(&mut self, _kernel: KernelId, _pid: Pid, _name: &str) {}

    /// Whether it takes what only trace files contain: the context of events, and events that are in no digest or
    /// metric.
    #[inline(always)]
    fn is_trace(&self) -> bool {
        false
    }

    /// Whether it takes the events that only trace files contain and the notes, besides the context of events.
    #[inline(always)]
    fn takes_trace_only(&self) -> bool {
        self.is_trace()
    }

    /// The kernel of the flags and the notes that follow.
    fn kernel(&mut self, _kernel: KernelId) {}

    /// The context flags of the next event.
    fn flags(&mut self, _flags: Flags) {}

    /// An event that only trace files contain.
    fn trace_only(&mut self, _event: &Event) {}

    /// A record that only trace files contain and that is not an event of the model: its name and its text.
    fn note(&mut self, _time: Nanos, _cpu: CpuId, _name: &str, _fields: &str) {}
}

/// Drops everything.
#[derive(Clone, Copy, Default, Debug)]
pub struct Discard;

impl Sink for Discard {
    #[inline]
    fn event(&mut self, _event: &Event) {}
}

/// Passes every event to both. Always inlined, as the sinks of every run are: the kind of event is a constant in the
/// emitter, so only the code for that kind remains of either sink.
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

    #[inline(always)]
    fn is_trace(&self) -> bool {
        self.0.is_trace() || self.1.is_trace()
    }

    #[inline(always)]
    fn takes_trace_only(&self) -> bool {
        self.0.takes_trace_only() || self.1.takes_trace_only()
    }

    fn flags(&mut self, flags: Flags) {
        self.0.flags(flags);
        self.1.flags(flags);
    }

    fn trace_only(&mut self, event: &Event) {
        self.0.trace_only(event);
        self.1.trace_only(event);
    }

    fn note(&mut self, time: Nanos, cpu: CpuId, name: &str, fields: &str) {
        self.0.note(time, cpu, name, fields);
        self.1.note(time, cpu, name, fields);
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

    #[inline(always)]
    fn is_trace(&self) -> bool {
        self.as_ref().is_some_and(Sink::is_trace)
    }

    #[inline(always)]
    fn takes_trace_only(&self) -> bool {
        self.as_ref().is_some_and(Sink::takes_trace_only)
    }

    fn flags(&mut self, flags: Flags) {
        if let Some(sink) = self {
            sink.flags(flags);
        }
    }

    fn trace_only(&mut self, event: &Event) {
        if let Some(sink) = self {
            sink.trace_only(event);
        }
    }

    fn note(&mut self, time: Nanos, cpu: CpuId, name: &str, fields: &str) {
        if let Some(sink) = self {
            sink.note(time, cpu, name, fields);
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

    #[inline(always)]
    fn is_trace(&self) -> bool {
        (**self).is_trace()
    }

    #[inline(always)]
    fn takes_trace_only(&self) -> bool {
        (**self).takes_trace_only()
    }

    fn flags(&mut self, flags: Flags) {
        (**self).flags(flags);
    }

    fn trace_only(&mut self, event: &Event) {
        (**self).trace_only(event);
    }

    fn note(&mut self, time: Nanos, cpu: CpuId, name: &str, fields: &str) {
        (**self).note(time, cpu, name, fields);
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

    #[inline(always)]
    fn is_trace(&self) -> bool {
        (**self).is_trace()
    }

    #[inline(always)]
    fn takes_trace_only(&self) -> bool {
        (**self).takes_trace_only()
    }

    fn flags(&mut self, flags: Flags) {
        (**self).flags(flags);
    }

    fn trace_only(&mut self, event: &Event) {
        (**self).trace_only(event);
    }

    fn note(&mut self, time: Nanos, cpu: CpuId, name: &str, fields: &str) {
        (**self).note(time, cpu, name, fields);
    }
}
