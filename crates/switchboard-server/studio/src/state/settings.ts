/** The reader's choices: theme and language. */

import { Store, useStore } from "./store";
import { en, type Texts } from "../text/en";
import { zh } from "../text/zh";

export type Theme = "system" | "light" | "dark";
export type Language = "en" | "zh";

interface Settings {
  theme: Theme;
  language: Language;
}

const KEY = "switchboard.settings";

function stored(): Partial<Settings> {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Settings>;
  } catch {
    return {};
  }
}

const saved = stored();

export const settings = new Store<Settings>({
  theme: saved.theme ?? "system",
  language: saved.language ?? (navigator.language.startsWith("zh") ? "zh" : "en"),
});

function apply(): void {
  const { theme, language } = settings.value;
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

settings.subscribe(() => {
  localStorage.setItem(KEY, JSON.stringify(settings.value));
  apply();
});
apply();

/** Takes the language that the program was started with, unless the reader has chosen one. */
export function suggestLanguage(language: string): void {
  if (saved.language === undefined && stored().language === undefined && (language === "zh" || language === "en")) {
    settings.update({ language });
  }
}

export function texts(): Texts {
  return settings.value.language === "zh" ? zh : en;
}

/** The texts of the page in the reader's language. */
export function useTexts(): Texts {
  return useStore(settings, (value) => value.language) === "zh" ? zh : en;
}

export function locale(): string {
  return settings.value.language === "zh" ? "zh-CN" : "en-GB";
}
