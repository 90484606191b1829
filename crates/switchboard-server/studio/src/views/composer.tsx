/** The field for the next message: text, images and files, speech. */

import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ContentPart, JsonObject, MessageInput } from "../api/types";
import { Button } from "../parts/basics";
import { Icon } from "../parts/icons";
import type { OpenConversation } from "../state/conversation";
import { server, teamNamed } from "../state/server";
import { useTexts } from "../state/settings";
import { useStore } from "../state/store";
import { VoiceBar } from "./voice_bar";

interface File {
  name: string;
  part: ContentPart;
  preview: string | null;
}

interface Props {
  conversation: OpenConversation;
  onSend: (input: MessageInput) => void;
  placeholder: string | null;
  /** The first message is yet to come: the field gets the focus. */
  isNew: boolean;
  start: { agent?: string; context?: JsonObject };
}

export function Composer({ conversation, onSend, placeholder, isNew, start }: Props): VNode {
  const t = useTexts();
  const [text, setText] = useState("");
  const [files, setFiles] = useState<File[]>([]);
  const [problem, setProblem] = useState("");
  const [isDragged, setIsDragged] = useState(false);
  const [speaks, setSpeaks] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const limit = useStore(server, (value) => value.info?.limits.attachment_bytes ?? 4_194_304);
  useStore(server, (value) => value.teams);
  const speech = teamNamed(conversation.team)?.speech ?? null;
  const isRunning = conversation.isRunning;

  useEffect(() => {
    setText("");
    setFiles([]);
    setSpeaks(false);
    if (isNew && matchMedia("(min-width: 900px)").matches) field.current?.focus();
  }, [conversation.id]);

  // The field grows with its text.
  useEffect(() => {
    const element = field.current;
    if (!element) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight, 220)}px`;
  }, [text, speaks]);

  const add = async (list: Iterable<Blob & { name?: string }>): Promise<void> => {
    for (const file of list) {
      const name = file.name ?? "image.png";
      if (file.size > limit) {
        setProblem(t.fileTooLarge(name, Math.floor(limit / 1024)));
        continue;
      }
      const data = await dataAddress(file);
      const isImage = /^image\/(png|jpeg|gif|webp)$/.test(file.type);
      const part: ContentPart = isImage
        ? { type: "input_image", image_url: data }
        : { type: "input_file", filename: name, file_data: data };
      setFiles((files) => [...files, { name, part, preview: isImage ? data : null }]);
      setProblem("");
    }
  };

  const send = (): void => {
    if (isRunning || (text.trim() === "" && files.length === 0)) return;
    if (files.length === 0) onSend(text);
    else {
      const content: ContentPart[] = [...(text.trim() ? [{ type: "input_text" as const, text }] : []), ...files.map((file) => file.part)];
      onSend([{ role: "user", content }]);
    }
    setText("");
    setFiles([]);
    setProblem("");
  };

  if (speaks) return <VoiceBar conversation={conversation} agent={start.agent ?? null} onClose={() => setSpeaks(false)} />;
  return (
    <form
      class={`composer ${isDragged ? "dragged" : ""}`}
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      onDragOver={(event) => {
        event.preventDefault();
        setIsDragged(true);
      }}
      onDragLeave={() => setIsDragged(false)}
      onDrop={(event) => {
        event.preventDefault();
        setIsDragged(false);
        void add([...(event.dataTransfer?.files ?? [])]);
      }}
    >
      {problem && <p class="problem" role="alert">{problem}</p>}
      {files.length > 0 && (
        <ul class="files">
          {files.map((file, index) => (
            <li key={index}>
              {file.preview ? <img src={file.preview} alt="" /> : <Icon name="file" />}
              <span>{file.name}</span>
              <Button icon="close" iconOnly kind="quiet" label={t.removeFile(file.name)} onClick={() => setFiles(files.filter((_, at) => at !== index))} />
            </li>
          ))}
        </ul>
      )}
      <div class="composer-row">
        <input
          ref={picker}
          type="file"
          multiple
          class="screen-reader"
          tabIndex={-1}
          aria-label={t.attach}
          data-test="file"
          onChange={(event) => {
            void add([...(event.currentTarget.files ?? [])]);
            event.currentTarget.value = "";
          }}
        />
        <Button icon="clip" iconOnly kind="quiet" label={t.attach} onClick={() => picker.current?.click()} testId="attach" />
        <textarea
          id="message"
          ref={field}
          rows={1}
          value={text}
          aria-label={t.message}
          placeholder={placeholder ?? t.message}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
              event.preventDefault();
              send();
            } else if (event.key === "Escape" && isRunning) void conversation.stop();
          }}
          onPaste={(event) => {
            const pasted = event.clipboardData?.files;
            if (pasted && pasted.length > 0) {
              event.preventDefault();
              void add([...pasted]);
            }
          }}
        />
        {speech !== null && <Button icon="microphone" iconOnly kind="quiet" label={t.speak} onClick={() => setSpeaks(true)} testId="speak" />}
        {isRunning ? (
          <Button icon="stop" iconOnly kind="primary" class="stop" label={t.stop} onClick={() => void conversation.stop()} testId="stop" />
        ) : (
          <button
            type="submit"
            class="button primary icon-only"
            aria-label={t.send}
            title={t.send}
            disabled={text.trim() === "" && files.length === 0}
            data-test="send"
          >
            <Icon name="send" />
          </button>
        )}
      </div>
    </form>
  );
}

function dataAddress(file: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error ?? new Error("the file cannot be read"));
    reader.readAsDataURL(file);
  });
}
