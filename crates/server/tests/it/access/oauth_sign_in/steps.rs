//! The way from a client's request to its code, with a provider that is believed.

use super::liar::{LyingProvider, challenge};
use super::visitor::{PageView, Visitor};
use super::*;
use crate::support::each;
use std::sync::Arc;

/// An application with a provider, a client, and Ada, an admin.
pub struct Stage {
    pub app: App,
    pub liar: LyingProvider,
    pub client: String,
    pub ada: String,
}

pub async fn stage(first: &App) -> Stage {
    stage_as(first, Some("admin")).await
}

pub async fn stage_as(first: &App, role: Option<&str>) -> Stage {
    let liar = LyingProvider::start().await;
    let app = with_providers(first, vec![declared(first, &liar.issuer, "provost")]);
    let client = client(&app, "Notes", &[REDIRECT], &[]).await;
    let ada = user(&app, "ada@acme.example", role).await;
    Stage {
        app,
        liar,
        client,
        ada,
    }
}

impl Stage {
    /// Signs somebody in; returns the target of the page that asks for consent.
    pub async fn signed_in(&self, visitor: &mut Visitor, subject: &str) -> String {
        let asked = visitor.begin(&self.app, &self.client).await;
        let target = self.liar.answers(&self.app, &asked, subject);
        visitor.return_to(&self.app, &target).await
    }

    /// Signs somebody in at the provider; returns what they see here.
    pub async fn signing_in(&self, visitor: &mut Visitor, subject: &str) -> PageView {
        let asked = visitor.begin(&self.app, &self.client).await;
        let target = self.liar.answers(&self.app, &asked, subject);
        visitor.get(&self.app, &target).await
    }

    /// Signs Ada in; returns the page that asks for consent.
    pub async fn asked(&self, visitor: &mut Visitor) -> PageView {
        let target = self.signed_in(visitor, "ada").await;
        let page = visitor.get(&self.app, &target).await;
        page.page(200, "Allow access");
        page
    }
}

#[test]
fn who_allows_sends_a_code_to_the_client() {
    each("sign_in_allow", |first: Arc<App>| async move {
        let stage = stage(&first).await;
        let mut visitor = Visitor::default();
        let asked = visitor.begin(&stage.app, &stage.client).await;
        assert_eq!(parameter(&asked, "response_type").as_deref(), Some("code"));
        assert_eq!(parameter(&asked, "scope").as_deref(), Some("openid email"));
        assert_eq!(
            parameter(&asked, "redirect_uri").as_deref(),
            Some("http://127.0.0.1:8080/oauth/callback")
        );
        let target = stage.liar.answers(&stage.app, &asked, "ada");
        let target = visitor.return_to(&stage.app, &target).await;
        // What was sent to the provider's token endpoint proves the request (PKCE), and the secret is encoded.
        let heard = format!("/?{}", stage.liar.said.lock().unwrap().heard);
        let verifier = parameter(&heard, "code_verifier").unwrap();
        assert_eq!(Some(challenge(&verifier)), parameter(&asked, "code_challenge"));
        assert_eq!(parameter(&heard, "code").as_deref(), Some("a-code"));

        // The page can be loaded again.
        for _ in 0..2 {
            let page = visitor.get(&stage.app, &target).await;
            page.page(200, "Allow access");
            for words in [
                "Notes",
                "Ada Lovelace",
                "(admin)",
                "far-reaching",
                "Audit log",
                "app.example",
            ] {
                assert!(page.body.contains(words), "{words}: {}", page.body);
            }
        }
        let page = visitor.get(&stage.app, &target).await;
        let code = visitor.answer(&stage.app, &page, "allow").await.code();
        assert!(code.len() >= 43, "{code}");

        let given = audited(&stage.app, "oauth.consent.given").await;
        assert_eq!(given.len(), 1);
        let given = given[0].to_string();
        assert!(
            given.contains(&stage.ada) && given.contains(&stage.client),
            "{given}"
        );
        assert!(!given.contains(&code) && !given.contains("s t/a&te"), "{given}");
        assert_eq!(audited(&stage.app, "oauth.user.signed_in").await.len(), 1);
    });
}

