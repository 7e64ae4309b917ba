//! The corpus: what is sent, and the answers that RFC 9112 allows.
//!
//! In the texts `@D` is the path of an operation that takes a body, `@A` the headers that every request of ours has
//! (Host, Authorization, Content-Type), `@J` a body of JSON that is right and 113 (0x71) bytes long, `@X` a whole request
//! that makes an account called smuggled-…, `@L` its length in decimal and `@H` in hexadecimal digits.

use crate::product::Bootstrap;

/// What an answer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// The request is understood, and its content is right.
    Done,
    /// The request is understood; what it says is not right (invalid JSON, no such route).
    Judged,
    /// The head or the framing is refused.
    Refused,
    /// It is told to go on (100).
    Continue,
    /// An answer to HEAD: no body follows, whatever its length.
    Head,
}

impl Means {
    pub fn allows(self, status: u16) -> bool {
        match self {
            Self::Done => matches!(status, 200 | 201),
            Self::Judged => matches!(status, 400 | 401 | 404 | 405 | 415),
            Self::Refused => matches!(status, 400 | 413 | 414 | 417 | 431 | 501 | 505),
            Self::Continue => status == 100,
            Self::Head => status == 200,
        }
    }
}

pub struct Case {
    pub name: &'static str,
    sends: &'static str,
    /// Exactly these come, in this order.
    pub answers: &'static [Means],
    /// Whether the connection can be used afterwards; otherwise it is closed.
    pub stays: bool,
}

const REFUSED: &[Means] = &[Means::Refused];
const DONE: &[Means] = &[Means::Done];
const JUDGED: &[Means] = &[Means::Judged];

/// One refusal, then the end: nothing after it is answered.
const fn refuses(name: &'static str, sends: &'static str) -> Case {
    Case {
        name,
        sends,
        answers: REFUSED,
        stays: false,
    }
}

/// Answers, and the connection goes on.
const fn stays(name: &'static str, answers: &'static [Means], sends: &'static str) -> Case {
    Case {
        name,
        sends,
        answers,
        stays: true,
    }
}

/// Answers, and the connection ends: a body that nobody read, a chunked one, or the peer's own wish.
const fn ends(name: &'static str, answers: &'static [Means], sends: &'static str) -> Case {
    Case {
        name,
        sends,
        answers,
        stays: false,
    }
}

/// A second request that is really one.
pub const CONTROL: Case = ends(
    "control: pipelining acts",
    &[Means::Done, Means::Done, Means::Refused],
    "POST @D HTTP/1.1\r\n@AContent-Length: 113\r\n\r\n@J@XGET /readyz HTTP/9\r\n\r\n",
);

