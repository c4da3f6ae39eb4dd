/** Normalizes Locations: two spellings of one path are one Location. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { Effect } from "effect"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import { validate } from "@daybook/log/domain/Validate"
import { Location } from "@daybook/log/domain/Values"

/** The Location with its real path. The folder must exist. */
export const canonical = Effect.fn("Locations.canonical")(function* (location: Location) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const absolute = path.resolve(location.directory)
  const refuse = (details: string) => new InvalidInput({ field: "directory", details })
  const real = yield* Effect.mapError(fs.realPath(absolute), () => refuse(`there is no folder ${absolute}`))
  const info = yield* Effect.mapError(fs.stat(real), () => refuse(`${absolute} cannot be read`))
  if (info.type !== "Directory") return yield* refuse(`${absolute} is not a folder`)
  return { ...location, directory: real }
})

export const make = Effect.gen(function* () {
  const platform = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const path = yield* Path.Path
  return {
    /** Validates and normalizes a caller's Location. */
    place: (location: Location) =>
      Effect.flatMap(validate("location", Location, location), (decoded) =>
        Effect.provide(canonical(decoded), platform)
      ),
    /**
     * The canonical path under which a folder's sessions are stored; if the folder is gone, the absolute form of the
     * given path.
     */
    folder: (directory: string) =>
      Effect.provide(canonical({ directory }), platform).pipe(
        Effect.map((location) => location.directory),
        Effect.catchTag("InvalidInput", () => Effect.succeed(path.resolve(directory)))
      )
  }
})

export type Locations = Effect.Effect.Success<typeof make>