/// Proves SI-5.
#[test]
fn unknown_scopes_are_passed_over_and_the_page_says_what_is_given() {
    each("sign_in_unknown_scopes", |first: Arc<App>| async move {
        let stage = stage(&first).await;
        let mut visitor = Visitor::default();
        let changes = [("scope", Some("openid policies:read offline_access"))];
        let target = authorize(&stage.client, &changes);
        let seen = visitor.get(&stage.app, &target).await;
        let asked = seen.to(&stage.liar.issuer).to_owned();
        let target = stage.liar.answers(&stage.app, &asked, "ada");
        let target = visitor.return_to(&stage.app, &target).await;
        let page = visitor.get(&stage.app, &target).await;
        page.page(200, "Allow access");
        let left_out = "what this server does not know";
        assert!(page.body.contains(left_out), "{}", page.body);
        assert!(!page.body.contains("offline_access"), "{}", page.body);
        visitor.answer(&stage.app, &page, "allow").await.code();
        let given = audited(&stage.app, "oauth.consent.given").await[0].to_string();
        assert!(given.contains("policies:read"), "{given}");
        for scope in ["openid", "offline_access", "audit:read"] {
            assert!(!given.contains(scope), "{given}");
        }
        let page = stage.asked(&mut visitor).await;
        assert!(!page.body.contains(left_out), "{}", page.body);
    });
}

#[test]
fn who_denies_sends_an_error() {
    each("sign_in_deny", |first: Arc<App>| async move {
        let stage = stage(&first).await;
        let mut visitor = Visitor::default();
        let page = stage.asked(&mut visitor).await;
        let seen = visitor.answer(&stage.app, &page, "deny").await;
        seen.error("access_denied");
        assert_eq!(parameter(seen.to(""), "state").as_deref(), Some("s t/a&te"));
        assert_eq!(audited(&stage.app, "oauth.consent.given").await.len(), 0);
    });
}

/// Proves SI-4.
#[test]
fn any_server_of_the_store_goes_on() {
    each("sign_in_replicas", |first: Arc<App>| async move {
        let stage = stage(&first).await;
        let other = || with_providers(&first, vec![declared(&first, &stage.liar.issuer, "provost")]);
        let mut visitor = Visitor::default();
        let asked = visitor.begin(&stage.app, &stage.client).await;
        let target = stage.liar.answers(&stage.app, &asked, "ada");
        let target = visitor.return_to(&other(), &target).await;
        let page = visitor.get(&other(), &target).await;
        let code = visitor.answer(&other(), &page, "allow").await.code();
        // An answer that got lost is given again at any of them, and makes no other code (SI-4).
        for app in [&stage.app, &other()] {
            assert_eq!(visitor.answer(app, &page, "allow").await.code(), code);
        }
        assert_eq!(audited(&stage.app, "oauth.consent.given").await.len(), 1);
        // What would be another one now, or cannot be used any more, is not.
        let path = format!("/directory/users/{}", stage.ada);
        let role = |role: &str| json!({ "permissionRole": role });
        stage.app.write("PATCH", &path, role("viewer")).await.ok();
        let again = visitor.answer(&stage.app, &page, "allow").await;
        again.page(409, "This was answered already");
        stage.app.write("PATCH", &path, role("admin")).await.ok();
        assert_eq!(visitor.answer(&stage.app, &page, "allow").await.code(), code);
        first.advance(60);
        for app in [&stage.app, &other()] {
            let again = visitor.answer(app, &page, "allow").await;
            again.page(409, "This was answered already");
        }
        assert_eq!(audited(&stage.app, "oauth.consent.given").await.len(), 1);
    });
}

/// Proves SI-4.
#[test]
fn a_consent_makes_one_code_however_often_it_is_sent_at_once() {
    each("sign_in_race", |first: Arc<App>| async move {
        let stage = stage(&first).await;
        let other = with_providers(&first, vec![declared(&first, &stage.liar.issuer, "provost")]);
        let mut visitor = Visitor::default();
        let page = stage.asked(&mut visitor).await;
        let (apps, mut visitors) = ([&stage.app, &other], vec![visitor; 8]);
        let page = &page;
        let answers = visitors
            .iter_mut()
            .enumerate()
            .map(|(place, visitor)| visitor.answer(apps[place % 2], page, "allow"));
        let answers: Vec<PageView> = futures_join(answers).await;
        let codes: std::collections::BTreeSet<String> = answers.iter().map(PageView::code).collect();
        assert_eq!(codes.len(), 1, "{codes:?}");
        assert_eq!(audited(&stage.app, "oauth.consent.given").await.len(), 1);
    });
}

/// Polls all of them until each is ready.
async fn futures_join<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut futures: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(move |context| {
        let mut is_pending = false;
        for (future, ready) in &mut futures {
            if ready.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(value) => *ready = Some(value),
                    std::task::Poll::Pending => is_pending = true,
                }
            }
        }
        if is_pending {
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(futures.iter_mut().filter_map(|(_, ready)| ready.take()).collect())
    })
    .await
}

