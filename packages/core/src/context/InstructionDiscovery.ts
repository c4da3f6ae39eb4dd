/**
 * Discovers instruction files: a successful read inside the Location permanently adds those of the folders on the path
 * to the file. They are shown from the next safe boundary on. Location-scoped. Spec: CX-23..CX-26, CX-43, CX-49 in
 * specs/context.md.
 */
import * as os from "node:os"
import * as path from "node:path"
import { Context, Effect, Layer } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { CurrentLocation } from "@daybook/log/domain/Values"
import { draft } from "@daybook/log/events/SessionEvents"
import { EventLog, type LogUnavailable } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { compile, isCostly, isGlob } from "../glob/Glob.ts"
import { walk } from "../glob/Walk.ts"
import { isWithin } from "../support/TextFile.ts"
import {
  foldersBetween,
  isOwnBelow,
  notApproved,
  notCounting,
  projectAt,
  ProjectTrust,
  type Trust,
  trustAll
} from "../trust/ProjectTrust.ts"
import { type InstructionReader, makeReader } from "./InstructionFile.ts"
import { type Candidate, instructionSource, loadFiles, notShown } from "./Instructions.ts"
import { absent, available, ContextSettings, type ContextSource, type ContextTurn } from "./SystemContext.ts"

// Sources of instructions from files: the user's, the host's, the project's, and those of folders that the session read
// in.

/** File names in a folder; `CLAUDE.md` is used only without an `AGENTS.md`. */
export const instructionNames: ReadonlyArray<string> = ["AGENTS.md", "CLAUDE.md"]

/** The instruction files of a folder, in order of preference. */
const ofFolder = (folder: string, within: string): Candidate => ({
  files: instructionNames.map((name) => path.join(folder, name)),
  within
})

/** `AGENTS.md` of the user's folder. */
export const userInstructions = (reader: InstructionReader, userFolder: string | undefined): ContextSource =>
  instructionSource({
    key: "instructions/1-global",
    what: "the user's own instructions",
    rule: "They hold in every project.",
    load: () =>
      userFolder === undefined
        ? Effect.succeed(absent)
        : loadFiles(reader, [{ files: [path.join(userFolder, "AGENTS.md")] }])
  })

/** Maximum files per pattern; the walk stops there. */
const maximumMatches = 100

/** Maximum depth of the walk. */
const deepest = 16

const gather = async (pattern: string, cwd: string, signal: AbortSignal): Promise<ReadonlyArray<string>> => {
  const names = pattern.split("/")
  const dynamic = names.findIndex(isGlob)
  const fixed = names.slice(0, dynamic)
  const folder = path.resolve(cwd, pattern.startsWith("/") ? `/${fixed.join("/")}` : fixed.join("/"))
  const glob = isCostly(pattern) ? undefined : compile(names.slice(dynamic).join("/"))
  if (glob === undefined) return []
  const { files } = await walk({ folder, glob, signal, most: maximumMatches, skipped: new Set(), deepest })
  return files.map((file) => path.join(folder, file)).sort()
}

/** The files that a pattern matches, sorted; a plain path matches itself. A walk that times out is unavailable. */
const matching = (pattern: string, directory: string) => {
  const [cwd, rest] = pattern.startsWith("~/") ? [os.homedir(), pattern.slice(2)] : [directory, pattern]
  return isGlob(rest)
    ? Effect.timeout(
        Effect.tryPromise((signal) => gather(rest, cwd, signal)),
        "5 seconds"
      )
    : Effect.succeed([path.resolve(cwd, rest)])
}

/** Files and globs that the host configured, in the order of the configuration. */
export const configuredInstructions = (
  reader: InstructionReader,
  directory: string,
  patterns: ReadonlyArray<string>,
  trust: Trust = trustAll
): ContextSource =>
  instructionSource({
    key: "instructions/2-configured",
    what: "the configured instructions",
    rule: "Where two of them disagree, the later one counts.",
    load: () =>
      Effect.gen(function* () {
        if (patterns.length === 0) return absent
        const files = yield* Effect.forEach(patterns, (pattern) => matching(pattern, directory))
        const project = yield* projectAt(trust, directory)
        // A file inside the project counts as the project's.
        const withheld = (file: string) => (isWithin(project.root, file) ? notCounting(project) : undefined)
        return yield* loadFiles(
          reader,
          files.flat().map((file) => ({ files: [file], withheld }))
        )
      })
  })

