//! How an operation is called, in four languages, from its example in the document.
//!
//! Ids that only the reader knows stand as variables of a shell (`$USER_ID`); whoever sets them, and the three `PROVOST_…`, can paste each
//! example as it is.

use super::fields::members;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// One operation of the document.
pub struct Call<'a> {
    pub method: String,
    /// With `{name}` where an id stands.
    pub path: &'a str,
    pub operation: &'a Value,
}

/// What has to be set before an example runs.
pub const BEFORE: &str =
    "export PROVOST_URL=https://provost.example.com PROVOST_ORGANIZATION=acme PROVOST_TOKEN=…";

const ORGANIZATION: &str = "organizationId";

/// A parameter with the value that it has in the examples.
struct Argument<'a> {
    name: &'a str,
    place: &'a str,
    value: Sample,
}

enum Sample {
    /// The reader knows it; the name of the variable.
    Variable(String),
    Literal(Value),
}

impl Sample {
    fn of(name: &str, schema: &Value) -> Self {
        if let Some(said) = members(schema, "examples").chain(members(schema, "enum")).next() {
            return Self::Literal(said.clone());
        }
        match schema["type"].as_str() {
            Some("integer" | "number") => {
                Self::Literal(schema.get("minimum").cloned().unwrap_or_else(|| json!(1)))
            }
            Some("boolean") => Self::Literal(true.into()),
            _ => Self::Variable(variable(name)),
        }
    }

    fn in_shell(&self) -> String {
        match self {
            Self::Variable(name) => format!("${name}"),
            Self::Literal(Value::String(text)) => text.clone(),
            Self::Literal(value) => value.to_string(),
        }
    }

    fn in_python(&self) -> String {
        match self {
            Self::Variable(name) => format!("{{environ['{name}']}}"),
            Self::Literal(_) => self.in_shell(),
        }
    }

    fn in_json(&self) -> Value {
        match self {
            Self::Variable(name) => name.as_str().into(),
            Self::Literal(value) => value.clone(),
        }
    }
}

/// `serviceAccountId` as `SERVICE_ACCOUNT_ID`.
fn variable(name: &str) -> String {
    let mut upper = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            upper.push('_');
        }
        upper.push(letter.to_ascii_uppercase());
    }
    upper
}

