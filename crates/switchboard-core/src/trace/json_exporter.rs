//! Writing traces and spans as lines of JSON.

use std::io::{self, Write};

use super::{TraceExporter, TraceRecord};
use crate::callback::BoxError;

/// Writes traces and spans in the reference's JSON, one a line.
///
/// ```
/// use std::time::Duration;
/// use switchboard_core::testing::ScriptedModel;
/// use switchboard_core::trace::{BatchTracer, JsonExporter};
/// use switchboard_core::{Agent, Runner};
///
/// # futures_util::FutureExt::now_or_never(async {
/// let agent: Agent = Agent::new("Greeter");
/// let tracer = BatchTracer::new(JsonExporter::new(std::io::stderr()));
/// let runner = Runner::new(&agent).tracer(tracer.clone());
/// runner.model(ScriptedModel::new().say("Hello!")).run("Hi").await?;
/// tracer.shutdown(Duration::from_secs(5)).expect("standard error takes a few lines");
/// # Ok::<(), switchboard_core::Error>(())
/// # }).unwrap().unwrap();
/// ```
#[derive(Debug)]
pub struct JsonExporter<W> {
    writer: W,
}

impl<W: Write + Send + 'static> JsonExporter<W> {
    /// Creates an exporter that writes to `writer`, which is flushed after each batch.
    pub const fn new(writer: W) -> Self {
        Self { writer }
    }
}

impl<W: Write + Send + 'static> TraceExporter for JsonExporter<W> {
    fn export(&mut self, batch: Vec<TraceRecord>) -> Result<(), BoxError> {
        // Each line in one call, so that lines of others do not get in between.
        let lines = batch
            .iter()
            .map(|record| format!("{}\n", record.to_reference_json()));
        let written = lines.map(|line| self.writer.write_all(line.as_bytes()));
        written.collect::<io::Result<()>>()?;
        Ok(self.writer.flush()?)
    }
}
