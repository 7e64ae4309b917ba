//! Clients that others generate from the document of the API, and linters that read it.
//!
//! Each generator must make every operation; two of the clients then list, create and delete against the server. Warnings of the
//! linters are their opinions and fail nothing; errors do.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{Scene, install};
use crate::compatibility::Table;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::process;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

pub fn run(scene: &Scene<'_>, is_recorded: bool) -> Outcome {
    let folder = &scene.folder;
    let document = fetch(scene, "openapi.json", "document.json")?;
    let older = fetch(scene, "openapi-3.0.json", "document-3.0.json")?;
    let count = operations(&document);
    expect("the 3.0 form", operations(&older), count)?;
    for script in [
        "generated.py",
        "generated.ts",
        "tsconfig.json",
        "spectral.yaml",
        "python-client.yaml",
    ] {
        let from = install::sources().join("generators").join(script);
        std::fs::copy(from, folder.join(script)).context(format_args!("cannot copy {script}"))?;
    }
    python(scene, count)?;
    typescript(scene, count)?;
    lint(scene)?;
    if is_recorded {
        record(count)?;
    }
    Ok(())
}

/// Keeps what was made by which version. Every one is pinned.
fn record(count: usize) -> Outcome {
    let mut table = Table::new(
        "Generators and linters of the API document",
        &["program", "of", "what it makes"],
        &[
            "How: `cargo xtask clients generators --record`. Each reads the document that a running server serves. The clients that \
           `openapi-python-client` and hey-api make list, create and delete a service account.",
            "By hand, on 2026-11-27: `progenitor` 0.15.1 (crates.io) makes a client of the 3.0 form with 149 of 156 operations, which compiles. \
           It stops at the other seven, which have to be taken out of its copy of the document: bodies that may be one of two forms, neither of \
           them JSON (`sendHeadlessDirectoryImportChunk`, `importHeadlessPolicyHistory`, `publishHeadlessSkillRegistryItem`), and answers \
           with a body or without one (200 and 204: `deleteHeadlessDirectoryGroup`, `deleteHeadlessDirectoryUser`, `deleteHeadlessResource`, \
           `deleteHeadlessServiceAccount`).",
        ],
    );
    let all = format!("{count} of {count} operations");
    let called = format!("{all}, three calls");
    let found = [
        ("openapi-python-client", "PyPI", called.as_str()),
        ("openapi-typescript", "npm", &all),
        ("@hey-api/openapi-ts", "npm", &called),
        ("@stoplight/spectral-cli", "npm", "no error"),
        ("@redocly/cli", "npm", "no error"),
        ("openapi-spec-validator", "PyPI", "the 3.0 form is valid"),
    ];
    let sources = install::sources().join("generators");
    let read =
        |name: &str| std::fs::read_to_string(sources.join(name)).context(format_args!("cannot read {name}"));
    let (npm, pypi) = (read("package.json")?, read("python.txt")?);
    let npm: Value = serde_json::from_str(&npm).context("cannot read the packages")?;
    for (program, of, made) in found {
        let of_pypi = || {
            pypi.lines()
                .find_map(|line| line.strip_prefix(program)?.strip_prefix("=="))
        };
        let version = npm["dependencies"][program].as_str().or_else(of_pypi);
        let version = version.context(format_args!("{program} is not pinned"))?;
        let program = format!("`{program}` {version}");
        table.rows.push(vec![program, of.to_owned(), made.to_owned()]);
    }
    table.write("generators")
}

/// Keeps a document of the server as a file.
fn fetch(scene: &Scene<'_>, name: &str, file: &str) -> Outcome<Value> {
    let request = Request::get(format!("/api/headless/v1/{name}"), &scene.bootstrap.token);
    let document = Connection::new(scene.server.address).fetch(&request)?;
    std::fs::write(scene.folder.join(file), document.to_string()).context("cannot keep the document")?;
    Ok(document)
}

fn operations(document: &Value) -> usize {
    let paths = document["paths"].as_object().into_iter().flatten();
    let methods = paths.flat_map(|(_, item)| item.as_object().into_iter().flatten());
    methods
        .filter(|(method, _)| METHODS.contains(&method.as_str()))
        .count()
}

fn expect(who: &str, found: usize, count: usize) -> Outcome {
    if found == count {
        println!("    {who}: {found} of {count} operations");
        return Ok(());
    }
    Err(Failure::new(format!("{who} has {found} of {count} operations")))
}

