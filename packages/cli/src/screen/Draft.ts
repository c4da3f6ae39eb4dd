/**
 * Keeps the half-written prompt of a folder in a file, for the next screen there after a crash. A draft of a living
 * process belongs to its screen. Spec: SC-515 in specs/screen.md.
 */
import { createHash } from "node:crypto"
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"
import { isAlive } from "@daybook/log/support/Alive"
import { dataFolder } from "../support/Paths.ts"

export interface SavedDraft {
  readonly text: string
  readonly sessionID: string | undefined
  /** Removes its files: another draft holds the text now. */
  readonly taken: () => void
}

export interface Draft {
  /** Keeps the text; an empty one removes the file. Never fails: a draft is not worth an error. */
  readonly keep: (text: string, sessionID: string | undefined) => void
}

export const none: SavedDraft = { text: "", sessionID: undefined, taken: () => undefined }

/** Larger texts are not kept at each key. */
const longest = 1_000_000

const folderOf = (env: NodeJS.ProcessEnv) => join(dataFolder(env, homedir()), "drafts")
const prefixOf = (directory: string) => createHash("sha256").update(directory).digest("hex").slice(0, 24)

const abandoned = (folder: string, prefix: string): ReadonlyArray<string> =>
  readdirSync(folder)
    .filter((name) => {
      const [, pid] = new RegExp(`^${prefix}\\.(\\d+)$`).exec(name) ?? []
      return pid !== undefined && !isAlive(Number(pid))
    })
    .map((name) => join(folder, name))

/** Finds the text that screens of this folder left. */
export const recover = (directory: string, env: NodeJS.ProcessEnv = process.env): SavedDraft => {
  try {
    const left = abandoned(folderOf(env), prefixOf(directory))
    const all = left.map((path) => readFileSync(path, "utf8").split("\n"))
    const texts = all.map(([, ...lines]) => lines.join("\n")).filter((text) => text.trim() !== "")
    return {
      text: texts.join("\n\n"),
      sessionID: all[0]?.[0] || undefined,
      taken: () => left.forEach((path) => rmSync(path, { force: true }))
    }
  } catch {
    return none
  }
}

export const make = (directory: string, env: NodeJS.ProcessEnv = process.env): Draft => {
  const folder = folderOf(env)
  const path = join(folder, `${prefixOf(directory)}.${process.pid}`)
  let kept = ""
  return {
    keep: (text, sessionID) => {
      if (text === kept || text.length > longest) return
      try {
        if (text === "") rmSync(path, { force: true })
        else {
          mkdirSync(folder, { recursive: true, mode: 0o700 })
          writeFileSync(`${path}.new`, `${sessionID ?? ""}\n${text}`, { mode: 0o600 })
          renameSync(`${path}.new`, path)
        }
        kept = text
      } catch {
        // The disk may be full: typing goes on.
      }
    }
  }
}
