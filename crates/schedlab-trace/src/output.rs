//! Where writers write: buffered, optionally gzipped, the first error kept until the end.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use flate2::Compression;

use crate::error::{Fault, Place, TraceError};

/// What can be written to.
pub trait Target: Write + Send {
    /// Overwrites bytes that were written before.
    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
}

impl Target for BufWriter<File> {
    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.seek(SeekFrom::Start(offset))?;
        self.write_all(bytes)?;
        self.seek(SeekFrom::End(0)).map(|_| ())
    }
}

/// A file being written.
pub struct Output {
    to: Box<dyn Target>,
    file: PathBuf,
    error: Option<io::Error>,
}

impl Output {
    /// Writes to anything; `file` is what errors call it.
    pub fn new(to: Box<dyn Target>, file: &Path) -> Output {
        Output { to, file: file.to_owned(), error: None }
    }

    /// Creates a file, gzipped if its name ends in `.gz`.
    pub fn create(path: &Path) -> Result<Output, TraceError> {
        let failed = |error| TraceError { file: path.to_owned(), at: Place::File, fault: Fault::Io(error) };
        let file = BufWriter::with_capacity(1 << 16, File::create(path).map_err(failed)?);
        let gzip = path.extension().is_some_and(|suffix| suffix == "gz");
        let to: Box<dyn Target> = match gzip {
            true => Box::new(Gzip(GzEncoder::new(file, Compression::default()))),
            false => Box::new(file),
        };
        Ok(Output::new(to, path))
    }

    /// A file for what must wait, in the same folder. It has no name: it is gone when it is closed.
    pub fn scratch(path: &Path) -> Result<File, TraceError> {
        let failed = |error| TraceError { file: path.to_owned(), at: Place::File, fault: Fault::Io(error) };
        let mut name = path.as_os_str().to_owned();
        name.push(".scratch");
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true).open(&name).map_err(failed)?;
        std::fs::remove_file(&name).map_err(failed)?;
        Ok(file)
    }

    /// Writes unless an earlier write failed.
    pub fn keep(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
        if self.error.is_none() {
            self.error = write(&mut self.to).err();
        }
    }

    /// Overwrites bytes that were written before.
    pub fn patch(&mut self, offset: u64, bytes: &[u8]) {
        if self.error.is_none() {
            self.error = self.to.patch(offset, bytes).err();
        }
    }

    /// Writes out what is buffered; returns the first error of all.
    pub fn finish(mut self) -> Result<(), TraceError> {
        self.keep(|to| to.flush());
        let Output { error, file, .. } = self;
        error.map_or(Ok(()), |error| Err(TraceError { file, at: Place::File, fault: Fault::Io(error) }))
    }
}

/// A gzip stream whose `flush` ends it: writers flush once, at their end.
struct Gzip(GzEncoder<BufWriter<File>>);

impl Write for Gzip {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.try_finish()?;
        self.0.get_mut().flush()
    }
}

impl Target for Gzip {
    fn patch(&mut self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "a gzip stream cannot be changed afterwards"))
    }
}