impl<'a> Call<'a> {
    /// The parameters without which there is no call.
    fn given(&self) -> Vec<Argument<'a>> {
        let needed = members(self.operation, "parameters").filter(|parameter| {
            parameter["in"] == "path" || (parameter["in"] == "query" && parameter["required"] == true)
        });
        let given = needed.filter_map(|parameter| {
            let name = parameter["name"].as_str()?;
            Some(Argument {
                name,
                place: parameter["in"].as_str()?,
                value: Sample::of(name, &parameter["schema"]),
            })
        });
        given.filter(|given| given.name != ORGANIZATION).collect()
    }

    fn address(&self, organization: &str, show: impl Fn(&Sample) -> String) -> String {
        let mut path = self.path.replace("{organizationId}", organization);
        let mut mark = '?';
        for given in self.given() {
            let value = show(&given.value);
            if given.place == "path" {
                path = path.replace(&format!("{{{}}}", given.name), &value);
            } else {
                let _ = write!(path, "{mark}{}={value}", given.name);
                mark = '&';
            }
        }
        path
    }

    fn extension(&self, name: &str) -> &'a Value {
        &self.operation["x-provost"][name]
    }

    /// The example of a body of JSON.
    pub fn example(&self) -> Option<&'a Value> {
        self.operation
            .pointer("/requestBody/content/application~1json/example")
    }

    /// The media type of a body that has no example: it is sent from a file, also where it is JSON.
    pub fn media_type(&self) -> Option<&'a str> {
        let content = self.operation.pointer("/requestBody/content")?.as_object()?;
        let has_example = self.example().is_some();
        content.keys().next().map(String::as_str).filter(|_| !has_example)
    }

    /// Whether the answer is nothing that a terminal shows.
    fn answers_bytes(&self) -> bool {
        let responses = self.operation["responses"].as_object().into_iter().flatten();
        let contents = responses
            .filter(|(status, _)| status.starts_with('2'))
            .filter_map(|(_, response)| response["content"].as_object())
            .flatten();
        contents
            .map(|(_, content)| &content["schema"]["format"])
            .any(|format| format == "binary")
    }

    /// What travels in headers because no body holds it.
    fn headers(&self) -> Vec<(&'static str, &'static str)> {
        let mut headers = Vec::new();
        // Of machines that prove a key at each request.
        if self.extension("access")["kind"].is_string() {
            headers.push(("DPoP", "…"));
        }
        let is_alone = self.extension("trio") == "headers"
            || (self.extension("trio") == "body" && self.media_type().is_some());
        if is_alone {
            headers.push(("X-Reason", "asked for in ticket 4711"));
            headers.push(("Idempotency-Key", "ticket-4711"));
            if self.extension("confirm") == true {
                headers.push(("X-Confirm", "true"));
            }
        }
        headers
    }

    pub fn curl(&self) -> String {
        let mut said = format!(
            "curl -sS -X {} \"$PROVOST_URL{}\" \\\n  -H \"Authorization: Bearer $PROVOST_TOKEN\"",
            self.method,
            self.address("$PROVOST_ORGANIZATION", Sample::in_shell)
        );
        for (name, value) in self.headers() {
            let _ = write!(said, " \\\n  -H '{name}: {value}'");
        }
        if let Some(media_type) = self.media_type() {
            let _ = write!(said, " \\\n  -H 'Content-Type: {media_type}' --data-binary @FILE");
        } else if let Some(body) = self.example() {
            let _ = write!(
                said,
                " \\\n  -H 'Content-Type: application/json' -d {}",
                quoted(&pretty(body))
            );
        }
        if self.answers_bytes() {
            said.push_str(" \\\n  -o ANSWER");
        }
        said
    }

    pub fn command(&self) -> Option<String> {
        let words: Vec<&str> = members(&self.operation["x-provost"], "command")
            .filter_map(Value::as_str)
            .collect();
        if words.is_empty() {
            return None;
        }
        let mut said = format!("provost {}", words.join(" "));
        for given in self.given() {
            let value = given.value.in_shell();
            if given.place == "path" {
                let _ = write!(said, " \"{value}\"");
            } else {
                let _ = write!(
                    said,
                    " --{} \"{value}\"",
                    variable(given.name).to_lowercase().replace('_', "-")
                );
            }
        }
        if let Some(media_type) = self.media_type() {
            let _ = write!(said, " --file FILE --content-type {media_type}");
        } else if let Some(body) = self.example().and_then(Value::as_object) {
            let body: Map<String, Value> = body
                .iter()
                .filter(|(name, _)| !TRIO.contains(&name.as_str()))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            if !body.is_empty() {
                let _ = write!(said, " \\\n  --body {}", quoted(&pretty(&body.into())));
            }
        }
        if ["body", "headers"]
            .iter()
            .any(|place| self.extension("trio") == place)
        {
            said.push_str(" \\\n  --reason 'asked for in ticket 4711'");
        }
        if self.extension("confirm") == true {
            said.push_str(" --confirm");
        }
        if self.answers_bytes() {
            said.push_str(" --to-file ANSWER");
        }
        Some(said)
    }

    pub fn python(&self) -> String {
        let mut said = "import json, urllib.request\nfrom os import environ\n\n".to_owned();
        let mut headers = vec![(
            "Authorization",
            "f\"Bearer {environ['PROVOST_TOKEN']}\"".to_owned(),
        )];
        headers.extend(
            self.headers()
                .into_iter()
                .map(|(name, value)| (name, format!("{value:?}"))),
        );
        let mut data = "None";
        if let Some(media_type) = self.media_type() {
            data = "open(\"FILE\", \"rb\").read()";
            headers.push(("Content-Type", format!("{media_type:?}")));
        } else if let Some(body) = self.example() {
            let _ = writeln!(said, "body = json.loads(r\"\"\"{}\"\"\")", pretty(body));
            data = "json.dumps(body).encode()";
            headers.push(("Content-Type", "\"application/json\"".to_owned()));
        }
        let address = self.address("{environ['PROVOST_ORGANIZATION']}", Sample::in_python);
        let _ = write!(
            said,
            "request = urllib.request.Request(\n    f\"{{environ['PROVOST_URL']}}{address}\",\n    method=\"{}\",\n    data={data},\n    headers={{\n",
            self.method
        );
        for (name, value) in headers {
            let _ = writeln!(said, "        \"{name}\": {value},");
        }
        said.push_str("    },\n)\nwith urllib.request.urlopen(request) as answer:\n    ");
        said.push_str(if self.answers_bytes() {
            "open(\"ANSWER\", \"wb\").write(answer.read())"
        } else {
            "print(answer.status, answer.read().decode())"
        });
        said
    }

    pub fn mcp(&self) -> String {
        let mut arguments = Map::new();
        for given in self.given() {
            arguments.insert(given.name.to_owned(), given.value.in_json());
        }
        if let Some(body) = self.example().and_then(Value::as_object) {
            arguments.extend(body.clone());
        } else if let Some(media_type) = self.media_type() {
            arguments.insert("content".into(), "BASE64".into());
            arguments.insert("mediaType".into(), media_type.into());
        }
        for (name, value) in self.headers() {
            let (member, value) = match name {
                "X-Reason" => ("reason", value.into()),
                "X-Confirm" => ("confirm", true.into()),
                _ => ("idempotencyKey", value.into()),
            };
            arguments.insert(member.into(), value);
        }
        let request = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": self.operation["operationId"], "arguments": arguments },
        });
        format!(
            "curl -sS \"$PROVOST_URL/mcp?toolsets=all\" -H \"Authorization: Bearer $PROVOST_TOKEN\" \\\n  -H 'Content-Type: \
             application/json' -H 'Accept: application/json, text/event-stream' -d {}",
            quoted(&pretty(&request))
        )
    }
}