#[rustfmt::skip]
pub const CASES: &[Case] = &[
    // Two lengths that disagree, in every order and spelling.
    refuses("CL.TE", "POST @D HTTP/1.1\r\n@AContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n@X"),
    refuses("TE.CL", "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n@H\r\n@X\r\n0\r\n\r\n"),
    refuses("TE.TE, second unknown", "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n\r\n0\r\n\r\n@X"),
    refuses("TE.TE, first unknown", "POST @D HTTP/1.1\r\n@ATransfer-Encoding: cow\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n@X"),
    refuses("TE.TE, the same twice", "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n@X"),
    refuses("TE.0", "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n@X"),
    refuses("CL.CL, different", "POST @D HTTP/1.1\r\n@AContent-Length: 0\r\nContent-Length: @L\r\n\r\n@X"),
    refuses("CL.CL, different, other order", "POST @D HTTP/1.1\r\n@AContent-Length: @L\r\nContent-Length: 0\r\n\r\n@X"),
    refuses("CL.CL, the same", "POST @D HTTP/1.1\r\n@AContent-Length: 113\r\nContent-Length: 113\r\n\r\n@J@X"),
    refuses("CL list, the same", "POST @D HTTP/1.1\r\n@AContent-Length: 113, 113\r\n\r\n@J@X"),
    refuses("CL list, different", "POST @D HTTP/1.1\r\n@AContent-Length: 113, 0\r\n\r\n@J@X"),
    refuses("CL in two spellings", "POST @D HTTP/1.1\r\n@Acontent-length: 113\r\nCONTENT-LENGTH: 0\r\n\r\n@J@X"),
    // A length that is no number.
    refuses("CL with a plus", "POST @D HTTP/1.1\r\n@AContent-Length: +113\r\n\r\n@J@X"),
    refuses("CL with a minus", "POST @D HTTP/1.1\r\n@AContent-Length: -113\r\n\r\n@J@X"),
    refuses("CL -0", "POST @D HTTP/1.1\r\n@AContent-Length: -0\r\n\r\n@X"),
    refuses("CL in hexadecimal", "POST @D HTTP/1.1\r\n@AContent-Length: 0x71\r\n\r\n@J@X"),
    refuses("CL with a fraction", "POST @D HTTP/1.1\r\n@AContent-Length: 113.0\r\n\r\n@J@X"),
    refuses("CL with an exponent", "POST @D HTTP/1.1\r\n@AContent-Length: 1e1\r\n\r\n@J@X"),
    refuses("CL with a blank inside", "POST @D HTTP/1.1\r\n@AContent-Length: 1 3\r\n\r\n@J@X"),
    refuses("CL with a separator", "POST @D HTTP/1.1\r\n@AContent-Length: 1_13\r\n\r\n@J@X"),
    refuses("CL in quotes", "POST @D HTTP/1.1\r\n@AContent-Length: \"113\"\r\n\r\n@J@X"),
    refuses("CL empty", "POST @D HTTP/1.1\r\n@AContent-Length:\r\n\r\n@X"),
    refuses("CL blank", "POST @D HTTP/1.1\r\n@AContent-Length: \t \r\n\r\n@X"),
    refuses("CL with a word after it", "POST @D HTTP/1.1\r\n@AContent-Length: 113 bytes\r\n\r\n@J@X"),
    refuses("CL in other digits", "POST @D HTTP/1.1\r\n@AContent-Length: \u{661}\u{663}\r\n\r\n@J@X"),
    refuses("CL over 64 bits", "POST @D HTTP/1.1\r\n@AContent-Length: 18446744073709551629\r\n\r\n@J@X"),
    refuses("CL over 128 bits", "POST @D HTTP/1.1\r\n@AContent-Length: 340282366920938463463374607431768211469\r\n\r\n@J@X"),
    refuses("CL of 64 bits", "POST @D HTTP/1.1\r\n@AContent-Length: 18446744073709551615\r\n\r\n@J@X"),
    refuses("CL of 63 bits", "POST @D HTTP/1.1\r\n@AContent-Length: 9223372036854775807\r\n\r\n@J@X"),
    stays("CL with leading zeros", DONE, "POST @D HTTP/1.1\r\n@AContent-Length: 00113\r\n\r\n@J"),
    stays("CL with blanks around", DONE, "POST @D HTTP/1.1\r\n@AContent-Length: \t 113 \t\r\n\r\n@J"),
    stays("CL without a blank", DONE, "POST @D HTTP/1.1\r\n@Acontent-length:113\r\n\r\n@J"),
    // An encoding that is not plainly "chunked".
    refuses("TE xchunked", "POST @D HTTP/1.1\r\n@ATransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n@X"),
    refuses("TE chunked, identity", "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n@X"),
    refuses("TE identity, chunked", "POST @D HTTP/1.1\r\n@ATransfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n@X"),
    refuses("TE gzip, chunked", "POST @D HTTP/1.1\r\n@ATransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n@X"),
    refuses("TE chunked, chunked", "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n@X"),
    refuses("TE identity", "POST @D HTTP/1.1\r\n@ATransfer-Encoding: identity\r\n\r\n@X"),
    refuses("TE empty", "POST @D HTTP/1.1\r\n@ATransfer-Encoding:\r\n\r\n0\r\n\r\n@X"),
    refuses("TE with a comma", "POST @D HTTP/1.1\r\n@ATransfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n@X"),
    refuses("TE with a semicolon", "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n@X"),
    refuses("TE in quotes", "POST @D HTTP/1.1\r\n@ATransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n@X"),
    refuses("TE with a vertical tab", "POST @D HTTP/1.1\r\n@ATransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n@X"),
    refuses("TE with a form feed", "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\x0c\r\n\r\n0\r\n\r\n@X"),
    refuses("TE with a no-break space", "POST @D HTTP/1.1\r\n@ATransfer-Encoding: \u{a0}chunked\r\n\r\n0\r\n\r\n@X"),
    refuses("TE with a NUL", "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\0\r\n\r\n0\r\n\r\n@X"),
    refuses("TE with a Kelvin sign", "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chun\u{212a}ed\r\n\r\n0\r\n\r\n@X"),
    refuses("TE folded", "POST @D HTTP/1.1\r\n@ATransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n@X"),
    refuses("TE with a blank before the colon", "POST @D HTTP/1.1\r\n@AContent-Length: 5\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n@X"),
    refuses("TE with a tab before the colon", "POST @D HTTP/1.1\r\n@AContent-Length: 5\r\nTransfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n@X"),
    refuses("TE indented", "POST @D HTTP/1.1\r\n@AContent-Length: 5\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n@X"),
    refuses("TE behind a bare CR", "POST @D HTTP/1.1\r\n@AContent-Length: 5\r\nX: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n@X"),
    refuses("TE behind a bare LF", "POST @D HTTP/1.1\r\n@AContent-Length: 5\r\nX: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n@X"),
    refuses("TE with a NUL in its name", "POST @D HTTP/1.1\r\n@AContent-Length: 5\r\nTransfer\0-Encoding: chunked\r\n\r\n0\r\n\r\n@X"),
    refuses("TE in HTTP/1.0", "POST @D HTTP/1.0\r\n@ATransfer-Encoding: chunked\r\n\r\n0\r\n\r\n@X"),
    // Another name is another header: the length counts, and what follows is a body.
    stays("TE with an underscore", DONE, "POST @D HTTP/1.1\r\n@ATransfer_Encoding: chunked\r\nContent-Length: 113\r\n\r\n@J"),
    stays("CL with an underscore", JUDGED, "POST @D HTTP/1.1\r\n@AContent_Length: 113\r\n\r\n"),
    stays("a request as a body", JUDGED, "POST @D HTTP/1.1\r\n@AContent-Length: @L\r\n\r\n@X"),
    ends("a request as the body of a GET", DONE, "GET /readyz HTTP/1.1\r\n@AContent-Length: @L\r\n\r\n@X"),
    ends("a request as the body of an unknown method", JUDGED, "BREW @D HTTP/1.1\r\n@AContent-Length: @L\r\n\r\n@X"),
    ends("a request as the body of an unknown route", JUDGED, "POST /nowhere HTTP/1.1\r\n@AContent-Length: @L\r\n\r\n@X"),
    ends("a request as the body of a stranger", JUDGED, "POST @D HTTP/1.1\r\nHost: a\r\nContent-Length: @L\r\n\r\n@X"),
    ends("a request as the body of a HEAD", &[Means::Head], "HEAD /readyz HTTP/1.1\r\n@AContent-Length: @L\r\n\r\n@X"),
    ends("a request as the body of OPTIONS *", JUDGED, "OPTIONS * HTTP/1.1\r\n@AContent-Length: @L\r\n\r\n@X"),
    stays("a body where the header Upgrade asks for another protocol", JUDGED, "POST @D HTTP/1.1\r\n@AConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: @L\r\n\r\n@X"),
    // Chunks.
    ends("chunks", DONE, "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\n\r\n71\r\n@J\r\n0\r\n\r\n"),
    ends("chunks, then a request", DONE, "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\n\r\n71\r\n@J\r\n0\r\n\r\n@X"),
    ends("a request as a chunk", JUDGED, "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\n\r\n@H\r\n@X\r\n0\r\n\r\n"),
    ends("a request as trailers", DONE, "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\n\r\n71\r\n@J\r\n0\r\nX: y\r\n\r\n@X"),
    ends("trailers that change the length", DONE, "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\n\r\n71\r\n@J\r\n0\r\nContent-Length: @L\r\n\r\n@X"),
    ends("a chunk extension", DONE, "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\n\r\n71;a=b\r\n@J\r\n0\r\n\r\n@X"),
    ends("a chunk extension with a bare LF", REFUSED, "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\n\r\n71;a\n@J\r\n0\r\n\r\n@X"),
    ends("a chunk extension with a request", REFUSED, "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\n\r\n2;\n{}\r\n@H\r\n@X\r\n0\r\n\r\n"),
    ends("a chunk size of 65 bits", REFUSED, "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\n\r\n10000000000000071\r\n@J\r\n0\r\n\r\n@X"),
    ends("a chunk size of many zeros", DONE, "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\n\r\n00000000000000000071\r\n@J\r\n0\r\n\r\n@X"),
    ends("a chunk size with 0x", REFUSED, "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\n\r\n0x71\r\n@J\r\n0\r\n\r\n@X"),
    ends("a chunk size with a minus", REFUSED, "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\n\r\n-71\r\n@J\r\n0\r\n\r\n@X"),
    ends("a chunk size with a plus", REFUSED, "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\n\r\n+71\r\n@J\r\n0\r\n\r\n@X"),
    ends("a chunk size that is empty", REFUSED, "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\n\r\n\r\n@J\r\n0\r\n\r\n@X"),
    ends("a chunk size with a word", REFUSED, "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\n\r\n71 x\r\n@J\r\n0\r\n\r\n@X"),
    ends("a chunk without its end", REFUSED, "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\n\r\n71\r\n@J0\r\n\r\n@X"),
    ends("a chunk that ends in a bare LF", REFUSED, "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\n\r\n71\r\n@J\n0\r\n\r\n@X"),
    ends("a chunk size that ends in a bare LF", REFUSED, "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\n\r\n71\n@J\r\n0\r\n\r\n@X"),
    ends("a chunk size that ends in a bare CR", REFUSED, "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\n\r\n71\r@J\r\n0\r\n\r\n@X"),
    ends("a chunk that is too short", REFUSED, "POST @D HTTP/1.1\r\n@ATransfer-Encoding: chunked\r\n\r\n5\r\n@J\r\n0\r\n\r\n@X"),
    // The request line.
    refuses("a second version", "GET /readyz HTTP/1.1 HTTP/1.1\r\n@A\r\n@X"),
    refuses("two blanks", "GET  /readyz HTTP/1.1\r\n@A\r\n@X"),
    refuses("a tab", "GET\t/readyz HTTP/1.1\r\n@A\r\n@X"),
    refuses("a blank at the beginning", " GET /readyz HTTP/1.1\r\n@A\r\n@X"),
    refuses("a blank at the end", "GET /readyz HTTP/1.1 \r\n@A\r\n@X"),
    refuses("HTTP/0.9", "GET /readyz\r\n\r\n@X"),
    refuses("HTTP/1.2", "GET /readyz HTTP/1.2\r\n@A\r\n@X"),
    refuses("HTTP/2.0 in words", "GET /readyz HTTP/2.0\r\n@A\r\n@X"),
    refuses("HTTP in lower case", "GET /readyz http/1.1\r\n@A\r\n@X"),
    refuses("a NUL in the target", "GET /readyz\0 HTTP/1.1\r\n@A\r\n@X"),
    refuses("a bare CR in the request line", "GET /readyz HTTP/1.1\rX: y\r\n@A\r\n@X"),
    refuses("a bare LF after the request line", "GET /readyz HTTP/1.1\n@A\r\n@X"),
    refuses("bare LFs alone", "GET /readyz HTTP/1.1\nHost: a\n\n@X"),
    refuses("a bare LF before the empty line", "GET /readyz HTTP/1.1\r\nHost: a\n\r\n@X"),
    refuses("a target with raw bytes", "GET /r\u{e9}adyz HTTP/1.1\r\n@A\r\n@X"),
    refuses("a TLS hello", "\x16\x03\x01\x02\0\x01\0\x01\u{fc}\x03\x03\r\n\r\n@X"),
    refuses("half the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n@X"),
    stays("empty lines before the request line", DONE, "\r\n\r\nGET /readyz HTTP/1.1\r\n@A\r\n"),
    stays("an absolute target", DONE, "GET http://elsewhere.example/readyz HTTP/1.1\r\n@A\r\n"),
    stays("an absolute target, in full", JUDGED, "POST http://elsewhere.example@D HTTP/1.1\r\n@AContent-Length: @L\r\n\r\n@X"),
    stays("the target of CONNECT", JUDGED, "CONNECT elsewhere.example:443 HTTP/1.1\r\n@A\r\n"),
    stays("an asterisk", JUDGED, "OPTIONS * HTTP/1.1\r\n@A\r\n"),
    stays("TRACE", JUDGED, "TRACE /readyz HTTP/1.1\r\n@A\r\n"),
    // Headers.
    refuses("two hosts", "GET /readyz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n@X"),
    refuses("no host", "GET /readyz HTTP/1.1\r\nX: y\r\n\r\n@X"),
    refuses("a blank before the colon of Host", "GET /readyz HTTP/1.1\r\nHost : a\r\n\r\n@X"),
    refuses("a folded header", "GET /readyz HTTP/1.1\r\n@AX: y\r\n z\r\n\r\n@X"),
    refuses("a header folded with a tab", "GET /readyz HTTP/1.1\r\n@AX: y\r\n\tz\r\n\r\n@X"),
    refuses("a folded first line", "GET /readyz HTTP/1.1\r\n X: y\r\n@A\r\n@X"),
    refuses("a NUL in a value", "GET /readyz HTTP/1.1\r\n@AX: y\0z\r\n\r\n@X"),
    refuses("a bare CR in a value", "GET /readyz HTTP/1.1\r\n@AX: y\rz\r\n\r\n@X"),
    refuses("an escape in a value", "GET /readyz HTTP/1.1\r\n@AX: y\x1b[0m\r\n\r\n@X"),
    refuses("a name without a colon", "GET /readyz HTTP/1.1\r\n@AX\r\n\r\n@X"),
    refuses("a value without a name", "GET /readyz HTTP/1.1\r\n@A: y\r\n\r\n@X"),
    refuses("a name with a bracket", "GET /readyz HTTP/1.1\r\n@AX(y): z\r\n\r\n@X"),
    refuses("a name outside ASCII", "GET /readyz HTTP/1.1\r\n@AX\u{e9}: z\r\n\r\n@X"),
    ends("two tokens", JUDGED, "POST @D HTTP/1.1\r\n@AAuthorization: Bearer x\r\nContent-Length: 113\r\n\r\n@J"),
    // Versions and persistence.
    ends("HTTP/1.0 closes", DONE, "GET /readyz HTTP/1.0\r\n\r\n@X"),
    stays("HTTP/1.0 with keep-alive", DONE, "GET /readyz HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n"),
    ends("Connection: close", DONE, "GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n@X"),
    stays("pipelining", &[Means::Done, Means::Done, Means::Judged, Means::Done], "GET /readyz HTTP/1.1\r\n@A\r\nPOST @D HTTP/1.1\r\n@AContent-Length: 113\r\n\r\n@JGET /nowhere HTTP/1.1\r\n@A\r\nGET /readyz HTTP/1.1\r\n@A\r\n"),
    ends("pipelining up to the first bad one", &[Means::Done, Means::Refused], "GET /readyz HTTP/1.1\r\n@A\r\nGET /readyz HTTP/1.1\r\n X: y\r\n\r\n@X"),
    stays("100-continue", &[Means::Continue, Means::Done], "POST @D HTTP/1.1\r\n@AExpect: 100-continue\r\nContent-Length: 113\r\n\r\n@J"),
    ends("100-continue of a body that is too large", REFUSED, "POST @D HTTP/1.1\r\n@AExpect: 100-continue\r\nContent-Length: 999999999999\r\n\r\n@X"),
];

