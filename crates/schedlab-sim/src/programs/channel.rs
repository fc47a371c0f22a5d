//! Pipes and stream sockets: what they hold, when a call blocks, which tasks it wakes.
//!
//! Follows pipe_read/pipe_write (fs/pipe.c, 6.1) and unix_stream_sendmsg/unix_stream_read_generic
//! (net/unix/af_unix.c, 6.1) with sock_alloc_send_pskb's limit. Left out: signals, O_NONBLOCK, splice.

use std::collections::VecDeque;

use schedlab_model::{CpuId, TaskId};

const PAGE: u32 = 4096;
/// sizeof(struct sk_buff) rounded to its slab, and the aligned sizeof(struct skb_shared_info), x86-64 6.1.
const SKB_HEAD: u32 = 256;
const SKB_TAIL: u32 = 320;

/// What a call did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Outcome {
    /// Bytes not yet transferred: the caller blocks when above 0.
    pub left: u32,
    /// Wake readers.
    pub wake_readers: Wake,
    /// Wake writers.
    pub wake_writers: Wake,
}

/// How many waiters a call wakes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Wake {
    /// None.
    #[default]
    None,
    /// The first (exclusive wait).
    One,
    /// All.
    All,
}

/// A pipe, or one direction of a socket pair.
#[derive(Clone, Debug)]
pub struct Channel {
    limit: Limit,
    /// Filled buffers, oldest first.
    buffers: VecDeque<Buffer>,
    /// Bytes charged to the sender's buffer (sockets).
    charged: u32,
    /// Tasks blocked reading, in order.
    pub readers: VecDeque<TaskId>,
    /// Tasks blocked writing, in order.
    pub writers: VecDeque<TaskId>,
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    Pages { pages: u32, packet: bool },
    SendBuffer(u32),
}

#[derive(Clone, Copy, Debug)]
struct Buffer {
    /// Bytes not yet read.
    left: u32,
    /// Where the data ends in the page (pipes), or the charge (sockets).
    end: u32,
    /// The CPU that has written it.
    cpu: u16,
}

impl Channel {
    /// A pipe of this many pages; `packet` = O_DIRECT.
    #[must_use]
    pub fn pipe(pages: u32, packet: bool) -> Self {
        Channel::new(Limit::Pages { pages, packet })
    }

    /// One direction of a stream socket pair with this send buffer.
    #[must_use]
    pub fn unix_stream(sndbuf: u32) -> Self {
        Channel::new(Limit::SendBuffer(sndbuf))
    }

    fn new(limit: Limit) -> Self {
        Channel { limit, buffers: VecDeque::new(), charged: 0, readers: VecDeque::new(), writers: VecDeque::new() }
    }

    /// Whether this is a socket.
    #[must_use]
    pub fn is_socket(&self) -> bool {
        matches!(self.limit, Limit::SendBuffer(_))
    }

    /// Writes up to `bytes`. `resumed`: the caller was blocked in this call and has been woken.
    #[inline(always)]
    pub fn write(&mut self, cpu: CpuId, bytes: u32, resumed: bool) -> Outcome {
        let cpu = cpu.0 as u16;
        match self.limit {
            Limit::Pages { packet, .. } => self.pipe_write(cpu, bytes, packet, resumed),
            Limit::SendBuffer(sndbuf) => self.socket_write(cpu, bytes, sndbuf),
        }
    }

    /// Reads up to `bytes`. `resumed`: the caller was blocked in this call and has been woken.
    #[inline(always)]
    pub fn read(&mut self, bytes: u32, resumed: bool) -> Outcome {
        match self.limit {
            Limit::Pages { .. } => self.pipe_read(bytes, resumed),
            Limit::SendBuffer(_) => self.socket_read(bytes),
        }
    }

    /// The CPU that has written what a read gets first.
    pub fn first_writer(&self) -> Option<CpuId> {
        self.buffers.front().map(|first| CpuId(u32::from(first.cpu)))
    }

