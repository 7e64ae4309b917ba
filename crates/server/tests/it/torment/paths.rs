//! Only what is declared answers: words that scanners try, at every place where a route could hide (R42; WFC 310).
//!
//! Requests come with the admin's token, so that nothing is hidden by a 401.

use super::run;
use crate::areas_beside::every_area;
use crate::samples::{self, Target};
use crate::support::App;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The first part of a path that a scanner tries.
const WORDS: &str = "actuator admin administrator api api-docs apidocs app application asset assets auth authorize \
    backup backups beta bin cache callback cgi-bin ci client config configuration conf console control core cron \
    dashboard data database db debug default demo dev devel diag diagnostics docs download dump echo elmah env error \
    errors eval events exec export favicon.ico feature-flags files flags flush gateway graphiql graphql grpc health \
    healthcheck healthz heap heapdump help hidden home hooks import index info init inspect install internal jmx job \
    jobs jolokia keys license livez login logs logout maintenance manage management manager mcp me metadata metrics \
    migrate migrations mock monitor monitoring new node oauth old openapi openapi.json openapi.yaml operations ops \
    panel password pprof private profile profiler prometheus proxy public queue queues raw readyz redoc register \
    reload replay reset rest restart root rpc run sandbox script search secret secrets security seed server \
    server-status service session sessions settings setup shell shutdown signin signup soap sql stack staging stats \
    status stop store supervisor support swagger swagger-ui swagger.json sync sysadmin system task tasks temp test \
    tests threaddump threads tmp token tokens tool tools trace tracing ui upload uploads user users v0 v1 v2 v3 vars \
    version wasm web webhook webhooks whoami ws xmlrpc .aws .DS_Store .env .git .gitignore .hg .htaccess .htpasswd \
    .ssh .svn .vscode .well-known wp-admin wp-login.php phpmyadmin phpinfo.php";

/// What stands behind a word.
const SUFFIXES: [&str; 14] = [
    "",
    "/",
    "/config",
    "/HEAD",
    "/pprof",
    "/heap",
    "/env",
    "/health",
    "/index.html",
    ".json",
    ".php",
    ".bak",
    "/..;/x",
    "%2f",
];

const METHODS: [&str; 9] = [
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT",
];

/// Places where a route could hide.
fn prefixes(app: &App) -> Vec<String> {
    vec![
        String::new(),
        "/api".to_owned(),
        "/api/headless".to_owned(),
        "/api/headless/v1".to_owned(),
        "/api/headless/v1/organizations".to_owned(),
        app.path(""),
        app.path("/policies"),
        app.path("/audit"),
        app.path(&format!("/service-accounts/{}", app.admin_id)),
        "/.well-known".to_owned(),
        "/oauth".to_owned(),
        "/mcp".to_owned(),
    ]
}

/// Every declared path with its methods: the operations', and those of the protocols beside them.
fn declared(app: &App) -> BTreeMap<Vec<String>, BTreeSet<&'static str>> {
    let mut declared: BTreeMap<Vec<String>, BTreeSet<&'static str>> = BTreeMap::new();
    let parts = |path: &str| path.split('/').map(str::to_owned).collect::<Vec<_>>();
    for entry in app.kernel.registry.entries() {
        let path = parts(&app.path(entry.meta.path));
        let methods = declared.entry(path).or_default();
        methods.insert(entry.meta.method.as_str());
        if entry.meta.method.as_str() == "GET" {
            methods.insert("HEAD");
        }
    }
    for (path, methods) in BESIDE {
        declared.insert(parts(path), methods.iter().copied().collect());
    }
    declared
}

/// Routes that are no operations. A new one is to be named here.
const BESIDE: [(&str, &[&str]); 7] = [
    ("/", &["GET", "HEAD"]),
    ("/docs", &["GET", "HEAD"]),
    ("/docs/audit", &["GET", "HEAD"]),
    ("/healthz", &["GET", "HEAD"]),
    ("/readyz", &["GET", "HEAD"]),
    ("/.well-known/provost-keys.json", &["GET", "HEAD"]),
    ("/api/headless/v1/openapi.json", &["GET", "HEAD"]),
];

