//! How a page is spoilt, as disks and their drivers do it.

use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::failure::{Context, Failure, Outcome};
use crate::random::Random;

const PAGE: u64 = 4096;
const SECTOR: u64 = 512;

/// Spoils one page of a file; says how. `past` is the same file of some time before.
pub fn one(file: &Path, past: &Path, random: &mut Random) -> Outcome<String> {
    let store = std::fs::OpenOptions::new().read(true).write(true).open(file);
    let store = store.context(file.display())?;
    let pages = store.metadata().context("no size")?.len() / PAGE;
    let (old, old_pages) = {
        let old = std::fs::File::open(past).context(past.display())?;
        let pages = old.metadata().context("no size")?.len() / PAGE;
        (old, pages)
    };
    // Something that changes nothing spoils nothing: then another is tried.
    for _ in 0..1000 {
        let page = random.next() % pages;
        let at = page * PAGE;
        let mut bytes = read(&store, at)?;
        let whole = bytes.clone();
        let place = random.next() % PAGE;
        let sector = place / SECTOR * SECTOR;
        let range = usize::try_from(sector).unwrap_or(0)..usize::try_from(sector + SECTOR).unwrap_or(0);
        let byte = usize::try_from(place).unwrap_or(0);
        let how = match random.next() % 6 {
            0 => {
                bytes[byte] ^= 1 << (random.next() % 8);
                "a flipped bit"
            }
            1 => {
                bytes[byte] = u8::try_from(random.next() % 256).unwrap_or(0);
                "another byte"
            }
            2 => {
                bytes[range].fill(0);
                "a sector of zeros"
            }
            3 if page < old_pages => {
                bytes[range.clone()].copy_from_slice(&read(&old, at)?[range]);
                "a sector of the past"
            }
            4 => {
                bytes.fill_with(|| u8::try_from(random.next() % 256).unwrap_or(0));
                "a page of noise"
            }
            _ => {
                bytes = read(&store, random.next() % pages * PAGE)?;
                "a page of another place"
            }
        };
        if bytes != whole {
            store.write_all_at(&bytes, at).context("cannot write a page")?;
            return Ok(format!("{how} at {place} of page {}", page + 1));
        }
    }
    Err(Failure::new("nothing of the store could be spoilt"))
}

fn read(file: &std::fs::File, at: u64) -> Outcome<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(PAGE).unwrap_or(0)];
    file.read_exact_at(&mut bytes, at).context("cannot read a page")?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_page_differs_afterwards() {
        let folder = std::env::temp_dir().join(format!("provost-spoil-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (file, past) = (folder.join("now"), folder.join("past"));
        let mut random = Random::new(7);
        let whole: Vec<u8> = (0..PAGE * 9)
            .map(|_| u8::try_from(random.next() % 256).unwrap())
            .collect();
        let old: Vec<u8> = whole.iter().map(|byte| byte ^ 1).take(4096 * 5).collect();
        std::fs::write(&past, old).unwrap();
        for _ in 0..200 {
            std::fs::write(&file, &whole).unwrap();
            let how = one(&file, &past, &mut random).unwrap();
            let now = std::fs::read(&file).unwrap();
            let differing = now
                .chunks(4096)
                .zip(whole.chunks(4096))
                .filter(|(a, b)| a != b)
                .count();
            assert_eq!((now.len(), differing), (whole.len(), 1), "{how}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
