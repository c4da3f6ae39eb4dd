/** The folders that sessions of HTTP clients may work in. Spec: HT-27 in specs/http.md. */
import { Effect } from "effect"
import { isWithin, realpath } from "@daybook/core/support/TextFile"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"

export interface Roots {
  /** Checks that the folder exists and is below a root, by its real path. */
  readonly check: (directory: string) => Effect.Effect<void, InvalidInput>
}

const refused = new InvalidInput({ field: "directory", details: "must be a folder below a root of the server" })

const real = (folder: string) => Effect.tryPromise(() => realpath(folder))

/** Folders below these, by their real paths at the time of a request; without roots every folder is permitted. */
export const make = (roots: ReadonlyArray<string>): Roots => ({
  check: (directory) =>
    roots.length === 0
      ? Effect.void
      : Effect.gen(function* () {
          const found = yield* Effect.mapError(real(directory), () => refused)
          const own = yield* Effect.forEach(roots, (root) => Effect.orElseSucceed(real(root), () => undefined))
          if (!own.some((root) => root !== undefined && isWithin(root, found))) return yield* refused
        })
})