fn python(scene: &Scene<'_>, count: usize) -> Outcome {
    let programs = install::generators_of_python()?;
    // It formats what it makes with a program that it looks for.
    let mut path = std::ffi::OsString::from(&programs);
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut generate = Command::new(programs.join("openapi-python-client"));
    generate
        .args("generate --path document.json --config python-client.yaml --output-path python".split(' '))
        .env("PATH", &path);
    run_in(&scene.folder, &mut generate)?;
    let package = scene.folder.join("python/provost_headless_api_client");
    expect("openapi-python-client", files_of(&package.join("api"))?, count)?;
    let mut call = Command::new(programs.join("python"));
    call.arg("generated.py").env("PYTHONPATH", "python");
    spoken(scene, &mut call)?;
    let mut check = Command::new(programs.join("openapi-spec-validator"));
    run_in(&scene.folder, check.arg("document-3.0.json"))?;
    println!("    openapi-spec-validator: the 3.0 form is valid");
    Ok(())
}

/// Counts the modules below the folders of a package, one an operation.
fn files_of(folder: &Path) -> Outcome<usize> {
    let mut count = 0;
    for group in entries(folder)?.iter().filter(|path| path.is_dir()) {
        let modules = entries(group)?.into_iter();
        count += modules
            .filter(|path| path.extension().is_some_and(|end| end == "py") && !path.ends_with("__init__.py"))
            .count();
    }
    Ok(count)
}

fn entries(folder: &Path) -> Outcome<Vec<std::path::PathBuf>> {
    let read = std::fs::read_dir(folder).context(format_args!("cannot read {}", folder.display()))?;
    read.map(|entry| Ok(entry.context("cannot read a folder")?.path()))
        .collect()
}

fn typescript(scene: &Scene<'_>, count: usize) -> Outcome {
    let tools = scene.tools;
    let mut types = tools.generator("openapi-typescript/bin/cli.js");
    run_in(&scene.folder, types.args(["document.json", "-o", "types.ts"]))?;
    expect(
        "openapi-typescript",
        lines_with(scene, "types.ts", ": operations[")?,
        count,
    )?;
    let mut client = tools.generator("@hey-api/openapi-ts/bin/run.js");
    run_in(
        &scene.folder,
        client.args("-i document.json -o hey-api -c @hey-api/client-fetch".split(' ')),
    )?;
    expect(
        "hey-api",
        lines_with(scene, "hey-api/sdk.gen.ts", "export const ")?,
        count,
    )?;
    run_in(&scene.folder, &mut tools.generator("typescript/bin/tsc"))?;
    let mut bundle = Command::new(install::bundler()?);
    let words =
        "generated.ts --bundle --format=esm --platform=node --outfile=generated.mjs --log-level=warning";
    run_in(&scene.folder, bundle.args(words.split(' ')))?;
    let mut call = Command::new(&tools.node);
    spoken(scene, call.arg("generated.mjs"))
}

fn lines_with(scene: &Scene<'_>, file: &str, word: &str) -> Outcome<usize> {
    let text =
        std::fs::read_to_string(scene.folder.join(file)).context(format_args!("cannot read {file}"))?;
    Ok(text.lines().filter(|line| line.contains(word)).count())
}

fn lint(scene: &Scene<'_>) -> Outcome {
    let mut spectral = scene.tools.generator("@stoplight/spectral-cli/dist/index.js");
    let words = "lint document.json --ruleset spectral.yaml --fail-severity error --quiet";
    run_in(&scene.folder, spectral.args(words.split(' ')))?;
    println!("    spectral: no error");
    let mut redocly = scene.tools.generator("@redocly/cli/bin/cli.js");
    redocly
        .args(["lint", "document.json", "--format", "summary"])
        .env("REDOCLY_TELEMETRY", "off");
    run_in(&scene.folder, &mut redocly)?;
    println!("    redocly: no error");
    Ok(())
}

/// Runs what calls the server, and shows what it says.
fn spoken(scene: &Scene<'_>, command: &mut Command) -> Outcome {
    command
        .args([&scene.origin(), &scene.bootstrap.organization])
        .env("PROVOST_TOKEN", &scene.bootstrap.token);
    let said = run_in(&scene.folder, command)?;
    println!("    {}", said.trim());
    Ok(())
}

fn run_in(folder: &Path, command: &mut Command) -> Outcome<String> {
    process::output(command.current_dir(folder))
}
