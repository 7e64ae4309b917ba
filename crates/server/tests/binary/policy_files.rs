//! Policies as files, with the real program on both sides: tested, applied, compared, exported, explained.

use super::harness::{Home, Server, bare, homes, refuse, succeed};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn starter() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies/starter")
}

struct Person<'a> {
    home: &'a Home,
    server: &'a Server,
    token: String,
}

impl Person<'_> {
    fn command(&self, words: &str) -> Command {
        let words: Vec<&str> = words.split(' ').collect();
        let mut command = bare(&words);
        command
            .current_dir(&self.home.dir)
            .env("PROVOST_URL", format!("http://127.0.0.1:{}", self.server.port))
            .env("PROVOST_ORGANIZATION", "acme")
            .env("PROVOST_TOKEN", &self.token)
            .env("HOME", &self.home.dir);
        command
    }

    fn json(&self, words: &str) -> Value {
        serde_json::from_str(&succeed(self.command(words))).unwrap()
    }
}

fn words_of(answer: &Value) -> Vec<&str> {
    let changes = answer["changes"].as_array().unwrap().iter();
    changes.map(|change| change["change"].as_str().unwrap()).collect()
}

/// Proves FP-1.
/// Proves FP-2.
#[test]
#[expect(clippy::too_many_lines, reason = "one story, told in its order")]
fn files_are_the_truth_and_nothing_is_written_before_all_is_planned() {
    for home in homes("policy_files") {
        let token = home.init();
        let server = home.serve_unlimited();
        let person = Person {
            home: &home,
            server: &server,
            token,
        };
        let folder = home.path("policies");
        fs::create_dir_all(&folder).unwrap();
        for entry in fs::read_dir(starter()).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
        }
        let tested = person.json("policies test policies");
        assert_eq!(tested["files"].as_array().unwrap().len(), 10);
        let linted = succeed(person.command("policies lint policies --strict -o table"));
        assert_eq!(
            linted.lines().filter(|line| line.ends_with(": ok")).count(),
            10,
            "{linted}"
        );
        assert_eq!(
            words_of(&person.json("policies diff -f policies")),
            ["create"; 10]
        );

        // One bad file, and nothing is written.
        let bad =
            json!({ "family": "content", "definition": { "id": "bad", "name": "bad", "action": "stop" } });
        fs::write(folder.join("bad.json"), bad.to_string()).unwrap();
        let (code, told) = refuse(person.command("policies apply -f policies --reason test"));
        assert_eq!(code, 5, "{told}");
        assert!(
            told.contains("/definition/action")
                && told.contains("bad.json")
                && told.contains("nothing was written"),
            "{told}"
        );
        let (code, told) = refuse(person.command("policies lint policies"));
        assert!(code == 5 && told.contains("bad.json"), "{code} {told}");
        fs::remove_file(folder.join("bad.json")).unwrap();
        assert_eq!(person.json("policies list")["policies"], json!([]));
        assert_eq!(
            words_of(&person.json("policies apply -f policies --dry-run --reason test")),
            ["create"; 10]
        );
        assert_eq!(person.json("policies list")["policies"], json!([]));

        person.json("policies apply -f policies --reason test");
        assert_eq!(
            person.json("policies list")["policies"].as_array().unwrap().len(),
            10
        );
        assert_eq!(
            words_of(&person.json("policies apply -f policies --reason test")),
            ["unchanged"; 10]
        );
        succeed(person.command("policies diff -f policies --check"));

        // A change, a file that went, and one that cannot match.
        let path = folder.join("pipe-to-shell.json");
        let mut file: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        file["definition"]["action"] = "block".into();
        file["definition"]["evaluateOn"] = json!(["prompt"]);
        fs::write(&path, file.to_string()).unwrap();
        fs::remove_file(folder.join("unknown-ai.json")).unwrap();
        let (code, told) = refuse(person.command("policies apply -f policies --strict --reason test"));
        assert!(
            code == 10 && told.contains("never_matches") && told.contains("nothing was written"),
            "{code} {told}"
        );
        file["definition"]["evaluateOn"] = json!(["pre_tool"]);
        fs::write(&path, file.to_string()).unwrap();
        let (code, told) = refuse(person.command("policies diff -f policies --check"));
        assert!(code == 10 && told.contains("1 policy differs"), "{code} {told}");
        let (code, told) = refuse(person.command("policies test policies/pipe-to-shell.json"));
        assert!(code == 10, "{code} {told}");
        person.json("policies apply -f policies --reason test");
        assert_eq!(
            person.json("policies list")["policies"].as_array().unwrap().len(),
            10
        );
        let (code, told) = refuse(person.command("policies apply -f policies --prune --reason test"));
        assert!(code == 2 && told.contains("--confirm"), "{code} {told}");
        let pruned = person.json("policies apply -f policies --prune --confirm --reason test");
        assert!(words_of(&pruned).contains(&"delete"));
        assert_eq!(
            person.json("policies list")["policies"].as_array().unwrap().len(),
            9
        );

        // What another manager has is not written, nor pruned.
        person.json("policy-authority claim starter/exfiltration --expected-revision 1 --manager-id infra --manager-instance one --reason test");
        let path = folder.join("exfiltration.json");
        let mut file: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        file["definition"]["message"] = "other".into();
        fs::write(&path, file.to_string()).unwrap();
        let (code, told) = refuse(person.command("policies apply -f policies --reason test"));
        assert!(
            code == 5 && told.contains("terraform (infra one)") && told.contains("nothing was written"),
            "{code} {told}"
        );
        fs::remove_file(&path).unwrap();
        let kept = person.json("policies apply -f policies --prune --confirm --reason test");
        assert!(!words_of(&kept).contains(&"delete"), "{kept}");

        succeed(person.command("policies export out"));
        assert!(home.path("out/content/starter%2Fexfiltration.json").exists());
        assert_eq!(words_of(&person.json("policies diff -f out")), ["unchanged"; 9]);

        let event = json!({ "occasion": "pre_tool", "attributes": { "tool.id": "Bash", "tool.input": { "command": "rm -rf /srv" } } });
        fs::write(home.path("event.json"), event.to_string()).unwrap();
        let told = succeed(person.command("policies explain event.json -o table"));
        assert!(
            told.starts_with("block\n")
                && told.contains("starter/destructive-shell: block (matched, decides)"),
            "{told}"
        );
        let alone = "policies explain event.json --policy policies/secrets-in-prompts.json";
        assert_eq!(person.json(alone)["results"][0]["basis"], "no_policy_matched");
        let strict = json!({ "definition": { "id": "never", "name": "n", "action": "flag_for_review", "evaluateOn": ["prompt"],
            "conditions": { "field": "tool.id", "op": "eq", "value": "x" } } });
        fs::write(home.path("body.json"), strict.to_string()).unwrap();
        let (code, told) =
            refuse(person.command("content-policies create --body body.json --strict --reason test"));
        assert!(
            code == 10 && told.contains("nothing was written"),
            "{code} {told}"
        );
        let made = person.json("content-policies create --body body.json --reason test");
        assert_eq!(made["warnings"][0]["code"], "never_matches");
        assert_eq!(server.stop(), 0);
    }
}
