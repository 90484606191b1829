/** The team file: an editor with the checks and completions of the service. Saving reloads the team without a restart. */

import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { api, ApiError, errorText } from "../api/client";
import type { Problem, TeamFile } from "../api/types";
import { offsetOf } from "../logic/toml";
import { Button, ErrorBar } from "../parts/basics";
import { Icon } from "../parts/icons";
import { currentTeam, loadTeams, server } from "../state/server";
import { useTexts } from "../state/settings";
import { useStore } from "../state/store";
import { Editor } from "./editor";

export function FileView(): VNode {
  const t = useTexts();
  useStore(server, (value) => value.teams);
  const selected = useStore(server, (value) => value.team);
  const team = currentTeam()?.name ?? selected ?? "";
  const [file, setFile] = useState<TeamFile | null>(null);
  const [text, setText] = useState("");
  const [problems, setProblems] = useState<Problem[]>([]);
  const [error, setError] = useState("");
  const [isSaved, setIsSaved] = useState(false);
  const field = useRef<HTMLTextAreaElement | null>(null);

  const load = async (): Promise<void> => {
    if (team === "") return;
    try {
      const file = await api.file(team);
      setFile(file);
      setText(file.text);
      setError("");
    } catch (error) {
      setError(error instanceof ApiError && error.status === 404 ? t.noFile : errorText(error));
    }
  };
  useEffect(() => void load(), [team]);

  // Checks a moment after the last key. What is found in a text that was changed meanwhile is dropped.
  useEffect(() => {
    if (!file) return;
    let isCurrent = true;
    const timer = setTimeout(() => {
      api.checkFile(team, text).then(
        ({ problems }) => isCurrent && setProblems(problems),
        (error: unknown) => isCurrent && setError(errorText(error)),
      );
    }, 250);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [text, file]);

  const save = async (): Promise<void> => {
    if (!file) return;
    try {
      const saved = await api.saveFile(team, text, file.version);
      setFile({ ...file, text, version: saved.version, changed_on_disk: false });
      setProblems(saved.problems);
      setError("");
      setIsSaved(true);
      await loadTeams();
    } catch (error) {
      if (error instanceof ApiError && error.problems.length > 0) setProblems(error.problems);
      setError(error instanceof ApiError && error.status === 409 ? t.fileConflict : errorText(error));
    }
  };
  const reload = async (): Promise<void> => {
    try {
      await api.reload(team);
      await load();
      await loadTeams();
      setIsSaved(true);
    } catch (error) {
      setError(errorText(error));
    }
  };
  const jump = (problem: Problem): void => {
    if (problem.line === null || !field.current) return;
    const from = offsetOf(text, problem.line, problem.column ?? 1);
    const to = problem.end_line === null ? from : offsetOf(text, problem.end_line, problem.end_column ?? 1);
    field.current.focus({ preventScroll: true });
    field.current.setSelectionRange(from, Math.max(from, to));
    const lineHeight = 20;
    field.current.closest(".editor")?.scrollTo({ top: (problem.line - 6) * lineHeight });
  };

  const isChanged = file !== null && text !== file.text;
  const errors = problems.filter((problem) => problem.severity === "error").length;
  return (
    <div class="file-view">
      <header>
        <h1>{file?.name ?? t.teamFile}</h1>
        <p class="file-state" role="status" data-test="file-state">
          {isSaved && !isChanged ? t.savedAndReloaded : isChanged ? t.unsaved : ""}
        </p>
        <span class="spring" />
        {file?.changed_on_disk && <span class="badge warn">{t.changedOnDisk}</span>}
        <Button icon="retry" label={t.reload} onClick={() => void reload()} testId="reload" disabled={!file} />
        <Button kind="primary" icon="check" label={t.saveAndReload} onClick={() => void save()} testId="save" disabled={!file?.editable || !isChanged || errors > 0} />
      </header>
      <ErrorBar text={error} onClose={() => setError("")} />
      {file && (
        <div class="file-body">
          <Editor
            text={text}
            problems={problems}
            isReadOnly={!file.editable}
            isToml={file.format === "toml"}
            field={field}
            onChange={(next) => setText(next)}
            onSave={() => void save()}
            complete={(text, line, column) => api.completions(team, text, line, column)}
          />
          <section class="problems" aria-label={t.problems}>
            <h2>{problems.length === 0 ? t.noProblems : t.problemCount(problems.length)}</h2>
            <ul>
              {problems.map((problem, index) => (
                <li key={index} class={problem.severity}>
                  <button type="button" onClick={() => jump(problem)}>
                    <Icon name={problem.severity === "note" ? "help" : "warning"} />
                    <span>
                      {problem.message}
                      {(problem.suggestion || problem.help) && <span class="quiet-text"> {[problem.suggestion, problem.help].filter(Boolean).join(" ")}</span>}
                    </span>
                    {problem.line !== null && <span class="problem-place">{problem.line}:{problem.column ?? 1}</span>}
                  </button>
                </li>
              ))}
            </ul>
          </section>
        </div>
      )}
    </div>
  );
}
