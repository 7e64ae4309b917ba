//! What the family's published Terraform provider sends, against the running server: each type of resource from plan to destroy.
//!
//! The provider itself cannot be had where this runs, so that its traffic is replayed: the paths, headers and bodies of the client
//! contract, with each change planned twice, each write sent twice under one key as after a lost answer, and each record read again
//! as an empty plan and an import read it. What is answered is compared member by member, because Terraform stops at a value that is
//! not the one it sent.

mod definitions;

use serde_json::{Value, json};

use super::administrator::text;
use super::{Scene, sign_in};
use crate::compatibility::Table;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Answer, Connection, Request};
use crate::process;
use definitions::Policy;

const YES: &str = "yes";
/// The provider does it without asking the server, or the type has no such step.
const NONE: &str = "–";
const MANAGER: &str = "platform-team";
const INSTANCE: &str = "production";
const MODULE: &str = "package forge.content\n\ndefault match := {\"matched\": false}\n\nmatch := {\"matched\": true, \
                      \"reasonCode\": \"shell\"} if input.tool.id == \"shell\"\n";

pub fn run(scene: &Scene<'_>, is_recorded: bool) -> Outcome {
    let mut administrator = scene.administrator();
    let user = sign_in::person(&mut administrator)?;
    let group = administrator.post("directory/groups", json!({ "name": "Engineering" }))?;
    let group = text(&group, "/group/id")?;
    let skill = process::root().join("skills/provost-cli").display().to_string();
    process::output(&mut scene.command_line(&["skills", "publish", &skill, "--reason", "a test"]))?;
    let of_the_console = json!({ "id": "of-the-console", "name": "By hand", "enabled": true, "action": "allow",
        "evaluateOn": ["prompt"], "conditions": { "field": "request.prompt", "op": "contains", "value": "x" } });
    administrator.post("content-policies", json!({ "definition": of_the_console }))?;
    let scopes = ["policies:write", "resources:write", "resource_credentials:write"];
    let mut provider = Provider {
        connection: Connection::new(scene.server.address),
        base: scene.bootstrap.path(""),
        token: administrator.account("terraform", "admin", &scopes)?.token,
        calls: 0,
    };
    provider.starts()?;
    let mut table = Table::new(
        "Terraform",
        &[
            "type",
            "plan",
            "apply",
            "empty plan",
            "change",
            "import",
            "destroy",
        ],
        &[
            "How: `cargo xtask clients terraform --record`. The published provider could not be had, and \
             Terraform was not run: the traffic of the client contract is replayed over HTTP with the provider's headers. Each \
             policy is planned twice under two keys, whose answers must be equal, before each write; each write is sent twice under \
             one key, whose answers must be equal; every member that is sent must come back with its value, or be absent where it is null. \
             A dash: the provider asks the server for nothing there.",
            "Of the published provider's other five types of resource and seven data sources (the LLM gateway and devices) nothing is there.",
        ],
    );
    for (name, steps) in provider.records()?.into_iter().chain(provider.policies()?) {
        println!("    {name}");
        table.rows.push(
            std::iter::once(name.to_owned())
                .chain(steps.map(str::to_owned))
                .collect(),
        );
    }
    for name in provider.data_sources(&user, &group)? {
        println!("    {name}");
        let read = [name, YES, NONE, YES, NONE, NONE, NONE];
        table.rows.push(read.map(str::to_owned).into());
    }
    if is_recorded {
        table.write("terraform")?;
    }
    Ok(())
}

/// A type of resource and its six steps.
type Row = (&'static str, [&'static str; 6]);

struct Provider {
    connection: Connection,
    base: String,
    token: String,
    calls: u32,
}