impl Case {
    /// The bytes of a case; the number tells what it smuggles from others.
    ///
    /// Characters up to U+00FF are the byte of that number, so that the table can hold bytes that are no UTF-8.
    pub fn bytes(&self, bootstrap: &Bootstrap, number: u64) -> Vec<u8> {
        let own = format!(
            "Host: a\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n",
            bootstrap.token
        );
        let smuggled = smuggled(bootstrap, &own, number);
        let text = self
            .sends
            .replace("@X", &smuggled)
            .replace("@L", &smuggled.len().to_string())
            .replace("@H", &format!("{:x}", smuggled.len()))
            .replace("@J", &right())
            .replace("@D", &bootstrap.path("policies/decisions"))
            .replace("@A", &own);
        let mut bytes = Vec::new();
        for letter in text.chars() {
            match u8::try_from(u32::from(letter)) {
                Ok(byte) => bytes.push(byte),
                Err(_) => bytes.extend(letter.to_string().bytes()),
            }
        }
        bytes
    }
}

/// A question for a decision, filled with blanks to 113 bytes.
fn right() -> String {
    let question = r#"{"events":[{"occasion":"pre_tool","attributes":{"tool.id":"wire"}}]"#;
    format!("{question:112}}}")
}

fn smuggled(bootstrap: &Bootstrap, own: &str, number: u64) -> String {
    let body = format!(
        "{{\"name\":\"smuggled-{number:08}\",\"permissionRole\":\"viewer\",\"allOfRole\":true,\"reason\":\"smuggled\",\
         \"idempotencyKey\":\"smuggled-{number:08}\"}}"
    );
    format!(
        "POST {} HTTP/1.1\r\n{own}Content-Length: {}\r\n\r\n{body}",
        bootstrap.path("service-accounts"),
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_of_every_case_has_the_length_that_the_table_says() {
        assert_eq!((right().len(), 0x71), (113, 113));
        let bootstrap = Bootstrap {
            organization: "acme".into(),
            account: "sa".into(),
            token: "t".into(),
        };
        for case in CASES {
            assert!(
                !case
                    .bytes(&bootstrap, 1)
                    .windows(2)
                    .any(|two| two[0] == b'@' && two[1].is_ascii_uppercase()),
                "{}",
                case.name
            );
        }
        let names: std::collections::BTreeSet<_> = CASES.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), CASES.len());
    }
}
