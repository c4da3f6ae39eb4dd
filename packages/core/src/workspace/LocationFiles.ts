/**
 * Resolves and opens the files of one Location: turns a path from a model into a canonical one. Uses `node:fs`, because
 * the checks need open flags and descriptors. `Permission.ts` decides who may do what.
 *
 * Checks use the real path, so a symbolic link out of the Location is refused. An opened file is checked again by its
 * descriptor, so a link created between check and opening is refused too. Outside Linux, where a descriptor's path is
 * not available, file numbers are compared. Not covered: a folder swapped for a link and back while it is listed;
 * outside Linux, also between the last check and a write; hard links. Spec: TO-13, TO-31..TO-33, PX-20.
 */
import { Context, Effect, Layer, type Scope } from "effect"
import { CurrentLocation } from "@daybook/log/domain/Values"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { ToolFailure } from "../domain/ToolError.ts"
import { makeKeyedLock } from "../support/KeyedLock.ts"
import type { Held, MakeFolder } from "./HeldFolder.ts"
import * as Opening from "./Opening.ts"
import { References } from "./References.ts"
import * as Resolution from "./Resolution.ts"
import type { OpenFile, Target, WritableTarget } from "./Target.ts"
import { ToolOutputStore } from "./ToolOutputStore.ts"

export class LocationFiles extends Context.Tag("@daybook/core/LocationFiles")<
  LocationFiles,
  {
    /** Resolves an existing path in the Location, `<reference>:<path>`, or `tool-output:<name>`. */
    readonly resolve: (sessionID: SessionID, name: string) => Effect.Effect<Target, ToolFailure>
    /** Resolves a file to write; its parents need not exist. Refuses a broken symbolic link, a folder or a device. */
    readonly resolveWritable: (name: string) => Effect.Effect<WritableTarget, ToolFailure>
    /** Resolves any folder of the machine, for an `external_directory` check; `inside`: it is in the Location. */
    readonly resolveFolder: (name: string) => Effect.Effect<Target & { readonly inside: boolean }, ToolFailure>
    /** Makes a glob that begins with an absolute path relative to the folder that it leads into. */
    readonly relativeGlob: (folder: Target, pattern: string) => Effect.Effect<string, ToolFailure>
    /** Opens a regular file or a folder for reading. Never blocks; refuses anything else. */
    readonly open: (target: Target) => Effect.Effect<OpenFile, ToolFailure, Scope.Scope>
    /**
     * Holds open the canonical folder to write to, so that nothing can replace it (TO-90). Creates it if it is missing.
     */
    readonly hold: (folder: string, name: string, make?: MakeFolder) => Effect.Effect<Held, ToolFailure, Scope.Scope>
    /** Serializes changes of one file. */
    readonly exclusively: (real: string) => <A, E, R>(change: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
    /** Fails if the path is no longer canonical, or no longer in the Location (or in `root`). */
    readonly recheck: (real: string, root?: string) => Effect.Effect<void, ToolFailure>
  }
>() {}

/** The files of a given folder, for code outside a Location. */
export const makeLocationFiles = (files: Resolution.Sources): LocationFiles["Type"] => ({
  resolve: (sessionID, name) => Resolution.resolve(files, sessionID, name),
  resolveWritable: (name) => Resolution.resolveWritable(files, name),
  resolveFolder: (name) => Resolution.resolveFolder(files, name),
  relativeGlob: (folder, pattern) => Resolution.relativeGlob(files, folder, pattern),
  open: Opening.open,
  hold: (folder, name, make) => Opening.hold(files, folder, name, make),
  exclusively: makeKeyedLock<string>(),
  recheck: (real, root) => Resolution.recheck(files, real, root)
})

const make = Effect.gen(function* () {
  const { directory } = yield* CurrentLocation
  const { locate } = yield* ToolOutputStore
  return makeLocationFiles({ directory, locate, references: yield* References })
})

export const layer: Layer.Layer<LocationFiles, never, CurrentLocation | ToolOutputStore> = Layer.effect(
  LocationFiles,
  make
)
