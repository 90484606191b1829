/** Small elements that all views use. */

import type { ComponentChildren, VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { agentColour } from "../logic/colours";
import { prettyJson } from "../logic/items";
import { currentTeam, server } from "../state/server";
import { useTexts } from "../state/settings";
import { useStore } from "../state/store";
import type { Json } from "../api/types";
import { Icon, type IconName } from "./icons";

/** The class that gives an element the colour of an agent. */
export function agentClass(agent: string | null): string {
  const agents = currentTeam()?.agents.map((candidate) => candidate.name) ?? [];
  return `agent-${agentColour(agent, agents)}`;
}

export function AgentName({ name, plain = false }: { name: string; plain?: boolean }): VNode {
  useStore(server, (value) => value.teams);
  return (
    <span class={`agent-name ${agentClass(name)} ${plain ? "plain" : ""}`}>
      <span class="agent-dot" aria-hidden="true" />
      {name}
    </span>
  );
}

interface ButtonProps {
  icon?: IconName;
  label: string;
  onClick: (event: MouseEvent) => void;
  kind?: "plain" | "primary" | "danger" | "quiet";
  /** Shows the icon alone; the label is for screen readers and the tooltip. */
  iconOnly?: boolean;
  disabled?: boolean;
  pressed?: boolean;
  expanded?: boolean;
  class?: string;
  testId?: string;
}

export function Button(props: ButtonProps): VNode {
  return (
    <button
      type="button"
      class={`button ${props.kind ?? "plain"} ${props.iconOnly ? "icon-only" : ""} ${props.class ?? ""}`}
      onClick={props.onClick}
      disabled={props.disabled}
      aria-pressed={props.pressed}
      aria-expanded={props.expanded}
      aria-label={props.iconOnly ? props.label : undefined}
      title={props.iconOnly ? props.label : undefined}
      data-test={props.testId}
    >
      {props.icon && <Icon name={props.icon} />}
      {!props.iconOnly && <span>{props.label}</span>}
    </button>
  );
}

/** A dialog over the page. The browser keeps the focus in it, and Escape closes it. */
export function Dialog(props: { title: string; onClose: () => void; children: ComponentChildren; class?: string }): VNode {
  const t = useTexts();
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = element.current!;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  return (
    <dialog
      ref={element}
      class={`dialog ${props.class ?? ""}`}
      aria-label={props.title}
      onCancel={(event) => {
        event.preventDefault();
        props.onClose();
      }}
      onClick={(event) => {
        if (event.target === element.current) props.onClose();
      }}
    >
      <div class="dialog-inner">
        <header>
          <h2>{props.title}</h2>
          <Button icon="close" iconOnly kind="quiet" label={t.close} onClick={props.onClose} />
        </header>
        {props.children}
      </div>
    </dialog>
  );
}

/** A button that opens a list of actions. */
export function Menu(props: {
  label: string;
  icon: IconName;
  items: { label: string; icon?: IconName; onClick: () => void; testId?: string; danger?: boolean }[];
  testId?: string;
}): VNode {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    box.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const close = (event: Event): void => {
      if (!box.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", close);
    return () => document.removeEventListener("pointerdown", close);
  }, [open]);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (!open) return;
    const items = [...(box.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const at = items.indexOf(document.activeElement as HTMLElement);
    if (event.key === "Escape") {
      setOpen(false);
      box.current?.querySelector<HTMLElement>("button")?.focus();
      event.stopPropagation();
    } else if (event.key === "ArrowDown") items[(at + 1) % items.length]?.focus();
    else if (event.key === "ArrowUp") items[(at - 1 + items.length) % items.length]?.focus();
    else return;
    event.preventDefault();
  };
  return (
    <div class="menu" ref={box} onKeyDown={onKeyDown}>
      <Button icon={props.icon} iconOnly kind="quiet" label={props.label} expanded={open} onClick={() => setOpen(!open)} testId={props.testId} />
      {open && (
        <div class="menu-list" role="menu" aria-label={props.label}>
          {props.items.map((item) => (
            <button
              type="button"
              role="menuitem"
              key={item.label}
              class={item.danger ? "danger" : ""}
              data-test={item.testId}
              onClick={() => {
                setOpen(false);
                item.onClick();
              }}
            >
              {item.icon && <Icon name={item.icon} />}
              {item.label}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

/** JSON or a text, in the form in which it was written, with a button that copies it. */
export function Code({ value, label }: { value: Json | undefined; label: string }): VNode {
  const t = useTexts();
  const [copied, setCopied] = useState(false);
  const text = typeof value === "string" ? prettyJson(value) : JSON.stringify(value ?? null, null, 2);
  return (
    <div class="code">
      <pre tabIndex={0} aria-label={label} role="region">
        {text}
      </pre>
      <Button
        icon={copied ? "check" : "copy"}
        iconOnly
        kind="quiet"
        label={copied ? t.copied : t.copy}
        onClick={() => {
          void navigator.clipboard?.writeText(text).then(() => {
            setCopied(true);
            setTimeout(() => setCopied(false), 1500);
          });
        }}
      />
    </div>
  );
}

/** Tabs of a panel. Arrow keys move between them. */
export function Tabs<T extends string>(props: {
  label: string;
  tabs: { id: T; label: string; count?: number }[];
  selected: T;
  onSelect: (tab: T) => void;
}): VNode {
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    const at = props.tabs.findIndex((tab) => tab.id === props.selected);
    const next = props.tabs[(at + step + props.tabs.length) % props.tabs.length]!;
    props.onSelect(next.id);
    const list = event.currentTarget as HTMLElement;
    requestAnimationFrame(() => list.querySelector<HTMLElement>("[aria-selected=true]")?.focus());
    event.preventDefault();
  };
  return (
    <div class="tabs" role="tablist" aria-label={props.label} onKeyDown={onKeyDown}>
      {props.tabs.map((tab) => (
        <button
          type="button"
          role="tab"
          key={tab.id}
          data-tab={tab.id}
          aria-selected={tab.id === props.selected}
          tabIndex={tab.id === props.selected ? 0 : -1}
          onClick={() => props.onSelect(tab.id)}
        >
          {tab.label}
          {tab.count !== undefined && tab.count > 0 && <span class="count">{tab.count}</span>}
        </button>
      ))}
    </div>
  );
}

export function ErrorBar({ text, onClose }: { text: string; onClose?: () => void }): VNode | null {
  const t = useTexts();
  if (!text) return null;
  return (
    <div class="error-bar" role="alert">
      <Icon name="warning" />
      <span>{text}</span>
      {onClose && <Button icon="close" iconOnly kind="quiet" label={t.close} onClick={onClose} />}
    </div>
  );
}
