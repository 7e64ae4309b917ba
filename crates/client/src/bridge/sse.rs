//! The events of a stream, as bytes come: what stands in `data`.

/// LIMIT: bytes of one event. An answer that is larger is not relayed.
const MAX_EVENT: usize = 64 * 1024 * 1024;

/// Takes events out of a stream.
#[derive(Default)]
pub(super) struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    after_return: bool,
}

/// An event was too long.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Events {
    /// Takes bytes and gives each event that they end to `each`.
    ///
    /// Errors: [`TooLong`].
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(Vec<u8>)) -> Result<(), TooLong> {
        for byte in bytes {
            let follows_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                // The second half of one line's end.
                b'\n' if follows_return => {}
                b'\n' | b'\r' => self.end_line(&mut each),
                byte => self.line.push(*byte),
            }
            if self.line.len() + self.data.len() > MAX_EVENT {
                return Err(TooLong);
            }
        }
        Ok(())
    }

    fn end_line(&mut self, each: &mut impl FnMut(Vec<u8>)) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            // An event without data primes the stream and says nothing.
            if std::mem::take(&mut self.has_data) && !data.is_empty() {
                each(data);
            }
            return;
        }
        let value = if line == b"data" {
            Some(&line[4..])
        } else {
            line.strip_prefix(b"data:")
        };
        let Some(value) = value else { return };
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data
            .extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(stream: &str, size: usize) -> Vec<String> {
        let (mut events, mut found) = (Events::default(), Vec::new());
        for bytes in stream.as_bytes().chunks(size) {
            events
                .feed(bytes, |data| found.push(String::from_utf8(data).unwrap()))
                .unwrap();
        }
        found
    }

    #[test]
    fn events_are_found_however_the_bytes_are_cut() {
        let stream = ": hello\r\nid: 0\r\ndata:\r\n\r\nevent: message\ndata: {\"a\":\ndata:1}\nretry: 3\n\ndata: é\r\rdata: lost";
        for size in 1..stream.len() {
            assert_eq!(events(stream, size), ["{\"a\":\n1}", "é"], "{size}");
        }
    }
}