impl Provider {
    fn send(
        &mut self,
        method: &'static str,
        path: &str,
        key: Option<&str>,
        body: Option<&Value>,
    ) -> Outcome<Answer> {
        let mut request = Request::new(method, format!("{}{path}", self.base), &self.token);
        let mut says = |name, text: &str| request.headers.push((name, text.to_owned()));
        says("User-Agent", "terraform-provider-forge/0.9.0");
        says("Accept", "application/json");
        says("Accept-Encoding", "gzip");
        says("X-Forge-Terraform-Manager", MANAGER);
        says("X-Forge-Terraform-Instance", INSTANCE);
        if let Some(key) = key {
            says("Idempotency-Key", key);
            says("X-Forge-Reason", "terraform reconciliation");
            says("X-Forge-Confirm", "true");
        }
        request.body = body.cloned();
        self.connection
            .send(&request)
            .map_err(|lost| Failure::new(format!("{method} {path}: {}", lost.why)))
    }

    /// Reads, and expects a status.
    fn reads(&mut self, path: &str, status: u16) -> Outcome<Value> {
        let answer = self.send("GET", path, None, None)?;
        expect(answer.status == status, || {
            format!("GET {path} answers {}", answer.summary())
        })?;
        answer.json()
    }

    /// Sends a write, and once more as if its answer had been lost; returns the answer.
    fn writes(
        &mut self,
        method: &'static str,
        path: &str,
        body: Option<&Value>,
        status: u16,
    ) -> Outcome<Value> {
        self.calls += 1;
        let key = format!("tf-{:032x}", self.calls);
        let answer = self.send(method, path, Some(&key), body)?;
        expect(answer.status == status, || {
            format!("{method} {path} answers {}", answer.summary())
        })?;
        // A refusal and a plan are worked out anew.
        if answer.is_success() && !path.contains("/validate") {
            let again = self.send(method, path, Some(&key), body)?;
            let is_same = again.replayed && again.status == status && again.body == answer.body;
            expect(is_same, || {
                format!("{method} {path} answers the second time {}", again.summary())
            })?;
        }
        Ok(answer.json().unwrap_or_default())
    }

    /// What the provider asks before anything else; it does not work with other words.
    fn starts(&mut self) -> Outcome {
        let found = self.reads("policy-contracts/capabilities", 200)?;
        for (member, word) in [
            ("policySchemaVersion", "forge.policy.families.v1"),
            ("regoLanguageVersion", "forge.rego.v1"),
            ("terraformPolicyProtocol", "forge.terraform.policy.v1"),
            ("terraformGatewayProtocol", "forge.terraform.llm-gateway-plan.v1"),
            ("terraformOwnershipBinding", "service_account_principal"),
        ] {
            expect(found[member] == word, || format!("{member} is {}", found[member]))?;
        }
        Ok(())
    }

    fn records(&mut self) -> Outcome<Vec<Row>> {
        let gateway = json!({ "name": "edge", "hostname": "gw.corp.example", "enabled": true });
        let other = json!({ "name": "edge 2", "hostname": "gw.corp.example", "enabled": false });
        let mut rows = vec![(
            "resource gateway",
            self.record("resource-gateways", &gateway, &other)?,
        )];
        let resource = json!({
            "name": "orders", "protocol": "http", "upstreamHost": "orders.internal", "upstreamPort": 8443, "upstreamTls": true,
            "upstreamCaPem": "", "enabled": true, "transparentRouting": false, "gatewayId": null,
        });
        let mut other = resource.clone();
        other["name"] = json!("orders api");
        other["enabled"] = json!(false);
        rows.push(("resource", self.record("resources", &resource, &other)?));
        let parent = text(&self.writes("POST", "resources", Some(&resource), 201)?, "/id")?;
        let credentials = format!("resources/{parent}/credentials");
        let credential = json!({
            "name": "orders token", "kind": "bearer_token", "default": true,
            "assignedTo": { "users": [], "groups": [], "serviceAccounts": [] }, "secret": "first-secret",
        });
        let mut rotated = credential.clone();
        rotated["secret"] = json!("second-secret");
        rows.push((
            "resource credential",
            self.record(&credentials, &credential, &rotated)?,
        ));
        self.writes("DELETE", &format!("resources/{parent}"), None, 204)?;
        Ok(rows)
    }

