//! What a kernel, and whatever it starts, writes to its standard output and error.
//!
//! A thread reads both pipes as text comes, notes when it came, and copies it to `kernel.log`. What a process wrote is in
//! its pipe before it ends, so one more look finds the last words of a process that is gone: there is nothing to wait for.
//!
//! Which cell the text belongs to is decided elsewhere.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, PipeReader, PipeWriter, Read, Write},
    os::fd::AsFd,
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use blueproof_core::attempt::Stream;
use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags};
use tokio::sync::Notify;

/// The most text that waits to be taken in. Whoever writes more waits, as with any pipe.
const MOST_WAITING: usize = 1 << 20;
/// The most that one look reads from a pipe: an unprivileged process cannot have more in one.
const MOST_IN_PIPE: usize = 1 << 20;
/// How long text waits for messages that were sent before it and take another way.
const HOLD_FOR: Duration = Duration::from_millis(20);
/// How much of the beginning of `kernel.log` is kept, and how much of its end.
const LOG_HEAD: u64 = 8 << 20;
const LOG_TAIL: usize = 64 << 10;

/// Text that was written to one of the two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    /// When it was read. The kernel publishes nothing while text waits to be read, so what was made before is dated before.
    pub(crate) at: Timestamp,
    /// Which of the two.
    pub(crate) stream: Stream,
    /// What. A byte that is no UTF-8 stands as `\xe9`.
    pub(crate) text: String,
}

/// The reading ends, and the log.
pub(crate) struct Output {
    shared: Arc<Shared>,
}

/// The writing ends, for a process to be started with.
pub(crate) struct OutputEnds {
    pub(crate) stdout: PipeWriter,
    pub(crate) stderr: PipeWriter,
}

struct Shared {
    reading: Mutex<Reading>,
    came: Notify,
    room: Condvar,
}

struct Reading {
    sources: [Source; 2],
    waiting: VecDeque<Written>,
    waiting_bytes: usize,
    /// Whether text is only copied to the log.
    is_over: bool,
    log: Log,
}

struct Source {
    stream: Stream,
    pipe: PipeReader,
    is_open: bool,
    /// The beginning of a character whose end has not come.
    cut: Vec<u8>,
}

struct Log {
    file: File,
    written: u64,
    left_out: u64,
    tail: VecDeque<u8>,
}

impl Output {
    /// Makes the pipes, and copies what comes to the end of `log`.
    pub(crate) fn open(log: &Path) -> io::Result<(Self, OutputEnds)> {
        let file = File::options().create(true).append(true).open(log)?;
        let (stdout, stdout_end) = io::pipe()?;
        let (stderr, stderr_end) = io::pipe()?;
        let looks = [stdout.try_clone()?, stderr.try_clone()?];
        let sources = [
            Source::new(Stream::Stdout, stdout)?,
            Source::new(Stream::Stderr, stderr)?,
        ];
        let shared = Arc::new(Shared {
            reading: Mutex::new(Reading {
                sources,
                waiting: VecDeque::new(),
                waiting_bytes: 0,
                is_over: false,
                log: Log::new(file),
            }),
            came: Notify::new(),
            room: Condvar::new(),
        });
        let read = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("kernel output".into())
            .spawn(move || read.follow(&looks))?;
        let ends = OutputEnds {
            stdout: stdout_end,
            stderr: stderr_end,
        };
        Ok((Self { shared }, ends))
    }

    /// Waits until there is text that nothing can come before any more. It may be dropped at any point.
    pub(crate) async fn settled(&self) {
        loop {
            let oldest = self.shared.lock().waiting.front().map(|written| written.at);
            let Some(at) = oldest else {
                self.shared.came.notified().await;
                continue;
            };
            let age = Duration::try_from(Timestamp::now().duration_since(at)).unwrap_or_default();
            match HOLD_FOR.checked_sub(age) {
                Some(left) if !left.is_zero() => tokio::time::sleep(left).await,
                Some(_) | None => return,
            }
        }
    }

    /// Returns what has settled, in order.
    pub(crate) fn take_settled(&self) -> Vec<Written> {
        let until = Timestamp::now() - HOLD_FOR;
        self.take_until(until)
    }