/// What every change says, in whatever way.
const TRIO: [&str; 3] = ["reason", "idempotencyKey", "confirm"];

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation() -> Value {
        json!({
            "operationId": "renameThing",
            "parameters": [
                { "name": "organizationId", "in": "path", "required": true, "schema": { "type": "string" } },
                { "name": "thingId", "in": "path", "required": true, "schema": { "type": "string" } },
                { "name": "expectedRevision", "in": "query", "required": true, "schema": { "type": "integer", "minimum": 1 } },
                { "name": "limit", "in": "query", "required": false, "schema": { "type": "integer" } },
            ],
            "requestBody": { "content": { "application/json": { "example": {
                "name": "it's", "reason": "asked for in ticket 4711", "idempotencyKey": "ticket-4711" } } } },
            "x-provost": { "command": ["things", "rename"], "trio": "body", "confirm": true },
        })
    }

    #[test]
    fn each_language_says_the_same_call() {
        let operation = operation();
        let call = Call {
            method: "PATCH".into(),
            path: "/o/{organizationId}/things/{thingId}",
            operation: &operation,
        };
        let curl = call.curl();
        assert!(curl.starts_with(
            "curl -sS -X PATCH \"$PROVOST_URL/o/$PROVOST_ORGANIZATION/things/$THING_ID?expectedRevision=1\""
        ));
        assert!(curl.contains("it'\\''s") && curl.ends_with("}'"));
        assert_eq!(
            call.command().unwrap(),
            "provost things rename \"$THING_ID\" --expected-revision \"1\" \\\n  --body '{\n  \"name\": \"it'\\''s\"\n}' \\\n  --reason 'asked \
             for in ticket 4711' --confirm"
        );
        let python = call.python();
        assert!(
            python.contains("/things/{environ['THING_ID']}?expectedRevision=1\",\n    method=\"PATCH\""),
            "{python}"
        );
        let mcp = call.mcp();
        assert!(
            mcp.contains("\"name\": \"renameThing\"") && mcp.contains("\"thingId\": \"THING_ID\""),
            "{mcp}"
        );
    }
}
