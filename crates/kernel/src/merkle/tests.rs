use super::*;
use proptest::prelude::*;

/// The tree hash as RFC 9162 §2.1.1 states it.
fn naive(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => sha256(&[]),
        [leaf] => *leaf,
        _ => {
            let (left, right) = leaves.split_at(split_at(leaves.len()));
            node(&naive(left), &naive(right))
        }
    }
}

/// `PATH(m, D_n)` as RFC 9162 §2.1.3.1 states it.
fn naive_path(m: usize, leaves: &[Hash]) -> Vec<Hash> {
    if leaves.len() == 1 {
        return Vec::new();
    }
    let split = split_at(leaves.len());
    let (left, right) = leaves.split_at(split);
    if m < split {
        return [naive_path(m, left), vec![naive(right)]].concat();
    }
    [naive_path(m - split, right), vec![naive(left)]].concat()
}

/// `SUBPROOF(m, D_n, b)` as RFC 9162 §2.1.4.1 states it.
fn naive_subproof(m: usize, leaves: &[Hash], is_whole: bool) -> Vec<Hash> {
    if m == leaves.len() {
        return if is_whole { Vec::new() } else { vec![naive(leaves)] };
    }
    let split = split_at(leaves.len());
    let (left, right) = leaves.split_at(split);
    if m <= split {
        return [naive_subproof(m, left, is_whole), vec![naive(right)]].concat();
    }
    [naive_subproof(m - split, right, false), vec![naive(left)]].concat()
}

fn split_at(count: usize) -> usize {
    let mut split = 1;
    while 2 * split < count {
        split *= 2;
    }
    split
}

fn leaves(count: usize) -> Vec<Hash> {
    (0..count).map(|n| leaf(n.to_string().as_bytes())).collect()
}

fn changed(hash: &Hash) -> Hash {
    let mut hash = *hash;
    hash[31] ^= 1;
    hash
}

#[test]
fn roots_answer_the_vectors_of_certificate_transparency() {
    let data: [&[u8]; 8] = [
        b"",
        b"\x00",
        b"\x10",
        b"\x20\x21",
        b"\x30\x31",
        b"\x40\x41\x42\x43",
        b"\x50\x51\x52\x53\x54\x55\x56\x57",
        b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
    ];
    let mut nodes = MemoryNodes(data.iter().map(|data| leaf(data)).collect());
    for (size, expected) in [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ]
    .iter()
    .enumerate()
    {
        let root = root(size as u64, &mut nodes).unwrap();
        let shown: Vec<_> = root.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(shown.concat(), *expected, "size {size}");
    }
}

#[test]
fn roots_and_inclusion_paths_are_those_of_the_definition() {
    for size in 0..=70 {
        let leaves = leaves(size);
        let mut nodes = MemoryNodes(leaves.clone());
        let root = root(size as u64, &mut nodes).unwrap();
        assert_eq!(root, naive(&leaves), "size {size}");
        for (index, leaf) in leaves.iter().enumerate() {
            let path = inclusion(index as u64, size as u64, &mut nodes).unwrap();
            assert_eq!(path, naive_path(index, &leaves), "{index} of {size}");
            assert!(verify_inclusion(leaf, index as u64, size as u64, &path, &root));
        }
        assert!(inclusion(size as u64, size as u64, &mut nodes).is_err());
    }
}

#[test]
fn a_wrong_inclusion_proof_is_refused() {
    for size in 1..=33_u64 {
        let leaves = leaves(33);
        let mut nodes = MemoryNodes(leaves.clone());
        let root = root(size, &mut nodes).unwrap();
        for index in 0..size {
            let leaf = &leaves[usize::try_from(index).unwrap()];
            let path = inclusion(index, size, &mut nodes).unwrap();
            let ok = |leaf: &Hash, index, path: &[Hash], root: &Hash| {
                verify_inclusion(leaf, index, size, path, root)
            };
            assert!(!ok(&changed(leaf), index, &path, &root));
            assert!(!ok(leaf, index, &path, &changed(&root)));
            assert!(!ok(leaf, size, &path, &root));
            for other in (0..size).filter(|other| *other != index) {
                assert!(!ok(leaf, other, &path, &root), "{index} as {other} of {size}");
            }
            for at in 0..path.len() {
                let mut wrong = path.clone();
                wrong[at] = changed(&wrong[at]);
                assert!(!ok(leaf, index, &wrong, &root));
                assert!(!ok(leaf, index, &path[..at], &root));
            }
            let longer = [path, vec![root]].concat();
            assert!(!ok(leaf, index, &longer, &root));
        }
    }
}

