//! Groups the contents of a recording by the times when they are visible.

use std::{collections::HashMap, hash::Hash, sync::Arc, time::Duration};

use crate::{recording::Frame, screenshot::Row};

/// The layers of a recording.
#[derive(Debug)]
pub(crate) struct Layers {
    pub(crate) layers: Vec<Layer>,
    /// The duration of the recording in milliseconds.
    pub(crate) total: u64,
}

/// Elements that are visible at the same times.
#[derive(Debug)]
pub(crate) struct Layer {
    /// The start and end of each time span in milliseconds.
    pub(crate) visible: Vec<Span>,
    pub(crate) elements: Vec<Element>,
}

/// An element of the screen with its position.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Element {
    Row { y: u16, row: Arc<Row> },
    Cursor { y: u16, column: u16 },
}

type Span = (u64, u64);

/// The maximum duration of a frame.
const IDLE: Duration = Duration::from_millis(1500);
/// The duration of the last frame, before the animation repeats.
const LAST: Duration = Duration::from_secs(4);

impl Layers {
    pub(crate) fn of(frames: &[Frame]) -> Self {
        let mut spans_of = Grouped::default();
        let mut start = 0;
        for (index, frame) in frames.iter().enumerate() {
            let duration = match frames.get(index + 1) {
                Some(next) => next.at.saturating_sub(frame.at).min(IDLE),
                None => LAST,
            };
            let end = start + u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
            for element in elements(frame) {
                let spans: &mut Vec<Span> = spans_of.entry(element);
                match spans.last_mut() {
                    Some(last) if last.1 == start => last.1 = end,
                    _ => spans.push((start, end)),
                }
            }
            start = end;
        }

        let mut layers = Grouped::default();
        for (element, spans) in spans_of.groups {
            let elements: &mut Vec<Element> = layers.entry(spans);
            elements.push(element);
        }
        Self {
            layers: layers
                .groups
                .into_iter()
                .map(|(visible, elements)| Layer { visible, elements })
                .collect(),
            total: start,
        }
    }

    /// The distinct rows, each with the number of times that it is drawn.
    pub(crate) fn rows(&self) -> Vec<(&Arc<Row>, usize)> {
        let mut rows = Grouped::default();
        for element in self.layers.iter().flat_map(|layer| &layer.elements) {
            if let Element::Row { row, .. } = element {
                let count: &mut usize = rows.entry(row);
                *count += 1;
            }
        }
        rows.groups
    }
}

/// A map that keeps the insertion order of its keys, so that the output is deterministic.
struct Grouped<K, V> {
    groups: Vec<(K, V)>,
    indexes: HashMap<K, usize>,
}

impl<K, V> Default for Grouped<K, V> {
    fn default() -> Self {
        Self {
            groups: Vec::new(),
            indexes: HashMap::new(),
        }
    }
}

impl<K: Clone + Eq + Hash, V: Default> Grouped<K, V> {
    fn entry(&mut self, key: K) -> &mut V {
        let next = self.groups.len();
        let index = *self.indexes.entry(key.clone()).or_insert(next);
        if index == next {
            self.groups.push((key, V::default()));
        }
        &mut self.groups[index].1
    }
}

fn elements(frame: &Frame) -> impl Iterator<Item = Element> + '_ {
    let rows = (0..).zip(&frame.screenshot.rows);
    let cursor = frame.screenshot.cursor;
    rows.filter(|(_, row)| !row.is_blank())
        .map(|(y, row)| Element::Row {
            y,
            row: row.clone(),
        })
        .chain(cursor.map(|(y, column)| Element::Cursor { y, column }))
}
