//! The parameters of a request in a browser: a query or a form, read in one way.

use provost_kernel::dispatch::percent_decode;

/// Decoded pairs in their order.
pub struct Parameters(Vec<(String, String)>);

/// Why parameters are refused.
#[derive(Debug, PartialEq, Eq)]
pub enum ParameterError {
    /// An escape is broken, or text is not UTF-8.
    Encoding,
    /// There are more than any request needs.
    TooMany,
}

/// LIMIT: parameters of one request.
const MAX: usize = 64;

impl Parameters {
    /// Reads `a=b&c=d`.
    pub fn parse(text: &str) -> Result<Self, ParameterError> {
        let decode = |part: &str| percent_decode(&part.replace('+', " ")).ok_or(ParameterError::Encoding);
        let mut pairs = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            if pairs.len() == MAX {
                return Err(ParameterError::TooMany);
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            pairs.push((decode(name)?, decode(value)?));
        }
        Ok(Self(pairs))
    }

    /// Returns every value of a parameter. One without a value counts as absent (RFC 6749 §3.1).
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = self.0.iter().filter(move |(known, _)| known == name);
        named
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// Returns the only value of a parameter; `None` also when it is there twice, whatever its values.
    pub fn only(&self, name: &str) -> Option<&str> {
        if self.is_repeated(name) {
            return None;
        }
        self.all(name).next()
    }

    /// Says whether a parameter is there more than once, with a value or without.
    pub fn is_repeated(&self, name: &str) -> bool {
        self.0.iter().filter(|(known, _)| known == name).count() > 1
    }

    /// Returns the name of a parameter that is there more than once, apart from `resource`, which may be (RFC 8707).
    pub fn repeated(&self) -> Option<&str> {
        let names = self.0.iter().map(|(name, _)| name.as_str());
        names
            .filter(|name| *name != "resource")
            .find(|name| self.is_repeated(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_has_one_reading() {
        let read = Parameters::parse("a=1+2&b=%C3%BC&empty=&c&resource=x&resource=y&&d=%3D=").unwrap();
        assert_eq!(read.only("a"), Some("1 2"));
        assert_eq!(read.only("b"), Some("ü"));
        assert_eq!((read.only("empty"), read.only("c")), (None, None));
        assert_eq!(read.only("d"), Some("=="));
        assert_eq!(read.all("resource").collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!(read.repeated(), None);
        // An escaped name is the same name, and an empty one counts.
        for twice in ["a=1&a=1", "a=1&%61=2", "a=&a=1"] {
            let read = Parameters::parse(twice).unwrap();
            assert_eq!((read.only("a"), read.repeated()), (None, Some("a")), "{twice}");
        }
        assert_eq!(Parameters::parse("a=%ff").err(), Some(ParameterError::Encoding));
        assert_eq!(Parameters::parse("a=%4").err(), Some(ParameterError::Encoding));
        assert_eq!(
            Parameters::parse(&"a&".repeat(65)).err(),
            Some(ParameterError::TooMany)
        );
    }
}
