//! What carries the program, read by the programs that will read it: linters, Docker Compose, Helm's library, schemas of Kubernetes, Ansible,
//! systemd; and the program under the rules of the container.
//!
//! All of them come from `PyPI`, pinned, and need no container engine, no cluster and no GitHub. What that leaves open is printed at the end.
//! That unit, image, compose file and chart name what the program has is a test of the suite.
//!
//! Absent on purpose: an engine, a cluster, and anything from a registry of images.

mod confined;
mod image;

use std::path::PathBuf;
use std::process::Command;

use crate::failure::{Context, Failure, Outcome};
use crate::product::{self, Workplace};
use crate::{process, python};

/// Versions of Kubernetes whose schemas the chart is held against: the oldest that it names, and the newest that is known.
const KUBERNETES: [&str; 2] = ["1.25", "1.37"];

/// What is not proved, whatever is printed above it.
const OPEN: &str = "Not proved: that an engine runs the image on the base of the registry, that the compose file comes up, that a cluster takes \
                    the chart, that GitHub and GitLab run the workflows, that Jamf and Intune take their texts, and that Ansible \
                    reaches a machine with its.";

/// Have linters, Compose, Helm's library, Ansible and systemd read what carries the program, and run it as the container does
#[derive(clap::Args)]
pub struct Arguments {
    /// Use this binary instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Also build the image of the package in this folder, which `cargo xtask dist` made, and start it (as root; some minutes)
    #[arg(long, value_name = "FOLDER")]
    dist: Option<PathBuf>,
}

/// Where everything is.
struct Scene {
    /// The folder of the tools.
    programs: PathBuf,
    binary: PathBuf,
    folder: PathBuf,
    dist: Option<PathBuf>,
}

impl Scene {
    /// A tool, which works in the root of the repository and finds the others: actionlint has shellcheck read scripts.
    fn tool(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        let path = std::iter::once(self.programs.clone()).chain(process::search_path());
        if let Ok(path) = std::env::join_paths(path) {
            command.env("PATH", path);
        }
        command.current_dir(process::root()).env("NO_COLOR", "1");
        // Ansible takes no other locale, and writes beside what it reads.
        command.env("LC_ALL", "C.UTF-8");
        command.env("ANSIBLE_HOME", self.folder.join("ansible"));
        command
    }

    /// Runs a tool that says what is wrong by its exit code.
    fn check<I: AsRef<std::ffi::OsStr>>(
        &self,
        name: &str,
        words: &[&str],
        files: impl IntoIterator<Item = I>,
    ) -> Outcome {
        process::output(self.tool(name).args(words).args(files)).map(drop)
    }
}

type Check = fn(&Scene) -> Outcome<String>;

const CHECKS: [(&str, Check); 10] = [
    ("container", container),
    ("compose", compose),
    ("chart", chart),
    ("workflows", workflows),
    ("scripts", scripts),
    ("texts for management systems", management),
    ("yaml", yaml),
    ("units", units),
    ("program under the container's rules", confined),
    ("image", image),
];

pub fn run(arguments: &Arguments) -> Outcome {
    let programs = python::programs("packaging", &settings().join("requirements.txt"))?;
    let binary = product::given(arguments.binary.as_ref(), "ci")?;
    let workplace = Workplace::create("packaging")?;
    let scene = Scene {
        programs,
        binary: std::path::absolute(binary).context("cannot find the binary")?,
        folder: workplace.folder.clone(),
        dist: arguments.dist.clone(),
    };
    let mut wrong = Vec::new();
    for (name, check) in CHECKS {
        match check(&scene) {
            Ok(said) => println!("{name}: {said}"),
            Err(failure) => {
                println!("{name}: WRONG");
                wrong.push(format!("{name}: {failure}"));
            }
        }
    }
    println!("{OPEN}");
    if wrong.is_empty() {
        return workplace.remove();
    }
    Err(Failure::new(wrong.join("\n")))
}

/// The folder of this task's files.
fn settings() -> PathBuf {
    process::root().join("crates/xtask/packaging")
}

fn container(scene: &Scene) -> Outcome<String> {
    // DL3008 wants versions of Debian's packages, which Debian takes away when it has newer ones.
    let words = ["--no-color", "--failure-threshold", "style", "--ignore", "DL3008"];
    scene.check("hadolint", &words, ["packaging/container/Containerfile"])?;
    Ok("read by hadolint".to_owned())
}

fn compose(scene: &Scene) -> Outcome<String> {
    let file = "packaging/container/compose.yaml";
    scene.check("docker-compose", &["--file", file, "config"], ["--quiet"])?;
    scene.check(
        "check-jsonschema",
        &["--builtin-schema", "vendor.compose-spec"],
        [file],
    )?;
    Ok("read by Docker Compose, and held against its schema".to_owned())
}

