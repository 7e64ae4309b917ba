//! The requests: every operation of the catalogue of mutations and every read that names a record, about a record of
//! another organization and about none.

use serde_json::Value;

use crate::bench::bench_store::BenchStore;
use crate::failure::{Context, Outcome};
use crate::http::{Connection, Request};
use crate::process;
use crate::product::{self, Bootstrap};
use crate::random::Random;
use crate::traffic::maker::Maker;
use crate::traffic::{archive, catalogue, mutation_headers};

/// The letters of an id behind its prefix.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// How many letters of an id are drawn; those before them are its time.
const DRAWN: usize = 16;
/// All letters of an id behind its prefix.
const LENGTH: usize = 26;

/// What a request is about.
#[derive(Clone, Copy)]
pub enum Kind {
    Foreign,
    Absent,
}

impl Kind {
    pub const BOTH: [Self; 2] = [Self::Foreign, Self::Absent];
}

/// One kind of request.
pub struct Case {
    pub name: String,
    foreign: Request,
    absent: Request,
    /// How many were sent, so that each has a key of its own.
    sent: u64,
}

impl Case {
    pub fn is_read(&self) -> bool {
        self.foreign.method == "GET"
    }

    /// The next request, as long as all others of this case.
    pub fn next(&mut self, kind: Kind) -> &Request {
        self.sent += 1;
        let request = match kind {
            Kind::Foreign => &mut self.foreign,
            Kind::Absent => &mut self.absent,
        };
        for (name, value) in &mut request.headers {
            if *name == "Idempotency-Key" {
                *value = format!("strangers-{:012}", self.sent);
            }
        }
        request
    }
}

/// Makes two organizations, a record of every kind in one of them, and the requests of the other's admin.
pub fn make(place: &BenchStore, random: &mut Random) -> Outcome<Vec<Case>> {
    let installation = &place.installation;
    let stranger = installation.initialize()?;
    let printed = process::output(&mut installation.command(&["init", "--organization", "Beta", "--json"]))?;
    let owner = product::parse_bootstrap(&printed)?;
    let server = installation.serve()?;
    let mut connection = Connection::new(server.address);
    let mut requests = Vec::new();
    for (number, operation) in catalogue::all().iter().enumerate() {
        let unique = format!("s{number:03}");
        let folder = place.folder().to_path_buf();
        let mut maker = Maker {
            connection: &mut connection,
            bootstrap: &owner,
            unique: &unique,
            archive: &move |name: &str, bytes: usize| archive(name, &folder, bytes),
            log_bytes: &|| 0,
            sent: 0,
        };
        let ready = (operation.prepare)(&mut maker).context(operation.id)?;
        requests.push((operation.id.to_owned(), ready.request));
    }
    requests.extend(made_by_the_server(&mut connection, &owner)?);
    server.stop()?;
    let mut reads = reads(&requests, &owner)?;
    requests.append(&mut reads);
    let mut cases: Vec<Case> = requests
        .into_iter()
        .filter_map(|(name, request)| case(name, request, &owner, &stranger, random))
        .collect();
    cases.push(of_organizations(&owner, &stranger));
    Ok(cases)
}

/// Records that no mutation names, because the server makes them.
fn made_by_the_server(connection: &mut Connection, owner: &Bootstrap) -> Outcome<Vec<(String, Request)>> {
    let mut named = Vec::new();
    for (list, member) in [("audit/events", "events"), ("policies/versions", "versions")] {
        let shown = connection.fetch(&Request::get(
            owner.path(&format!("{list}?limit=1")),
            &owner.token,
        ))?;
        let id = shown[member][0]["id"]
            .as_str()
            .context(format_args!("{list} shows nothing"))?;
        let request = Request::get(owner.path(&format!("{list}/{id}")), &owner.token);
        named.push((format!("GET {list}"), request));
    }
    Ok(named)
}

/// The reads of all records that the requests name, once for every kind of path.
fn reads(requests: &[(String, Request)], owner: &Bootstrap) -> Outcome<Vec<(String, Request)>> {
    let file = process::root().join("openapi/headless-v1.json");
    let text = std::fs::read_to_string(&file).context(file.display())?;
    let document: Value = serde_json::from_str(&text).context("the OpenAPI document is not JSON")?;
    let paths = document["paths"]
        .as_object()
        .context("the document has no paths")?;
    let mut reads = Vec::new();
    for (template, operations) in paths {
        let Some(id) = operations["get"]["operationId"].as_str() else {
            continue;
        };
        let found = requests
            .iter()
            .find_map(|(_, request)| read(template, &request.path));
        if let Some(path) = found {
            reads.push((id.to_owned(), Request::get(path, &owner.token)));
        }
    }
    Ok(reads)
}

