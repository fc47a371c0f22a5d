//! The output of writers: buffered, optionally gzipped, with the first error kept until the end.
//!
//! A file gets its name when it is complete. Until then it has an unpredictable name in the same directory, created by
//! this process alone, so nothing that another user put there is followed or overwritten.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use flate2::Compression;
use tempfile::{Builder, TempPath};

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
    /// The file until it is complete; removed when this is dropped.
    part: Option<TempPath>,
    error: Option<io::Error>,
}

/// Bytes that are written at once: an encoder is slow with less.
const BUFFER_BYTES: usize = 1 << 16;
/// The permissions of a new file, before the umask.
const MODE: u32 = 0o666;

impl Output {
    /// Writes to anything; `file` is what errors call it.
    pub fn new(to: Box<dyn Target>, file: &Path) -> Output {
        Output { to, file: file.to_owned(), part: None, error: None }
    }

    /// Creates a file, gzipped if its name ends in `.gz`. A pipe or a device is written directly.
    pub fn create(path: &Path) -> Result<Output, TraceError> {
        let failed = |error| TraceError { file: path.to_owned(), at: Place::File, fault: Fault::Io(error) };
        let (file, part) = match path.metadata() {
            Ok(found) if found.is_dir() => return Err(failed(io::ErrorKind::IsADirectory.into())),
            Ok(found) if !found.is_file() => (File::options().write(true).open(path).map_err(failed)?, None),
            _ => {
                let mut options = File::options();
                options.write(true).create_new(true).mode(MODE);
                let mut name = Builder::new();
                let part = name.prefix(".schedlab-").suffix(".part").make_in(folder(path), |part| options.open(part));
                let (file, part) = part.map_err(failed)?.into_parts();
                (file, Some(part))
            }
        };
        let gzip = path.extension().is_some_and(|suffix| suffix == "gz");
        let to: Box<dyn Target> = match gzip {
            true => {
                let encoder = GzEncoder::new(file, Compression::default());
                Box::new(Gzip(BufWriter::with_capacity(BUFFER_BYTES, encoder)))
            }
            false => Box::new(BufWriter::with_capacity(BUFFER_BYTES, file)),
        };
        Ok(Output { part, ..Output::new(to, path) })
    }

    /// A scratch file in the same directory. It has no name and disappears when it is closed.
    pub fn scratch(path: &Path) -> Result<File, TraceError> {
        let failed = |error| TraceError { file: path.to_owned(), at: Place::File, fault: Fault::Io(error) };
        tempfile::tempfile_in(folder(path)).map_err(failed)
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

    /// Writes out what is buffered and gives the file its name; returns the first error that occurred. No file remains
    /// after an error.
    pub fn finish(mut self) -> Result<(), TraceError> {
        self.keep(|to| to.flush());
        let Output { error, file, part, .. } = self;
        let named = match (error, part) {
            (Some(error), _) => Err(error),
            (None, Some(part)) => part.persist(&file).map_err(|kept| kept.error),
            (None, None) => Ok(()),
        };
        named.map_err(|error| TraceError { file, at: Place::File, fault: Fault::Io(error) })
    }
}

/// Where the file of this name is.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A gzip stream whose `flush` ends it: writers flush once, at their end.
struct Gzip(BufWriter<GzEncoder<File>>);

impl Write for Gzip {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()?;
        self.0.get_mut().try_finish()
    }
}

impl Target for Gzip {
    fn patch(&mut self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "a gzip stream cannot be changed afterwards"))
    }
}