/** From the project root down to the Location. */
export const projectInstructions = (reader: InstructionReader, directory: string, trust: Trust): ContextSource =>
  instructionSource({
    key: "instructions/4-project",
    what: "the project's instructions",
    rule: "Each holds for its folder and everything below it; the file of the deeper folder counts more.",
    load: () =>
      Effect.flatMap(projectAt(trust, directory), (project) =>
        loadFiles(
          reader,
          foldersBetween(project.root, directory).map((folder) => ({
            ...ofFolder(folder, project.root),
            withheld: (file) => notApproved(project, file)
          }))
        )
      )
  })

/** Maximum discovered folders that are shown: each is read before every turn. */
const maximumShown = 64

/** The placeholder for the folders beyond the limit; their files are not read. */
const beyond = (folder: string, count: number) =>
  notShown(
    folder,
    `of the folders with instructions, the first ${maximumShown} that were found count`,
    count === 1 ? "" : `, nor are those of ${count - 1} folders found later`
  )

/** Instructions of folders below the Location that the session read in, in order of discovery. */
export const nestedInstructions = (
  reader: InstructionReader,
  directory: string,
  known: (turn: ContextTurn) => Effect.Effect<ReadonlyArray<string>, LogUnavailable>,
  trust: Trust = trustAll
): ContextSource =>
  instructionSource({
    key: "instructions/5-nested",
    what: "the instructions of folders that you read in",
    rule: "Each holds for its folder and everything below it; the file of the deeper folder counts more.",
    load: Effect.fnUntraced(function* (turn) {
      const inside = (yield* known(turn)).filter((each) => isWithin(directory, each))
      if (inside.length === 0) return absent
      const found = [...new Set(inside.map((each) => path.dirname(each)))]
      const folders = yield* Effect.filter(found, (folder) => isOwnBelow(directory, folder))
      const [first, rest] = [folders.slice(0, maximumShown), folders.slice(maximumShown)]
      const project = yield* projectAt(trust, directory)
      const seen = yield* loadFiles(
        reader,
        first.map((folder) => ({ ...ofFolder(folder, directory), withheld: (file) => notApproved(project, file) }))
      )
      return seen._tag === "Available" && rest[0] !== undefined
        ? available([...seen.value, beyond(rest[0], rest.length)])
        : seen
    })
  })

export class InstructionDiscovery extends Context.Tag("@daybook/core/InstructionDiscovery")<
  InstructionDiscovery,
  {
    /** Reports a successful read of a file by its canonical path. Never fails: errors are logged. */
    readonly discovered: (sessionID: SessionID, real: string) => Effect.Effect<void>
    /** The session's discovered files, in order of discovery. */
    readonly known: (
      turn: Pick<ContextTurn, "sessionID" | "marks">
    ) => Effect.Effect<ReadonlyArray<string>, LogUnavailable>
  }
>() {}

/** Maximum files per session. */
const maximumKnown = 200

/** Folders with files of third parties; their instructions are not the project's. */
const foreign: ReadonlySet<string> = new Set(["node_modules", ".git"])

const make = Effect.gen(function* () {
  const { directory } = yield* CurrentLocation
  const settings = yield* ContextSettings
  const trust = yield* ProjectTrust
  const log = yield* EventLog
  const store = yield* SessionStore
  const reader = makeReader()

  const known = Effect.fn("InstructionDiscovery.known")((sessionID: SessionID) =>
    store.instructionFiles(sessionID, maximumKnown)
  )

  const discover = Effect.fnUntraced(function* (sessionID: SessionID, real: string) {
    const folders = foldersBetween(directory, path.dirname(real)).slice(1)
    if (
      folders.length === 0 ||
      path
        .relative(directory, real)
        .split(path.sep)
        .some((name) => foreign.has(name))
    )
      return
    if (notCounting(yield* projectAt(trust, directory)) !== undefined) return
    const before = yield* known(sessionID)
    const seen = new Set(before.map((each) => path.dirname(each)))
    const found: Array<string> = []
    for (const folder of folders) {
      if (!(yield* isOwnBelow(directory, folder))) break
      if (seen.has(folder) || before.length + found.length >= maximumKnown) continue
      for (const file of ofFolder(folder, directory).files) {
        if ((yield* reader.read(file, directory))._tag !== "Found") continue
        found.push(file)
        break
      }
    }
    if (found.length === 0) return
    yield* log.append(sessionID, [draft("session.next.instructions.discovered", { paths: found })])
  })

  return InstructionDiscovery.of({
    known: ({ marks, sessionID }) =>
      settings.projectConfig && marks?.discovered !== false ? known(sessionID) : Effect.succeed([]),
    discovered: Effect.fn("InstructionDiscovery.discovered")(function* (sessionID, real) {
      if (!settings.projectConfig) return
      yield* Effect.catchAll(discover(sessionID, real), (error) =>
        Effect.logWarning("could not discover the instruction files for a file that was read", error)
      )
    })
  })
})

export const layer = Layer.effect(InstructionDiscovery, make)
