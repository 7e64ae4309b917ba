//! What a disk may hold after a loss of power, from what a program wrote to it and when it synced.
//!
//! ```text
//! write, truncate    wait in the file until the file is synced
//! name, rename, …    wait in the folder until the folder is synced
//! loss of power      of what waits, some is there: nothing, everything, the first part, any part, parts of sectors
//! ```
//!
//! Names of one folder survive in the order in which they were changed, as a journal keeps them; bytes survive in any
//! order, and a write in any of its sectors. A file whose name did not survive is gone, synced or not.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::trace::{Call, Op};
use crate::failure::{Context, Failure, Outcome};
use crate::random::Random;

/// What a disk writes whole or not at all. Units: bytes.
const SECTOR: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Folder,
    File(usize),
}

#[derive(Clone)]
enum Change {
    Write { at: usize, bytes: Rc<[u8]> },
    Size(usize),
}

#[derive(Clone, Default)]
struct File {
    synced: Vec<u8>,
    /// With the number of the call.
    waiting: Vec<(usize, Change)>,
}

#[derive(Clone)]
enum DirectoryChange {
    Put(PathBuf, Node),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf),
}

/// A folder and what is below it.
#[derive(Clone, Default)]
pub struct Disk {
    root: PathBuf,
    files: Vec<File>,
    names: BTreeMap<PathBuf, Node>,
    synced: BTreeMap<PathBuf, Node>,
    waiting: Vec<(usize, DirectoryChange)>,
    /// Where the next `write` of a descriptor goes; `None` at the end of the file.
    places: BTreeMap<i64, Option<usize>>,
    calls: usize,
}

/// How much of what waited is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    Nothing,
    Everything,
    /// What came before some call.
    First,
    /// Every write by its own chance.
    Any,
    /// Every sector of a write by its own chance.
    Torn,
}

pub const EACH: [Survival; 5] = [
    Survival::Nothing,
    Survival::Everything,
    Survival::First,
    Survival::Any,
    Survival::Torn,
];

/// Files by their path below the root; `None` is a folder.
pub type Image = BTreeMap<PathBuf, Option<Vec<u8>>>;

