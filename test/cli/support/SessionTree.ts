/** Writes the files of sessions by hand, in the documented layout, for tests of `ctx`. */
import { createHash } from "node:crypto"
import { lstatSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** The files of one session; omitted ones are those of an empty session. */
export interface Files {
  readonly messages?: string
  readonly events?: string
  readonly latest?: string
  readonly state?: string
  readonly cwd?: string
  readonly updated?: string
  readonly meta?: unknown
}

export const uid = process.getuid?.() ?? 0

/** The folder of an agent's sessions. */
export const houseOf = (root: string, agent = "coder"): string =>
  join(root, "home", String(uid), "agent", agent, "session")

export const hashOf = (cwd: string): string => createHash("sha256").update(cwd).digest("hex")

/** Writes one session. */
export const writeSession = (house: string, name: string, files: Files = {}): string => {
  const folder = join(house, name)
  mkdirSync(join(folder, "context"), { recursive: true })
  const put = (file: string, text: string) => writeFileSync(join(folder, file), text, { mode: 0o600 })
  put("messages.jsonl", files.messages ?? "")
  put("events.jsonl", files.events ?? "")
  if (files.latest !== undefined) put("latest.md", files.latest)
  put("state", `${files.state ?? "idle"}\n`)
  put("cwd", `${files.cwd ?? "/"}\n`)
  put("created_at", "2026-01-02T03:04:05.006Z\n")
  put("updated_at", `${files.updated ?? "2026-01-02T03:04:05.006Z"}\n`)
  put("meta.json", `${JSON.stringify(files.meta ?? { version: 1 })}\n`)
  return folder
}

/** Writes the index. */
export const writeIndex = (
  house: string,
  index: {
    readonly list?: ReadonlyArray<string>
    readonly current?: string
    readonly byCwd?: Readonly<Record<string, string>>
  }
): void => {
  const folder = join(house, "index")
  mkdirSync(join(folder, "by-cwd"), { recursive: true })
  if (index.list !== undefined) writeFileSync(join(folder, "list"), index.list.map((name) => `${name}\n`).join(""))
  if (index.current !== undefined) writeFileSync(join(folder, "current"), `${index.current}\n`)
  for (const [cwd, name] of Object.entries(index.byCwd ?? {})) {
    writeFileSync(join(folder, "by-cwd", hashOf(cwd)), `${name}\n`)
  }
}

/** Every path below a folder, the folder included. */
export const everyPath = (folder: string): ReadonlyArray<string> => [
  folder,
  ...readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? everyPath(join(folder, entry.name)) : [join(folder, entry.name)]
  )
]

/**
 * Sets access times before the modification times: a `relatime` mount updates the access time of exactly such files.
 */
export const makeOld = (paths: ReadonlyArray<string>): void => {
  for (const path of paths) utimesSync(path, new Date("2001-01-01"), new Date("2002-02-02"))
}

/** The timestamps that a reader must not change. */
export const stamps = (paths: ReadonlyArray<string>): ReadonlyArray<string> =>
  paths.map((path) => {
    const { atimeNs, ctimeNs, ino, mode, mtimeNs, size } = lstatSync(path, { bigint: true })
    return [path, atimeNs, mtimeNs, ctimeNs, ino, mode, size].join(" ")
  })

/** A row of `messages.jsonl`. */
export const row = (role: string, content: unknown, more: Readonly<Record<string, unknown>> = {}): string =>
  `${JSON.stringify({ role, id: `msg_${role}`, time: "2026-01-02T03:04:05.006Z", ...more, content })}\n`

/** A block of text. */
export const text = (words: string) => [{ type: "text", text: words }]
