/**
 * Discovers instruction files: a successful read inside the Location permanently adds those of the folders on the path
 * to the file. They are shown from the next safe boundary on. Location-scoped.
 * Spec: specs/context.md CX-26, CX-43, CX-49.
 */
import * as path from "node:path"
import { Context, Effect, Layer } from "effect"
import { CurrentLocation } from "@daybook/log/domain/Values"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { draft } from "@daybook/log/events/SessionEvents"
import { EventLog, type LogUnavailable } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { notCounting, projectAt } from "../trust/Project.ts"
import { foldersBetween, isOwnBelow } from "../trust/ProjectRoot.ts"
import { ProjectTrust } from "../trust/ProjectTrust.ts"
import { ContextSettings } from "./ContextSettings.ts"
import { makeReader } from "./InstructionFile.ts"
import { ofFolder } from "./sources/InstructionFiles.ts"
import type { ContextTurn } from "./SystemContext.ts"

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

/** Discovery for the current Location. */
export const layer = Layer.effect(InstructionDiscovery, make)
