//! A wire between a machine and its server: what the machine says is written down on its way, request by request.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write, copy};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Heads and bodies, by what was asked.
type Said = BTreeMap<String, Vec<u8>>;

/// Listens until the process ends.
pub struct Wire {
    pub port: u16,
    far: Arc<Mutex<Option<u16>>>,
    said: Arc<Mutex<Said>>,
}

impl Wire {
    pub fn listens() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let wire = Self {
            port: listener.local_addr().unwrap().port(),
            far: Arc::default(),
            said: Arc::default(),
        };
        let (far, said) = (wire.far.clone(), wire.said.clone());
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let far = *far.lock().unwrap();
                // Nobody is there, as where a server is away.
                let Some(far) = far.and_then(|port| TcpStream::connect(("127.0.0.1", port)).ok()) else {
                    continue;
                };
                let said = said.clone();
                thread::spawn(move || carry(&near, far, &said));
            }
        });
        wire
    }

    /// Has it lead to a server.
    pub fn leads_to(&self, port: u16) {
        *self.far.lock().unwrap() = Some(port);
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns heads and bodies: `head/…` and `body/…` of each path, ids in it as `*`.
    pub fn said(&self) -> Said {
        self.said.lock().unwrap().clone()
    }
}

fn carry(near: &TcpStream, mut far: TcpStream, said: &Mutex<Said>) {
    let (mut answers, mut back) = (far.try_clone().unwrap(), near.try_clone().unwrap());
    thread::spawn(move || {
        let _ = copy(&mut answers, &mut back);
        let _ = back.shutdown(Shutdown::Both);
    });
    let mut requests = BufReader::new(near);
    while let Some((head, body)) = request(&mut requests) {
        let path = head.split(' ').nth(1).unwrap_or_default();
        let name = named(path);
        let mut said = said.lock().unwrap();
        for (part, bytes) in [("head", head.as_bytes()), ("body", &body[..])] {
            let all = said.entry(format!("{part}/{name}")).or_default();
            all.extend_from_slice(bytes);
            all.push(b'\n');
        }
        drop(said);
        if far.write_all(&[head.as_bytes(), &body].concat()).is_err() {
            break;
        }
    }
    let _ = far.shutdown(Shutdown::Write);
}

/// Returns the next request; nothing at the end.
fn request(from: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if from.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let lower = head.to_lowercase();
    assert!(!lower.contains("transfer-encoding"), "{head}");
    let length = lower
        .lines()
        .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    from.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// Returns a path below the organization, without its query, with `*` for what is an id.
fn named(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let below = path
        .split_once("/organizations/default/")
        .map_or(path, |(_, below)| below);
    let segments = below.split('/').map(|segment| match segment.split_once('_') {
        Some((kind, id)) if kind.len() == 3 && id.len() > 16 => "*",
        _ => segment,
    });
    segments.collect::<Vec<_>>().join("/")
}
