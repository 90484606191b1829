/** The bar of a spoken conversation, in the place of the field for messages. */

import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { errorText } from "../api/client";
import type { Waiting } from "../api/types";
import { VoiceSession, type VoiceEvent } from "../logic/voice";
import { AgentName, Button } from "../parts/basics";
import { Icon } from "../parts/icons";
import type { OpenConversation } from "../state/conversation";
import { useTexts } from "../state/settings";

export function VoiceBar({ conversation, agent, onClose }: { conversation: OpenConversation; agent: string | null; onClose: () => void }): VNode {
  const t = useTexts();
  const [state, setState] = useState<"connecting" | "listening" | "hearing" | "speaking" | "ended">("connecting");
  const [speaker, setSpeaker] = useState<string | null>(conversation.agent);
  const [words, setWords] = useState("");
  const [problem, setProblem] = useState("");
  const [muted, setMuted] = useState(false);
  const [isHeard, setHeard] = useState(false);
  const [waiting, setWaiting] = useState<Waiting[]>([]);
  const session = useRef<VoiceSession | null>(null);

  useEffect(() => {
    const take = (event: VoiceEvent): void => {
      switch (event.type) {
        case "session":
        case "agent":
          setSpeaker(String(event.agent));
          setState("listening");
          break;
        case "speech_started":
          setState("hearing");
          setWords("");
          break;
        case "speech_stopped":
        case "answer_ended":
        case "interrupted":
          setState("listening");
          break;
        case "answer_started":
          setState("speaking");
          setWords("");
          break;
        case "text_delta":
          setWords((words) => words + String(event.text));
          break;
        case "message":
          setWords(String(event.text));
          void conversation.load();
          break;
        case "handoff":
          void conversation.load();
          break;
        case "approval_required":
          setWaiting(event.waiting as Waiting[]);
          break;
        case "sound":
          setHeard(event.is_heard === true);
          break;
        case "error":
          setProblem(String(event.message));
          break;
        case "closed":
          setState("ended");
          void conversation.load();
          break;
      }
    };
    const mine = new VoiceSession(take);
    session.current = mine;
    mine.start(conversation.team ?? "", conversation.id, agent).catch((error: unknown) => {
      setProblem(errorText(error));
      setState("ended");
    });
    return () => mine.stop();
  }, [conversation]);

  const decide = (call: Waiting, approve: boolean): void => {
    session.current?.send({ type: "decide", call_id: call.call_id, approve });
    setWaiting(waiting.filter((other) => other.call_id !== call.call_id));
  };

  const shown = state === "listening" && isHeard ? "speaking" : state;
  return (
    <div class="voice" role="group" aria-label={t.speak}>
      {waiting.map((call) => (
        <div class="voice-call" key={call.call_id}>
          <code>{call.tool}</code> <span class="tool-args">{call.arguments}</span>
          <Button label={t.approve} kind="primary" onClick={() => decide(call, true)} />
          <Button label={t.reject} onClick={() => decide(call, false)} />
        </div>
      ))}
      <div class="voice-row">
        <span class={`voice-light ${shown}`} aria-hidden="true">
          <Icon name="microphone" />
        </span>
        <div class="voice-text">
          <p role="status">
            {speaker && <AgentName name={speaker} />} <span class="quiet-text">{t.voiceState(shown)}</span>
          </p>
          {words && <p class="voice-words" tabIndex={0}>{words}</p>}
          {problem && <p class="problem" role="alert">{problem}</p>}
        </div>
        <Button
          label={muted ? t.unmute : t.mute}
          pressed={muted}
          onClick={() => {
            session.current?.send({ type: "mute", on: !muted });
            setMuted(!muted);
          }}
        />
        <Button icon="stop" label={t.endCall} kind="primary" onClick={onClose} testId="end-call" />
      </div>
    </div>
  );
}
