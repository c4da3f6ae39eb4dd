/** Finds the root of the plain files and builds their exporter, for verbs that need it. Spec: CL-101, CL-111. */
import { readFile } from "node:fs/promises"
import { homedir } from "node:os"
import { join, resolve } from "node:path"
import { Worker } from "node:worker_threads"
import { Effect, Layer, Record } from "effect"
import { Exporter, layerHold } from "@daybook/files/Exporter"
import * as ExporterThread from "@daybook/files/ExporterThread"
import type { SharedSpaces } from "@daybook/files/layout/Layout"
import * as Configuration from "../config/Configuration.ts"
import type { Place } from "../config/DatabasePath.ts"
import { UsageError } from "../support/Errors.ts"
import { rootPath } from "../support/Paths.ts"
import * as PlaceStore from "./PlaceStore.ts"

export const rootOf = (given: string | undefined) =>
  Effect.sync(() => (given === undefined ? rootPath(process.env, homedir(), process.cwd()) : resolve(given)))

/** The number of a group by its name in `/etc/group`. */
const groupNumber = (name: string): Effect.Effect<number, UsageError> =>
  Effect.tryPromise(() => readFile("/etc/group", "utf8")).pipe(
    Effect.orElseSucceed(() => ""),
    Effect.map((text) => text.split("\n").map((line) => line.split(":"))),
    Effect.map((groups) => Number(groups.find(([written]) => written === name)?.[2])),
    Effect.filterOrFail(
      Number.isSafeInteger,
      () =>
        new UsageError({
          message: `there is no group ${name} in /etc/group: give the shared space's group as a number`
        })
    )
  )

export const shared: Effect.Effect<SharedSpaces, UsageError> = Effect.flatMap(Configuration.load, ({ shared = {} }) =>
  Effect.all(
    Record.map(shared, ({ group, ...space }) =>
      typeof group === "string"
        ? Effect.map(groupNumber(group), (group) => ({ ...space, group }))
        : Effect.succeed({ ...space, ...(group === undefined ? {} : { group }) })
    )
  )
)

/** Starts the exporter's thread from the bundle: the command runs only as one (`scripts/bundle.mjs`). */
const spawn = () =>
  new Worker("const { workerData: at } = require('node:worker_threads'); require(at.loader).load(at.program)", {
    eval: true,
    resourceLimits: ExporterThread.resourceLimits,
    workerData: { loader: join(__dirname, "..", "..", "bin", "load.js"), program: join(__dirname, "exporter.js") }
  })

/** The exporter of a store under a root, in a thread, which reads only files. */
export const beside = (place: Place, root: string) =>
  Layer.unwrapEffect(
    Effect.map(shared, (shared) =>
      Layer.provideMerge(
        layerHold(root),
        place._tag === "Postgres" || place.path === ":memory:"
          ? Exporter.layer({ root, shared })
          : ExporterThread.layer({ filename: place.path, root, shared, spawn })
      )
    )
  )

/** The exporter with the store of a database, without anything that runs sessions, and so without a thread. */
export const layer = (place: Place, root: string) =>
  Layer.provideMerge(
    Layer.unwrapEffect(
      Effect.map(shared, (shared) => Layer.provideMerge(layerHold(root), Exporter.layer({ root, shared })))
    ),
    PlaceStore.layer(place)
  )
