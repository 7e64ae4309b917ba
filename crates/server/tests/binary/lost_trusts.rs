//! Workload trusts of a store that went back: what let a workload in when the store was kept lets none in by itself.

use super::*;
use provost_oauth::corpus::{Template, Workshop};

const AUDIENCE: &str = "https://provost.acme.test";
const ISSUER: &str = "https://token.actions.githubusercontent.com";

fn workshop() -> Workshop {
    let word = || "unused".to_owned();
    let template = Template {
        issuer: word(),
        audience: word(),
        organization: word(),
        subject: word(),
        client_id: word(),
        scope: word(),
        now: 0,
    };
    Workshop::new(template).unwrap()
}

fn now_secs() -> i64 {
    SystemClock::new().now().as_ms() / 1000
}

/// A token of a job that was issued then.
fn job(workshop: &Workshop, jti: &str, issued_at: i64) -> String {
    let claims = json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": "repo:acme/shop:environment:production", "repository_id": "74",
        "jti": jti, "iat": issued_at, "nbf": issued_at - 60, "exp": issued_at + 900,
    });
    workshop.signed(&json!({ "typ": "JWT", "alg": "RS256", "kid": "rsa" }), &claims)
}

/// Exchanges a token and returns the status and the answer.
fn exchange(server: &Server, trust: &str, token: &str) -> (u16, Value) {
    let form = format!(
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&client_id={trust}&subject_token={token}&\
         subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Ajwt"
    );
    let request = format!(
        "POST /oauth/token HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{form}",
        form.len()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

/// An installation whose trusts all let a job in when it was kept; then something was taken from each but one.
struct LostTrusts {
    workshop: Workshop,
    admin: String,
    /// Suspended, deleted, narrowed, deleted with its account; and one that nothing happened to.
    trusts: [String; 5],
    /// A token that was issued and not used before the store went back.
    old: String,
}

impl LostTrusts {
    fn of(home: &Home) -> Self {
        let (admin, workshop) = (home.init(), workshop());
        let server = home.serve_unlimited();
        let (robot, _, _) = account(&server, &admin, "robot");
        let (leaver, _, _) = account(&server, &admin, "leaver");
        let trust = |name: &str, account: &str| {
            let body = json!({
                "name": name, "kind": "github", "issuer": ISSUER, "audience": AUDIENCE, "serviceAccountId": account,
                "claims": [{ "claim": "repository_id", "value": "74" }], "jwks": workshop.key_set(),
            });
            id(
                &done(&server, &admin, "POST", "/workload-trusts", &body),
                "workloadTrust",
            )
        };
        let trusts = [
            trust("suspended", &robot),
            trust("deleted", &robot),
            trust("narrowed", &robot),
            trust("of the leaver", &leaver),
            trust("untouched", &robot),
        ];
        for (nth, trust) in trusts.iter().enumerate() {
            let token = job(&workshop, &format!("first-{nth}"), now_secs());
            let (status, answer) = exchange(&server, trust, &token);
            assert_eq!(status, 200, "{answer}");
        }
        server.stop();
        keep(home);
        let server = home.serve_unlimited();
        let path = |trust: &str| format!("/workload-trusts/{trust}");
        let change = |trust: &str, body: &Value| done(&server, &admin, "PATCH", &path(trust), body);
        change(&trusts[0], &json!({ "suspended": true }));
        done(&server, &admin, "DELETE", &path(&trusts[1]), &Value::Null);
        let other = json!({ "claims": [{ "claim": "repository_id", "value": "75" }] });
        change(&trusts[2], &other);
        let gone = format!("/service-accounts/{leaver}");
        done(&server, &admin, "DELETE", &gone, &Value::Null);
        server.stop();
        sign(home);
        go_back(home);
        let old = job(&workshop, "old", now_secs());
        Self {
            workshop,
            admin,
            trusts,
            old,
        }
    }

    /// A token that is issued only now: its second lies ahead of every instant until now.
    fn new_job(&self, jti: &str) -> String {
        job(&self.workshop, jti, now_secs() + 1)
    }
}

#[track_caller]
fn is_refused(server: &Server, trust: &str, token: &str) {
    let (status, answer) = exchange(server, trust, token);
    assert_eq!(
        (status, &answer["error"]),
        (400, &json!("invalid_grant")),
        "{answer}"
    );
}

/// Proves EN-4, WO-5.
#[test]
fn a_trust_that_was_taken_away_in_what_was_lost_lets_nobody_in_by_itself() {
    for home in homes("lost_trusts") {
        let lost = LostTrusts::of(&home);
        let said = home.run(&["store", "accept", "--lost", "--yes"]);
        let [suspended, deleted, narrowed, leavers, untouched] = &lost.trusts;
        for (trust, how, done) in [
            (suspended, "suspended", "suspended"),
            (deleted, "deleted", "suspended; delete it by hand"),
            (
                narrowed,
                "narrowed",
                "suspended; change it by hand before it is let in",
            ),
            (leavers, "deleted", "suspended; delete it by hand"),
        ] {
            let named = format!("workload_trust {trust} ({how} at");
            let line = said.lines().find(|line| line.contains(&named));
            let line = line.unwrap_or_else(|| panic!("{named} is missing from {said}"));
            assert!(line.ends_with(&format!(": {done}")), "{line}");
        }
        assert!(!said.contains(untouched), "nothing was taken from it: {said}");
        assert_eq!(home.run(&["store", "check"]), "the store is whole\n");

        let server = home.serve_unlimited();
        for (nth, trust) in [suspended, deleted, narrowed, leavers].into_iter().enumerate() {
            let path = format!("/workload-trusts/{trust}");
            let (_, shown) = call(&server, &lost.admin, "GET", &path, "");
            assert_eq!(shown["workloadTrust"]["suspended"], true, "{shown}");
            is_refused(&server, trust, &lost.new_job(&format!("again-{nth}")));
        }
        // Which tokens were exchanged in what was lost is forgotten, so that none of then serves.
        is_refused(&server, untouched, &lost.old);
        let (status, answer) = exchange(&server, untouched, &lost.new_job("new"));
        assert_eq!(status, 200, "{answer}");
        server.stop();
        sign(&home);
        assert_eq!(home.run(&["store", "check"]), "the store is whole\n");
    }
}

/// Proves EN-4, RH-1.
#[test]
fn every_trust_is_held_back_where_nobody_can_say_what_was_lost() {
    for home in homes("lost_all_trusts") {
        let lost = LostTrusts::of(&home);
        std::fs::remove_file(home.path("keys/ends.jsonl")).unwrap();
        let said = home.run(&["store", "accept", "--lost", "--yes"]);
        let admin = said.split_whitespace().find(|word| word.starts_with("prov_sat_"));
        let admin = admin.unwrap();
        let server = home.serve_unlimited();
        for (nth, trust) in lost.trusts.iter().enumerate() {
            is_refused(&server, trust, &lost.new_job(&format!("again-{nth}")));
        }
        let held = |kind: &str| call(&server, admin, "GET", &format!("/restore/held?kind={kind}"), "").1;
        let listed = held("workload_trust");
        assert_eq!(listed["total"], 5, "{listed}");
        // One alone is not let in while its account is held; with the account it is.
        let untouched = &lost.trusts[4];
        let (_, shown) = call(
            &server,
            admin,
            "GET",
            &format!("/workload-trusts/{untouched}"),
            "",
        );
        let robot = shown["workloadTrust"]["serviceAccountId"].as_str().unwrap();
        let release = |ids: Value| {
            let body = json!({ "ids": ids, "confirm": true }).to_string();
            call(&server, admin, "POST", "/restore/release", &body)
        };
        let (status, refusal) = release(json!([untouched]));
        assert_eq!(status, 409, "{refusal}");
        let (status, released) = release(json!([untouched, robot]));
        assert_eq!(status, 200, "{released}");
        assert_eq!(released["workloadTrustIds"], json!([untouched]));
        assert_eq!(released["serviceAccountIds"], json!([robot]));
        is_refused(&server, untouched, &lost.old);
        let (status, answer) = exchange(&server, untouched, &lost.new_job("new"));
        assert_eq!(status, 200, "{answer}");
        for (nth, trust) in lost.trusts[..4].iter().enumerate() {
            is_refused(&server, trust, &lost.new_job(&format!("still-{nth}")));
        }
        assert_eq!(held("workload_trust")["total"], 4);
        server.stop();
        assert_eq!(home.run(&["store", "check"]), "the store is whole\n");
    }
}
