//! What of a recording is seen when.

use std::{collections::HashMap, hash::Hash, sync::Arc, time::Duration};

use crate::{picture::Row, recording::Frame};

/// The marks of a recording, those that are seen at the same times together.
#[derive(Debug)]
pub(crate) struct Layers {
    pub(crate) layers: Vec<Layer>,
    /// How long the recording takes, in milliseconds.
    pub(crate) total: u64,
}

/// Marks that are seen at the same times.
#[derive(Debug)]
pub(crate) struct Layer {
    /// From when until when, in milliseconds.
    pub(crate) seen: Vec<Span>,
    pub(crate) marks: Vec<Mark>,
}

/// Something on the screen, in its place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Mark {
    Row { y: u16, row: Arc<Row> },
    Cursor { y: u16, column: u16 },
}

type Span = (u64, u64);

/// The longest that a picture stays while nothing happens.
const IDLE: Duration = Duration::from_millis(1500);
/// How long the last picture stays, to be read before all starts again.
const LAST: Duration = Duration::from_secs(4);

impl Layers {
    pub(crate) fn of(frames: &[Frame]) -> Self {
        let mut seen = Grouped::default();
        let mut start = 0;
        for (index, frame) in frames.iter().enumerate() {
            let stays = match frames.get(index + 1) {
                Some(next) => next.at.saturating_sub(frame.at).min(IDLE),
                None => LAST,
            };
            let end = start + u64::try_from(stays.as_millis()).unwrap_or(u64::MAX);
            for mark in marks(frame) {
                let spans: &mut Vec<Span> = seen.entry(mark);
                match spans.last_mut() {
                    Some(last) if last.1 == start => last.1 = end,
                    _ => spans.push((start, end)),
                }
            }
            start = end;
        }

        let mut layers = Grouped::default();
        for (mark, spans) in seen.groups {
            let marks: &mut Vec<Mark> = layers.entry(spans);
            marks.push(mark);
        }
        Self {
            layers: layers
                .groups
                .into_iter()
                .map(|(seen, marks)| Layer { seen, marks })
                .collect(),
            total: start,
        }
    }

    /// The rows, each once, with how often it is drawn.
    pub(crate) fn rows(&self) -> Vec<(&Arc<Row>, usize)> {
        let mut rows = Grouped::default();
        for mark in self.layers.iter().flat_map(|layer| &layer.marks) {
            if let Mark::Row { row, .. } = mark {
                let times: &mut usize = rows.entry(row);
                *times += 1;
            }
        }
        rows.groups
    }
}

/// Values by key, in the order in which the keys came, so that a picture comes out the same each time.
struct Grouped<K, V> {
    groups: Vec<(K, V)>,
    places: HashMap<K, usize>,
}

impl<K, V> Default for Grouped<K, V> {
    fn default() -> Self {
        Self {
            groups: Vec::new(),
            places: HashMap::new(),
        }
    }
}

impl<K: Clone + Eq + Hash, V: Default> Grouped<K, V> {
    fn entry(&mut self, key: K) -> &mut V {
        let next = self.groups.len();
        let place = *self.places.entry(key.clone()).or_insert(next);
        if place == next {
            self.groups.push((key, V::default()));
        }
        &mut self.groups[place].1
    }
}

fn marks(frame: &Frame) -> impl Iterator<Item = Mark> + '_ {
    let rows = (0..).zip(&frame.picture.rows);
    let cursor = frame.picture.cursor;
    rows.filter(|(_, row)| !row.is_blank())
        .map(|(y, row)| Mark::Row {
            y,
            row: row.clone(),
        })
        .chain(cursor.map(|(y, column)| Mark::Cursor { y, column }))
}
