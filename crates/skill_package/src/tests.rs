//! Hostile and ordinary archives, written byte by byte where a library would refuse to write them.

use super::*;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use proptest::prelude::*;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

const SKILL: &str = "---\nname: reading\ndescription: Reads things. Use it to read.\n---\n# Reading\n";

/// A folder that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let unique = format!(
            "skill-package-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(unique);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn join(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn tar_entry(tar: &mut Vec<u8>, name: &[u8], kind: u8, mode: u32, content: &[u8]) {
    tar_header(tar, name, kind, mode, content.len() as u64);
    tar.extend_from_slice(content);
    tar.resize(tar.len().next_multiple_of(512), 0);
}

fn tar_header(tar: &mut Vec<u8>, name: &[u8], kind: u8, mode: u32, size: u64) {
    let mut header = tar::Header::new_gnu();
    let bytes = header.as_mut_bytes();
    bytes[..name.len().min(100)].copy_from_slice(&name[..name.len().min(100)]);
    bytes[156] = kind;
    header.set_mode(mode);
    header.set_size(size);
    header.set_link_name_literal("target").unwrap();
    header.set_cksum();
    if name.len() > 100 {
        tar_entry(tar, b"././@LongLink", b'L', 0o644, &[name, &[0]].concat());
    }
    tar.extend_from_slice(header.as_bytes());
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// An archive of files, in this order.
fn tar_gz(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, content) in files {
        tar_entry(&mut tar, name.as_bytes(), b'0', 0o644, content.as_bytes());
    }
    tar.resize(tar.len() + 1_024, 0);
    gzip(&tar)
}

/// `SKILL.md` and one more entry.
fn tar_gz_with(name: &[u8], kind: u8, content: &[u8]) -> Vec<u8> {
    let mut tar = Vec::new();
    tar_entry(&mut tar, b"SKILL.md", b'0', 0o644, SKILL.as_bytes());
    tar_entry(&mut tar, name, kind, 0o644, content);
    tar.resize(tar.len() + 1_024, 0);
    gzip(&tar)
}

struct ZipEntry<'a> {
    name: &'a [u8],
    content: &'a [u8],
    mode: u32,
    flags: u16,
    /// What the headers claim; the content's length when absent.
    claimed: Option<u32>,
}

fn zipped<'a>(name: &'a str, content: &'a [u8]) -> ZipEntry<'a> {
    ZipEntry {
        name: name.as_bytes(),
        content,
        mode: 0o100_644,
        flags: 0x800,
        claimed: None,
    }
}

