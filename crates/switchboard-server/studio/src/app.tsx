/** The frame of the page: the bar, the view that the address names, and what waits. */

import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { setToken } from "./api/client";
import { Button, Dialog, ErrorBar } from "./parts/basics";
import { Icon, type IconName } from "./parts/icons";
import { go, openConversation, route, type Route } from "./state/router";
import { connect, selectTeam, server } from "./state/server";
import { settings, useTexts } from "./state/settings";
import { useStore } from "./state/store";
import { CompareView } from "./views/compare";
import { FileView } from "./views/file";
import { TalkView } from "./views/talk";
import { TeamView } from "./views/team";
import { WaitingStrip } from "./views/waiting";

export function App(): VNode {
  const t = useTexts();
  const place = useStore(route);
  const status = useStore(server, (value) => value.status);
  const error = useStore(server, (value) => value.error);
  const [help, setHelp] = useState(false);
  useKeys(() => setHelp(true));
  if (status === "unauthorized") return <TokenForm />;
  return (
    <div class="app">
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>
        {t.skip}
      </a>
      <Bar place={place} onHelp={() => setHelp(true)} />
      <WaitingStrip place={place} />
      {status === "lost" && <ErrorBar text={`${t.connectionLost} ${error}`} />}
      <main id="main" tabIndex={-1}>
        <View place={place} />
      </main>
      {help && <Help onClose={() => setHelp(false)} />}
    </div>
  );
}

function View({ place }: { place: Route }): VNode {
  switch (place.view) {
    case "talk":
      return <TalkView place={place} />;
    case "compare":
      return <CompareView left={place.left} right={place.right} />;
    case "team":
      return <TeamView agent={place.agent} />;
    case "file":
      return <FileView />;
  }
}

function Bar({ place, onHelp }: { place: Route; onHelp: () => void }): VNode {
  const t = useTexts();
  const { theme, language } = useStore(settings);
  const teams = useStore(server, (value) => value.teams);
  const team = useStore(server, (value) => value.team);
  const hasFile = useStore(server, (value) => value.info !== null);
  const nextTheme = theme === "system" ? "light" : theme === "light" ? "dark" : "system";
  const themeIcon: IconName = theme === "system" ? "auto" : theme === "light" ? "sun" : "moon";
  const link = (to: Route, icon: IconName, label: string, active: boolean): VNode => (
    <button type="button" class="nav" aria-current={active ? "page" : undefined} onClick={() => go(to)} data-test={`nav-${to.view}`}>
      <Icon name={icon} />
      <span>{label}</span>
    </button>
  );
  return (
    <header class="bar">
      <button type="button" class="brand" onClick={() => openConversation(null)} aria-label={t.home}>
        <img src="/icon.svg" width="22" height="22" alt="" />
        <span>Switchboard</span>
      </button>
      {teams.length > 1 && (
        <select aria-label={t.team} value={team ?? ""} onChange={(event) => selectTeam(event.currentTarget.value)}>
          {teams.map((candidate) => (
            <option key={candidate.name} value={candidate.name}>
              {candidate.name}
            </option>
          ))}
        </select>
      )}
      <nav aria-label={t.navigation}>
        {link({ view: "talk", id: null, at: null, row: null }, "chat", t.conversations, place.view === "talk" || place.view === "compare")}
        {link({ view: "team", agent: null }, "team", t.team, place.view === "team")}
        {hasFile && link({ view: "file" }, "file", t.teamFile, place.view === "file")}
      </nav>
      <div class="bar-end">
        <Button icon="help" iconOnly kind="quiet" label={t.keys} onClick={onHelp} testId="help" />
        <button
          type="button"
          class="button quiet language"
          onClick={() => settings.update({ language: language === "en" ? "zh" : "en" })}
          aria-label={t.otherLanguage}
          title={t.otherLanguage}
          data-test="language"
        >
          {language === "en" ? "中" : "EN"}
        </button>
        <Button
          icon={themeIcon}
          iconOnly
          kind="quiet"
          label={t.theme(theme)}
          onClick={() => settings.update({ theme: nextTheme })}
          testId="theme"
        />
      </div>
    </header>
  );
}

/** Asks for the token that the program has printed, or a key. */
function TokenForm(): VNode {
  const t = useTexts();
  const [value, setValue] = useState("");
  return (
    <main class="token" id="main">
      <img src="/icon.svg" width="44" height="44" alt="" />
      <h1>{t.tokenTitle}</h1>
      <p>{t.tokenText}</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const token = /#token=([^&\s]+)/.exec(value);
          setToken(token ? decodeURIComponent(token[1]!) : value);
          server.update({ status: "connecting" });
          void connect();
        }}
      >
        <label>
          {t.tokenLabel}
          <input type="password" autocomplete="off" value={value} onInput={(event) => setValue(event.currentTarget.value)} autofocus />
        </label>
        <button type="submit" class="button primary">
          {t.open}
        </button>
      </form>
    </main>
  );
}

function Help({ onClose }: { onClose: () => void }): VNode {
  const t = useTexts();
  return (
    <Dialog title={t.keys} onClose={onClose}>
      <dl class="keys">
        {t.keyTable.map(([key, text]) => (
          <div key={key}>
            <dt>
              {key.split(" ").map((part) => (
                <kbd key={part}>{part}</kbd>
              ))}
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

/** The keys that work everywhere but in fields. */
function useKeys(openHelp: () => void): void {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      const target = event.target as HTMLElement;
      const isField = target.matches("input, textarea, select, [contenteditable]");
      if ((event.ctrlKey || event.metaKey) && event.key === "k") {
        focusSearch();
      } else if (isField || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) {
        return;
      } else if (event.key === "/") focusSearch();
      else if (event.key === "n") openConversation(null);
      else if (event.key === "?") openHelp();
      else if (event.key === "t") go({ view: "team", agent: null });
      else if (event.key === "f") go({ view: "file" });
      else if (event.key === "c") openConversation(null);
      else if (event.key === "w") document.querySelector<HTMLElement>("[data-test=waiting-open]")?.click();
      else if (event.key === "m") document.querySelector<HTMLElement>("#message")?.focus();
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
}

function focusSearch(): void {
  if (route.value.view !== "talk") openConversation(null);
  requestAnimationFrame(() => {
    document.querySelector<HTMLElement>("[data-pane=list]")?.click();
    requestAnimationFrame(() => document.getElementById("search")?.focus());
  });
}
