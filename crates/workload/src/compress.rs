//! Compressed streams: recognised by their magic number, decoded as a stream, all parts of a file of several.

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use liblzma::read::XzDecoder;
use std::io::{self, BufReader, Read};

/// Bytes of the longest magic number.
pub const MAGIC_BYTES: usize = 6;

/// Memory that an xz stream may ask for, in bytes; `xz -9` asks for 65 MiB.
const XZ_MEMORY_BYTES: u64 = 256 << 20;

/// Base-2 logarithm of the window that a zstd frame may ask for: 128 MiB, as the `zstd` tool allows without `--long`.
const ZSTD_WINDOW_LOG: u32 = 27;

/// Bytes taken from a compressed stream at a time.
const INPUT_BUFFER_BYTES: usize = 64 << 10;

/// How a stream is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compression {
    /// Not at all.
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
    /// The compression of a stream that starts with `head`, of which [`MAGIC_BYTES`] suffice.
    pub fn detect(head: &[u8]) -> Compression {
        match head {
            [0x1f, 0x8b, ..] => Compression::Gz,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Compression::Bz2,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zst,
            _ => Compression::None,
        }
    }

    /// The name: `none`, `gz`, `bz2`, `xz` or `zst`.
    pub const fn name(self) -> &'static str {
        ["none", "gz", "bz2", "xz", "zst"][self as usize]
    }

    /// The decompressed content of `input`. Memory is bounded whatever the stream claims: 256 MiB for xz, 128 MiB for
    /// Zstandard, less than 4 MiB for the others.
    ///
    /// # Errors
    /// When the decoder cannot be set up.
    pub fn decoder(self, input: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
        let input = BufReader::with_capacity(INPUT_BUFFER_BYTES, input);
        let decoder: Box<dyn Read + Send> = match self {
            Compression::None => return Ok(Box::new(input)),
            Compression::Gz => Box::new(MultiGzDecoder::new(input)),
            Compression::Bz2 => Box::new(MultiBzDecoder::new(input)),
            Compression::Xz => {
                let stream =
                    liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY_BYTES, liblzma::stream::CONCATENATED)?;
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

/// A decoder whose errors say which stream is at fault, and how.
struct Explained {
    decoder: Box<dyn Read + Send>,
    name: &'static str,
}

impl Read for Explained {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.decoder.read(buffer).map_err(|error| {
            if error.raw_os_error().is_some() || error.kind() == io::ErrorKind::Interrupted {
                return error; // the input cannot be read, whatever it holds
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