/// Proves SI-2.
#[test]
fn a_step_belongs_to_one_browser_one_purpose_and_ten_minutes() {
    each("sign_in_browser", |first: Arc<App>| async move {
        let gone = "This sign-in is not valid any more";
        let stage = stage(&first).await;
        let mut visitor = Visitor::default();
        let asked = visitor.begin(&stage.app, &stage.client).await;
        let target = stage.liar.answers(&stage.app, &asked, "ada");
        let ours = parameter(&asked, "state").unwrap();

        // Nobody's browser, and that of somebody who began for themselves: a planted answer signs nobody in.
        let mut other = Visitor::default();
        other.get(&stage.app, &target).await.page(400, gone);
        other.begin(&stage.app, &stage.client).await;
        other.get(&stage.app, &target).await.page(400, gone);
        // Two cookies of the name are nobody's.
        let mut twice = visitor.clone();
        twice.cookies.extend(visitor.cookies.clone());
        twice.get(&stage.app, &target).await.page(400, gone);

        // A changed state, everywhere; another purpose.
        for place in (0..ours.len()).step_by(7).chain([ours.len() - 1]) {
            let mut changed = ours.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            let target = target.replace(&query(&[("state", &ours)]), &query(&[("state", &changed)]));
            visitor.get(&stage.app, &target).await.page(400, gone);
        }
        for state in ["", "sealing-1.", "sealing-9.AAAA", &"A".repeat(5000)] {
            let target = format!("/oauth/callback?{}", query(&[("code", "a"), ("state", state)]));
            visitor.get(&stage.app, &target).await.page(400, gone);
        }
        let consent = format!("/oauth/consent?{}", query(&[("question", &ours)]));
        visitor.get(&stage.app, &consent).await.page(400, gone);

        // Ten minutes for each step, to the second.
        let target = visitor.return_to(&stage.app, &target).await;
        let question = parameter(&target, "question").unwrap();
        let callback = format!(
            "/oauth/callback?{}",
            query(&[("code", "a"), ("state", &question)])
        );
        visitor.get(&stage.app, &callback).await.page(400, gone);
        other.get(&stage.app, &target).await.page(400, gone);
        let page = visitor.get(&stage.app, &target).await;
        assert_eq!(other.answer(&stage.app, &page, "allow").await.status, 400);
        first.advance(599);
        visitor.get(&stage.app, &target).await.page(200, "Allow access");
        first.advance(1);
        visitor.get(&stage.app, &target).await.page(400, gone);
        visitor.answer(&stage.app, &page, "allow").await.page(400, gone);
        visitor.answer(&stage.app, &page, "deny").await.page(400, gone);
        visitor.begin(&stage.app, &stage.client).await;
        let old = stage.liar.target(&asked);
        visitor.get(&stage.app, &old).await.page(400, gone);
        assert_eq!(audited(&stage.app, "oauth.consent.given").await.len(), 0);
    });
}

/// Proves SI-2.
#[test]
fn an_answer_comes_from_a_page_of_this_server() {
    each("sign_in_forms", |first: Arc<App>| async move {
        let stage = stage(&first).await;
        let mut visitor = Visitor::default();
        let page = stage.asked(&mut visitor).await;
        for site in ["cross-site", "same-site", "none"] {
            visitor.headers = vec![("sec-fetch-site", site)];
            assert_eq!(
                visitor.answer(&stage.app, &page, "allow").await.status,
                400,
                "{site}"
            );
        }
        visitor.headers = vec![("content-type", "text/plain")];
        assert_eq!(visitor.answer(&stage.app, &page, "allow").await.status, 400);
        visitor.headers.clear();
        let whole = page.hidden();
        let whole: Vec<_> = whole.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        for (changes, decision) in [
            (vec![], ""),
            (vec![], "maybe"),
            (vec![("question", "")], "allow"),
            (vec![("organization", "umbrella")], "allow"),
            (vec![("scopes", "")], "allow"),
        ] {
            let mut form = whole.clone();
            for (name, value) in changes {
                form.retain(|(known, _)| *known != name);
                form.push((name, value));
            }
            form.push(("decision", decision));
            let seen = visitor.post(&stage.app, "/oauth/consent", &form).await;
            assert_eq!(seen.status, 400, "{form:?}");
        }
        for name in ["question", "organization", "scopes", "decision"] {
            let mut form = whole.clone();
            form.push(("decision", "allow"));
            let twice = *form.iter().find(|(known, _)| *known == name).unwrap();
            form.push(twice);
            assert_eq!(
                visitor.post(&stage.app, "/oauth/consent", &form).await.status,
                400,
                "{name}"
            );
        }
        let mut form = whole.clone();
        let long = "x".repeat(17_000);
        form.push(("more", &long));
        assert_eq!(
            visitor.post(&stage.app, "/oauth/consent", &form).await.status,
            413
        );
        visitor.headers = vec![("sec-fetch-site", "same-origin")];
        visitor.answer(&stage.app, &page, "allow").await.code();
    });
}

