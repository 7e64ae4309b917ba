//! What the pages say, whatever a client calls itself.

use super::steps::stage;
use super::visitor::Visitor;
use super::*;
use crate::support::each;
use std::sync::Arc;

/// Proves SI-6.
#[test]
fn a_name_is_text_and_nothing_else() {
    each("sign_in_names", |first: Arc<App>| async move {
        let stage = stage(&first).await;
        for (name, shown) in [
            (
                "<script>alert(1)</script>",
                "&lt;script&gt;alert(1)&lt;/script&gt;",
            ),
            (
                "\"><img src=x onerror=alert(1)>",
                "&quot;&gt;&lt;img src=x onerror=alert(1)&gt;",
            ),
            ("Provost \u{2067}eman", "Provost \\u2067eman"),
            (
                "</title></style></main>",
                "&lt;/title&gt;&lt;/style&gt;&lt;/main&gt;",
            ),
        ] {
            // A name that cannot be registered is not shown either.
            let body = json!({
                "name": name, "redirectUris": [REDIRECT], "grantTypes": ["authorization_code"],
                "tokenEndpointAuthMethod": "none", "scopes": ["policies:read"],
            });
            let made = stage.app.write("POST", "/mcp/clients", body).await;
            if !made.status.is_success() {
                continue;
            }
            let id = &made.json["id"];
            let mut visitor = Visitor::default();
            let asked = visitor.begin(&stage.app, id.as_str().unwrap()).await;
            let target = stage.liar.answers(&stage.app, &asked, "ada");
            let target = visitor.return_to(&stage.app, &target).await;
            let page = visitor.get(&stage.app, &target).await;
            assert!(page.body.contains(shown), "{}", page.body);
            assert!(!page.body.contains("<img") && !page.body.contains('\u{2067}'));
        }
    });
}

/// Proves SI-6.
#[test]
fn the_form_leads_to_the_client_and_nowhere_in_clear() {
    each("sign_in_policy", |first: Arc<App>| async move {
        let stage = stage(&first).await;
        let native = client(
            &stage.app,
            "Native",
            &["http://127.0.0.1/cb", "com.example.app:/cb"],
            &[],
        )
        .await;
        let mut visitor = Visitor::default();
        for (id, uri, expected) in [
            (&stage.client, REDIRECT, "form-action 'self' https:;"),
            (
                &native,
                "http://127.0.0.1:50123/cb",
                "form-action 'self' https: http://127.0.0.1:50123;",
            ),
            (
                &native,
                "com.example.app:/cb",
                "form-action 'self' https: com.example.app:;",
            ),
        ] {
            let target = authorize(id, &[("redirect_uri", Some(uri))]);
            let asked = visitor
                .get(&stage.app, &target)
                .await
                .to(&stage.liar.issuer)
                .to_owned();
            let target = stage.liar.answers(&stage.app, &asked, "ada");
            let target = visitor.return_to(&stage.app, &target).await;
            let page = visitor.get(&stage.app, &target).await;
            let policy = page.headers["content-security-policy"].to_str().unwrap();
            assert!(policy.contains(expected), "{policy}");
            let seen = visitor.answer(&stage.app, &page, "allow").await;
            seen.to(uri);
        }
    });
}