fn zip_of(entries: &[ZipEntry<'_>]) -> Vec<u8> {
    let (mut zip, mut central) = (Vec::new(), Vec::new());
    for entry in entries {
        let mut deflated = DeflateEncoder::new(Vec::new(), Compression::fast());
        deflated.write_all(entry.content).unwrap();
        let deflated = deflated.finish().unwrap();
        let offset = u32::try_from(zip.len()).unwrap();
        let size = entry
            .claimed
            .unwrap_or(u32::try_from(entry.content.len()).unwrap());
        let mut shared = Vec::new();
        shared.extend_from_slice(&20_u16.to_le_bytes());
        shared.extend_from_slice(&entry.flags.to_le_bytes());
        shared.extend_from_slice(&[8, 0, 0, 0, 0x21, 0]);
        let mut crc = flate2::Crc::new();
        crc.update(entry.content);
        shared.extend_from_slice(&crc.sum().to_le_bytes());
        shared.extend_from_slice(&u32::try_from(deflated.len()).unwrap().to_le_bytes());
        shared.extend_from_slice(&size.to_le_bytes());
        shared.extend_from_slice(&u16::try_from(entry.name.len()).unwrap().to_le_bytes());
        shared.extend_from_slice(&[0, 0]);
        zip.extend_from_slice(b"PK\x03\x04");
        zip.extend_from_slice(&shared);
        zip.extend_from_slice(entry.name);
        zip.extend_from_slice(&deflated);
        central.extend_from_slice(b"PK\x01\x02\x14\x03");
        central.extend_from_slice(&shared);
        central.extend_from_slice(&[0; 6]);
        central.extend_from_slice(&(entry.mode << 16).to_le_bytes());
        central.extend_from_slice(&offset.to_le_bytes());
        central.extend_from_slice(entry.name);
    }
    let start = u32::try_from(zip.len()).unwrap();
    let count = u16::try_from(entries.len()).unwrap();
    zip.extend_from_slice(&central);
    zip.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    zip.extend_from_slice(&count.to_le_bytes());
    zip.extend_from_slice(&count.to_le_bytes());
    zip.extend_from_slice(&u32::try_from(central.len()).unwrap().to_le_bytes());
    zip.extend_from_slice(&start.to_le_bytes());
    zip.extend_from_slice(&[0, 0]);
    zip
}

fn from_tar(bytes: &[u8]) -> Result<Package, Vec<Fault>> {
    Package::from_archive("application/gzip", bytes)
}

fn from_zip(bytes: &[u8]) -> Result<Package, Vec<Fault>> {
    Package::from_archive("application/zip", bytes)
}

/// Returns the faults as lines, for comparison.
fn told(result: Result<Package, Vec<Fault>>) -> Vec<String> {
    let faults = result.expect_err("the package should be refused");
    faults
        .into_iter()
        .map(|fault| format!("{}: {}", fault.path, fault.message))
        .collect()
}

#[track_caller]
fn refused(result: Result<Package, Vec<Fault>>, words: &str) {
    let told = told(result);
    assert!(
        told.iter().any(|line| line.contains(words)),
        "{words:?} is not in {told:?}"
    );
}

#[test]
fn a_name_is_as_the_format_says() {
    for name in ["a", "a1", "pdf-processing", "0", &"a".repeat(64)] {
        assert!(is_valid_name(name), "{name}");
    }
    for name in [
        "",
        "A",
        "-a",
        "a-",
        "a--b",
        "a_b",
        "a.b",
        "a/b",
        "ä",
        "a b",
        &"a".repeat(65),
    ] {
        assert!(!is_valid_name(name), "{name}");
    }
}

/// Proves SP-3.
#[test]
fn one_content_is_one_package_whatever_it_came_from() {
    let scratch = Scratch::new();
    scratch.write("reading/SKILL.md", SKILL);
    scratch.write("reading/scripts/run.sh", "#!/bin/sh\n");
    fs::set_permissions(
        scratch.join("reading/scripts/run.sh"),
        fs::Permissions::from_mode(0o700),
    )
    .unwrap();
    let folder = Package::from_folder(&scratch.join("reading")).unwrap();

    let mut tar = Vec::new();
    tar_entry(&mut tar, b"pax_global_header", b'g', 0o644, b"13 comment=a\n");
    tar_entry(&mut tar, b"./", b'5', 0o755, b"");
    tar_entry(&mut tar, b"./scripts/", b'5', 0o755, b"");
    tar_entry(&mut tar, b"./scripts/run.sh", b'0', 0o4777, b"#!/bin/sh\n");
    tar_entry(&mut tar, b"./SKILL.md", b'0', 0o600, SKILL.as_bytes());
    let tar = from_tar(&gzip(&tar)).unwrap();
    let run = ZipEntry {
        mode: 0o100_755,
        ..zipped("reading/scripts/run.sh", b"#!/bin/sh\n")
    };
    let zip = from_zip(&zip_of(&[run, zipped("reading/SKILL.md", SKILL.as_bytes())])).unwrap();

    assert_eq!(folder, tar);
    assert_eq!(folder, zip);
    assert_eq!(folder.to_archive(), zip.to_archive());
    assert_eq!(from_tar(&folder.to_archive()).unwrap(), folder);
}

/// Proves SP-3.
#[test]
fn the_digest_is_that_of_the_documented_listing() {
    let package = from_tar(&tar_gz(&[("SKILL.md", SKILL), ("B", "b"), ("a", "a")])).unwrap();
    let listing = format!(
        "provost-skill 1\n0644 {} B\n0644 {} SKILL.md\n0644 {} a\n",
        manifest::sha256(b"b"),
        manifest::sha256(SKILL.as_bytes()),
        manifest::sha256(b"a"),
    );
    let expected = format!("sha256:{}", manifest::sha256(listing.as_bytes()));
    assert_eq!(package.manifest().digest, expected);
    assert_eq!(digest_of(&package.manifest().files), expected);
}

#[test]
fn the_front_matter_stands_in_the_manifest() {
    let skill = "---\r\nname: reading # the name\ndescription: >-\n  Reads\n  things.\nlicense: 'Apache-2.0'\n\
        compatibility: \"needs: a shell\"\nmetadata:\n  author: acme\n  version: 1.0\nallowed-tools: Bash(git add:*), Read\n\
        disable-model-invocation: true\nhooks:\n  - {a: [b]}\n---\n";
    let package = from_tar(&tar_gz(&[("SKILL.md", skill)])).unwrap();
    let mut shown = serde_json::to_value(package.manifest()).unwrap();
    let members = shown.as_object_mut().unwrap();
    members.remove("files");
    members.remove("digest");
    assert_eq!(
        shown,
        serde_json::json!({
            "name": "reading",
            "description": "Reads things.",
            "license": "Apache-2.0",
            "compatibility": "needs: a shell",
            "metadata": { "author": "acme", "version": "1.0" },
            "allowedTools": ["Bash(git add:*)", "Read"],
        })
    );
}

#[test]
fn front_matter_that_is_none_is_refused_with_its_reason() {
    let long = format!("---\nname: {}\ndescription: b\n---\n", "n".repeat(256));
    let deep = format!("---\nname: a\ndescription: b\nx: {}\n---\n", "[".repeat(200));
    let cases = [
        ("# Reading\n", "must begin with a line ---"),
        ("---\nname: a\n", "no second line ---"),
        ("---\n---\n", "is no map"),
        ("---\n- a\n---\n", "is no map"),
        ("---\nname: reading\n---\n", "description is missing"),
        (
            "---\ndescription: b\n---\n",
            "the skill has no name: a name is 1 to 64 of a-z, 0-9 and -, with no hyphen first, last or twice in a row; say one: \
             provost skills publish FOLDER --name my-skill",
        ),
        (
            "---\nname: Reading Things!\ndescription: b\n---\n",
            "provost skills publish FOLDER --name reading-things",
        ),
        ("---\nname: ''\ndescription: b\n---\n", "name must have 1 to 255"),
        (
            "---\nname: \"a\\eb\"\ndescription: b\n---\n",
            "name has a control character",
        ),
        ("---\nname: [a]\ndescription: b\n---\n", "name must be a text"),
        (
            "---\nname: a\ndescription: ''\n---\n",
            "description must have 1 to 16384 characters",
        ),
        (&long, "name must have 1 to 255 characters"),
        ("---\nname: a\ndescription: b\nname: c\n---\n", "\"name\" twice"),
        ("---\nname: a\ndescription: b: c\nx: [\n---\n", "is no YAML"),
        ("---\nname: a\ndescription: b: c # d\n---\n", "is no YAML"),
        ("---\nname: a\ndescription: {b: c: d}\n---\n", "is no YAML"),
        ("---\nname: a\ndescription: b: c\n  and more\n---\n", "is no YAML"),
        ("---\nname: a\ndescription: b: c\nname: d\n---\n", "is no YAML"),
        ("---\nname: &x a\ndescription: *x\n---\n", "anchor or a tag"),
        ("---\nname: !!str a\ndescription: b\n---\n", "anchor or a tag"),
        (
            "---\nname: a\ndescription: \"b\\a\"\n---\n",
            "description has a control character",
        ),
        (&deep, "front matter is"),
    ];
    for (skill, words) in cases {
        refused(from_tar(&tar_gz(&[("SKILL.md", skill)])), words);
    }
    let mut tar = Vec::new();
    tar_entry(&mut tar, b"SKILL.md", b'0', 0o644, b"---\nname: a\xff\n---\n");
    refused(from_tar(&gzip(&tar)), "not UTF-8");
}

#[test]
fn every_fault_is_told_at_once() {
    let mut tar = Vec::new();
    tar_entry(&mut tar, b"SKILL.md", b'0', 0o644, b"---\nname: reading\n---\n");
    tar_entry(&mut tar, b"../up", b'0', 0o644, b"");
    tar_entry(&mut tar, b"link", b'2', 0o644, b"");
    tar_entry(&mut tar, b"aux.txt", b'0', 0o644, b"");
    assert_eq!(
        told(from_tar(&gzip(&tar))),
        [
            "../up: the path leads out of the package (\"..\")",
            "link: a link cannot be part of a skill",
            "aux.txt: the path has a name that Windows keeps for a device",
            "SKILL.md: description is missing in the front matter",
        ]
    );
}

/// Proves SP-1.
#[test]
fn paths_that_mean_something_else_somewhere_are_refused() {
    let long_name = "a".repeat(256);
    let deep = ["a"; 17].join("/");
    let cases: Vec<(&[u8], &str)> = vec![
        (b"../x", "leads out"),
        (b"a/../../x", "leads out"),
        (b"/etc/passwd", "absolute"),
        (b"//x", "absolute"),
        (b"a//b", "empty component"),
        (b"a/./b", "component \".\""),
        (b"a\\..\\b", "backslash"),
        (b"C:/x", "not every system"),
        (b"a:stream", "not every system"),
        (b"NUL", "Windows keeps"),
        (b"a/com1.tar.gz", "Windows keeps"),
        ("lpt\u{b9}".as_bytes(), "Windows keeps"),
        (b"a.", "dot or a space"),
        (b"a /b", "dot or a space"),
        (b"a\x01b", "control character"),
        (b"a\nb", "control character"),
        ("a\u{202e}b".as_bytes(), "hides text"),
        (b"\xff\xfe", "not UTF-8"),
        (b".git/hooks/post-checkout", "version control"),
        (b"a/.GIT/config", "version control"),
        (long_name.as_bytes(), "more than 255 bytes"),
        (deep.as_bytes(), "more than 16 names"),
    ];
    for (name, words) in cases {
        refused(from_tar(&tar_gz_with(name, b'0', b"x")), words);
        let entry = ZipEntry {
            name,
            ..zipped("", b"x")
        };
        refused(
            from_zip(&zip_of(&[zipped("SKILL.md", SKILL.as_bytes()), entry])),
            words,
        );
    }
    // A zip can hold NUL in a name; a tar ends there.
    let nul = zip_of(&[zipped("SKILL.md", SKILL.as_bytes()), zipped("a\0b", b"x")]);
    refused(from_zip(&nul), "control character");
}

#[test]
fn what_is_no_file_is_refused() {
    for (kind, words) in [
        (b'1', "a link"),
        (b'2', "a link"),
        (b'3', "a device"),
        (b'4', "a device"),
        (b'6', "a pipe"),
        (b'7', "an unknown type"),
        (b'Z', "an unknown type"),
    ] {
        refused(from_tar(&tar_gz_with(b"entry", kind, b"")), words);
    }
    for (mode, words) in [
        (0o120_777, "a link"),
        (0o010_644, "a device or pipe"),
        (0o060_644, "a device or pipe"),
    ] {
        let entry = ZipEntry {
            mode,
            ..zipped("entry", b"SKILL.md")
        };
        refused(
            from_zip(&zip_of(&[zipped("SKILL.md", SKILL.as_bytes()), entry])),
            words,
        );
    }
    let encrypted = ZipEntry {
        flags: 0x801,
        ..zipped("entry", b"secret of some length")
    };
    refused(
        from_zip(&zip_of(&[zipped("SKILL.md", SKILL.as_bytes()), encrypted])),
        "encrypted",
    );
}

/// Proves SP-1.
#[test]
fn paths_that_are_one_on_some_system_are_refused() {
    for (one, other) in [
        ("a/b", "a/b"),
        ("a/b", "a/B"),
        ("A/x", "a/y"),
        ("caf\u{e9}", "cafe\u{301}"),
        ("stra\u{df}e", "STRASSE"),
        ("a", "a/b"),
        ("a/b", "a"),
        ("skill.md", "x"),
    ] {
        let files = [("SKILL.md", SKILL), (one, "1"), (other, "2")];
        assert!(from_tar(&tar_gz(&files)).is_err(), "{one} {other}");
        let entries: Vec<ZipEntry<'_>> = files
            .iter()
            .map(|(name, text)| zipped(name, text.as_bytes()))
            .collect();
        assert!(from_zip(&zip_of(&entries)).is_err(), "{one} {other}");
    }
}

#[test]
fn a_top_folder_holds_everything() {
    refused(
        from_tar(&tar_gz(&[("reading/SKILL.md", SKILL), ("other/x", "")])),
        "no SKILL.md at the root",
    );
    refused(
        from_tar(&tar_gz(&[("reading/skill.md", SKILL)])),
        "no SKILL.md at the root",
    );
    refused(from_tar(&tar_gz(&[])), "no SKILL.md at the root");
    let scratch = Scratch::new();
    refused(Package::from_folder(&scratch.join("absent")), "cannot be read");
}

/// Reads one `SKILL.md` in a folder, with a name that is given.
fn in_folder(folder: &str, skill: &str, given: Option<&str>) -> Result<Package, Vec<Fault>> {
    let scratch = Scratch::new();
    scratch.write(&format!("{folder}/SKILL.md"), skill);
    Package::from_folder_named(&scratch.join(folder), given)
}

#[test]
fn the_name_is_the_front_matter_s_or_the_folder_s_or_the_given_one() {
    let named = |name: &str| format!("---\n{name}description: d\n---\n");
    for (folder, name, given, chosen, is_warned) in [
        ("reading", "name: reading\n", None, "reading", false),
        ("writing", "name: reading\n", None, "reading", true),
        ("b", "name: Title Case Name\n", None, "b", true),
        ("e", "", None, "e", false),
        ("My Skill", "name: My Skill\n", Some("my-skill"), "my-skill", true),
        ("My Skill", "", Some("my-skill"), "my-skill", true),
        ("b", "name: b\n", Some("b"), "b", false),
    ] {
        let package = in_folder(folder, &named(name), given).unwrap();
        assert_eq!(package.manifest().name, chosen);
        assert_eq!(
            !package.warnings().is_empty(),
            is_warned,
            "{:?}",
            package.warnings()
        );
        assert_eq!(package.names().folder.as_deref(), Some(folder));
        // The name survives its own archive.
        let again = from_tar(&package.to_archive()).unwrap();
        assert_eq!((&again, again.manifest().name.as_str()), (&package, chosen));
        assert_eq!(again.names().front_matter, package.names().front_matter);
    }
    for (folder, name, given, words) in [
        ("My Skill", "name: Mine\n", None, "--name mine"),
        ("My Skill", "", None, "--name my-skill"),
        ("My Skill", "", Some("My"), "--name \"My\" does not fit"),
        ("b", "name: a\n", Some("c"), "leave --name c out"),
        ("b", "", Some("c"), "leave --name c out"),
    ] {
        refused(in_folder(folder, &named(name), given), words);
    }
}

#[test]
fn content_is_called_as_the_registry_has_it_unless_it_says_its_name() {
    let open = "---\nname: Title Case\ndescription: d\n---\n";
    let (a, b) = (in_folder("a", open, None), in_folder("b", open, None));
    let (a, b) = (a.unwrap(), b.unwrap());
    assert_eq!(a.manifest().digest, b.manifest().digest);
    assert_ne!(a, b);
    assert_eq!(a.clone().called("b"), b);
    assert_eq!(a.clone().called("../b"), a, "no name");
    let settled = in_folder("a", "---\nname: c\ndescription: d\n---\n", None).unwrap();
    assert_eq!(settled.clone().called("b"), settled);
}

#[test]
fn what_does_no_harm_is_a_warning() {
    let long = "d".repeat(1_090);
    for (front, words, description) in [
        (format!("description: {long}"), "more than 1024", long.as_str()),
        (
            "description: d\nmetadata: {tags: [x, y]}".into(),
            "in \"tags\"; it is shown as JSON",
            "d",
        ),
        ("description: d\nmetadata: [x]".into(), "metadata is no map", "d"),
        ("description: d\nlicense: [MIT]".into(), "license is no text", "d"),
        (
            "description: d\nallowed-tools: {a: b}".into(),
            "allowed-tools is no text",
            "d",
        ),
        (
            "description: use this when: asked, it's: ok".into(),
            "description has a colon",
            "use this when: asked, it's: ok",
        ),
    ] {
        let skill = format!("---\nname: f\n{front}\n---\n");
        let package = in_folder("f", &skill, None).unwrap();
        assert_eq!(package.manifest().description, description);
        let [warning] = package.warnings() else {
            panic!("{:?}", package.warnings())
        };
        assert!(warning.contains(words), "{warning}");
        assert_eq!(package.file(SKILL_FILE), Some(skill.as_bytes()), "bytes stay");
    }
    let skill = "---\nname: f\ndescription: d\nmetadata: {tags: [x, {y: z}]}\n---\n";
    let metadata = in_folder("f", skill, None).unwrap().manifest().metadata.clone();
    assert_eq!(metadata.unwrap()["tags"], r#"["x",{"y":"z"}]"#);
}

#[test]
fn the_skills_of_this_repository_are_valid() {
    let skills = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../skills");
    let mut count = 0;
    for entry in fs::read_dir(skills).unwrap() {
        let package = Package::from_folder(&entry.unwrap().path()).unwrap();
        assert!(package.manifest().license.is_some());
        count += 1;
    }
    assert!(count >= 2);
}

#[test]
fn a_folder_with_links_or_pipes_is_refused() {
    let scratch = Scratch::new();
    scratch.write("reading/SKILL.md", SKILL);
    symlink("/etc/passwd", scratch.join("reading/passwd")).unwrap();
    symlink("/etc", scratch.join("reading/etc")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(scratch.join("reading/s")).unwrap();
    assert_eq!(
        told(Package::from_folder(&scratch.join("reading"))),
        [
            "etc: a link cannot be part of a skill",
            "passwd: a link cannot be part of a skill",
            "s: a device or socket cannot be part of a skill",
        ]
    );
}

/// Proves SP-2.
#[test]
fn too_many_files_stop_the_reader() {
    let mut tar = Vec::new();
    tar_entry(&mut tar, b"SKILL.md", b'0', 0o644, SKILL.as_bytes());
    for number in 0..10_000 {
        tar_entry(&mut tar, format!("f{number}").as_bytes(), b'0', 0o644, b"");
    }
    refused(from_tar(&gzip(&tar)), "more than 1000 files");
    let names: Vec<String> = (0..10_000).map(|number| format!("d{number}/")).collect();
    let entries: Vec<ZipEntry<'_>> = names.iter().map(|name| zipped(name, b"")).collect();
    refused(from_zip(&zip_of(&entries)), "more than 2000 files and folders");
}

/// Proves SP-2.
#[test]
fn a_bomb_stops_at_the_limit() {
    let zeros = vec![0; 6 << 20];
    // 20 files of 6 MiB say that they are of one byte.
    let names: Vec<String> = (0..20).map(|number| format!("f{number}")).collect();
    let bombs: Vec<ZipEntry<'_>> = names
        .iter()
        .map(|name| ZipEntry {
            claimed: Some(1),
            ..zipped(name, &zeros)
        })
        .collect();
    let bomb = zip_of(&bombs);
    assert!(bomb.len() < 1 << 20);
    refused(from_zip(&bomb), "larger than its declared");
    // The same, and the headers say the truth.
    let honest: Vec<ZipEntry<'_>> = names.iter().map(|name| zipped(name, &zeros)).collect();
    refused(from_zip(&zip_of(&honest)), "more than 52428800 bytes together");

    let mut tar = Vec::new();
    tar_entry(&mut tar, b"SKILL.md", b'0', 0o644, SKILL.as_bytes());
    for name in &names {
        tar_entry(&mut tar, name.as_bytes(), b'0', 0o644, &zeros[..5 << 20]);
    }
    refused(from_tar(&gzip(&tar)), "more than 52428800 bytes together");
    // A long name, a comment and what is skipped count too.
    for kind in [b'L', b'x', b'g', b'2'] {
        let mut tar = Vec::new();
        for _ in 0..11 {
            tar_entry(&mut tar, b"x", kind, 0o644, &zeros);
        }
        assert!(from_tar(&gzip(&tar)).is_err());
    }
    let mut tar = Vec::new();
    tar_entry(&mut tar, b"x", b'L', 0o644, &vec![b'a'; 60 << 20]);
    refused(from_tar(&gzip(&tar)), "more than 52428800 bytes together");
}

#[test]
fn one_large_file_is_named() {
    let large = "x".repeat(5 << 20);
    let larger = format!("{large}x");
    assert!(from_tar(&tar_gz(&[("SKILL.md", SKILL), ("large", &large)])).is_ok());
    refused(
        from_tar(&tar_gz(&[("SKILL.md", SKILL), ("large", &larger)])),
        "the file has more than 5242880 bytes",
    );
}

#[test]
fn an_archive_that_would_be_too_large_is_refused() {
    // Bytes that do not compress.
    let mut noise = Vec::with_capacity(22 << 20);
    let mut state = 1_u64;
    while noise.len() < 22 << 20 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        noise.extend_from_slice(&(state >> 16).to_le_bytes()[..4]);
    }
    let scratch = Scratch::new();
    scratch.write("reading/SKILL.md", SKILL);
    for (number, part) in noise.chunks(4 << 20).enumerate() {
        scratch.write(&format!("reading/{number}"), part);
    }
    refused(
        Package::from_folder(&scratch.join("reading")),
        "the archive of the skill has more than",
    );
    refused(from_tar(&noise), "the archive has more than");
}

#[test]
fn a_truncated_or_longer_archive_is_refused() {
    let whole = tar_gz(&[("SKILL.md", SKILL), ("a", "some more text")]);
    for end in 0..whole.len() {
        assert!(from_tar(&whole[..end]).is_err(), "cut at {end}");
    }
    refused(
        from_tar(&[whole.as_slice(), b"x"].concat()),
        "goes on behind its end",
    );
    refused(
        from_tar(&[whole.as_slice(), &whole].concat()),
        "goes on behind its end",
    );
    let mut tar = Vec::new();
    tar_entry(&mut tar, b"SKILL.md", b'0', 0o644, SKILL.as_bytes());
    tar.resize(tar.len() + 1_024, 0);
    tar_entry(&mut tar, b"hidden", b'0', 0o644, b"");
    refused(from_tar(&gzip(&tar)), "goes on behind its end");
    let mut tar = Vec::new();
    tar_header(&mut tar, b"SKILL.md", b'0', 0o644, 9_999);
    tar.extend_from_slice(SKILL.as_bytes());
    refused(from_tar(&gzip(&tar)), "ends inside of this file");

    let whole = zip_of(&[
        zipped("SKILL.md", SKILL.as_bytes()),
        zipped("a", b"some more text"),
    ]);
    assert!(from_zip(&whole).is_ok());
    for end in 0..whole.len() {
        assert!(from_zip(&whole[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn another_kind_of_bytes_is_refused() {
    assert!(from_tar(b"").is_err());
    assert!(from_zip(b"").is_err());
    assert!(from_tar(&gzip(b"no tar at all, but long enough to be looked at")).is_err());
    assert!(from_zip(&tar_gz(&[("SKILL.md", SKILL)])).is_err());
    refused(
        Package::from_archive("text/plain", b""),
        "must be one of application/gzip, application/zip",
    );
}

/// Proves SP-4.
#[test]
fn unpacking_leaves_all_or_nothing() {
    let scratch = Scratch::new();
    let package = from_tar(&tar_gz(&[("SKILL.md", SKILL), ("deep/er/x", "x")])).unwrap();
    // What an interrupted run left.
    scratch.write(".reading.provost-new/old", "old");
    package.unpack(&scratch.join("reading")).unwrap();
    assert_eq!(Package::from_folder(&scratch.join("reading")).unwrap(), package);
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 1);

    let again = package.unpack(&scratch.join("reading")).unwrap_err();
    assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    symlink("nowhere", scratch.join("dangling")).unwrap();
    let dangling = package.unpack(&scratch.join("dangling")).unwrap_err();
    assert_eq!(dangling.kind(), io::ErrorKind::AlreadyExists);
    assert!(package.unpack(&scratch.join("absent/reading")).is_err());
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 2);
}

/// Names that are almost right and names that are not.
fn any_path() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        6 => "[a-cA-C]{1,2}",
        1 => Just("..".to_owned()),
        1 => Just(".".to_owned()),
        1 => Just(String::new()),
        1 => Just("SKILL.md".to_owned()),
        1 => "\\PC{1,3}",
        1 => Just("a\\b".to_owned()),
    ];
    prop_oneof![
        9 => prop::collection::vec(part, 1..5).prop_map(|parts| parts.join("/").into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ]
}

/// All files below a folder, as paths from there.
fn walk(folder: &Path, below: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            walk(&path, below, found);
        } else {
            assert!(meta.is_file());
            found.push(path.strip_prefix(below).unwrap().to_str().unwrap().to_owned());
        }
    }
}

/// INVARIANT SP-1: what is accepted unpacks into its folder, to exactly what the manifest lists.
fn stays_inside(result: Result<Package, Vec<Fault>>) {
    let Ok(package) = result else { return };
    let scratch = Scratch::new();
    package.unpack(&scratch.join("a/reading")).unwrap_err();
    fs::create_dir(scratch.join("a")).unwrap();
    package.unpack(&scratch.join("a/reading")).unwrap();
    let mut found = Vec::new();
    walk(&scratch.0, &scratch.join("a/reading"), &mut found);
    found.sort();
    let listed: Vec<&str> = package
        .manifest()
        .files
        .iter()
        .map(|file| file.path.as_str())
        .collect();
    assert_eq!(found, listed);
    assert_eq!(Package::from_folder(&scratch.join("a/reading")).unwrap(), package);
    assert_eq!(from_tar(&package.to_archive()).unwrap(), package);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Proves SP-1.
    #[test]
    fn no_archive_escapes_its_folder(
        entries in prop::collection::vec((any_path(), prop::sample::select(b"0000005126x".to_vec())), 0..6),
    ) {
        let mut tar = Vec::new();
        tar_entry(&mut tar, b"SKILL.md", b'0', 0o644, SKILL.as_bytes());
        let mut zip = vec![zipped("SKILL.md", SKILL.as_bytes())];
        for (name, kind) in &entries {
            tar_entry(&mut tar, name, *kind, 0o755, if *kind == b'5' { b"" } else { b"x" });
            zip.push(ZipEntry { name, ..zipped("", b"x") });
        }
        stays_inside(from_tar(&gzip(&tar)));
        stays_inside(from_zip(&zip_of(&zip)));
    }

    #[test]
    fn damaged_archives_never_panic(at in 0_usize..2_000, byte: u8, cut in 0_usize..2_000) {
        let mut tar = Vec::new();
        tar_entry(&mut tar, b"reading/SKILL.md", b'0', 0o644, SKILL.as_bytes());
        tar_entry(&mut tar, "reading/long".repeat(20).as_bytes(), b'0', 0o755, b"x");
        let zip = zip_of(&[zipped("SKILL.md", SKILL.as_bytes()), zipped("a/b", b"x")]);
        let damage = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.remove(cut % bytes.len());
            bytes
        };
        stays_inside(from_zip(&damage(&zip)));
        stays_inside(from_tar(&damage(&gzip(&tar))));
        stays_inside(from_tar(&gzip(&damage(&tar))));
    }

    #[test]
    fn no_text_makes_the_front_matter_panic(text in "(?s)(---\n)?(name|description|metadata|[:\\-\\[\\]{}&*!|>'\"%@#, \n\t]|.){0,40}\n---\n") {
        let _ = front_matter::read(text.as_bytes());
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        prop_assert!(from_tar(&bytes).is_err());
        prop_assert!(from_zip(&bytes).is_err());
        let _ = from_tar(&gzip(&bytes));
    }
}
