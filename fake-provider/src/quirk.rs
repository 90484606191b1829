//! What servers do that OpenAI's does not.

/// A habit of a compatible server, or of a proxy, that a client should put up with.
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
    /// Chat: a call comes whole, in one chunk.
    WholeCalls,
    /// Chat: arguments are an object, not text. A streamed call then comes whole.
    ObjectArguments,
    /// Chat: `content` is null where it is empty, in every chunk.
    NullContent,
    /// Chat: reasoning comes as `reasoning`, not as `reasoning_content`.
    ReasoningField,
    /// Chat: the reason to finish is `stop`, also with calls.
    FinishStop,
    /// Chat: no reason to finish comes at all.
    NoFinish,
    /// Chat: the reason to finish comes with the last piece, not in a chunk of its own.
    FinishWithLast,
    /// Chat: no chunk says whose role it is.
    NoRole,
    /// No usage is told, even where it was asked for.
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
