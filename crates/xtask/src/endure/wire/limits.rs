//! Limits of heads and bodies, each one byte (or field) below, at, and above: the last one that fits is served.

use std::net::SocketAddr;

use super::socket::{Segmentation, Socket};
use crate::failure::{Context, Failure, Outcome};
use crate::product::Bootstrap;

const TARGET: usize = 8 * 1024;
/// The sum over the fields of name, value and four bytes.
const HEADERS: usize = 16 * 1024;
const FIELDS: usize = 100;
const BODY: usize = 256 * 1024;

/// Checks every limit; returns how many there are.
pub fn check(address: SocketAddr, bootstrap: &Bootstrap) -> Outcome<u32> {
    let mut number = 0;
    let create = |size: usize, framing: &dyn Fn(&str) -> String| {
        number += 1;
        let body = format!(
            "{{\"name\":\"Limit {number}\",\"permissionRole\":\"viewer\",\"allOfRole\":true,\"reason\":\"limits\",\
             \"idempotencyKey\":\"limit-{number}\""
        );
        let body = format!("{body}{}}}", " ".repeat(size - 1 - body.len()));
        format!(
            "POST {} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n{}",
            bootstrap.path("service-accounts"),
            bootstrap.token,
            framing(&body)
        )
    };
    let mut create = create;
    three("bytes of the target", address, TARGET, (200, 414), &mut |size| {
        let query = "q".repeat(size - "/readyz?".len());
        format!("GET /readyz?{query} HTTP/1.1\r\nHost: a\r\n\r\n")
    })?;
    three(
        "bytes of the headers",
        address,
        HEADERS,
        (200, 431),
        &mut |size| {
            let counted = "Host".len() + "a".len() + 4 + "X".len() + 4;
            let value = "v".repeat(size - counted);
            format!("GET /readyz HTTP/1.1\r\nHost: a\r\nX: {value}\r\n\r\n")
        },
    )?;
    three(
        "bytes of headers over many fields",
        address,
        HEADERS,
        (200, 431),
        &mut |size| {
            let mut left = size - ("Host".len() + "a".len() + 4);
            let mut fields = String::new();
            while left > 0 {
                let next = if left > 600 { 300 } else { left };
                fields.extend(["X: ", &"v".repeat(next - 5), "\r\n"]);
                left -= next;
            }
            format!("GET /readyz HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
        },
    )?;
    three("header fields", address, FIELDS, (200, 431), &mut |count| {
        let fields = "X: y\r\n".repeat(count - 1);
        format!("GET /readyz HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
    })?;
    three(
        "bytes of a body with its length",
        address,
        BODY,
        (201, 413),
        &mut |size| {
            create(size, &|body| {
                format!("Content-Length: {}\r\n\r\n{body}", body.len())
            })
        },
    )?;
    three(
        "bytes of a chunked body",
        address,
        BODY,
        (201, 413),
        &mut |size| {
            create(size, &|body| {
                let (first, last) = body.split_at(body.len() - 1);
                format!(
                    "Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{first}\r\n1\r\n{last}\r\n0\r\n\r\n",
                    first.len()
                )
            })
        },
    )?;
    Ok(6)
}

fn three(
    name: &str,
    address: SocketAddr,
    limit: usize,
    (fits, refused): (u16, u16),
    request: &mut dyn FnMut(usize) -> String,
) -> Outcome {
    for (size, due) in [(limit - 1, fits), (limit, fits), (limit + 1, refused)] {
        let mut socket = Socket::connect(address)?;
        socket.send(request(size).as_bytes(), Segmentation::Whole);
        let answer = socket
            .answer(false)?
            .context(format_args!("{name}: {size}: no answer"))?;
        if answer.status != due || !answer.is_ours {
            return Err(Failure::new(format!(
                "{size} {name} are answered {} instead of {due}: {}",
                answer.status, answer.text
            )));
        }
        if due == refused && socket.answer(false)?.is_some() {
            return Err(Failure::new(format!(
                "{size} {name}: the connection goes on after the refusal"
            )));
        }
    }
    Ok(())
}
