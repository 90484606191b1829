/** Icons, drawn in the colour of the text. */

import type { VNode } from "preact";

const PATHS = {
  plus: "M8 3v10M3 8h10",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10Zm3.6-1.4L14 14",
  send: "M8 13V3M3.5 7.5 8 3l4.5 4.5",
  stop: "M4.5 4.5h7v7h-7z",
  clip: "M13 7.2 8 12.1a3.2 3.2 0 0 1-4.6-4.5l5.3-5.3a2.1 2.1 0 0 1 3 3L6.5 10.500a1 1 0 0 1-1.5-1.400L9.6 4.5",
  microphone: "M8 10a2 2 0 0 0 2-2V4a2 2 0 1 0-4 0v4a2 2 0 0 0 2 2Zm-4-2.500a4 4 0 0 0 8 0M8 11.500V14",
  retry: "M13 8a5 5 0 1 1-1.6-3.700M13 2.500v2.800h-2.8",
  edit: "M10.5 3.500l2 2L6 12l-2.6.6L4 10z",
  fork: "M5 3v10M5 9.500c0-3 6-1.5 6-5M11 4.500V3M9.5 4.5 11 3l1.5 1.500M3.5 11.5 5 13l1.5-1.5",
  compare: "M2.5 3.500h4.500v9H2.500zM9 3.500h4.500v9H9z",
  download: "M8 3v7M5 7.5 8 10.500l3-3M3 13h10",
  trash: "M3.5 5h9M6.5 5V3.500h3V5M4.5 5l.6 8h5.800l.6-8M7 7.500v3M9 7.500v3",
  close: "M4 4l8 8M12 4l-8 8",
  sun: "M8 10.500a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM8 2v1.200M8 12.800V14M2 8h1.200M12.8 8H14M3.8 3.800l.8.8M11.4 11.400l.8.8M3.8 12.200l.8-.8M11.4 4.600l.8-.8",
  moon: "M13 9.600A5.5 5.5 0 0 1 6.4 3a5.5 5.5 0 1 0 6.6 6.600Z",
  auto: "M8 13.500a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM8 2.500v11",
  person: "M8 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM3.5 13.500c.5-2.5 2.3-3.5 4.5-3.500s4 1 4.5 3.5",
  shield: "M8 2.5 12.5 4v4c0 3-2 4.7-4.5 5.500C5.5 12.7 3.5 11 3.5 8V4z",
  tool: "M10.5 2.500a3 3 0 0 0-2.9 3.900L3 11v2h2l4.6-4.600a3 3 0 0 0 3.7-3.700L11.5 6.5 9.5 4.500l1.7-1.700a3 3 0 0 0-.7-.3Z",
  arrow: "M2.5 8h10M9 4.5 12.5 8 9 11.5",
  back: "M13.5 8h-10M7 4.5 3.5 8 7 11.5",
  chevron: "M6 4l4 4-4 4",
  down: "M4 6l4 4 4-4",
  clock: "M8 13.500a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM8 5v3.200l2 1.3",
  check: "M3.5 8.500l3 3 6-7",
  model: "M4.5 4.500h7v7h-7zM6.5 2.500v2M9.5 2.500v2M6.5 11.500v2M9.5 11.500v2M2.5 6.500h2M2.5 9.500h2M11.5 6.500h2M11.5 9.500h2",
  turn: "M3 5h10M3 8h7M3 11h5",
  team: "M3 3h4v3.500H3zM9 9.500h4V13H9zM5 6.500c0 3 1 4.7 4 4.7",
  file: "M4 2.500h5L12 5.500v8H4zM9 2.500v3h3",
  chat: "M2.5 3.500h11v7.500H8l-3 2.500V11H2.500z",
  help: "M6 6.200a2 2 0 1 1 2.8 1.800c-.5.3-.8.6-.8 1.300M8 11.500v.2",
  globe: "M8 13.500a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM2.5 8h11M8 2.500c2 1.8 2 9.2 0 11M8 2.500c-2 1.8-2 9.2 0 11",
  copy: "M5.5 5.500h7.500V13H5.500zM3 10.500V3h7.5",
  timeline: "M3 4h6M5 8h8M4 12h5",
  more: "M3.5 8h.1M8 8h.1M12.5 8h.1",
  warning: "M8 2.5 14 13H2zM8 6.500v3M8 11.200v.2",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }): VNode {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