fn chart(scene: &Scene) -> Outcome<String> {
    let rendered = scene.folder.join("chart");
    std::fs::create_dir_all(&rendered).context("cannot make a folder")?;
    let mut render = scene.tool("python");
    render
        .arg(settings().join("chart.py"))
        .arg("packaging/helm/provost")
        .arg(&rendered);
    let printed = process::output(&mut render)?;
    // What the Prometheus operator defines has no schema of Kubernetes.
    let files: Vec<&str> = printed
        .lines()
        .filter(|file| !file.ends_with("-servicemonitor.yaml"))
        .collect();
    if files.len() < 7 {
        return Err(Failure::new(format!("only {files:?} were rendered")));
    }
    for version in KUBERNETES {
        let words = ["-k", version, "--strict", "--quiet"];
        scene
            .check("kubernetes-validate", &words, &files)
            .context(version)?;
    }
    // A tool that looks at nothing finds nothing.
    let broken = scene.folder.join("broken.yaml");
    let text = std::fs::read_to_string(files[0]).context(files[0])?;
    std::fs::write(&broken, text.replace("spec:", "sepc:")).context("cannot write a file")?;
    let words = ["-k", KUBERNETES[0], "--strict", "--quiet"];
    if scene.check("kubernetes-validate", &words, [&broken]).is_ok() {
        return Err(Failure::new("kubernetes-validate takes a broken file"));
    }
    Ok(format!(
        "rendered by Helm's library three ways and refused in four; {} files held against Kubernetes {}",
        files.len(),
        KUBERNETES.join(" and ")
    ))
}

fn workflows(scene: &Scene) -> Outcome<String> {
    scene.check("actionlint", &["-no-color"], [".github/workflows/release.yml"])?;
    for (schema, file) in [
        ("vendor.github-workflows", ".github/workflows/release.yml"),
        (
            "vendor.github-actions",
            "packaging/ci/github/policy-backtest/action.yml",
        ),
        ("vendor.gitlab-ci", "packaging/ci/gitlab/policy-backtest.yml"),
    ] {
        scene.check("check-jsonschema", &["--builtin-schema", schema], [file])?;
    }
    Ok("read by actionlint, and held against the schemas of GitHub and GitLab".to_owned())
}

fn scripts(scene: &Scene) -> Outcome<String> {
    let files = [
        "packaging/ci/policy-backtest.sh",
        "packaging/debian/postinst",
        "packaging/debian/prerm",
        "packaging/debian/postrm",
        "crates/xtask/packaging/confined.sh",
        "crates/xtask/packaging/image.sh",
        "crates/xtask/packaging/image-inside.sh",
    ];
    scene.check("shellcheck", &["--shell=sh", "--color=never"], files)?;
    Ok("read by shellcheck".to_owned())
}

/// The texts that the program prints: what can be known of them without the systems.
fn management(scene: &Scene) -> Outcome<String> {
    let printed = |system: &str, name: &str, duties: &[&str]| -> Outcome<PathBuf> {
        let mut command = Command::new(&scene.binary);
        process::without_settings(&mut command);
        command.args(["agent", "install", "--print-mdm", system]);
        command.args(["--server", "https://provost.example", "--organization", "acme"]);
        command.args(duties);
        let file = scene.folder.join(name);
        std::fs::write(&file, process::output(&mut command)?).context("cannot write a file")?;
        Ok(file)
    };
    let judges = ["--judge"];
    let shell = [
        printed("jamf", "jamf.sh", &[])?,
        printed("intune", "intune.sh", &[])?,
        printed("intune", "intune-judges.sh", &judges)?,
    ];
    scene.check("shellcheck", &["--shell=sh", "--color=never"], shell)?;
    let playbooks = [
        printed("ansible", "agent.yml", &[])?,
        printed("ansible", "agent-judges.yml", &judges)?,
    ];
    let words = ["--syntax-check", "--inventory", "localhost,"];
    for playbook in &playbooks {
        scene.check("ansible-playbook", &words, [playbook])?;
    }
    Ok("scripts read by shellcheck, the playbook by Ansible; run nowhere".to_owned())
}

fn yaml(scene: &Scene) -> Outcome<String> {
    let rules = settings().join("yamllint.yaml").display().to_string();
    let places = [
        ".github",
        "packaging/ci",
        "packaging/container",
        "packaging/monitoring",
        "packaging/helm/provost/Chart.yaml",
        "packaging/helm/provost/values.yaml",
    ];
    scene.check("yamllint", &["--strict", "--config-file", &rules], places)?;
    Ok("read by yamllint".to_owned())
}

fn units(scene: &Scene) -> Outcome<String> {
    if process::find_program("systemd-analyze").is_none() {
        return Ok("NOT read: there is no systemd-analyze".to_owned());
    }
    let folder = scene.folder.join("units");
    std::fs::create_dir_all(&folder).context("cannot make a folder")?;
    let mut units = Vec::new();
    for name in [
        "provost.service",
        "provost-backup.service",
        "provost-backup.timer",
    ] {
        let from = process::root().join("packaging/systemd").join(name);
        let text = std::fs::read_to_string(&from).context(from.display())?;
        let unit = folder.join(name);
        // The program is not where a package puts it, and there is no manual of it yet.
        let program = scene.binary.display().to_string();
        std::fs::write(&unit, text.replace("/usr/bin/provost", &program)).context("cannot write a file")?;
        units.push(unit);
    }
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no"]).args(&units);
    let output = verify.output().context("cannot run systemd-analyze")?;
    let said = String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned();
    if !output.status.success() || said.lines().any(is_about_ours) {
        return Err(Failure::new(said.trim().to_owned()));
    }
    Ok("read by systemd-analyze".to_owned())
}

/// Units of the machine are somebody else's.
fn is_about_ours(line: &str) -> bool {
    line.contains("provost")
}

fn confined(scene: &Scene) -> Outcome<String> {
    confined::run(&scene.binary, &scene.folder)
}

fn image(scene: &Scene) -> Outcome<String> {
    match &scene.dist {
        Some(dist) => image::run(dist),
        None => Ok("NOT built: --dist names the folder of its package".to_owned()),
    }
}
