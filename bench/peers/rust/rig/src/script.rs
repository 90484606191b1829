//! A model for rig without a network: a wire whose payload is the request, and a transport that responds.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use common::{Case, Wait};
use futures_util::stream;
use rig_core::completion::options::{Mapping, OptionFields, OptionMap};
use rig_core::completion::{Accepts, CompletionRequest, FinishReason, ReplayTarget};
use rig_core::driver::{Exchange, Opened, Opening, Transport};
use rig_core::error::{EncodeError, ProviderError};
use rig_core::message::{Api, Message, UserContent};
use rig_core::operation::{Block, CallFragment, Completion, Finish};
use rig_core::wire::document::{Reassemble, Serves};
use rig_core::wire::{Decoder, Descriptor, Flow, Mode, Out, Wire, WireEvent};
use serde_json::Value;

/// A response.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    Call,
    Text,
}

/// A wire that passes requests and responses unchanged.
#[derive(Debug, Clone)]
pub(crate) struct Scripted;

#[derive(Default)]
pub(crate) struct Reading<'id>(std::marker::PhantomData<fn(&'id ()) -> &'id ()>);

impl<'id> Decoder<'id, Completion, Answer> for Reading<'id> {
    type Event = Answer;

    fn classify(&self, answer: Answer) -> WireEvent<Answer> {
        WireEvent::Known(answer)
    }

    fn decode(
        &mut self,
        answer: Answer,
        mut out: Out<'id, Completion>,
    ) -> Result<Flow, ProviderError> {
        let reason = match answer {
            Answer::Text => {
                out.run(Block::Text, "Done.")?;
                FinishReason::Stop
            }
            Answer::Call => {
                let call = CallFragment {
                    id: Some("call_1"),
                    name: Some("transfer_to_billing"),
                    arguments: Some("{}"),
                };
                out.fragment(Some(0), call)?;
                FinishReason::ToolCalls
            }
        };
        out.end_run()?;
        out.finish_open()?;
        Ok(out.end(Finish {
            reason: Some(reason),
            ..Finish::default()
        }))
    }
}

impl ReplayTarget for Scripted {
    fn api(&self) -> Api {
        Api::from_static("bench.script")
    }

    fn provider(&self) -> &str {
        "bench"
    }

    fn model(&self) -> &str {
        ""
    }

    fn accepts(&self, _model: &str) -> Accepts {
        Accepts::ALL
    }

    fn map_options(&self, _request: &CompletionRequest, fields: OptionFields<'_>) -> OptionMap {
        OptionMap {
            reasoning: Mapping::Nothing,
            cache: Mapping::Nothing,
            service_tier: Mapping::Nothing,
            verbosity: Mapping::Nothing,
            parallel_tool_calls: Mapping::Nothing,
            top_p: Mapping::Nothing,
            seed: Mapping::Nothing,
            stop: Mapping::Nothing,
            cache_key: Mapping::unrouted(fields.cache_key),
        }
    }
}

/// An empty provider document.
#[derive(Default)]
pub(crate) struct NoDocument;

impl Serves<Completion> for NoDocument {}

impl Reassemble<Answer> for NoDocument {
    fn absorb(&mut self, _answer: &Answer) {}

    fn finish(self) -> Value {
        Value::Null
    }
}

impl Wire for Scripted {
    type Op = Completion;
    type Payload = CompletionRequest;
    type Frame = Answer;
    type Event = Answer;
    type Decoder<'id> = Reading<'id>;
    type Reassembler = NoDocument;

    fn describe(&self) -> Descriptor<'_> {
        Descriptor::new("bench").replay(self)
    }

    fn encode(
        &self,
        request: CompletionRequest,
        _mode: Mode,
    ) -> Result<CompletionRequest, EncodeError> {
        Ok(request)
    }

    fn decoder<'id>(&self) -> Reading<'id> {
        Reading::default()
    }
}

/// A transport that calls the tool once for each handoff and then responds.
#[derive(Clone)]
pub(crate) struct Script(Arc<Inner>);

struct Inner {
    handoffs: usize,
    next: AtomicUsize,
    wait: Wait,
    kept: Option<Mutex<Vec<CompletionRequest>>>,
}

impl Script {
    pub(crate) fn new(case: &Case) -> Self {
        Self(Arc::new(Inner {
            handoffs: case.handoffs,
            next: AtomicUsize::new(0),
            wait: case.wait,
            kept: case.keeps_requests.then(Mutex::default),
        }))
    }

    pub(crate) fn forget(&self) {
        if let Some(kept) = &self.0.kept {
            kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }
}

impl Transport<Scripted> for Script {
    fn send(&self, request: CompletionRequest, _exchange: Exchange) -> Opening<Answer> {
        let opened = |answer| Opened::new(stream::iter([Ok(answer)]));
        if self.0.wait == Wait::No {
            if let Some(kept) = &self.0.kept {
                kept.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(request);
            }
            let at = self.0.next.fetch_add(1, Ordering::Relaxed) % (self.0.handoffs + 1);
            return Opening::ready(opened(if at < self.0.handoffs {
                Answer::Call
            } else {
                Answer::Text
            }));
        }
        let wait = self.0.wait;
        Opening::new(async move {
            let second = last_is_from_tool(&request);
            match wait {
                Wait::Parks if second => std::future::pending().await,
                Wait::Parks | Wait::No => {}
                Wait::Yields => tokio::task::yield_now().await,
            }
            // The request lives until the response, as it would over a network.
            drop(request);
            Ok(opened(if second { Answer::Text } else { Answer::Call }))
        })
    }
}

/// Returns `true` if the last message is a tool result.
fn last_is_from_tool(request: &CompletionRequest) -> bool {
    let Some(Message::User { content }) = request.chat_history.last().map(|last| &**last) else {
        return false;
    };
    matches!(content.first(), Some(UserContent::ToolResult(_)))
}
