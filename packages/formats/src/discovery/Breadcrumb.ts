/** Remembers a terminal's session in a file of two lines: working directory and log. Spec: FM-96, FM-97 (OP-2). */
import { join } from "node:path"
import { Effect, Option } from "effect"
import { SessionStorage, type StorageFailed } from "../storage/SessionStorage.ts"

/** Variables by which terminals name a window, a pane or a session. */
const variables = ["KITTY_WINDOW_ID", "TMUX_PANE", "WEZTERM_PANE", "TERM_SESSION_ID", "WT_SESSION", "STY", "WINDOWID"]

/** A name for a file: letters, digits, dots and hyphens. */
const fileName = (text: string): string =>
  text
    .replace(/[^A-Za-z0-9.-]+/g, "-")
    .replace(/^[.-]+/, "")
    .slice(0, 100)

/** The id of the terminal: from its device, else from its environment. */
export const terminalID = (
  tty: string | undefined,
  environment: Readonly<Record<string, string | undefined>>
): Option.Option<string> => {
  const device = tty === undefined ? "" : fileName(tty.replace(/^\/dev\//, ""))
  if (device !== "") return Option.some(device)
  for (const name of variables) {
    const value = fileName(environment[name] ?? "")
    if (value !== "") return Option.some(`${name.toLowerCase().replaceAll("_", "-")}-${value}`)
  }
  return Option.none()
}

/** Where the breadcrumbs are, such as `~/.xcsh/agent/terminal-sessions`, and the terminal's id. */
export interface Terminal {
  readonly folder: string
  readonly id: string
}

export const write = (
  { folder, id }: Terminal,
  cwd: string,
  path: string
): Effect.Effect<void, StorageFailed, SessionStorage> =>
  Effect.gen(function* () {
    const storage = yield* SessionStorage
    yield* storage.ensureDir(folder)
    yield* storage.writeText(join(folder, fileName(id)), `${cwd}\n${path}\n`)
  })

/** The session of the terminal, if it worked in this directory and its log still exists. */
export const read = (
  { folder, id }: Terminal,
  cwd: string
): Effect.Effect<Option.Option<string>, StorageFailed, SessionStorage> =>
  Effect.gen(function* () {
    const storage = yield* SessionStorage
    const text = yield* Effect.catchTag(storage.readText(join(folder, fileName(id))), "FileMissing", () =>
      Effect.succeed("")
    )
    const [directory, path = ""] = text.split(/\r?\n/)
    return directory === cwd && path !== "" && (yield* storage.exists(path)) ? Option.some(path) : Option.none()
  })