/// Proves SI-5.
#[test]
fn nobody_gives_more_than_the_page_showed_and_the_user_has() {
    each("sign_in_rights", |first: Arc<App>| async move {
        let stage = stage_as(&first, Some("viewer")).await;
        let mut visitor = Visitor::default();
        let page = stage.asked(&mut visitor).await;
        let scopes = |page: &PageView| {
            page.hidden()
                .into_iter()
                .find(|(name, _)| name == "scopes")
                .unwrap()
                .1
        };
        assert_eq!(scopes(&page), "policies:read");
        assert!(page.body.contains("Asked for, and not possible with your role"));
        // A better role since does not widen what was shown.
        let path = format!("/directory/users/{}", stage.ada);
        let role = |role: Value| json!({ "permissionRole": role });
        stage.app.write("PATCH", &path, role("admin".into())).await.ok();
        visitor.answer(&stage.app, &page, "allow").await.code();
        let given = audited(&stage.app, "oauth.consent.given").await[0].to_string();
        assert!(
            given.contains("policies:read") && !given.contains("backtest"),
            "{given}"
        );
        // A worse one narrows it, down to nothing.
        let page = stage.asked(&mut visitor).await;
        assert_eq!(scopes(&page), "audit:read policies:backtest policies:read");
        stage.app.write("PATCH", &path, role(Value::Null)).await.ok();
        let seen = visitor.answer(&stage.app, &page, "allow").await;
        seen.page(403, "Your account has no role");
        stage
            .app
            .write("PATCH", &path, role("operator".into()))
            .await
            .ok();
        let page = stage.asked(&mut visitor).await;
        assert_eq!(scopes(&page), "audit:read policies:backtest policies:read");
        suspend(&stage.app, &stage.ada).await;
        let seen = visitor.answer(&stage.app, &page, "allow").await;
        seen.page(403, "Your account is suspended");
        assert_eq!(audited(&stage.app, "oauth.consent.given").await.len(), 1);
    });
}

#[test]
fn strangers_and_the_suspended_are_told_whom_to_ask() {
    each("sign_in_strangers", |first: Arc<App>| async move {
        let stage = stage_as(&first, None).await;
        let mut visitor = Visitor::default();
        let come = async |visitor: &mut Visitor, subject: &str| {
            let asked = visitor.begin(&stage.app, &stage.client).await;
            let target = stage.liar.answers(&stage.app, &asked, subject);
            visitor.get(&stage.app, &target).await
        };
        let seen = come(&mut visitor, "nobody").await;
        seen.page(403, "You have no account here");
        assert!(
            !seen.body.contains(&stage.app.organization),
            "no details for strangers: {}",
            seen.body
        );
        come(&mut visitor, "ada")
            .await
            .page(403, "Your account has no role");
        suspend(&stage.app, &stage.ada).await;
        come(&mut visitor, "ada")
            .await
            .page(403, "Your account is suspended");
        // An address that is not verified is nobody's.
        let asked = visitor.begin(&stage.app, &stage.client).await;
        user(&stage.app, "eve@acme.example", Some("admin")).await;
        let mut claims = stage.liar.claims(&stage.app, &asked, "eve");
        claims["email_verified"] = false.into();
        stage.liar.says(&json!({ "alg": "ES256", "kid": "one" }), &claims);
        let seen = visitor.get(&stage.app, &stage.liar.target(&asked)).await;
        seen.page(403, "You have no account here");
    });
}

#[test]
fn a_user_of_several_organizations_chooses() {
    each("sign_in_several", |first: Arc<App>| async move {
        let (key, admin) = first.other_organization("Umbrella").await;
        let liar = LyingProvider::start().await;
        let mut provider = declared(&first, &liar.issuer, "provost");
        provider.organizations.push(OrganizationId::parse(&key).unwrap());
        let app = with_providers(&first, vec![provider]);
        let umbrella = app.view_of(key.clone(), admin);
        user(&app, "ada@acme.example", Some("admin")).await;
        user(&umbrella, "ada@acme.example", Some("viewer")).await;
        // A client that one organization registered is for that one; nobody chooses.
        let notes = client(&umbrella, "Notes", &[REDIRECT], &[]).await;
        let stage = Stage {
            app,
            liar,
            client: notes,
            ada: String::new(),
        };
        let mut visitor = Visitor::default();
        let page = stage.asked(&mut visitor).await;
        assert!(page.body.contains("(viewer)") && page.body.contains(&key));
        visitor.answer(&stage.app, &page, "allow").await.code();
        assert_eq!(audited(&umbrella, "oauth.consent.given").await.len(), 1);
        assert_eq!(audited(&stage.app, "oauth.consent.given").await.len(), 0);
    });
}