#[test]
fn consistency_proofs_are_those_of_the_definition() {
    let leaves = leaves(70);
    let mut nodes = MemoryNodes(leaves.clone());
    for new in 0..=70 {
        let new_root = naive(&leaves[..new]);
        for old in 0..=new {
            let old_root = naive(&leaves[..old]);
            let proof = consistency(old as u64, new as u64, &mut nodes).unwrap();
            if old > 0 {
                assert_eq!(proof, naive_subproof(old, &leaves[..new], true), "{old} to {new}");
            }
            assert!(
                verify_consistency(old as u64, new as u64, &old_root, &new_root, &proof),
                "{old} to {new}"
            );
        }
        assert!(consistency(new as u64 + 1, new as u64, &mut nodes).is_err());
    }
}

#[test]
fn a_wrong_consistency_proof_is_refused() {
    let leaves = leaves(20);
    let mut nodes = MemoryNodes(leaves.clone());
    for new in 0..=20_u64 {
        for old in 0..=new {
            let (old_root, new_root) = (root(old, &mut nodes).unwrap(), root(new, &mut nodes).unwrap());
            let proof = consistency(old, new, &mut nodes).unwrap();
            assert!(!verify_consistency(
                old,
                new,
                &changed(&old_root),
                &new_root,
                &proof
            ));
            if old > 0 {
                assert!(!verify_consistency(
                    old,
                    new,
                    &old_root,
                    &changed(&new_root),
                    &proof
                ));
            }
            for other in (1..=20).filter(|other| *other != old) {
                assert!(
                    !verify_consistency(other, new, &old_root, &new_root, &proof),
                    "{old} as {other} of {new}"
                );
            }
            for at in 0..proof.len() {
                let mut wrong = proof.clone();
                wrong[at] = changed(&wrong[at]);
                assert!(!verify_consistency(old, new, &old_root, &new_root, &wrong));
                assert!(!verify_consistency(old, new, &old_root, &new_root, &proof[..at]));
            }
            let longer = [proof, vec![new_root]].concat();
            assert!(!verify_consistency(old, new, &old_root, &new_root, &longer));
        }
    }
}

/// A huge tree whose subtree hashes name their place; counts what is read.
struct Places(usize);

impl Nodes for Places {
    fn node(&mut self, level: u8, index: u64) -> Result<Hash> {
        self.0 += 1;
        let reach = u128::from(index + 1) << level;
        assert!(reach <= u128::from(u64::MAX), "inside the tree");
        Ok(leaf(format!("{level}/{index}").as_bytes()))
    }
}

#[test]
fn proofs_over_the_largest_tree_read_few_nodes() {
    for size in [u64::MAX, 1 << 63, (1 << 63) + 1, 1_000_003] {
        let mut nodes = Places(0);
        root(size, &mut nodes).unwrap();
        assert!(nodes.0 <= 64);
        for index in [0, size / 2, size - 1] {
            let mut nodes = Places(0);
            assert!(inclusion(index, size, &mut nodes).unwrap().len() <= 64);
            assert!(nodes.0 <= 128);
        }
        let mut nodes = Places(0);
        assert!(consistency(size / 3, size, &mut nodes).unwrap().len() <= 65);
        assert!(nodes.0 <= 192);
    }
}

#[test]
fn a_missing_leaf_is_an_error() {
    assert!(root(3, &mut MemoryNodes(leaves(2))).is_err());
    assert!(root(4, &mut MemoryNodes(leaves(3))).is_err());
}

proptest! {
    #[test]
    fn verifying_never_panics(
        leaf: Hash, root: Hash, index: u64, size: u64, old: u64,
        path in prop::collection::vec(any::<Hash>(), 0..70),
    ) {
        prop_assert!(!verify_inclusion(&leaf, index, size, &path, &root));
        prop_assert!(!verify_consistency(old, size, &leaf, &root, &path));
    }

    #[test]
    fn every_prefix_of_a_log_is_proved(
        (size, old, index) in (1_usize..600).prop_flat_map(|size| (Just(size), 0..=size, 0..size)),
    ) {
        let leaves = leaves(size);
        let mut nodes = MemoryNodes(leaves.clone());
        let whole = naive(&leaves);
        let path = inclusion(index as u64, size as u64, &mut nodes).unwrap();
        prop_assert!(verify_inclusion(&leaves[index], index as u64, size as u64, &path, &whole));
        let proof = consistency(old as u64, size as u64, &mut nodes).unwrap();
        prop_assert!(verify_consistency(old as u64, size as u64, &naive(&leaves[..old]), &whole, &proof));
    }
}
