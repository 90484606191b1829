//! Several tracers as one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::trace_handle::ignore_panic;
use super::{Span, TraceInfo, Tracer};

/// A list of tracers that can change at any time, also while runs use it. Clones share the list.
///
/// ```
/// use switchboard_core::trace::{MemoryTracer, Tracers};
///
/// let tracers = Tracers::new();
/// tracers.add(MemoryTracer::new());
/// // Runner::new(&agent).tracer(tracers.clone()) ...
/// let recording = tracers.add(MemoryTracer::new());
/// assert!(tracers.remove(recording));
/// assert_eq!(tracers.len(), 1);
/// ```
///
/// A span goes to the tracers that are in the list when it begins or ends. A panic of one of them is
/// logged, and the others are called.
#[derive(Clone)]
pub struct Tracers {
    members: Arc<RwLock<Arc<[Member]>>>,
    identity: TracerKey,
}

/// A tracer in the list.
#[derive(Clone)]
pub(super) struct Member {
    key: TracerKey,
    /// The identity that its clones share, or its key.
    pub(super) identity: TracerKey,
    pub(super) tracer: Arc<dyn Tracer>,
}

impl Member {
    fn new(tracer: impl Tracer) -> Self {
        let key = TracerKey::generate();
        Self {
            key,
            identity: tracer.identity().unwrap_or(key),
            tracer: Arc::new(tracer),
        }
    }
}

/// A number that tells a tracer apart from all others of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TracerKey(u64);

impl TracerKey {
    /// Makes a new key.
    pub fn generate() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Default for Tracers {
    fn default() -> Self {
        Self {
            members: Arc::default(),
            identity: TracerKey::generate(),
        }
    }
}

impl Tracers {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tracer at the end. The key is for removing it.
    pub fn add(&self, tracer: impl Tracer) -> TracerKey {
        let added = Member::new(tracer);
        let key = added.key;
        self.change(|members| members.iter().cloned().chain([added]).collect());
        key
    }

    /// A list of its own with these tracers and one more.
    pub(super) fn with(&self, tracer: impl Tracer) -> Self {
        let longer = Self::new();
        longer.change(|_| self.members());
        longer.add(tracer);
        longer
    }

    /// Removes a tracer. Returns `false` if it was not in the list.
    pub fn remove(&self, key: TracerKey) -> bool {
        let mut is_removed = false;
        self.change(|members| {
            let kept = members.iter().filter(|member| member.key != key);
            let kept: Arc<[Member]> = kept.cloned().collect();
            is_removed = kept.len() < members.len();
            kept
        });
        is_removed
    }

    /// Removes all tracers.
    pub fn clear(&self) {
        self.change(|_| Arc::default());
    }

    /// The number of tracers.
    pub fn len(&self) -> usize {
        self.members().len()
    }

    /// Returns `true` if there are no tracers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tracers at this time. No lock is held while they are called.
    pub(super) fn members(&self) -> Arc<[Member]> {
        let members = self.members.read().unwrap_or_else(PoisonError::into_inner);
        members.clone()
    }

    fn change(&self, change: impl FnOnce(&[Member]) -> Arc<[Member]>) {
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *members);
        *members = change(&before);
        drop(members);
        // Tracers are dropped without the lock.
        drop(before);
    }
}

impl Tracer for Tracers {
    fn identity(&self) -> Option<TracerKey> {
        Some(self.identity)
    }

    fn wants_details(&self) -> bool {
        self.members()
            .iter()
            .any(|member| member.tracer.wants_details())
    }

    fn trace_start(&self, trace: &TraceInfo) {
        for Member { tracer, .. } in &*self.members() {
            ignore_panic(|| tracer.trace_start(trace));
        }
    }

    fn trace_end(&self, trace: &TraceInfo) {
        for Member { tracer, .. } in &*self.members() {
            ignore_panic(|| tracer.trace_end(trace));
        }
    }

    fn start(&self, span: &Span) {
        for Member { tracer, .. } in &*self.members() {
            ignore_panic(|| tracer.start(span));
        }
    }

    fn end(&self, span: Span) {
        let members = self.members();
        let Some((last, others)) = members.split_last() else {
            return;
        };
        for Member { tracer, .. } in others {
            ignore_panic(|| tracer.end(span.clone()));
        }
        ignore_panic(|| last.tracer.end(span));
    }
}

impl_debug!(Tracers, |tracers| tracers.len());
