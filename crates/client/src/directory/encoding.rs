//! The bytes of a file as UTF-8. Directories and spreadsheets write UTF-16 as well, with a byte order mark that says so.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const PIECE: usize = 64 << 10;

/// How a file's text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    /// UTF-8, or what is no text at all: the server refuses the records that it stands in.
    Utf8,
    /// UTF-16 with the low byte first.
    Utf16Little,
    /// UTF-16 with the high byte first.
    Utf16Big,
}

/// A file whose text is handed out as UTF-8, without its byte order mark.
pub struct Utf8Reader {
    source: Box<dyn Read + Send>,
    encoding: Option<Encoding>,
    /// Where a piece arrives; a pipe may hand out many small ones.
    piece: Vec<u8>,
    /// Bytes of the file that are no whole character yet.
    rest: Vec<u8>,
    decoded: Vec<u8>,
    /// How much of `decoded` was handed out.
    handed_out: usize,
    bytes_read: Arc<AtomicU64>,
}

impl Utf8Reader {
    /// Begins a file.
    pub fn new(source: Box<dyn Read + Send>) -> Self {
        Self {
            source,
            encoding: None,
            piece: vec![0; PIECE],
            rest: Vec::new(),
            decoded: Vec::new(),
            handed_out: 0,
            bytes_read: Arc::default(),
        }
    }

    /// Returns the count of the file's bytes that were read.
    pub fn bytes_read(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.bytes_read)
    }

    /// Reads a piece of the file behind the rest; says whether there was one.
    fn read_piece(&mut self) -> io::Result<bool> {
        let read = self.source.read(&mut self.piece)?;
        self.rest.extend_from_slice(&self.piece[..read]);
        self.bytes_read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read > 0)
    }

    /// Returns how the text is written, and takes the mark that says it off.
    fn begin(&mut self) -> io::Result<Encoding> {
        // A pipe may hand out a byte at a time.
        while self.rest.len() < 3 && self.read_piece()? {}
        let (encoding, mark) = match self.rest.as_slice() {
            [0xEF, 0xBB, 0xBF, ..] => (Encoding::Utf8, 3),
            [0xFF, 0xFE, ..] => (Encoding::Utf16Little, 2),
            [0xFE, 0xFF, ..] => (Encoding::Utf16Big, 2),
            _ => (Encoding::Utf8, 0),
        };
        self.rest.drain(..mark);
        self.encoding = Some(encoding);
        Ok(encoding)
    }

    /// Decodes the rest as far as it holds whole characters.
    fn decode(&mut self, encoding: Encoding) -> io::Result<()> {
        self.handed_out = 0;
        let unit = match encoding {
            Encoding::Utf8 => {
                self.decoded = std::mem::take(&mut self.rest);
                return Ok(());
            }
            Encoding::Utf16Little => u16::from_le_bytes,
            Encoding::Utf16Big => u16::from_be_bytes,
        };
        let (pairs, _) = self.rest.as_chunks::<2>();
        let mut units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
        let is_half = units.last().is_some_and(|last| (0xD800..0xDC00).contains(last));
        units.truncate(units.len() - usize::from(is_half));
        let text = String::from_utf16(&units).map_err(|_| broken())?;
        self.rest.drain(..2 * units.len());
        self.decoded = text.into_bytes();
        Ok(())
    }
}

fn broken() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "its UTF-16 is damaged; save it again, as UTF-8 if you can choose",
    )
}

impl Read for Utf8Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.handed_out == self.decoded.len() {
            let encoding = match self.encoding {
                Some(encoding) => encoding,
                None => self.begin()?,
            };
            // What `begin` read is decoded first.
            self.decode(encoding)?;
            if self.decoded.is_empty() && !self.read_piece()? {
                return if self.rest.is_empty() {
                    Ok(0)
                } else {
                    Err(broken())
                };
            }
        }
        let left = &self.decoded[self.handed_out..];
        let taken = left.len().min(buffer.len());
        buffer[..taken].copy_from_slice(&left[..taken]);
        self.handed_out += taken;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out one byte at a time.
    struct Drip(std::vec::IntoIter<u8>);

    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match (buffer.first_mut(), self.0.next()) {
                (Some(place), Some(byte)) => {
                    *place = byte;
                    Ok(1)
                }
                _ => Ok(0),
            }
        }
    }

    fn read(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut read = Vec::new();
        let mut reader = Utf8Reader::new(Box::new(Drip(bytes.into_iter())));
        reader.read_to_end(&mut read)?;
        Ok(read)
    }

    #[test]
    fn a_byte_order_mark_says_how_the_text_is_written() {
        let text = "login,Ødegård 李 🎉\r\n";
        let units: Vec<u16> = "\u{feff}".encode_utf16().chain(text.encode_utf16()).collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        for bytes in [
            little,
            big,
            format!("\u{feff}{text}").into_bytes(),
            text.as_bytes().to_vec(),
        ] {
            assert_eq!(read(bytes).unwrap(), text.as_bytes());
        }
        assert_eq!(read(Vec::new()).unwrap(), b"");
        assert_eq!(read(b"a".to_vec()).unwrap(), b"a");
        assert_eq!(read(vec![b'a', 0xFF, 0xFE]).unwrap(), [b'a', 0xFF, 0xFE]);
    }

    #[test]
    fn half_a_character_is_no_text() {
        for bytes in [
            vec![0xFF, 0xFE, b'a'],
            vec![0xFF, 0xFE, 0x00, 0xD8],
            vec![0xFF, 0xFE, 0x00, 0xDC, b'a', 0],
        ] {
            assert_eq!(read(bytes).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }
}