    /// Returns what was read by then, in order.
    pub(crate) fn take_until(&self, until: Timestamp) -> Vec<Written> {
        let mut reading = self.shared.lock();
        let count = reading
            .waiting
            .iter()
            .take_while(|written| written.at <= until)
            .count();
        self.shared.take(&mut reading, count)
    }

    /// Looks once more, and returns all that was written so far.
    pub(crate) fn take_all(&self) -> Vec<Written> {
        let mut reading = self.shared.lock();
        reading.look();
        let count = reading.waiting.len();
        self.shared.take(&mut reading, count)
    }

    /// Looks once more, and only copies to the log from here on: whoever still writes never waits for us.
    pub(crate) fn end(&self) {
        let mut reading = self.shared.lock();
        reading.look();
        reading.is_over = true;
        reading.log.complete();
        let count = reading.waiting.len();
        self.shared.take(&mut reading, count);
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Reading> {
        // A panic while it was held left at worst some text out.
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, reading: &mut Reading, count: usize) -> Vec<Written> {
        let taken: Vec<Written> = reading.waiting.drain(..count).collect();
        reading.waiting_bytes -= taken.iter().map(|written| written.text.len()).sum::<usize>();
        self.room.notify_all();
        taken
    }

    /// Reads until nobody is left who could write.
    fn follow(&self, looks: &[PipeReader; 2]) {
        loop {
            let open = self.lock().sources.each_ref().map(|source| source.is_open);
            let mut polled: Vec<PollFd<'_>> = looks
                .iter()
                .zip(open)
                .filter(|(_, is_open)| *is_open)
                .map(|(pipe, _)| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN))
                .collect();
            if polled.is_empty() {
                return;
            }
            match rustix::event::poll(&mut polled, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
            let mut reading = self.lock();
            reading.look();
            self.came.notify_one();
            while reading.waiting_bytes >= MOST_WAITING && !reading.is_over {
                reading = self.room.wait(reading).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl Reading {
    /// Takes out of the pipes what is in them.
    fn look(&mut self) {
        for nth in 0..self.sources.len() {
            let mut left = MOST_IN_PIPE;
            while let Some((at, bytes)) = self.sources[nth].read() {
                left = left.saturating_sub(bytes.len());
                self.take_in(nth, at, bytes);
                if left == 0 {
                    break;
                }
            }
            // What was cut off at the very end is no character.
            self.take_in(nth, Timestamp::now(), Vec::new());
        }
    }

    fn take_in(&mut self, nth: usize, at: Timestamp, bytes: Vec<u8>) {
        self.log.write(&bytes);
        let source = &mut self.sources[nth];
        let (text, stream) = (source.decode(bytes), source.stream);
        if text.is_empty() || self.is_over {
            return;
        }
        self.waiting_bytes += text.len();
        self.waiting.push_back(Written { at, stream, text });
    }
}

impl Source {
    fn new(stream: Stream, pipe: PipeReader) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self {
            stream,
            pipe,
            is_open: true,
            cut: Vec::new(),
        })
    }

    /// Returns what is in the pipe, and a time at which it was there already and had not been read yet.
    fn read(&mut self) -> Option<(Timestamp, Vec<u8>)> {
        if !self.is_open || !self.is_ready() {
            return None;
        }
        let at = Timestamp::now();
        let mut bytes = vec![0; 64 << 10];
        match self.pipe.read(&mut bytes) {
            Ok(0) => self.is_open = false,
            Ok(count) => {
                bytes.truncate(count);
                return Some((at, bytes));
            }
            Err(error) => self.is_open = error.kind() == io::ErrorKind::WouldBlock,
        }
        None
    }

    /// Returns whether there is something to read, were it the end.
    fn is_ready(&self) -> bool {
        let now = rustix::event::Timespec::default();
        let mut polled = [PollFd::from_borrowed_fd(self.pipe.as_fd(), PollFlags::IN)];
        rustix::event::poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// Returns the bytes as text, without the beginning of a character that the next ones may end.
    fn decode(&mut self, new: Vec<u8>) -> String {
        let mut bytes = std::mem::take(&mut self.cut);
        bytes.extend(new);
        let mut text = String::with_capacity(bytes.len());
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if chunks.peek().is_none() && self.is_open && may_go_on(invalid) {
                self.cut = invalid.to_vec();
                break;
            }
            for byte in invalid {
                text.push_str(&format!("\\x{byte:02x}"));
            }
        }
        text
    }
}

/// Returns whether these bytes are the beginning of a character.
fn may_go_on(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
}

impl Log {
    fn new(file: File) -> Self {
        Self {
            file,
            written: 0,
            left_out: 0,
            tail: VecDeque::new(),
        }
    }

    /// Writes what there is room for. A disk that a notebook has filled is no reason to stop reading.
    fn write(&mut self, bytes: &[u8]) {
        let room = usize::try_from(LOG_HEAD - self.written).unwrap_or(usize::MAX);
        let (head, rest) = bytes.split_at(bytes.len().min(room));
        self.written += head.len() as u64;
        let _ = self.file.write_all(head);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(LOG_TAIL);
        self.tail.drain(..over);
        self.left_out += over as u64;
    }

    /// Writes the end that was held back, and from then on anew.
    fn complete(&mut self) {
        if self.left_out > 0 {
            let notice = format!("\n[blueproof: {} bytes left out]\n", self.left_out);
            let _ = self.file.write_all(notice.as_bytes());
        }
        let (one, other) = self.tail.as_slices();
        let _ = self.file.write_all(one).and_then(|()| self.file.write_all(other));
        self.tail.clear();
        self.left_out = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened() -> (tempfile::TempDir, Output, OutputEnds) {
        let folder = tempfile::tempdir().unwrap();
        let (output, ends) = Output::open(&folder.path().join("kernel.log")).unwrap();
        (folder, output, ends)
    }

    fn joined(written: &[Written]) -> String {
        written.iter().map(|written| written.text.as_str()).collect()
    }

    #[test]
    fn what_was_written_before_the_end_is_there_at_once() {
        let (folder, output, mut ends) = opened();
        ends.stderr.write_all(b"terminate called\n").unwrap();
        drop(ends);
        let taken = output.take_all();
        assert_eq!(joined(&taken), "terminate called\n");
        assert_eq!(taken[0].stream, Stream::Stderr);
        let log = std::fs::read_to_string(folder.path().join("kernel.log")).unwrap();
        assert_eq!(log, "terminate called\n");
    }

    #[test]
    fn a_character_cut_in_two_is_one_and_a_byte_that_is_none_is_named() {
        let (_folder, output, mut ends) = opened();
        ends.stdout.write_all(b"caf\xc3").unwrap();
        let mut text = joined(&output.take_all());
        ends.stdout.write_all(b"\xa9 \xe9t\xe2\x82").unwrap();
        drop(ends);
        text += &joined(&output.take_all());
        assert_eq!(text, "café \\xe9t\\xe2\\x82");
    }

    #[test]
    fn a_flood_waits_until_it_is_taken_in_and_the_log_keeps_both_ends() {
        const LINES: usize = 400_000;
        let (folder, output, ends) = opened();
        let mut stdout = ends.stdout;
        drop(ends.stderr);
        let writer = std::thread::spawn(move || {
            let mut buffered = io::BufWriter::new(&mut stdout);
            (0..LINES).for_each(|n| writeln!(buffered, "line {n} of many, many lines").unwrap());
        });
        let mut length = 0;
        while !writer.is_finished() {
            let taken = output.take_all();
            assert!(taken.iter().map(|written| written.text.len()).sum::<usize>() <= 3 * MOST_WAITING);
            length += joined(&taken).len();
        }
        writer.join().unwrap();
        length += joined(&output.take_all()).len();
        output.end();
        assert!(length > LINES * 25);
        let log = std::fs::read_to_string(folder.path().join("kernel.log")).unwrap();
        assert!(log.starts_with("line 0 of"));
        assert!(log.ends_with(&format!("line {} of many, many lines\n", LINES - 1)));
        assert!(log.len() < length && log.contains(" bytes left out]\n"));
    }

    #[tokio::test]
    async fn text_settles_in_a_moment_and_stays_in_order() {
        let (_folder, output, mut ends) = opened();
        ends.stdout.write_all(b"one ").unwrap();
        output.settled().await;
        ends.stdout.write_all(b"two").unwrap();
        let mut taken = output.take_settled();
        assert_eq!(joined(&taken), "one ");
        taken.extend(output.take_all());
        assert_eq!(joined(&taken), "one two");
    }
}