/// Proves SI-3.
#[test]
fn several_providers_are_chosen_from() {
    each("sign_in_choice", |first: Arc<App>| async move {
        let (one, two) = (LyingProvider::start().await, LyingProvider::start().await);
        let mut other = declared(&first, &two.issuer, "provost");
        other.name = "<b>Other</b> \u{202e}Login".into();
        let app = with_providers(&first, vec![declared(&first, &one.issuer, "provost"), other]);
        let client = client(&app, "Notes", &[REDIRECT], &[]).await;
        user(&app, "ada@acme.example", Some("admin")).await;
        let mut visitor = Visitor::default();
        let page = visitor.get(&app, &authorize(&client, &[])).await;
        page.page(200, "Sign in");
        assert!(
            page.body.contains("&lt;b&gt;Other&lt;/b&gt; \\u202eLogin"),
            "{}",
            page.body
        );
        let links = page.links();
        assert_eq!(links.len(), 2);
        // Another browser has no use of them, and there is no third one.
        let gone = "This sign-in is not valid any more";
        Visitor::default().get(&app, &links[0]).await.page(400, gone);
        let third = links[0].replace("provider=0", "provider=2");
        visitor.get(&app, &third).await.page(400, gone);
        let at_one = visitor.get(&app, &links[0]).await.to(&one.issuer).to_owned();
        let at_two = visitor.get(&app, &links[1]).await.to(&two.issuer).to_owned();

        // Mix-up: what one provider says does not answer what another was asked, however it is addressed.
        let right = two.answers(&app, &at_two, "ada");
        let state = |url: &str| query(&[("state", &parameter(url, "state").unwrap())]);
        let mixed = right.replace(&state(&at_two), &state(&at_one));
        visitor
            .get(&app, &mixed)
            .await
            .page(400, "The sign-in cannot be trusted");
        visitor.return_to(&app, &right).await;
    });
}

/// IL-2: consent that is open when a link is taken away gives nothing.
/// Proves IL-2.
#[test]
fn whose_link_was_taken_away_allows_nothing() {
    each("sign_in_unlinked", |first: Arc<App>| async move {
        let stage = stage(&first).await;
        let mut visitor = Visitor::default();
        let page = stage.asked(&mut visitor).await;
        let taken = json!({ "issuer": stage.liar.issuer, "subject": "ada", "confirm": true });
        stage
            .app
            .write("POST", "/directory/identity-links/remove", taken)
            .await
            .ok();
        let answer = visitor.answer(&stage.app, &page, "allow").await;
        answer.page(403, "You have no account here");
        assert_eq!(audited(&stage.app, "oauth.consent.given").await.len(), 0);
        // Nor is she linked again by her name alone.
        let target = stage.signing_in(&mut Visitor::default(), "ada").await;
        target.page(403, "An administrator has to link you");
        assert_eq!(audited(&stage.app, "oauth.user.withheld").await.len(), 1);
        stage.app.advance(1);
        let allowed = json!({ "issuer": stage.liar.issuer, "userIds": [stage.ada], "expiresInSeconds": 60 });
        stage
            .app
            .write("POST", "/directory/identity-links/allow", allowed)
            .await
            .ok();
        stage.app.advance(1);
        stage.asked(&mut Visitor::default()).await;
    });
}

#[test]
fn somebody_new_under_the_name_of_a_user_who_was_renamed_signs_nobody_in() {
    each("sign_in_renamed", |first: Arc<App>| async move {
        let stage = stage(&first).await;
        let boss = user(&stage.app, "boss@acme.example", Some("admin")).await;
        // Somebody gives the admin's account the name that the provider knows Eve by.
        let taken = json!({ "loginName": "eve@acme.example" });
        stage
            .app
            .write("PATCH", &format!("/directory/users/{boss}"), taken)
            .await
            .ok();
        let seen = stage.signing_in(&mut Visitor::default(), "eve").await;
        seen.page(403, "An administrator has to link you");
        assert_eq!(audited(&stage.app, "oauth.user.signed_in").await.len(), 0);
    });
}