    /// A record without revisions, which the provider plans by itself.
    fn record(&mut self, collection: &str, first: &Value, second: &Value) -> Outcome<[&'static str; 6]> {
        let made = self.writes("POST", collection, Some(first), 201)?;
        echoes(&made, first)?;
        let path = format!("{collection}/{}", text(&made, "/id")?);
        same("an empty plan", &self.reads(&path, 200)?, &made)?;
        let changed = self.writes("PUT", &path, Some(second), 200)?;
        echoes(&changed, second)?;
        same("an import", &self.reads(&path, 200)?, &changed)?;
        self.goes(&path, &path)?;
        Ok([NONE, YES, YES, YES, YES, YES])
    }

    fn policies(&mut self) -> Outcome<Vec<Row>> {
        let mut rows = Vec::new();
        for (name, policy) in definitions::all() {
            rows.push((name, self.policy(policy).context(name)?));
        }
        rows.push(("policy authority", self.authority().context("policy authority")?));
        Ok(rows)
    }

    fn policy(&mut self, policy: Policy) -> Outcome<[&'static str; 6]> {
        let id = text(&policy.definition, "/id")?;
        let path = format!("{}/{id}", policy.collection);
        let source = json!({ "tool": "terraform", "resource": format!("forge_{}.{id}", policy.family), "selectors": policy.selectors });
        let mut definition = policy.definition;
        let made = self.applies(policy.collection, policy.family, &definition, &source, 0)?;
        refreshed("an empty plan", &self.reads(&path, 200)?["item"], &made)?;
        let (member, value) = policy.change;
        *definition.pointer_mut(member).context("a change of a member")? = value;
        let changed = self.applies(policy.collection, policy.family, &definition, &source, 1)?;
        refreshed("an import", &self.reads(&path, 200)?["item"], &changed)?;
        let authority = self.reads(&format!("policy-authority/{id}"), 200)?;
        owned(&authority["item"])?;
        self.goes(&format!("{path}?expectedRevision=2"), &path)?;
        Ok([YES; 6])
    }

    /// Plans twice and writes; returns what is stored then.
    fn applies(
        &mut self,
        collection: &str,
        family: &str,
        definition: &Value,
        source: &Value,
        revision: i64,
    ) -> Outcome<Value> {
        if let Some(module) = definition.pointer("/logic/module") {
            let body = json!({ "family": family, "module": module });
            let found = self.writes("POST", "policy-code/rego/validate", Some(&body), 200)?;
            same(
                "a module's digest",
                &found["sourceSha256"],
                &definition["logic"]["moduleSha256"],
            )?;
        }
        let plan = json!({ "family": family, "definition": definition, "sourceRef": source, "expectedRevision": revision });
        let first = self.writes("POST", "policy-plans/validate", Some(&plan), 200)?;
        let second = self.writes("POST", "policy-plans/validate", Some(&plan), 200)?;
        for member in [
            "validationToken",
            "definitionSha256",
            "referenceBindingFingerprint",
            "compilerFingerprint",
        ] {
            text(&first, &format!("/{member}"))?;
            same(
                &format!("a second plan's {member}"),
                &second[member],
                &first[member],
            )?;
        }
        let body = json!({ "definition": definition, "expectedRevision": revision, "sourceRef": source,
            "validationToken": first["validationToken"] });
        let id = text(definition, "/id")?;
        let answer = if revision == 0 {
            self.writes("POST", collection, Some(&body), 201)?
        } else {
            self.writes("PUT", &format!("{collection}/{id}"), Some(&body), 200)?
        };
        let item = &answer["item"];
        same("the definition", &item["definition"], definition)?;
        same("the source", &item["sourceRef"], source)?;
        same("the revision", &item["currentRevision"], &json!(revision + 1))?;
        same(
            "the digest",
            &item["definitionSha256"],
            &first["definitionSha256"],
        )?;
        owned(item)?;
        Ok(item.clone())
    }

