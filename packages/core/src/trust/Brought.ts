/**
 * Lists what a project brings that a session would follow: instruction files, `.daybook`, and the origin of a clone.
 * The walk is bounded, follows no link, and reads each file once. Spec: TR-4..TR-6 in specs/security.md.
 */
import { createHash } from "node:crypto"
import { constants, type Dirent, lstatSync } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Schema } from "effect"
import { codeOf, isAbsent } from "@daybook/log/support/SystemError"
import { isWithin, readAtMost, stampOf } from "../support/TextFile.ts"
import { holding } from "./ProjectTrust.ts"

/** One item that a project brings. The hash detects changes; small texts are kept to show what changed. */
export const Brought = Schema.Struct({
  /** Relative to the project's root, with `/`. */
  path: Schema.NonEmptyString,
  kind: Schema.Literal("instructions", "agent", "template", "skill", "other", "link", "clone"),
  hash: Schema.String,
  text: Schema.optionalWith(Schema.String, { exact: true })
})
export type Brought = typeof Brought.Type

/** Maximum numbers of folders and entries visited, levels, items listed, and bytes hashed and kept per file. */
export const limits = { folders: 1_000, entries: 20_000, depth: 16, things: 500, hashed: 1024 * 1024, kept: 16 * 1024 }
const keptInAll = 512 * 1024

const instructionNames: ReadonlySet<string> = new Set(["AGENTS.md", "CLAUDE.md"])

/** Folders whose files are not the project's own instructions. */
const skipped: ReadonlySet<string> = new Set([".git", "node_modules"])

const sha256 = (bytes: Uint8Array | string) => createHash("sha256").update(bytes).digest("hex")

const kindOf = (relative: string): Brought["kind"] => {
  if (instructionNames.has(path.posix.basename(relative)) && !relative.startsWith(".daybook/")) return "instructions"
  const [, kind] = relative.split("/")
  return kind === "agents" ? "agent" : kind === "templates" ? "template" : kind === "skills" ? "skill" : "other"
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

const textOf = (bytes: Uint8Array): string | undefined => {
  try {
    return bytes.length <= limits.kept ? utf8.decode(bytes) : undefined
  } catch {
    return undefined
  }
}

/** The first bytes of a regular file. Never follows a link and never waits for a writer. */
const head = async (file: string, limit: number): Promise<Uint8Array> => {
  const handle = await fs.open(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) return new Uint8Array()
    return await readAtMost(handle, Math.min(limit, stats.size + 1))
  } finally {
    await handle.close()
  }
}

/** Unchanged items by path: checking one again costs an `lstat`. */
type CheckedItems = Map<string, { readonly stamp: string; readonly thing: Brought }>
const mostKnown = 2_000
const freshMillis = 2_000

const lookAt = async (known: CheckedItems, root: string, relative: string): Promise<Brought | undefined> => {
  const file = path.join(root, ...relative.split("/"))
  const kind = kindOf(relative)
  try {
    // Synchronous, because it runs before every decision: waiting for a thread would take longer than the call.
    const stats = lstatSync(file, { bigint: true, throwIfNoEntry: false })
    if (stats === undefined || stats.isDirectory()) return undefined
    if (stats.isSymbolicLink()) {
      const to = await fs.readlink(file)
      // The target's content is part of the hash: a target in the project may change while the link does not.
      const target = await fs.realpath(file).then(
        (real) => head(real, limits.hashed),
        () => new Uint8Array()
      )
      return { path: relative, kind: "link", hash: sha256(`${to}\0${sha256(target)}`), text: to.slice(0, 4_096) }
    }
    if (!stats.isFile()) return { path: relative, kind, hash: "special" }
    const stamp = stampOf(stats)
    const before = known.get(file)
    if (before?.stamp === stamp) return before.thing
    const bytes = await head(file, limits.hashed)
    // The rest of a larger file is never read, so its size is enough.
    const hash = stats.size > limits.hashed ? `${sha256(bytes)}:${stats.size}` : sha256(bytes)
    const text = textOf(bytes)
    const thing: Brought = { path: relative, kind, hash, ...(text === undefined ? {} : { text }) }
    if (known.size >= mostKnown) known.clear()
    // A second write within one clock tick would have the same times, so recent files are read again.
    if (Number(stats.ctimeNs / 1_000_000n) < Date.now() - freshMillis) known.set(file, { stamp, thing })
    return thing
  } catch (cause) {
    return isAbsent(cause) ? undefined : { path: relative, kind, hash: `unreadable:${codeOf(cause)}` }
  }
}

