/** Normalizes Locations: two spellings of one path are one Location. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { Effect } from "effect"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import type { Location } from "@daybook/log/domain/Values"

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