    /// A policy that somebody made by hand is claimed and given back.
    fn authority(&mut self) -> Outcome<[&'static str; 6]> {
        let path = "policy-authority/of-the-console";
        let before = self.reads(path, 200)?;
        let claim = json!({ "expectedRevision": 1, "managerId": MANAGER, "managerInstance": INSTANCE });
        let claimed = self.writes("POST", &format!("{path}/claim"), Some(&claim), 200)?;
        owned(&claimed["item"])?;
        same("an empty plan", &self.reads(path, 200)?, &claimed)?;
        let release = json!({ "expectedRevision": 1 });
        self.writes("POST", &format!("{path}/release"), Some(&release), 204)?;
        same("what is given back", &self.reads(path, 200)?, &before)?;
        Ok([NONE, YES, YES, NONE, YES, YES])
    }

    fn data_sources(&mut self, user: &str, group: &str) -> Outcome<Vec<&'static str>> {
        for (kind, selector, id) in [
            ("user", "ada@acme.example", user),
            ("group", "engineering", group),
        ] {
            let path = format!("policy-references/resolve?kind={kind}&selector={selector}");
            let found = self.reads(&path, 200)?;
            same(kind, &found["item"]["id"], &json!(id))?;
        }
        let found = self.reads("policy-references/resolve?kind=skill&selector=provost-cli", 200)?;
        text(&found, "/item/id")?;
        self.reads("policy-references/resolve?kind=user&selector=nobody", 404)?;
        let mut test = json!({ "family": "content", "module": MODULE, "evaluateOn": ["pre_tool"] });
        for (tool, is_matched) in [("shell", true), ("browser", false)] {
            test["input"] = json!({ "stage": "pre_tool", "tool": { "id": tool } });
            let found = self.writes("POST", "policy-code/rego/validate", Some(&test), 200)?;
            text(&found, "/artifactFingerprint")?;
            same(
                "a module's answer",
                &found["result"]["matched"],
                &json!(is_matched),
            )?;
        }
        test["module"] = json!("package forge.content\n\nmatch := {");
        self.writes("POST", "policy-code/rego/validate", Some(&test), 422)?;
        Ok(vec![
            "data source: user",
            "data source: group",
            "data source: skill",
            "data source: test of a module in Rego",
        ])
    }

    /// Destroys; the record is gone, and destroying it again finds nothing, which the provider takes for done.
    fn goes(&mut self, path: &str, read: &str) -> Outcome {
        self.writes("DELETE", path, None, 204)?;
        self.reads(read, 404)?;
        self.writes("DELETE", path, None, 404).map(drop)
    }
}

fn expect(is_so: bool, sentence: impl FnOnce() -> String) -> Outcome {
    if is_so {
        return Ok(());
    }
    Err(Failure::new(sentence()))
}

fn same(what: &str, found: &Value, wanted: &Value) -> Outcome {
    expect(found == wanted, || format!("{what} is {found}, not {wanted}"))
}

/// Compares what the provider keeps of a policy; of the rest, such as names that nobody has, it reads nothing.
fn refreshed(what: &str, found: &Value, wanted: &Value) -> Outcome {
    for member in [
        "id",
        "family",
        "currentRevision",
        "definitionSha256",
        "definition",
        "sourceRef",
        "managementMode",
        "managerId",
        "managerInstance",
    ] {
        same(&format!("{member} of {what}"), &found[member], &wanted[member])?;
    }
    Ok(())
}

fn owned(item: &Value) -> Outcome {
    same("the mode", &item["managementMode"], &json!("terraform"))?;
    same("the manager", &item["managerId"], &json!(MANAGER))?;
    same("the workspace", &item["managerInstance"], &json!(INSTANCE))
}

/// Everything that was sent is there with its value; what was sent as nothing is absent, and a secret never comes back.
fn echoes(found: &Value, sent: &Value) -> Outcome {
    for (member, value) in sent.as_object().context("a body is an object")? {
        let is_absent = value.is_null() || member == "secret" || *value == json!("");
        let wanted = if is_absent { None } else { Some(value) };
        expect(found.get(member) == wanted, || {
            format!("{member} is {:?}, not {wanted:?}", found.get(member))
        })?;
    }
    owned(found)
}
