/** Locations as keys: two spellings of one place are one Location. */
import { FileSystem, Path } from "@effect/platform"
import { lstat } from "node:fs/promises"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import type { Location } from "./Schemas.ts"
import { InvalidInput } from "./Sessions.ts"

/** A string that is equal for equal Locations. */
export const locationKey = ({ directory, workspaceID }: Location): string =>
  JSON.stringify([directory, workspaceID ?? null])

/** The Location with its real path. The folder must be there: a session is for work in it. */
export const canonical = Effect.fn("Locations.canonical")(function* (location: Location) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const absolute = path.resolve(location.directory)
  const refuse = (details: string) => new InvalidInput({ field: "directory", details })
  const real = yield* Effect.mapError(fs.realPath(absolute), () => refuse(`there is no folder ${absolute}`))
  const info = yield* Effect.mapError(fs.stat(real), () => refuse(`${absolute} cannot be read`))
  if (info.type !== "Directory") return yield* refuse(`${absolute} is no folder`)
  return { ...location, directory: real }
})

/** The project that a folder belongs to: the nearest folder upwards that has a `.git`, or else the folder itself. */
export const projectRoot = (directory: string): Effect.Effect<string> => {
  const from = (folder: string): Effect.Effect<string> =>
    Effect.matchEffect(
      Effect.tryPromise(() => lstat(join(folder, ".git"))),
      {
        onSuccess: () => Effect.succeed(folder),
        onFailure: () => (dirname(folder) === folder ? Effect.succeed(directory) : from(dirname(folder)))
      }
    )
  return from(directory)
}
