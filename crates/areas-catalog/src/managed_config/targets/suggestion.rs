//! The known word that somebody may have meant.

/// LIMIT: a slip is at most this many letters.
const MAX_SLIPS: usize = 2;
/// LIMIT: a longer word is nobody's slip. The distance of two words takes the product of their lengths.
const MAX_LETTERS: usize = 64;

/// Returns the known word that differs from this one by case or by two letters at most, and by less than half of it.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let letters = word.chars().take(MAX_LETTERS + 1).count();
    if letters > MAX_LETTERS {
        return None;
    }
    let lower = word.to_lowercase();
    let near = known.filter(|other| other.chars().count().abs_diff(letters) <= MAX_SLIPS);
    let near = near.map(|other| (strsim::osa_distance(&lower, &other.to_lowercase()), other));
    let near = near.filter(|(slips, other)| *slips <= MAX_SLIPS && slips * 2 < other.chars().count());
    near.min().map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_found_and_another_word_is_not() {
        let near = |word: &str| nearest(word, ["permissions", "model", "env"].into_iter());
        assert_eq!(near("permisions"), Some("permissions"));
        assert_eq!(near("Permissions"), Some("permissions"));
        assert_eq!(near("modle"), Some("model"));
        assert_eq!(near("hooks"), None);
        assert_eq!(near("e"), None);
        assert_eq!(near(&"permissions".repeat(200_000)), None);
    }
}