const maximumConfig = 64 * 1024
const remoteUrl = /^[^#;\n]*?\b(?:push)?url[ \t]*=[ \t]*(.*)$/gim

/** The remotes in a folder `.git`, or the target of a file or link of that name; `undefined` without a remote. */
const originOf = async (git: string): Promise<string | undefined> => {
  const stats = await fs.lstat(git)
  if (stats.isSymbolicLink()) return fs.readlink(git)
  if (!stats.isDirectory()) return new TextDecoder().decode(await head(git, maximumConfig)).trim()
  const file = path.join(git, "config")
  // Git follows a link and reads a file of any length, and what it reads may have a remote.
  const { size } = await fs.stat(file)
  if ((await fs.lstat(file)).isSymbolicLink()) return fs.readlink(file)
  const text = new TextDecoder().decode(await head(file, maximumConfig))
  const urls = [...text.matchAll(remoteUrl)].map(([, url = ""]) => url.trim())
  if (/^[ \t]*\[include/im.test(text) || size > maximumConfig) urls.push(sha256(text))
  return urls.length === 0 ? undefined : urls.join("\n")
}

/** The origin of a clone. One that cannot be read may be a clone. */
const clone = async (root: string): Promise<Brought | undefined> => {
  const origin = await originOf(path.join(root, ".git")).catch((cause: unknown) =>
    isAbsent(cause) ? undefined : "unreadable"
  )
  return origin === undefined
    ? undefined
    : { path: ".git", kind: "clone", hash: sha256(origin), text: origin.slice(0, 4_096) }
}

interface Walk {
  readonly root: string
  readonly found: Array<string>
  folders: number
  entries: number
  /** The project exceeds the bounds. */
  more: boolean
}

const newWalk = (root: string): Walk => ({ root, found: [], folders: 0, entries: 0, more: false })

/** The sorted entries of a folder; empty if it cannot be listed. */
const namesIn = async (walk: Walk, folder: string) => {
  const entries: Array<Dirent> = []
  try {
    for await (const entry of await fs.opendir(folder)) {
      if (++walk.entries > limits.entries) {
        walk.more = true
        break
      }
      entries.push(entry)
    }
  } catch {
    return []
  }
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** Walks the folders below `top`, nearest first. `enter` decides whether to walk into an entry. */
const walkDown = async (
  walk: Walk,
  top: string,
  enter: (relative: string, entry: Dirent) => Promise<boolean>,
  wanted: (name: string) => boolean
) => {
  let level = [top]
  for (let depth = 0; level.length > 0; depth++) {
    const next: Array<string> = []
    for (const folder of level) {
      walk.more ||= ++walk.folders > limits.folders || depth > limits.depth
      if (walk.more) return
      for (const entry of await namesIn(walk, path.join(walk.root, folder))) {
        const relative = folder === "" ? entry.name : `${folder}/${entry.name}`
        if (await enter(relative, entry)) next.push(relative)
        if (entry.isDirectory() || !wanted(entry.name)) continue
        walk.more ||= walk.found.length >= limits.things
        if (!walk.more) walk.found.push(relative)
      }
    }
    level = next
  }
}

/** Enters folders of `.daybook`, and links to folders of the project, because files are read through them. */
const inDaybook = (root: string) => async (relative: string, entry: Dirent) => {
  if (!entry.isSymbolicLink()) return entry.isDirectory()
  const real = await fs.realpath(path.join(root, relative)).catch(() => undefined)
  return real !== undefined && isWithin(root, real) && (await fs.lstat(real)).isDirectory()
}

/** Enters the project's own folders, not those of other users. */
const inProject = (root: string) => async (relative: string, entry: Dirent) =>
  entry.isDirectory() &&
  !skipped.has(entry.name) &&
  relative !== ".daybook" &&
  holding(path.join(root, relative)) === "own"

/** The hash that marks content beyond the bounds; a project with it in `.daybook` cannot be trusted. */
export const beyond = "beyond"

/** Walks `.daybook`; lists `.daybook` itself if it is a link. */
const ofDaybook = async (root: string): Promise<Walk> => {
  const walk = newWalk(root)
  const top = await fs.lstat(path.join(root, ".daybook")).catch(() => undefined)
  if (top === undefined) return walk
  if (!top.isDirectory()) walk.found.push(".daybook")
  if (top.isDirectory() || top.isSymbolicLink()) await walkDown(walk, ".daybook", inDaybook(root), () => true)
  return walk
}

export const makeSurveyor = () => {
  const known: CheckedItems = new Map()

  const lookAll = async (root: string, relatives: Iterable<string>): Promise<ReadonlyArray<Brought>> => {
    const things: Array<Brought> = []
    let kept = 0
    for (const relative of relatives) {
      const thing = await lookAt(known, root, relative)
      if (thing === undefined) continue
      const { text, ...rest } = thing
      kept += text?.length ?? 0
      things.push(text === undefined || kept > keptInAll ? rest : thing)
    }
    return things
  }

  const gather = async (root: string, more: ReadonlyArray<string>): Promise<ReadonlyArray<Brought>> => {
    const daybook = await ofDaybook(root)
    const things = await lookAll(root, new Set([...daybook.found, ...instructionNames, ...more]))
    const from = await clone(root)
    const rest: ReadonlyArray<Brought> = daybook.more ? [{ path: ".daybook/...", kind: "other", hash: beyond }] : []
    return [...things, ...rest, ...(from === undefined ? [] : [from])].sort((a, b) => (a.path < b.path ? -1 : 1))
  }

  return {
    /** One item's current state; undefined if it does not exist. */
    look: (root: string, relative: string) => lookAt(known, root, relative),
    /** What counts without a walk through the project: `.daybook`, the root's instructions, the clone. */
    atRoot: (root: string) => gather(root, []),
    /** Everything that the project brings. */
    survey: async (root: string) => {
      const walk = newWalk(root)
      await walkDown(walk, "", inProject(root), (name) => instructionNames.has(name))
      return gather(root, walk.found)
    }
  }
}
