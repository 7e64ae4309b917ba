//! Many texts in one allocation.

use crate::error::{Error, Result};

/// A list of texts that share one buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    text: String,
    /// Where each text ends in `text`; it begins where the one before ends.
    ends: Vec<u32>,
}

impl Texts {
    /// Returns an empty list with room for `count` texts of together `bytes` bytes.
    pub fn with_capacity(count: usize, bytes: usize) -> Self {
        Self {
            text: String::with_capacity(bytes),
            ends: Vec::with_capacity(count),
        }
    }

    /// Appends a text.
    ///
    /// Errors: `Invalid` when the list would pass 4 GiB.
    pub fn push(&mut self, text: &str) -> Result<()> {
        let Ok(end) = u32::try_from(self.text.len() + text.len()) else {
            return Err(Error::Invalid("the texts of a column pass 4 GiB".into()));
        };
        self.text.push_str(text);
        self.ends.push(end);
        Ok(())
    }

    /// Appends the text that these bytes spell.
    ///
    /// Errors: `Corrupt` when they are not UTF-8.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let text = std::str::from_utf8(bytes).map_err(|_| Error::Corrupt("text"))?;
        self.push(text)
    }

    /// Returns the text at this place, and the empty text where there is none.
    pub fn get(&self, index: usize) -> &str {
        let Some(end) = self.ends.get(index) else {
            return "";
        };
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start as usize..*end as usize]
    }

    /// Returns how many texts there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns how many bytes all texts have together.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Returns the texts in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|index| self.get(index))
    }
}
