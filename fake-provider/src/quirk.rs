//! Deviations of other servers from OpenAI's.

/// A deviation of a compatible server or a proxy that a client should tolerate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quirk {
    /// Lines end with CR LF.
    CrLf,
    /// Comments and empty events between the events.
    Comments,
    /// No space after `data:`.
    NoSpace,
    /// The stream begins with a byte order mark.
    ByteOrderMark,
    /// The last event is not closed by an empty line.
    NoLastBlank,

    /// Chat: the stream ends without `[DONE]`.
    NoDone,
    /// Chat: calls have no `index`.
    NoToolIndex,
    /// Chat: every call has the index 0.
    ZeroToolIndex,
    /// Chat: calls have no `id`.
    NoCallId,
    /// Chat: a call is sent in one chunk.
    WholeCalls,
    /// Chat: arguments are an object, not text. A streamed call is then sent in one chunk.
    ObjectArguments,
    /// Chat: empty `content` is null, in every chunk.
    NullContent,
    /// Chat: the field for reasoning is `reasoning`, not `reasoning_content`.
    ReasoningField,
    /// Chat: the finish reason is `stop`, also with calls.
    FinishStop,
    /// Chat: there is no finish reason.
    NoFinish,
    /// Chat: the finish reason is in the last chunk with content, not in a chunk of its own.
    FinishWithLast,
    /// Chat: no chunk has a role.
    NoRole,
    /// There is no usage, even if it was requested.
    NoUsage,

    /// Responses: events have no `event:` line.
    NoEventNames,
    /// Responses: events have no `sequence_number`.
    NoSequenceNumbers,
    /// Responses: the last event's response has an empty output.
    EmptyFinalOutput,
    /// Responses: `[DONE]` follows the last event.
    Done,
    /// Responses: events of unknown types between the known ones.
    UnknownEvents,
}
