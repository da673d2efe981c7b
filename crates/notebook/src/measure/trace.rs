//! A few dozen values that keep the shape of any number of them.

/// The most pieces that a trace is cut into; each gives its smallest and its largest value.
const PIECES: usize = 24;

/// Takes in values and keeps their extremes, piece by piece. The same values always give the same trace.
#[derive(Debug, Clone, Default)]
pub(super) struct Trace {
    pieces: Vec<Piece>,
    /// How many values a whole piece stands for.
    per_piece: u64,
    first: Option<f64>,
    last: Option<f64>,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    count: u64,
    smallest: At,
    largest: At,
}

#[derive(Debug, Clone, Copy)]
struct At {
    nth: u64,
    value: f64,
}

impl Trace {
    /// Takes in a finite value, the `nth` of all.
    pub(super) fn push(&mut self, nth: u64, value: f64) {
        self.first.get_or_insert(value);
        self.last = Some(value);
        let at = At { nth, value };
        let per_piece = self.per_piece.max(1);
        match self.pieces.last_mut() {
            Some(piece) if piece.count < per_piece => piece.join(Piece::of(at)),
            _ => self.pieces.push(Piece::of(at)),
        }
        if self.pieces.len() > PIECES {
            self.halve();
        }
    }

    /// Returns the values, in order: all of them where they are few, and always the first and the last.
    pub(super) fn values(&self) -> Vec<f64> {
        let mut points: Vec<At> = Vec::new();
        for piece in &self.pieces {
            let (early, late) = if piece.smallest.nth <= piece.largest.nth {
                (piece.smallest, piece.largest)
            } else {
                (piece.largest, piece.smallest)
            };
            points.push(early);
            if late.nth != early.nth {
                points.push(late);
            }
        }
        let mut values: Vec<f64> = points.into_iter().map(|at| at.value).collect();
        if let Some(first) = self.first.filter(|first| values.first() != Some(first)) {
            values.insert(0, first);
        }
        values.extend(self.last.filter(|last| values.last() != Some(last)));
        values
    }

    fn halve(&mut self) {
        self.per_piece = self.per_piece.max(1) * 2;
        let halved = self.pieces.chunks(2).map(|pair| {
            let mut piece = pair[0];
            if let Some(other) = pair.get(1) {
                piece.join(*other);
            }
            piece
        });
        self.pieces = halved.collect();
    }
}

impl Piece {
    fn of(at: At) -> Self {
        Self {
            count: 1,
            smallest: at,
            largest: at,
        }
    }

    fn join(&mut self, other: Self) {
        self.count += other.count;
        if other.smallest.value < self.smallest.value {
            self.smallest = other.smallest;
        }
        if other.largest.value > self.largest.value {
            self.largest = other.largest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
        let mut trace = Trace::default();
        for (nth, value) in (0..).zip(values) {
            trace.push(nth, value);
        }
        trace.values()
    }

    #[test]
    fn few_values_are_all_there() {
        let values: Vec<f64> = (0..24).map(|n| f64::from(n % 7)).collect();
        assert_eq!(trace(values.clone()), values);
        assert!(trace([]).is_empty());
    }

    #[test]
    fn many_values_keep_their_ends_and_their_spikes_in_few_points() {
        for count in [25_u32, 1000, 12_345] {
            let values = (0..count).map(|n| {
                if n == count / 3 {
                    1e6
                } else {
                    1.0 / f64::from(n + 1)
                }
            });
            let kept = trace(values);

            assert!(kept.len() <= 2 * PIECES + 2, "{count}: {}", kept.len());
            assert_eq!(kept.first(), Some(&1.0));
            assert_eq!(kept.last(), Some(&(1.0 / f64::from(count))));
            assert!(kept.contains(&1e6), "{count}");
        }
    }
}