impl Disk {
    /// The disk as it is: all of it synced.
    pub fn of(root: &Path) -> Outcome<Self> {
        let mut disk = Self {
            root: root.to_path_buf(),
            ..Self::default()
        };
        let mut folders = vec![root.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).context(folder.display())?.flatten() {
                let path = entry.path();
                let node = if path.is_dir() {
                    folders.push(path.clone());
                    Node::Folder
                } else {
                    let synced = std::fs::read(&path).context(path.display())?;
                    disk.files.push(File {
                        synced,
                        waiting: Vec::new(),
                    });
                    Node::File(disk.files.len() - 1)
                };
                disk.names.insert(path, node);
            }
        }
        disk.synced = disk.names.clone();
        Ok(disk)
    }

    /// Does what a call did.
    ///
    /// Errors: a call on a file that this disk does not know.
    pub fn apply(&mut self, call: &Call) -> Outcome {
        self.calls += 1;
        match &call.op {
            Op::Open {
                path,
                fd,
                creates,
                truncates,
                appends,
            } => {
                if !path.starts_with(&self.root) {
                    self.places.remove(fd);
                    return Ok(());
                }
                if !self.names.contains_key(path) {
                    if !creates {
                        return Ok(());
                    }
                    self.files.push(File::default());
                    self.put(path, Node::File(self.files.len() - 1));
                }
                if *truncates {
                    self.change(path, Change::Size(0))?;
                }
                self.places.insert(*fd, (!appends).then_some(0));
            }
            Op::Write { path, fd, at, bytes } => {
                if !path.starts_with(&self.root) {
                    return Ok(());
                }
                let at = match at {
                    Some(at) => *at,
                    None => match self.places.get(fd).copied().flatten() {
                        Some(place) => {
                            self.places.insert(*fd, Some(place + bytes.len()));
                            place
                        }
                        None => self.content(self.file(path)?, &|_, _| true).len(),
                    },
                };
                self.change(
                    path,
                    Change::Write {
                        at,
                        bytes: bytes.clone(),
                    },
                )?;
            }
            Op::Seek { fd, to } => {
                if let Some(place) = self.places.get_mut(fd).and_then(Option::as_mut) {
                    *place = *to;
                }
            }
            Op::Size { path, size } if path.starts_with(&self.root) => {
                self.change(path, Change::Size(*size))?;
            }
            Op::Sync { path } if path.starts_with(&self.root) => self.sync(path)?,
            Op::Folder { path } if path.starts_with(&self.root) => self.put(path, Node::Folder),
            Op::Link { from, to } if to.starts_with(&self.root) => {
                let node = Node::File(self.file(from)?);
                self.put(to, node);
            }
            Op::Remove { path } if path.starts_with(&self.root) => {
                self.names.remove(path);
                self.waiting
                    .push((self.calls, DirectoryChange::Remove(path.clone())));
            }
            Op::Rename { from, to } if to.starts_with(&self.root) => {
                let naming = DirectoryChange::Rename(from.clone(), to.clone());
                follow(&mut self.names, &naming);
                self.waiting.push((self.calls, naming));
            }
            _ => {}
        }
        Ok(())
    }

    fn put(&mut self, path: &Path, node: Node) {
        self.names.insert(path.to_path_buf(), node);
        self.waiting
            .push((self.calls, DirectoryChange::Put(path.to_path_buf(), node)));
    }

    fn file(&self, path: &Path) -> Outcome<usize> {
        match self.names.get(path) {
            Some(Node::File(number)) => Ok(*number),
            _ => Err(Failure::new(format!(
                "the trace writes to {}, which was not opened",
                path.display()
            ))),
        }
    }

    fn change(&mut self, path: &Path, change: Change) -> Outcome {
        let number = self.file(path)?;
        self.files[number].waiting.push((self.calls, change));
        Ok(())
    }

    fn sync(&mut self, path: &Path) -> Outcome {
        if path == self.root || self.names.get(path) == Some(&Node::Folder) {
            let is_here = |naming: &DirectoryChange| {
                let (DirectoryChange::Put(name, _)
                | DirectoryChange::Remove(name)
                | DirectoryChange::Rename(_, name)) = naming;
                name.parent() == Some(path)
            };
            let (here, elsewhere) = std::mem::take(&mut self.waiting)
                .into_iter()
                .partition(|(_, naming)| is_here(naming));
            self.waiting = elsewhere;
            let here: Vec<(usize, DirectoryChange)> = here;
            for (_, naming) in here {
                follow(&mut self.synced, &naming);
            }
            return Ok(());
        }
        let number = self.file(path)?;
        let content = self.content(number, &|_, _| true);
        self.files[number] = File {
            synced: content,
            waiting: Vec::new(),
        };
        Ok(())
    }

    /// How many changes wait to be synced.
    pub fn waiting(&self) -> usize {
        self.waiting.len() + self.files.iter().map(|file| file.waiting.len()).sum::<usize>()
    }

    /// A file's bytes, with those of the waiting changes that are there: by their call, and by the sector of a write.
    fn content(&self, number: usize, is_there: &dyn Fn(usize, usize) -> bool) -> Vec<u8> {
        let file = &self.files[number];
        let mut content = file.synced.clone();
        for (call, change) in &file.waiting {
            match change {
                Change::Size(size) if is_there(*call, 0) => content.resize(*size, 0),
                Change::Size(_) => {}
                Change::Write { at, bytes } => {
                    for (sector, part) in bytes.chunks(SECTOR).enumerate() {
                        if !is_there(*call, sector) {
                            continue;
                        }
                        let begin = at + sector * SECTOR;
                        if content.len() < begin + part.len() {
                            content.resize(begin + part.len(), 0);
                        }
                        content[begin..begin + part.len()].copy_from_slice(part);
                    }
                }
            }
        }
        content
    }

    /// What the disk may hold if the power is lost now.
    pub fn image(&self, survival: Survival, random: &mut Random) -> Image {
        let last = random.next() % (self.calls as u64 + 1);
        let salt = random.next();
        // One chance for each change, whenever it is asked for.
        let chance = |call: usize, sector: usize| {
            let mut own = Random::part(salt, (call as u64) << 16 | sector as u64);
            own.chance(50)
        };
        let is_there = |call: usize, sector: usize| match survival {
            Survival::Nothing => false,
            Survival::Everything => true,
            Survival::First => (call as u64) <= last,
            Survival::Any => chance(call, 0),
            Survival::Torn => chance(call, sector),
        };
        let mut names = self.synced.clone();
        let mut stopped: Vec<&Path> = Vec::new();
        for (call, naming) in &self.waiting {
            let (DirectoryChange::Put(name, _)
            | DirectoryChange::Remove(name)
            | DirectoryChange::Rename(_, name)) = naming;
            let Some(folder) = name.parent() else { continue };
            if stopped.contains(&folder) {
                continue;
            }
            if is_there(*call, 0) {
                follow(&mut names, naming);
            } else {
                stopped.push(folder);
            }
        }
        let mut image = Image::new();
        for (path, node) in &names {
            let has_folder = path
                .ancestors()
                .skip(1)
                .take_while(|folder| *folder != self.root)
                .all(|folder| names.get(folder) == Some(&Node::Folder));
            let Ok(below) = path.strip_prefix(&self.root) else {
                continue;
            };
            if has_folder {
                let content = match node {
                    Node::Folder => None,
                    Node::File(number) => Some(self.content(*number, &is_there)),
                };
                image.insert(below.to_path_buf(), content);
            }
        }
        image
    }
}

