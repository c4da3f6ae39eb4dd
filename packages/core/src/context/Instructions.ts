/**
 * Builds context sources from instructions: one source per class, whose value is the list of its files with their
 * texts. An update contains only new or changed files; after a removal, the complete remaining list replaces the
 * earlier one. Spec: specs/context.md CX-38..CX-42 (EP-7, EP-12).
 */
import * as fs from "node:fs/promises"
import { Effect, Schema } from "effect"
import { quotedPath } from "../support/QuotedPath.ts"
import { type InstructionReader, maximumBytes } from "./InstructionFile.ts"
import {
  absent,
  available,
  type ContextSource,
  type ContextTurn,
  type Observation,
  source,
  unavailable
} from "./SystemContext.ts"

/** One file or address. `text` is absent while it cannot be loaded. */
export const Entry = Schema.Struct({
  path: Schema.String,
  text: Schema.optionalWith(Schema.String, { exact: true })
})
export type Entry = typeof Entry.Type

const Instructions = Schema.Array(Entry)
export type Instructions = typeof Instructions.Type

/** Maximum characters of one class, texts and paths together: room for one long file. */
export const maximumTotal = maximumBytes

/** Maximum files that are listed individually as not shown. */
const maximumNamed = 32

/** A placeholder for a text that is not shown; `more` says what else is omitted with it. */
export const notShown = (path: string, why: string, more = ""): Entry => ({
  path,
  text: `[Not shown${more}: ${why}.]`
})

/** Replaces texts that do not fit by placeholders. */
export const bounded = (entries: Instructions): Instructions => {
  const shown: Array<Entry> = []
  let room = maximumTotal
  let named = 0
  for (const [index, entry] of entries.entries()) {
    // Capped, so that a text that fills the room is not displaced by its truncation note.
    const size = Math.min(entry.path.length + (entry.text?.length ?? 0), maximumTotal)
    if (size <= room) {
      room -= size
      shown.push(entry)
      continue
    }
    const left = entries.length - index - 1
    const last = ++named === maximumNamed && left > 0
    const why = `instructions of this kind may have ${maximumTotal} characters together`
    shown.push(notShown(entry.path, why, last ? `, nor are ${left} after it` : ""))
    if (last) break
  }
  return shown
}

const block = ({ path, text }: Entry): string =>
  text === undefined
    ? `Instructions are expected at ${quotedPath(path)}, but could not be loaded so far. They may follow later.`
    : `Instructions from ${quotedPath(path)}:\n${text}`

const blocks = (entries: Instructions) => entries.map(block).join("\n\n")

const named = (entries: Instructions) => entries.map(({ path }) => quotedPath(path)).join(", ")

/** The text of an update. `what` names the class: "the project's instructions". Pure. */
export const describeChange = (what: string, previous: Instructions, current: Instructions): string => {
  const before = new Map(previous.map(({ path, text }) => [path, text]))
  const now = new Set(current.map(({ path }) => path))
  const gone = previous.filter(({ path }) => !now.has(path))
  const stayed = current.filter(({ path }) => before.has(path))
  const order = previous.flatMap(({ path }) => (now.has(path) ? [path] : []))
  // Only files added at the end leave the precedence of the others unchanged.
  const inOrder = current.every(({ path }, index) => (index < order.length ? order[index] === path : !before.has(path)))
  if (gone.length > 0 || !inOrder) {
    const lost = gone.length === 0 ? "" : ` What came from ${named(gone)} no longer holds.`
    return `From here on, ${what} are the following and nothing else; they supersede all that were given before.${lost}\n\n${blocks(current)}`
  }
  const changed = stayed.filter(({ path, text }) => before.get(path) !== text)
  const added = current.filter(({ path }) => !before.has(path))
  return [
    ...(changed.length === 0
      ? []
      : [`Of ${what}, these changed; their new text supersedes the earlier one.\n\n${blocks(changed)}`]),
    ...(added.length === 0 ? [] : [`To ${what} these are added; all earlier ones still hold.\n\n${blocks(added)}`])
  ].join("\n\n")
}

const capital = (what: string) => `${what.slice(0, 1).toUpperCase()}${what.slice(1)}`

/** An entry that cannot be loaded now keeps the text that was told before. */
const keepTexts = (previous: Instructions, current: Instructions): Instructions => {
  const texts = new Map(previous.map(({ path, text }) => [path, text]))
  return current.map((entry) => {
    const told = texts.get(entry.path)
    return entry.text === undefined && told !== undefined ? { path: entry.path, text: told } : entry
  })
}

/** A context source for one class of instructions. An empty list is absent. `load` must return a `bounded` list. */
export const instructionSource = (options: {
  readonly key: string
  /** Names the class, in the plural: "the project's instructions". */
  readonly what: string
  /** A sentence about the class, such as its order of precedence. */
  readonly rule: string
  readonly load: (turn: ContextTurn) => Effect.Effect<Observation<Instructions>, unknown>
}): ContextSource =>
  source({
    key: options.key,
    schema: Instructions,
    load: (turn) =>
      Effect.map(options.load(turn), (seen) => {
        if (seen._tag !== "Available") return seen
        return seen.value.length === 0 ? absent : seen
      }),
    baseline: (entries) => `${capital(options.what)} follow. ${options.rule}\n\n${blocks(entries)}`,
    update: (previous, current) => describeChange(options.what, previous, current),
    removed: (previous) =>
      `${capital(options.what)} are gone: nothing that came from ${named(previous)} holds any longer.`,
    keep: keepTexts
  })

/** A place for instructions: the first of its files that has a text is used. */
export interface Candidate {
  readonly files: ReadonlyArray<string>
  /** The canonical folder that must contain the real path. */
  readonly within?: string
  /** Returns why a file must not be read; then only its name is shown. */
  readonly withheld?: (file: string) => string | undefined
}

const isThere = (path: string) =>
  Effect.promise(() =>
    fs.lstat(path).then(
      (stats) => !stats.isDirectory(),
      () => false
    )
  )

/**
 * Reads the candidates in order, within the room. An existing file that cannot be read makes the result unavailable
 * (EP-11).
 */
export const loadFiles = Effect.fnUntraced(function* (reader: InstructionReader, candidates: ReadonlyArray<Candidate>) {
  const entries: Array<Entry> = []
  const seen = new Set<string>()
  for (const { files, withheld, within } of candidates) {
    for (const path of files) {
      const why = withheld?.(path)
      if (why !== undefined) {
        if (yield* isThere(path)) entries.push(notShown(path, why))
        continue
      }
      const found = yield* reader.read(path, within)
      if (found._tag === "Unreadable") return unavailable
      if (found._tag !== "Found") continue
      // Two names of the same file count once.
      if (!seen.has(found.file.real)) entries.push({ path, text: found.file.text })
      seen.add(found.file.real)
      break
    }
  }
  return available(bounded(entries))
})