/// Routes of protocols that have answers of their own, which their own tests know.
const PROTOCOLS: [&str; 6] = [
    "/mcp",
    "/mcp/",
    "/oauth/token",
    "/oauth/revoke",
    "/oauth/authorize",
    "/oauth/callback",
];

/// Says whether a template is that of a path: `{name}` is one part, `{*name}` is all that follow, and more may follow.
fn fits(template: &[String], path: &[&str]) -> bool {
    match (template.first(), path.first()) {
        (None, None) => true,
        (Some(part), Some(given)) if part.starts_with("{*") => {
            !given.is_empty() && (1..=path.len()).any(|taken| fits(&template[1..], &path[taken..]))
        }
        (Some(part), Some(given)) => {
            (part == given || (part.starts_with('{') && !given.is_empty()))
                && fits(&template[1..], &path[1..])
        }
        _ => false,
    }
}

#[test]
fn only_declared_routes_answer() {
    let whole = run::count(600);
    run::each_of(every_area(), "paths", &run::roomy(), |app: Arc<App>| async move {
        let declared = declared(&app);
        let words: Vec<&str> = WORDS.split_whitespace().collect();
        let prefixes = prefixes(&app);
        // Any number of them spreads over every word, suffix and prefix: the three counts share no factor.
        let all = words.len() * SUFFIXES.len() * prefixes.len();
        let before = samples::state(&app).await;
        let (mut asked, mut answered, mut refused) = (0_u64, 0_u64, 0_u64);
        for n in 0..usize::try_from(whole).unwrap().min(all) {
            let place = n * all / usize::try_from(whole).unwrap().min(all);
            let (word, rest) = (words[place % words.len()], place / words.len());
            let (suffix, rest) = (SUFFIXES[rest % SUFFIXES.len()], rest / SUFFIXES.len());
            let path = format!("{}/{word}{suffix}", prefixes[rest % prefixes.len()]);
            if PROTOCOLS.contains(&path.as_str()) {
                continue;
            }
            let parts: Vec<&str> = path.split('/').collect();
            let methods: BTreeSet<&str> = declared
                .iter()
                .filter(|(template, _)| fits(template, &parts))
                .flat_map(|(_, methods)| methods.iter().copied())
                .collect();
            for method in METHODS {
                let reply = app.request(method, "").at(&path).send().await;
                let status = reply.status.as_u16();
                asked += 1;
                if methods.contains(method) {
                    answered += 1;
                    assert!(status < 500 && status != 405, "{method} {path}: {}", reply.text());
                } else if method == "OPTIONS" && !methods.is_empty() {
                    assert_eq!(status, 204, "{method} {path}");
                } else {
                    refused += 1;
                    let expected = if methods.is_empty() { 404 } else { 405 };
                    assert_eq!(status, expected, "{method} {path}: {}", reply.text());
                }
            }
        }
        // What answered were reads and refusals: there was no key and no reason.
        assert_eq!(samples::state(&app).await, before);
        assert!(refused > answered, "{asked} {answered} {refused}");
        json!({ "paths": whole.min(all as u64), "requests": asked, "declared": answered, "refused": refused })
    });
}

#[test]
fn every_declared_path_is_known_to_the_scan() {
    run::each_of(
        every_area(),
        "paths_known",
        &run::roomy(),
        |app: Arc<App>| async move {
            let declared = declared(&app);
            let mut known = 0;
            for entry in app.kernel.registry.entries() {
                let path = app.path(&samples::path(entry.meta, &Target::absent()));
                let path = path.split('?').next().unwrap();
                let parts: Vec<&str> = path.split('/').collect();
                let method = entry.meta.method.as_str();
                let fit = |(template, methods): (&Vec<String>, &BTreeSet<&str>)| {
                    fits(template, &parts) && methods.contains(method)
                };
                assert!(declared.iter().any(fit), "{method} {path}");
                known += 1;
            }
            for (path, methods) in BESIDE {
                let reply = app.request(methods[0], "").at(path).anonymous().send().await;
                assert_ne!(reply.status.as_u16(), 404, "{path}");
            }
            json!({ "operations": known })
        },
    );
}
