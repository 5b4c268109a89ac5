//! Compressed streams: they are recognised by their magic number. A file may have several parts
//! (members, streams or frames); all of them are decoded.

use bzip2::read::MultiBzDecoder;
use bzip2::write::BzEncoder;
use flashatlas_types::ConfigError;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use liblzma::read::XzDecoder;
use liblzma::write::XzEncoder;
use std::io::{self, BufReader, Read, Write};

/// Bytes of the longest magic number.
pub const MAGIC_BYTES: usize = 6;

/// Memory that an xz stream may ask for, in bytes; `xz -9` asks for 65 MiB.
const XZ_MEMORY_BYTES: u64 = 256 << 20;

/// Base-2 logarithm of the largest window that a zstd frame may ask for: 128 MiB, as the `zstd`
/// tool allows without `--long`.
const ZSTD_WINDOW_LOG: u32 = 27;

/// Bytes taken from a compressed stream at a time.
const INPUT_BUFFER_BYTES: usize = 64 << 10;

/// Compression of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compression {
    /// No compression.
    None,
    /// gzip, any number of members.
    Gz,
    /// bzip2, any number of streams.
    Bz2,
    /// xz, any number of streams.
    Xz,
    /// Zstandard, any number of frames.
    Zst,
}

impl Compression {
    /// Returns the compression of a stream that starts with `head`. A `head` of [`MAGIC_BYTES`]
    /// suffices.
    pub fn detect(head: &[u8]) -> Compression {
        match head {
            [0x1f, 0x8b, ..] => Compression::Gz,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Compression::Bz2,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zst,
            _ => Compression::None,
        }
    }

    /// Returns the name: `none`, `gz`, `bz2`, `xz` or `zst`.
    pub const fn name(self) -> &'static str {
        ["none", "gz", "bz2", "xz", "zst"][self as usize]
    }

    /// Returns the decompressed content of `input`. Memory is bounded whatever the stream claims:
    /// 256 MiB for xz, 128 MiB for Zstandard, less than 4 MiB for the others.
    ///
    /// # Errors
    /// Returns an error if the decoder cannot be set up.
    pub fn decoder(self, input: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
        let input = BufReader::with_capacity(INPUT_BUFFER_BYTES, input);
        let decoder: Box<dyn Read + Send> = match self {
            Compression::None => return Ok(Box::new(input)),
            Compression::Gz => Box::new(MultiGzDecoder::new(input)),
            Compression::Bz2 => Box::new(MultiBzDecoder::new(input)),
            Compression::Xz => {
                let stream = liblzma::stream::Stream::new_stream_decoder(
                    XZ_MEMORY_BYTES,
                    liblzma::stream::CONCATENATED,
                )?;
                Box::new(XzDecoder::new_stream(input, stream))
            }
            Compression::Zst => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(input)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG)?;
                Box::new(decoder)
            }
        };
        Ok(Box::new(Explained { decoder, name: self.name() }))
    }
}

/// An output that must be ended; until then it may buffer bytes.
pub(crate) trait Finish: Write + Send {
    /// Writes what is left, and flushes.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Returns an output that compresses by the method `name` into `output`, at the default level of
/// the method.
pub(crate) fn encoder(
    name: &str,
    output: Box<dyn Write + Send>,
) -> Result<Box<dyn Finish>, ConfigError> {
    const XZ_LEVEL: u32 = 6;
    Ok(match name {
        "none" => Box::new(Plain(output)),
        "gz" => Box::new(GzEncoder::new(output, flate2::Compression::default())),
        "bz2" => Box::new(BzEncoder::new(output, bzip2::Compression::default())),
        "xz" => Box::new(XzEncoder::new(output, XZ_LEVEL)),
        "zst" => {
            let setup = |mut encoder: ZstdEncoder| encoder.include_checksum(true).map(|()| encoder);
            let made = zstd::stream::write::Encoder::new(output, zstd::DEFAULT_COMPRESSION_LEVEL)
                .and_then(setup);
            Box::new(made.map_err(|e| ConfigError::new(KEY, e.to_string()))?)
        }
        other => {
            return Err(ConfigError::unknown(
                KEY,
                "compression",
                other,
                &["none", "gz", "bz2", "xz", "zst"],
            ));
        }
    })
}

const KEY: &str = "trace.compression";

type ZstdEncoder = zstd::stream::write::Encoder<'static, Box<dyn Write + Send>>;

struct Plain(Box<dyn Write + Send>);

impl Write for Plain {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Finish for Plain {
    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.flush()
    }
}

impl Finish for GzEncoder<Box<dyn Write + Send>> {
    fn finish(self: Box<Self>) -> io::Result<()> {
        GzEncoder::finish(*self)?.flush()
    }
}

impl Finish for BzEncoder<Box<dyn Write + Send>> {
    fn finish(self: Box<Self>) -> io::Result<()> {
        BzEncoder::finish(*self)?.flush()
    }
}

impl Finish for XzEncoder<Box<dyn Write + Send>> {
    fn finish(self: Box<Self>) -> io::Result<()> {
        XzEncoder::finish(*self)?.flush()
    }
}

impl Finish for ZstdEncoder {
    fn finish(self: Box<Self>) -> io::Result<()> {
        ZstdEncoder::finish(*self)?.flush()
    }
}

/// Decoder whose errors name the compression and the kind of fault.
struct Explained {
    decoder: Box<dyn Read + Send>,
    name: &'static str,
}

impl Read for Explained {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.decoder.read(buffer).map_err(|error| {
            if error.raw_os_error().is_some() || error.kind() == io::ErrorKind::Interrupted {
                return error; // the read failed, which shows nothing about the content
            }
            let name = self.name;
            let why = if error.kind() == io::ErrorKind::UnexpectedEof {
                format!("the {name} stream is truncated")
            } else {
                format!("the {name} stream is damaged ({error})")
            };
            io::Error::new(error.kind(), why)
        })
    }
}