fn follow(names: &mut BTreeMap<PathBuf, Node>, naming: &DirectoryChange) {
    match naming {
        DirectoryChange::Put(path, node) => {
            names.insert(path.clone(), *node);
        }
        DirectoryChange::Remove(path) => {
            names.remove(path);
        }
        DirectoryChange::Rename(from, to) => {
            if let Some(node) = names.remove(from) {
                names.insert(to.clone(), node);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(ops: Vec<Op>) -> Disk {
        let mut disk = Disk {
            root: "/d".into(),
            ..Disk::default()
        };
        for op in ops {
            let at = std::time::Duration::ZERO;
            disk.apply(&Call { at, op }).unwrap();
        }
        disk
    }

    fn open(path: &str, fd: i64) -> Op {
        Op::Open {
            path: path.into(),
            fd,
            creates: true,
            truncates: false,
            appends: false,
        }
    }

    fn write(path: &str, at: Option<usize>, bytes: &[u8]) -> Op {
        Op::Write {
            path: path.into(),
            fd: 3,
            at,
            bytes: bytes.into(),
        }
    }

    fn sync(path: &str) -> Op {
        Op::Sync { path: path.into() }
    }

    fn held(disk: &Disk, survival: Survival) -> Vec<(String, Vec<u8>)> {
        let image = disk.image(survival, &mut Random::new(1));
        image
            .into_iter()
            .map(|(path, content)| (path.display().to_string(), content.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn bytes_need_a_sync_of_the_file_and_its_name_one_of_the_folder() {
        let written = || {
            vec![
                open("/d/a", 3),
                write("/d/a", None, b"one"),
                write("/d/a", None, b"two"),
            ]
        };
        assert_eq!(held(&disk(written()), Survival::Nothing), []);
        assert_eq!(
            held(&disk(written()), Survival::Everything),
            [("a".into(), b"onetwo".to_vec())]
        );
        let mut synced = written();
        synced.push(sync("/d/a"));
        assert_eq!(held(&disk(synced.clone()), Survival::Nothing), []);
        synced.push(sync("/d"));
        synced.push(write("/d/a", Some(1), b"X"));
        assert_eq!(
            held(&disk(synced), Survival::Nothing),
            [("a".into(), b"onetwo".to_vec())]
        );
        let mut named = written();
        named.push(sync("/d"));
        assert_eq!(held(&disk(named), Survival::Nothing), [("a".into(), Vec::new())]);
    }

    #[test]
    fn a_name_that_was_changed_is_the_old_one_until_the_folder_is_synced() {
        let mut ops = vec![
            open("/d/a.tmp", 3),
            write("/d/a.tmp", None, b"new"),
            sync("/d/a.tmp"),
            sync("/d"),
        ];
        ops.push(Op::Rename {
            from: "/d/a.tmp".into(),
            to: "/d/a".into(),
        });
        assert_eq!(held(&disk(ops.clone()), Survival::Nothing)[0].0, "a.tmp");
        ops.push(sync("/d"));
        assert_eq!(
            held(&disk(ops), Survival::Nothing),
            [("a".into(), b"new".to_vec())]
        );
    }

    #[test]
    fn a_torn_write_is_there_in_some_of_its_sectors() {
        let long = vec![7; 64 * SECTOR];
        let disk = disk(vec![open("/d/a", 3), sync("/d"), write("/d/a", Some(0), &long)]);
        let torn = &held(&disk, Survival::Torn)[0].1;
        let there = torn.chunks(SECTOR).filter(|sector| sector[0] == 7).count();
        assert!(there > 8 && there < 56, "{there} of 64");
    }

    #[test]
    fn a_seek_and_an_append_decide_where_bytes_go() {
        let appends = Op::Open {
            path: "/d/log".into(),
            fd: 3,
            creates: true,
            truncates: false,
            appends: true,
        };
        let mut ops = vec![appends, write("/d/log", None, b"a"), write("/d/log", None, b"b")];
        assert_eq!(held(&disk(ops.clone()), Survival::Everything)[0].1, b"ab");
        ops.push(Op::Size {
            path: "/d/log".into(),
            size: 1,
        });
        assert_eq!(held(&disk(ops), Survival::Everything)[0].1, b"a");
        let seeks = vec![
            open("/d/a", 3),
            write("/d/a", None, b"abc"),
            Op::Seek { fd: 3, to: 1 },
            write("/d/a", None, b"X"),
        ];
        assert_eq!(held(&disk(seeks), Survival::Everything)[0].1, b"aXc");
    }
}