/// The beginning of a path that a template describes, if it names a record.
fn read(template: &str, path: &str) -> Option<String> {
    let template: Vec<&str> = template.split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    let beginning = path.get(..template.len())?;
    let fits = template
        .iter()
        .zip(beginning)
        .all(|(wanted, part)| wanted == part || (wanted.starts_with('{') && !part.is_empty()));
    // The organization is a name and no id.
    let names = beginning.iter().any(|part| is_id(part));
    let ends = template.last()?.starts_with('{') == is_id(beginning.last()?);
    (fits && names && ends).then(|| beginning.join("/"))
}

fn is_id(part: &str) -> bool {
    part.split_once('_').is_some_and(|(prefix, rest)| {
        prefix.bytes().all(|byte| byte.is_ascii_lowercase())
            && rest.len() == LENGTH
            && rest.bytes().all(|byte| LETTERS.contains(&byte))
    })
}

fn case(
    name: String,
    request: Request,
    owner: &Bootstrap,
    stranger: &Bootstrap,
    random: &mut Random,
) -> Option<Case> {
    let path = request.path.replacen(&owner.path(""), &stranger.path(""), 1);
    let mut absent_path = Vec::new();
    let mut names = false;
    for part in path.split('/') {
        names |= is_id(part);
        absent_path.push(if is_id(part) {
            drawn(part, random)
        } else {
            part.to_owned()
        });
    }
    let foreign = Request {
        path,
        token: Some(stranger.token.clone()),
        ..request
    };
    let absent = Request {
        path: absent_path.join("/"),
        ..foreign.clone()
    };
    names.then_some(Case {
        name,
        foreign,
        absent,
        sent: 0,
    })
}

/// Another id of the same moment. That of an audit entry is its time and its place in the log, so it keeps the place:
/// whoever may ask knows how long the log is.
fn drawn(id: &str, random: &mut Random) -> String {
    if let Some(rest) = id.strip_prefix("aud_") {
        let (time, place) = rest.split_at(LENGTH - DRAWN);
        let other: String = time.chars().rev().collect();
        // The first letter of a time is small.
        return format!("aud_0{}{place}", &other[..other.len() - 1]);
    }
    let kept = &id[..id.len() - DRAWN];
    let drawn = (0..DRAWN).map(|_| char::from(LETTERS[usize::try_from(random.next() % 32).unwrap_or(0)]));
    drawn.fold(kept.to_owned(), |mut whole, letter| {
        whole.push(letter);
        whole
    })
}

/// Another organization, and one that is not there.
fn of_organizations(owner: &Bootstrap, stranger: &Bootstrap) -> Case {
    let foreign = Request {
        headers: mutation_headers("", "a stranger"),
        ..Request::get(owner.path("service-accounts"), &stranger.token)
    };
    let absent = Request {
        path: foreign.path.replacen("/beta/", "/zeta/", 1),
        ..foreign.clone()
    };
    Case {
        name: "an organization".into(),
        foreign,
        absent,
        sent: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "usr_01kadh5j9v0000000000000000";

    #[test]
    fn ids_are_told_from_names() {
        assert!(is_id(ID));
        assert!(!is_id("directory"));
        assert!(!is_id("acme"));
        assert!(!is_id("usr_01KADH5J9V0000000000000000"));
    }

    #[test]
    fn another_id_is_of_the_same_moment_and_length() {
        let other = drawn(ID, &mut Random::new(1));
        assert!(is_id(&other));
        assert_ne!(other, ID);
        assert_eq!(other[..14], ID[..14]);
    }

    #[test]
    fn the_read_of_a_record_is_found_in_the_paths_of_its_changes() {
        let path = format!("/v1/organizations/beta/users/{ID}/suspend");
        let template = "/v1/organizations/{organizationId}/users/{userId}";
        let expected = format!("/v1/organizations/beta/users/{ID}");
        assert_eq!(read(template, &path), Some(expected));
        assert_eq!(read("/v1/organizations/{organizationId}", &path), None);
        assert_eq!(read("/v1/organizations/{organizationId}/{other}", &path), None);
    }
}