    /// Whether a quarter of the send buffer or less is in use (`unix_writable`). No pipe is writable in this sense.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        matches!(self.limit, Limit::SendBuffer(sndbuf) if u64::from(self.charged) * 4 <= u64::from(sndbuf))
    }

    /// Whether a read would have to wait.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }

    /// Whether a write finds room for some of its bytes.
    #[must_use]
    pub fn has_room(&self) -> bool {
        match self.limit {
            Limit::Pages { .. } => !self.full(),
            Limit::SendBuffer(sndbuf) => self.charged < sndbuf,
        }
    }

    fn full(&self) -> bool {
        matches!(self.limit, Limit::Pages { pages, .. } if self.buffers.len() >= pages as usize)
    }

    #[inline(always)]
    fn pipe_write(&mut self, cpu: u16, bytes: u32, packet: bool, resumed: bool) -> Outcome {
        let was_empty = self.buffers.is_empty();
        let mut left = bytes;
        let odd = left % PAGE;
        if !resumed && !packet && odd > 0 {
            if let Some(last) = self.buffers.back_mut().filter(|last| last.end + odd <= PAGE) {
                last.end += odd;
                last.left += odd;
                last.cpu = cpu;
                left -= odd;
            }
        }
        while left > 0 && !self.full() {
            let chunk = left.min(PAGE);
            self.buffers.push_back(Buffer { left: chunk, end: chunk, cpu });
            left -= chunk;
        }
        let one = |wanted| if wanted { Wake::One } else { Wake::None };
        Outcome { left, wake_readers: one(was_empty), wake_writers: one(left == 0 && resumed && !self.full()) }
    }

    #[inline(always)]
    fn pipe_read(&mut self, bytes: u32, resumed: bool) -> Outcome {
        let was_full = self.full();
        let mut left = bytes;
        while left > 0 {
            let Some(first) = self.buffers.front_mut() else { break };
            let chunk = left.min(first.left);
            first.left -= chunk;
            left -= chunk;
            if first.left == 0 {
                self.buffers.pop_front();
            }
        }
        let one = |wanted| if wanted { Wake::One } else { Wake::None };
        Outcome {
            left,
            wake_writers: one(was_full),
            wake_readers: one(left == 0 && resumed && !self.buffers.is_empty()),
        }
    }

    #[inline(always)]
    fn socket_write(&mut self, cpu: u16, bytes: u32, sndbuf: u32) -> Outcome {
        let mut left = bytes;
        while left > 0 && self.charged < sndbuf {
            let chunk = left.min((sndbuf / 2).saturating_sub(64).clamp(1, 32 * 1024));
            let charge = truesize(chunk);
            self.charged += charge;
            self.buffers.push_back(Buffer { left: chunk, end: charge, cpu });
            left -= chunk;
        }
        let sent = left < bytes;
        Outcome { left, wake_readers: if sent { Wake::All } else { Wake::None }, wake_writers: Wake::None }
    }

    #[inline(always)]
    fn socket_read(&mut self, bytes: u32) -> Outcome {
        let mut left = bytes;
        let mut freed = false;
        while left > 0 {
            let Some(first) = self.buffers.front_mut() else { break };
            let chunk = left.min(first.left);
            first.left -= chunk;
            left -= chunk;
            if first.left == 0 {
                self.charged -= first.end;
                self.buffers.pop_front();
                freed = true;
            }
        }
        Outcome {
            left,
            wake_writers: if freed && self.is_writable() { Wake::All } else { Wake::None },
            wake_readers: Wake::None,
        }
    }
}

/// What a socket buffer of `bytes` is charged (skb->truesize): head plus the slab bucket of data and tail.
fn truesize(bytes: u32) -> u32 {
    let data = bytes.div_ceil(64) * 64 + SKB_TAIL;
    SKB_HEAD + data.next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(mut channel: Channel, bytes: u32) -> u32 {
        (0..).take_while(|_| channel.write(CpuId(0), bytes, false).left == 0).count() as u32
    }

    #[test]
    fn capacities_are_those_measured_on_linux() {
        assert_eq!(fill(Channel::pipe(16, false), 100), 640);
        assert_eq!(fill(Channel::unix_stream(212_992), 100), 278);
        assert_eq!(fill(Channel::pipe(1, true), 1), 1);
        assert_eq!(fill(Channel::pipe(16, false), 4), 16 * 1024);
    }

    #[test]
    fn a_pipe_reader_is_woken_from_empty_only() {
        let mut pipe = Channel::pipe(16, false);
        assert_eq!(pipe.write(CpuId(0), 4, false).wake_readers, Wake::One);
        assert_eq!(pipe.write(CpuId(0), 4, false).wake_readers, Wake::None);
        assert_eq!(pipe.read(8, false), Outcome::default());
        assert_eq!(pipe.read(4, false).left, 4);
    }

    #[test]
    fn a_large_write_blocks_part_way_and_resumes() {
        let mut pipe = Channel::pipe(2, false);
        assert_eq!(pipe.write(CpuId(0), 10_000, false).left, 10_000 - 8192);
        assert_eq!(pipe.read(4096, false).wake_writers, Wake::One);
        let rest = pipe.write(CpuId(0), 10_000 - 8192, true);
        assert_eq!((rest.left, rest.wake_writers), (0, Wake::None));
    }

    #[test]
    fn socket_writers_wait_for_three_quarters_of_room() {
        let mut socket = Channel::unix_stream(212_992);
        while socket.write(CpuId(0), 100, false).left == 0 {}
        let reads = (1..).find(|_| socket.read(100, false).wake_writers == Wake::All).unwrap();
        assert_eq!(reads, 278 - 69);
    }
}
