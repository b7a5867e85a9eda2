//! The rank test of Mann and Whitney: do values of one set tend to be larger than values of
//! another?

/// The largest set for which all orders of the values are counted.
const EXACT: usize = 25;

/// The result of the test.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct RankTest {
    /// Number of pairs with the larger value in the first set. A tie counts as half a pair.
    pub u: f64,
    /// The two-sided probability of a difference as large as this, if both sets have the same
    /// distribution.
    pub p: f64,
}

/// Compares two sets. None if one is empty.
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<RankTest> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let mut u = 0.0;
    for a in first {
        for b in second {
            u += if a > b {
                1.0
            } else if a == b {
                0.5
            } else {
                0.0
            };
        }
    }
    let ties = tie_sizes(first, second);
    let small = first.len() <= EXACT && second.len() <= EXACT;
    let p = if small && ties.iter().all(|&size| size == 1) {
        exact(u, first.len(), second.len())
    } else {
        approximate(u, first.len() as f64, second.len() as f64, &ties)
    };
    Some(RankTest { u, p })
}

/// Returns the numbers of equal values, one for each distinct value.
fn tie_sizes(first: &[f64], second: &[f64]) -> Vec<usize> {
    let mut all = [first, second].concat();
    all.sort_by(f64::total_cmp);
    all.chunk_by(|a, b| a == b).map(<[f64]>::len).collect()
}

/// Returns the exact probability: the share of all orders in which U is at least as far from its
/// mean.
fn exact(u: f64, n: usize, m: usize) -> f64 {
    // After `size` values of the second set, orders[i][u] is the number of orders with the value u,
    // for i values of the first set. In each order, the largest value is in the first set (and
    // larger than all of the second), or in the second.
    let most = n * m;
    let mut orders = vec![vec![0.0; most + 1]; n + 1];
    for row in &mut orders {
        row[0] = 1.0;
    }
    for size in 1..=m {
        for i in 1..=n {
            for u in (0..=most).rev() {
                let with_first = if u >= size { orders[i - 1][u - size] } else { 0.0 };
                orders[i][u] += with_first;
            }
        }
    }
    let counts = &orders[n];
    let all: f64 = counts.iter().sum();
    let tail = u.min(most as f64 - u) as usize;
    (2.0 * counts[..=tail].iter().sum::<f64>() / all).min(1.0)
}

/// Returns the probability by the normal distribution, with corrections for ties and for the steps
/// of U.
fn approximate(u: f64, n: f64, m: f64, ties: &[usize]) -> f64 {
    let all = n + m;
    let tied: f64 = ties.iter().map(|&size| (size as f64).powi(3) - size as f64).sum();
    let variance = n * m / 12.0 * (all + 1.0 - tied / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let z = ((u - n * m / 2.0).abs() - 0.5).max(0.0) / variance.sqrt();
    libm::erfc(z / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn p(first: &[f64], second: &[f64], expected: f64) {
        let test = mann_whitney(first, second).unwrap();
        assert!((test.p - expected).abs() < 5e-5, "{test:?}");
    }

    #[test]
    fn known_answers() {
        // R: wilcox.test(1:3, 4:6)$p.value is 0.1, of 1:4 and 5:8 it is 2/70, of 1:5 and 6:10
        // 2/252.
        p(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], 0.1);
        p(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0], 2.0 / 70.0);
        p(&[6.0, 7.0, 8.0, 9.0, 10.0], &[1.0, 2.0, 3.0, 4.0, 5.0], 2.0 / 252.0);
        // Of the 10 orders of two and three values, U is 0, 1, 2, 3, 4, 5, 6 in 1 1 2 2 2 1 1.
        p(&[1.0, 4.0], &[2.0, 3.0, 5.0], 0.8);
        p(&[1.0, 3.0], &[2.0, 4.0, 5.0], 0.4);
        // A tie is half a pair.
        assert!((mann_whitney(&[1.0, 1.0, 2.0], &[1.0, 3.0, 4.0]).unwrap().u - 2.0).abs() < 1e-9);
        // 2.5 pairs of 16, a variance of 11.14: by the normal distribution
        let tied = mann_whitney(&[1.0, 2.0, 2.0, 3.0], &[2.0, 3.0, 4.0, 4.0]).unwrap();
        assert!((tied.p - 0.134_169_180_128).abs() < 1e-12, "{tied:?}");
        p(&[5.0; 4], &[5.0; 6], 1.0);
        assert_eq!(mann_whitney(&[], &[1.0]), None);
    }

    #[test]
    fn the_approximation_comes_close_to_counting() {
        let first: Vec<f64> = (0..20).map(|i| f64::from(i) * 1.01).collect();
        let second: Vec<f64> = (0..20).map(|i| f64::from(i) * 1.01 + 4.5).collect();
        let counted = mann_whitney(&first, &second).unwrap();
        let approximated = approximate(counted.u, 20.0, 20.0, &[1; 40]);
        assert!((counted.p - approximated).abs() < 0.01, "{counted:?} {approximated}");
    }

    proptest! {
        #[test]
        fn neither_side_is_preferred(
            first in prop::collection::vec(0..40_u8, 1..40),
            second in prop::collection::vec(0..40_u8, 1..40),
        ) {
            let first: Vec<f64> = first.into_iter().map(f64::from).collect();
            let second: Vec<f64> = second.into_iter().map(f64::from).collect();
            let one = mann_whitney(&first, &second).unwrap();
            let other = mann_whitney(&second, &first).unwrap();
            prop_assert!((one.u + other.u - (first.len() * second.len()) as f64).abs() < 1e-9);
            prop_assert!((one.p - other.p).abs() < 1e-9);
            prop_assert!((0.0..=1.0).contains(&one.p));
        }
    }
}
