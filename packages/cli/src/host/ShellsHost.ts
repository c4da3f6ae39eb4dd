/**
 * Builds the live shells of a process: the operator's settings from the configuration, and their record in the database.
 * Spec: SL-129, SL-200 in specs/shell.md, CF-43, CF-52 in specs/config.md.
 */
import { homedir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { Effect, Layer } from "effect"
import { childEnvironment } from "@daybook/core/child/ChildEnvironment"
import * as Sandbox from "@daybook/core/child/Sandbox"
import * as Identifiers from "@daybook/log/domain/Identifiers"
import * as ShellRecord from "@daybook/shell/record/ShellRecord"
import type { ShellSettings } from "@daybook/shell/ShellOptions"
import * as Shells from "@daybook/shell/Shells"
import * as Configuration from "../config/Configuration.ts"
import type { ShellSection } from "../config/Sections.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import { dataFolder, rootPath } from "../support/Paths.ts"
import * as PlaceStore from "./PlaceStore.ts"
import { ownFiles } from "./ShellHostPlace.ts"

/** Whole outputs are beside the database, unless the operator says otherwise. */
const settingsOf = ({ outputs = {}, transports, ...rest }: ShellSection, database: string): ShellSettings => {
  const own = dataFolder(process.env, homedir())
  const data = database === ":memory:" ? own : dirname(database)
  return {
    ...rest,
    transports: { ownKnownHosts: join(own, "known_hosts"), ...transports },
    ...(outputs === false ? {} : { outputs: { folder: join(data, "shell-outputs"), ...outputs } })
  }
}

/** Where whole outputs are kept; undefined if they are not. */
export const outputs = Effect.map(
  Effect.all([Configuration.load, DatabasePath.path]),
  ([{ shell = {} }, database]) => settingsOf(shell, database).outputs
)

const recorded = (place: DatabasePath.Place, title: string) =>
  ShellRecord.layerOwn({ location: { directory: process.cwd() }, title }).pipe(
    Layer.provide(Layer.merge(PlaceStore.layer(place), Identifiers.layer))
  )

const databaseFiles = (filename: string): ReadonlyArray<string> =>
  filename === ":memory:" ? [] : ["", "-wal", "-shm", "-journal"].map((end) => resolve(`${filename}${end}`))

/** Live shells that record in a session of this title; without a title, nothing is recorded. */
export const layer = (title: string | undefined) =>
  Layer.unwrapEffect(
    Effect.gen(function* () {
      const { environment, sandbox = {}, shell = {} } = yield* Configuration.load
      const place = title === undefined ? yield* DatabasePath.place : yield* DatabasePath.writable
      const record = title === undefined ? ShellRecord.none : recorded(place, title)
      const own = yield* ownFiles(rootPath(process.env, homedir(), process.cwd()), sandbox)
      const confined = Sandbox.layer({ ...sandbox, hidden: [...own, ...databaseFiles(place.path)] })
      const local = { env: childEnvironment(process.env, environment?.bash) }
      return Layer.provide(Shells.layer({ ...settingsOf(shell, place.path), local }), Layer.merge(record, confined))
    })
  )
